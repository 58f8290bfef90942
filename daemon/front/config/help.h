/* What the table of options says to people: the help, the sample file, the manual. */
#ifndef FRONT_CONFIG_HELP_H
#define FRONT_CONFIG_HELP_H

/* A flag that is no option: its name, with what follows it, and what it does. */
struct help_flag {
	const char *name, *text;
};

/* On standard output. The flags, which end with one without a name, come after the options. */
void help_print(const struct help_flag *flags);
void help_print_sample(void);

/* The part about the options, in roff, of a manual page. */
void help_print_manual(void);

#endif
