/* Texts made from the table of options: the help, the sample file, the manual. */
#ifndef FRONT_CONFIG_HELP_H
#define FRONT_CONFIG_HELP_H

/* A flag that is not an option: its name, with its argument if it has one, and its description. */
struct help_flag {
	const char *name, *text;
};

/* Both print to standard output. The array of flags, which the help lists after the options, ends
 * with a NULL name. */
void help_print(const struct help_flag *flags);
void help_print_sample(void);

/* Prints the manual page's section on options, in roff, to standard output. */
void help_print_manual(void);

#endif
