/* convolve: the command line client. A command shows something about the service; everything else
 * is a filter or a chain for images. The service alone knows filters and parameters. */
#include <curl/curl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "client/batch.h"
#include "client/interrupt.h"
#include "client/jobs.h"
#include "client/options.h"
#include "client/report.h"
#include "client/server.h"
#include "client/top.h"
#include "client/views.h"

static const struct command {
	const char *name;
	size_t operands; /* maximum */
	enum exit_code (*run)(const struct options *options, const struct server *server);
} commands[] = {
    {"filters", 1, views_filters}, {"devices", 0, views_devices}, {"jobs", SIZE_MAX, jobs_run},
    {"kernels", 0, views_kernels}, {"top", 0, top_run},
};

static enum exit_code run_command(const struct command *command, const struct options *options,
                                  const struct server *server)
{
	const char *wrong = options->parameter_count ? options->parameters[0].name
	                    : options->mask          ? "mask"
	                                             : NULL;

	if (wrong || options->operand_count > command->operands) {
		report_error("%s takes no %s%s; see convolve --help", command->name,
		             wrong ? "--" : "",
		             wrong ? wrong : options->operands[command->operands]);
		return EXIT_USAGE;
	}
	return command->run(options, server);
}

static enum exit_code run(const struct options *options)
{
	const struct command *command = commands;
	const struct command *const end = commands + sizeof commands / sizeof *commands;
	struct server server;
	enum exit_code status = server_init(&server, options);

	while (command < end && strcmp(command->name, options->command))
		command++;
	if (!status)
		status = command < end ? run_command(command, options, &server)
		                       : batch_run(options, &server);
	server_fini(&server);
	return status;
}

int main(int argc, char **argv)
{
	struct options options;
	enum exit_code status = options_parse(&options, argc, argv);

	report_init(options.quiet);
	interrupt_init();
	curl_global_init(CURL_GLOBAL_DEFAULT);
	if (status) {
		/* The message has been printed. */
	} else if (options.help || (options.command && !strcmp(options.command, "help"))) {
		options_print_help();
	} else if (options.version) {
		puts("convolve " PACKAGE_VERSION);
	} else if (!options.command) {
		report_error("no filter given; see convolve --help, or convolve filters");
		status = EXIT_USAGE;
	} else {
		status = run(&options);
	}
	report_clear();
	if (fflush(stdout) || ferror(stdout)) {
		report_error("cannot write to standard output");
		status = status ? status : EXIT_SOME_FAILED;
	}
	options_fini(&options);
	curl_global_cleanup();
	interrupt_end();
	return (int)status;
}
