/* Prints the help, the sample file and the manual from the table of options. */
#include "front/config/help.h"

#include <stdio.h>

#include "front/config/options.h"

/* What is printed about an option, besides its description. */
struct facts {
	char valid[256];
	const char *default_, *reload;
	const char *section, *about;
	bool first; /* the section's first option */
};

static struct facts facts_of(const struct option_row *row)
{
	static const char *const reloads[] = {
	    [OPTION_LIVE] = "changed by a reload",
	    [OPTION_START] = "changed by a restart",
	};
	struct facts f = {.reload = reloads[row->reload],
	                  .default_ = *row->default_ ? row->default_ : "none"};

	option_describe(row, f.valid, sizeof f.valid);
	f.section = option_section(row, &f.about, &f.first);
	return f;
}

void help_print(const struct help_flag *flags)
{
	printf("Usage: convolved [OPTION...]\n"
	       "Serves image filters over HTTP from the OpenCL devices of this host.\n");
	for (int i = 0; i < OPTIONS; i++) {
		struct facts f = facts_of(&options[i]);

		if (f.first)
			printf("\n%s, [%s]:\n", f.about, f.section);
		printf("  --%s %s\n        %s (%s; default: %s; %s)\n", options[i].name,
		       option_kind(&options[i]), options[i].text, f.valid, f.default_, f.reload);
	}
	puts("\nOther flags:");
	for (; flags->name; flags++)
		printf("  --%s\n        %s\n", flags->name, flags->text);
	puts("\nFlags override environment variables (CONVOLVED_MAX_BODY for --max-body), which "
	     "override the file\nand the defaults. SIGHUP reloads: all are read again; the log "
	     "names "
	     "changes that need a restart.");
}

void help_print_sample(void)
{
	puts(
	    "# Configuration of convolved: convolved --config FILE. Every option is here at its "
	    "default.\n"
	    "# Flags of the same names (--max-body) and environment variables (CONVOLVED_MAX_BODY) "
	    "override this\n"
	    "# file. Lines that begin with # are comments.");
	for (int i = 0; i < OPTIONS; i++) {
		struct facts f = facts_of(&options[i]);

		if (f.first)
			printf("\n# %s.\n[%s]\n", f.about, f.section);
		printf("\n# %s.\n# Valid: %s. Default: %s; %s.\n#%s=%s\n", options[i].text, f.valid,
		       f.default_, f.reload, options[i].name, options[i].default_);
	}
}

/* Prints a text with roff's special characters escaped. */
static void print_roff(const char *text)
{
	if (*text == '.' || *text == '\'')
		fputs("\\&", stdout);
	for (; *text; text++) {
		if (*text == '\\')
			fputs("\\e", stdout);
		else if (*text == '-')
			fputs("\\-", stdout);
		else
			putchar(*text);
	}
}

void help_print_manual(void)
{
	puts(".SH OPTIONS");
	for (int i = 0; i < OPTIONS; i++) {
		struct facts f = facts_of(&options[i]);

		if (f.first)
			printf(".SS [%s]\n%s.\n", f.section, f.about);
		fputs(".TP\n.BI ", stdout);
		print_roff(options[i].name);
		printf("= %s\n", option_kind(&options[i]));
		print_roff(options[i].text);
		fputs(".\nValid: ", stdout);
		print_roff(f.valid);
		fputs(".\nDefault: ", stdout);
		print_roff(f.default_);
		printf("; %s.\n", f.reload);
	}
}
