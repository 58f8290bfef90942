/* The front without its sockets: configuration, requests, admission, bodies, metrics, the loop. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/errand.h"
#include "base/loop.h"
#include "base/memfd.h"
#include "front/api/accept.h"
#include "front/api/request.h"
#include "front/api/routes.h"
#include "front/api/tokens.h"
#include "front/base/metrics.h"
#include "front/config/load.h"
#include "front/jobs/admission.h"
#include "front/jobs/shares.h"
#include "front/jobs/spool.h"
#include "front/listeners.h"
#include "front/workers/arenas.h"
#include "front/workers/device_table.h"
#include "front/workers/repertoire.h"
#include "front/workers/supervisor.h"
#include "front/workers/verified.h"
#include "link/link.h"

static struct problem problem;

static enum config_result load(struct config *settings, char **argv)
{
	int argc = 0;

	while (argv[argc])
		argc++;
	optind = 1;
	return config_load(settings, argc, argv);
}

static void test_config_flags(void **state)
{
	char *argv[] = {"convolved", "--arena-size", "2M",       "--listen", "unix:/a",
	                "--listen",  "1.2.3.4:5",    "--codecs", "3",        NULL};
	char *patterns[] = {
	    "convolved",     "--cors-origins", "*;https://a.example:8443", "--node",    "A-1_b.c",
	    "--socket-mode", "0777",           "--otlp-endpoint",          "https://a", NULL};
	struct config settings;

	(void)state;
	assert_int_equal(load(&settings, argv), CONFIG_RUN);
	assert_int_equal(settings.arena_size, 2 << 20);
	assert_int_equal(settings.codecs, 3);
	assert_int_equal(settings.listen.count, 2);
	assert_string_equal(settings.listen.item[1], "1.2.3.4:5");
	assert_int_equal(settings.max_jobs, 256);
	config_fini(&settings);
	assert_int_equal(load(&settings, patterns), CONFIG_RUN);
	assert_int_equal(settings.cors_origins.count, 2);
	config_fini(&settings);
}

/* Every option is one by its flag, whatever its number. */
static void test_config_every_flag(void **state)
{
	static char *const flags[][2] = {
#define SECTION(name, text)
#define OPTION(member, name, type, reload, default_, min, max, text) {"--" name, default_},
#include "front/config/options.def"
#undef SECTION
#undef OPTION
	};
	struct config settings;

	(void)state;
	for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
		char *argv[] = {"convolved", flags[i][0], flags[i][1], NULL};

		assert_int_equal(load(&settings, argv), CONFIG_RUN);
		config_fini(&settings);
	}
}

static void write_quota(const char *directory, const char *text)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof path, "%s/cpu.max", directory);
	f = fopen(path, "w");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static void remove_quota(const char *directory)
{
	char path[256];

	snprintf(path, sizeof path, "%s/cpu.max", directory);
	assert_int_equal(unlink(path) | rmdir(directory), 0);
}

static void test_cores(void **state)
{
	static const struct {
		const char *outer, *inner; /* cpu.max of a group and of one in it */
		unsigned cores;
	} cases[] = {{"max 100000\n", "max 100000\n", UINT_MAX},
	             {"max 100000\n", "200000 100000\n", 2},
	             {"150000 100000\n", "max 100000\n", 2},
	             {"100000 100000\n", "400000 100000\n", 1},
	             {"max 100000\n", "5000 100000\n", 1},
	             {"max 100000\n", "0 100000\n", 1},
	             {"", "100000", UINT_MAX},
	             {"x", "100000 0", UINT_MAX},
	             {"max 100000\n", "18446744073709551615 1\n", UINT_MAX}};
	char root[] = "/tmp/cores-XXXXXX", outer[64], inner[64];
	char long_path[5000] = "/";

	(void)state;
	assert_non_null(mkdtemp(root));
	snprintf(outer, sizeof outer, "%s/a", root);
	snprintf(inner, sizeof inner, "%s/a/b", root);
	assert_int_equal(mkdir(outer, 0700) | mkdir(inner, 0700), 0);
	assert_int_equal(cores_of_group(root, "/a/b"), UINT_MAX);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		write_quota(outer, cases[i].outer);
		write_quota(inner, cases[i].inner);
		assert_int_equal(cores_of_group(root, "/a/b"), cases[i].cores);
	}
	write_quota(root, "100000 100000\n");
	memset(long_path + 1, 'x', sizeof long_path - 2);
	assert_int_equal(cores_of_group(root, "/"), 1);
	assert_int_equal(cores_of_group(root, "/../b"), 1);
	assert_int_equal(cores_of_group(root, long_path), 1);
	assert_in_range(cores_usable(), 1, 1 << 16);
	remove_quota(inner);
	remove_quota(outer);
	remove_quota(root);
}

static void test_config_invalid(void **state)
{
	static char *const bad[][2] = {{"--codecs", "x"},
	                               {"--codecs", "65"},
	                               {"--arena-size", "1"},
	                               {"--arena-size", "2T"},
	                               {"--arena-size", "-1"},
	                               {"--arena-size", "99999999999G"},
	                               {"--log-level", "loud"},
	                               {"--log-format", "xml"},
	                               {"--nothing", "1"},
	                               {"--config", "/nonexistent"},
	                               {"--node", "a b"},
	                               {"--node", "a\n"},
	                               {"--socket-mode", "888"},
	                               {"--socket-mode", "1000"},
	                               {"--socket-mode", ""},
	                               {"--otlp-endpoint", "http://"},
	                               {"--otlp-endpoint", "ftp://a"},
	                               {"--cors-origins", "http://a/b"},
	                               {"--cors-origins", "*;a://b://c"},
	                               {"--cors-origins", "://a"}};
	struct config settings;

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		char *argv[] = {"convolved", bad[i][0], bad[i][1], NULL};

		assert_int_equal(load(&settings, argv), CONFIG_INVALID);
		config_fini(&settings);
	}
}

/* Flags come before the file, the file before the defaults. */
static void test_config_file(void **state)
{
	char path[] = "/tmp/convolved-test-XXXXXX";
	char *argv[] = {"convolved", "--config", path, "--codecs", "2", NULL};
	struct config settings;
	FILE *f = fdopen(mkstemp(path), "w");

	(void)state;
	fputs("# a comment\n[service]\nlisten=127.0.0.1:1;unix:/b\n[workers]\ncodecs=5\n"
	      "[limits]\njob-timeout=7\n",
	      f);
	fclose(f);
	assert_int_equal(load(&settings, argv), CONFIG_RUN);
	assert_int_equal(settings.codecs, 2);
	assert_int_equal(settings.job_timeout, 7);
	assert_int_equal(settings.listen.count, 2);
	config_fini(&settings);
	f = fopen(path, "a");
	fputs("colour=red\n", f);
	fclose(f);
	assert_int_equal(load(&settings, argv), CONFIG_INVALID);
	config_fini(&settings);
	unlink(path);
}

static void test_address(void **state)
{
	static const struct {
		const char *text;
		sa_family_t family; /* AF_UNSPEC: no address */
		bool tls, local;
	} cases[] = {
	    {"127.0.0.1:80", AF_INET, false, true},
	    {"tls:0.0.0.0:1", AF_INET, true, false},
	    {"[::1]:80", AF_INET6, false, true},
	    {"tls:[::ffff:127.0.0.9]:1", AF_INET6, true, true},
	    {"::1:80", AF_INET6, false, true},
	    {"[fd00::1]:80", AF_INET6, false, false},
	    {"unix:/a", AF_UNIX, false, true},
	    {"unix:", AF_UNSPEC, false, false},
	    {"localhost:80", AF_UNSPEC, false, false},
	    {"1.2.3.4", AF_UNSPEC, false, false},
	    {"tls:unix:/a", AF_UNSPEC, true, false},
	    {"[1.2.3.4:5", AF_UNSPEC, false, false},
	    {"", AF_UNSPEC, false, false},
	    {"]:1", AF_UNSPEC, false, false},
	};
	char longest[160] = "unix:";
	struct address a;

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		bool valid = cases[i].family != AF_UNSPEC;

		assert_int_equal(address_parse(cases[i].text, &a), valid);
		assert_int_equal(address_valid(cases[i].text), valid);
		assert_int_equal(a.socket.ss_family, cases[i].family);
		assert_int_equal(!a.size, !valid);
		assert_int_equal(a.tls, cases[i].tls);
		assert_int_equal(address_is_local((struct sockaddr *)&a.socket), cases[i].local);
	}
	memset(longest + 5, 'x', 107);
	assert_true(address_valid(longest));
	longest[5 + 107] = 'x';
	assert_false(address_valid(longest));
}

/* The defaults are a loopback address and a Unix socket; there may be no place for that one, unless
 * it was asked for. */
static void test_listen(void **state)
{
	char *standard[] = {"convolved", NULL};
	char *asked[] = {"convolved", "--listen", "unix:/nonexistent/socket", NULL};
	char *all[] = {"convolved",        "--agent-listen", "10.1.1.1:1",
	               "--metrics-listen", "tls:[::1]:2",    NULL};
	struct listener list[LISTENERS_MAX];
	struct config settings;

	(void)state;
	config = &settings;
	assert_int_equal(load(&settings, standard), CONFIG_RUN);
	assert_int_equal(listener_list(list), 2);
	for (int i = 0; i < 2; i++)
		assert_true(list[i].local && !list[i].at.tls && list[i].use == LISTENER_CLIENTS);
	assert_string_equal(list[0].at.text, "127.0.0.1:8700");
	assert_true(list[1].optional && !list[0].optional);
	assert_true(address_parse("unix:/nonexistent/socket", &list[1].at));
	assert_int_equal(listener_open(&list[1]), ERR_OK);
	assert_int_equal(list[1].fd, -1);
	config_fini(&settings);
	assert_int_equal(load(&settings, asked), CONFIG_RUN);
	assert_int_equal(listener_list(list), 1);
	assert_int_equal(listener_open(&list[0]), ERR_IO);
	config_fini(&settings);
	assert_int_equal(load(&settings, all), CONFIG_RUN);
	assert_int_equal(listener_list(list), 2 + 2);
	assert_true(list[2].use == LISTENER_METRICS && !strcmp(list[2].at.text, "[::1]:2"));
	assert_true(list[3].use == LISTENER_AGENT && !strcmp(list[3].at.text, "10.1.1.1:1"));
	config_fini(&settings);
}

/* A token's line reaches the terms of its jobs; errors leave them alone. */
static void test_tokens(void **state)
{
	static const char hash[] = /* SHA-256 of "a-token-of-some-length" */
	    "4f0d205b316ab19696f52d3dc08107a4186c12b117a2a23581353b462001edee";
	char path[] = "/tmp/convolved-test-XXXXXX";
	struct config settings = {.tokens = path};
	struct job_terms terms = {0};
	int fd = mkstemp(path);

	(void)state;
	assert_true(dprintf(fd, "[alice]\ntoken-sha256=%s\nclass=batch\nshare=2.5\n", hash) > 0);
	close(fd);
	assert_int_equal(tokens_admit(NULL, &terms, &problem), ERR_OK);
	assert_true(tokens_read(&settings));
	assert_int_equal(tokens_admit(NULL, &terms, &problem), ERR_OK); /* not yet in force */
	tokens_commit();
	assert_int_equal(tokens_admit(NULL, &terms, &problem), ERR_TOKEN_MISSING);
	assert_int_equal(tokens_admit("Bearer a-token-of-some-lengtH", &terms, &problem),
	                 ERR_TOKEN_UNKNOWN);
	assert_false(terms.named);
	assert_int_equal(tokens_admit("Bearer a-token-of-some-length", &terms, &problem), ERR_OK);
	assert_true(terms.named && terms.share == 2.5 && terms.best == PRIORITY_BATCH);
	assert_string_equal(terms.client, "alice");
	unlink(path);
	assert_false(tokens_read(&settings)); /* there is no file any more: the set stays */
	assert_int_equal(tokens_admit(NULL, &terms, &problem), ERR_TOKEN_MISSING);
	tokens_fini();
}

static struct request *new_request(const char *method, const char *path, uint64_t announced,
                                   const char *const parameters[][2])
{
	struct head_writer writer = {0};
	struct head head;

	head_add(&writer, HEAD_METHOD, method);
	head_add(&writer, HEAD_PATH, path);
	for (; parameters && parameters[0][0]; parameters++) {
		head_add(&writer, HEAD_NAME, parameters[0][0]);
		head_add(&writer, HEAD_VALUE, parameters[0][1]);
	}
	assert_int_equal(head_read(&head, writer.data, writer.size), ERR_OK);
	head.announced = announced;
	return request_new(&head, "");
}

static struct request *request_with(const char *const parameters[][2])
{
	return new_request("POST", "/v1/filters/gaussian", UINT64_MAX, parameters);
}

/* The words of a parameter are in the order of their enum. */
static void check_words(void)
{
	struct chain *chain = malloc(sizeof *chain);

	for (enum border b = 0; b < BORDERS; b++) {
		const char *const parameters[][2] = {{"border", border_name(b)}, {NULL, NULL}};
		struct request *r = request_with(parameters);

		assert_int_equal(request_parse(r, "box", chain, &problem), ERR_OK);
		assert_int_equal(chain->border, b);
		request_free(r);
	}
	for (enum channels c = 0; c < CHANNELS; c++) {
		const char *const parameters[][2] = {{"channels", channels_name(c)}, {NULL, NULL}};
		struct request *r = request_with(parameters);

		assert_int_equal(request_parse(r, "box", chain, &problem), ERR_OK);
		assert_int_equal(chain->call[0].channels, c);
		request_free(r);
	}
	for (enum subsample s = 0; s < SUBSAMPLES; s++) {
		const char *const parameters[][2] = {
		    {"subsample", (const char *[]){"auto", "on", "off"}[s]},
		    {"codec", (const char *[]){"auto", "cpu", "gpu"}[s]},
		    {NULL, NULL}};
		struct request *r = request_with(parameters);

		assert_int_equal(request_parse(r, "box", chain, &problem), ERR_OK);
		assert_int_equal(r->options.coding.subsample, s);
		assert_int_equal(r->terms.codec, s);
		request_free(r);
	}
	free(chain);
}

static void test_request_parse(void **state)
{
	static const char *const parameters[][2] = {
	    {"alpha", "1"},    {"sigma", "2"},    {"raw", "5x6x4:u16"},  {"border", "reflect101"},
	    {"format", "png"}, {"quality", "33"}, {"priority", "batch"}, {NULL, NULL}};
	struct request *r = request_with(parameters);
	struct chain *chain = malloc(sizeof *chain);

	(void)state;
	assert_int_equal(request_parse(r, "gaussian", chain, &problem), ERR_OK);
	assert_int_equal(r->options.raw_image.height, 6);
	assert_int_equal(r->options.raw_image.alpha, 1);
	assert_int_equal(r->options.format, FORMAT_PNG);
	assert_int_equal(r->options.coding.quality, 33);
	assert_int_equal(r->terms.priority, PRIORITY_BATCH);
	assert_int_equal(chain->border, BORDER_REFLECT101);
	request_free(r);
	free(chain);
	check_words();
}

static void test_request_invalid(void **state)
{
	static const char *const bad[][3][2] = {
	    {{"sigma", "0"}},
	    {{"sigma", "1"}, {"sigma", "2"}},
	    {{"nothing", "1"}},
	    {{"format", "ico"}},
	    {{"quality", "0"}},
	    {{"quality", "101"}},
	    {{"quality", "5x"}},
	    {{"raw", "5x5"}},
	    {{"alpha", "1"}},
	    {{"alpha", "2"}},
	    {{"raw", "5x5x3:u8"}, {"alpha", "1"}},
	    {{"border", "mirror"}},
	    {{"border_value", ""}},
	    {{"strip", "yes"}},
	    {{"filters", "box"}},
	    {{"luma", "box"}},
	    {{"roi", "1,2,3"}},
	    {{"roi", "1,2,0,4"}},
	    {{"target", "1"}},
	    {{"target", "1,-2"}},
	    {{"channels", "grey"}},
	    {{"variant", "fast"}},
	    {{"variant", "gradient"}},
	    {{"priority", "high"}},
	    {{"deadline_ms", "0"}},
	    {{"deadline_ms", "86400001"}},
	    {{"deadline_ms", "5x"}},
	};
	struct chain *chain = malloc(sizeof *chain);

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct request *r = request_with(bad[i]);

		assert_int_equal(request_parse(r, "gaussian", chain, &problem), ERR_BAD_PARAMETER);
		assert_true(*problem.parameter && *problem.detail);
		request_free(r);
	}
	free(chain);
}

static void test_request_parts(void **state)
{
	static const char *const parameters[][2] = {
	    {"roi", "1,2,30,40"},       {"variant", "matrix"},
	    {"chroma", "box=size=9"},   {"target", "5,6"},
	    {"luma", "gaussian,sobel"}, {"channels", "color"},
	    {"filters", "box"},         {NULL, NULL}};
	static const enum channels expected[] = {CHANNELS_COLOR, CHANNELS_LUMA, CHANNELS_LUMA,
	                                         CHANNELS_CHROMA};
	struct request *r = request_with(parameters);
	struct chain *chain = malloc(sizeof *chain);

	(void)state;
	assert_int_equal(request_parse(r, NULL, chain, &problem), ERR_OK);
	assert_int_equal(r->options.roi.y, 2);
	assert_int_equal(r->options.roi.height, 40);
	assert_int_equal(r->options.has_target, 1);
	assert_int_equal(r->options.target_y, 6);
	assert_int_equal(chain->variant, KERNEL_MATRIX + 1);
	assert_int_equal(chain->count, 4);
	for (int i = 0; i < 4; i++)
		assert_int_equal(chain->call[i].channels, expected[i]);
	request_free(r);
	free(chain);
}

/* luma and chroma do without filters, but channels does not. */
static void test_request_no_filters(void **state)
{
	static const char *const luma[][2] = {{"luma", "box"}, {NULL, NULL}};
	static const char *const bad[][3][2] = {{{"luma", "box"}, {"channels", "red"}},
	                                        {{"luma", "box"}, {"filters", ""}},
	                                        {{"luma", ""}},
	                                        {{"border", "wrap"}}};
	struct request *r = request_with(luma);
	struct chain *chain = malloc(sizeof *chain);

	(void)state;
	assert_int_equal(request_parse(r, NULL, chain, &problem), ERR_OK);
	assert_int_equal(chain->count, 1);
	request_free(r);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		r = request_with(bad[i]);
		assert_int_equal(request_parse(r, NULL, chain, &problem), ERR_BAD_PARAMETER);
		request_free(r);
	}
	free(chain);
}

static void test_trace(void **state)
{
	static const char id[] = "4bf92f3577b34da6a3ce929d0e0e4736", parent[] = "00f067aa0ba902b7";
	static const char good[] = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
	struct trace trace;
	char text[80], line[TRACE_TEXT_SIZE];

	(void)state;
	assert_true(trace_parse(good, &trace));
	assert_string_equal(trace.id, id);
	assert_string_equal(trace.parent, parent);
	assert_string_equal(trace_text(&trace, line),
	                    " trace=4bf92f3577b34da6a3ce929d0e0e4736 span=00f067aa0ba902b7");
	/* A later version may go on; this one may not. */
	snprintf(text, sizeof text, "cc%s-what-comes", good + 2);
	assert_true(trace_parse(text, &trace));
	snprintf(text, sizeof text, "cc%s.what-comes", good + 2);
	assert_false(trace_parse(text, &trace));
	snprintf(text, sizeof text, "%s-", good);
	assert_false(trace_parse(text, &trace));
	for (size_t i = 0; i < sizeof good - 1; i++) {
		snprintf(text, sizeof text, "%s", good);
		text[i] = text[i] == '-' ? '0' : 'g';
		assert_false(trace_parse(text, &trace));
		snprintf(text, sizeof text, "%.*s", (int)i, good);
		assert_false(trace_parse(text, &trace));
	}
	assert_string_equal(trace_text(&trace, line), "");

	assert_true(trace_parse(good, &trace) && trace.sampled);
	trace_record(&trace, 0);
	assert_string_equal(trace.span, "");
	trace_record(&trace, 1);
	assert_int_equal(strlen(trace.span), 16);
	assert_string_equal(trace_span(&trace), trace.span);
	assert_string_equal(trace_exemplar(&trace), id);
	trace.sampled = false;
	*trace.span = '\0';
	trace_record(&trace, 1);
	assert_string_equal(trace_span(&trace), parent);
	assert_string_equal(trace_exemplar(&trace), "");
	trace = (struct trace){0};
	trace_record(&trace, 0);
	assert_string_equal(trace.id, "");
	trace_record(&trace, 1);
	assert_int_equal(strlen(trace.id), 32);
}

/* The weights that a header gives, by format. */
static void expect_weights(const char *header, const uint16_t wanted[FORMATS])
{
	const uint32_t written = format_sets_known().written;
	uint16_t weights[FORMATS];

	assert_int_equal(accept_parse(header, written, weights, &problem), ERR_OK);
	for (enum format f = FORMAT_NONE; f < FORMATS; f++)
		if (weights[f] != wanted[f])
			fail_msg("%s: %s has %u", header, format_name(f), weights[f]);
}

#define WEIGHTS(...) ((const uint16_t[FORMATS]){__VA_ARGS__})

static void test_accept(void **state)
{
	static const char *const refused[] = {"image/png;q=0",   "application/json",
	                                      "*/*;q=0",         "image/*; q=0, text/html",
	                                      "image/svg*",      "*",
	                                      "*/*;q=nan",       "image/png;q=-1",
	                                      "image/png;q=none"};
	uint16_t weights[FORMATS];

	(void)state;
	for (int i = 0; i < 3; i++)
		expect_weights(i ? i == 1 ? "" : "*/*" : NULL,
		               WEIGHTS(0, 1000, 1000, 1000, 1000, 1000,
		                       1000, [FORMAT_BMP] = 1000, [FORMAT_AVIF] = 1000,
		                       [FORMAT_JXL] = 1000, [FORMAT_RAW] = 1000));
	/* Raw pixels are no image/. */
	expect_weights("image/*",
	               WEIGHTS(0, 1000, 1000, 1000, 1000, 1000, 1000, [FORMAT_BMP] = 1000,
	                       [FORMAT_AVIF] = 1000, [FORMAT_JXL] = 1000, [FORMAT_RAW] = 0));
	expect_weights("text/html, image/webp;q=0.5 , image/png;q=0.8",
	               WEIGHTS([FORMAT_WEBP] = 500, [FORMAT_PNG] = 800));
	/* The most specific counts, wherever it stands. */
	expect_weights("*/*;q=0.1, image/png;q=0, image/*;q=0.5, image/JPEG",
	               WEIGHTS(0, 1000, 0, 500, 500, 500, 500, [FORMAT_BMP] = 500,
	                       [FORMAT_AVIF] = 500, [FORMAT_JXL] = 500, [FORMAT_RAW] = 100));
	expect_weights("image/jpeg, image/*;q=0.5, image/png;q=0, */*;q=0.1",
	               WEIGHTS(0, 1000, 0, 500, 500, 500, 500, [FORMAT_BMP] = 500,
	                       [FORMAT_AVIF] = 500, [FORMAT_JXL] = 500, [FORMAT_RAW] = 100));
	expect_weights("image/png; a=b ;\tQ=0.2 , image/webp ;charset=q=1;q=0.1, */x",
	               WEIGHTS([FORMAT_PNG] = 200, [FORMAT_WEBP] = 100));
	expect_weights("image/png;q=7,image/webp;q=1e300,image/gif;q=0.0005,image/tiff;q=inf",
	               WEIGHTS([FORMAT_PNG] = 1000, [FORMAT_WEBP] = 1000, [FORMAT_TIFF] = 1000));
	/* Formats that cannot be written are not accepted, even if they are named. */
	assert_int_equal(
	    accept_parse("image/webp, image/png;q=0.5", 1 << FORMAT_PNG, weights, &problem),
	    ERR_OK);
	assert_memory_equal(weights, WEIGHTS([FORMAT_PNG] = 500), sizeof weights);
	assert_int_equal(accept_parse("image/webp", 1 << FORMAT_PNG, weights, &problem),
	                 ERR_NOT_ACCEPTABLE);
	assert_non_null(strstr(problem.detail, "expected one of image/png (raw"));
	for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
		assert_int_equal(accept_parse(refused[i], UINT32_MAX, weights, &problem),
		                 ERR_NOT_ACCEPTABLE);
}

static void test_accept_encoding(void **state)
{
	(void)state;
	assert_false(accept_weigh(NULL, "gzip", "*"));
	assert_false(accept_weigh("", "gzip", "*"));
	assert_false(accept_weigh("identity, br", "gzip", "*"));
	assert_false(accept_weigh("gzip;q=0, *", "gzip", "*"));
	assert_false(accept_weigh("*;q=0", "gzip", "*"));
	assert_false(accept_weigh("gzipped", "gzip", "*"));
	assert_true(accept_weigh("gzip", "gzip", "*"));
	assert_true(accept_weigh("br;q=1.0, GZIP;q=0.001", "gzip", "*"));
	assert_true(accept_weigh("*", "gzip", "*"));
	assert_true(accept_weigh("*;q=0, gzip", "gzip", "*"));
	assert_true(accept_weigh("a=\"b\", gzip; c", "gzip", NULL));
	assert_false(accept_weigh("a=\"b, gzip, \\\", gzip\"; gzip, *", "gzip", NULL));
	assert_true(accept_weigh("\"0\",W/\"1\"", "W/\"1\"", "*"));
}

/* The time that a header takes grows as its length. */
static void test_long_accept(void **state)
{
	static const char element[] = "a/b;c;", end[] = ",image/png";
	enum { COUNT = 500000, LENGTH = sizeof element - 1 };
	char *header = malloc(COUNT * LENGTH + sizeof end);
	uint16_t weights[FORMATS];

	(void)state;
	for (char last = ';'; last != 'x'; last = last == ';' ? ',' : 'x') {
		clock_t began = clock();

		for (size_t i = 0; i < COUNT; i++) {
			memcpy(header + i * LENGTH, element, LENGTH);
			header[(i + 1) * LENGTH - 1] = last;
		}
		memcpy(header + COUNT * LENGTH, end, sizeof end);
		assert_int_equal(accept_parse(header, UINT32_MAX, weights, &problem), ERR_OK);
		assert_int_equal(weights[FORMAT_PNG], 1000);
		assert_true(clock() - began < 2 * CLOCKS_PER_SEC);
	}
	free(header);
}

/* Returns the answer to a request before its body; 0: it wants the body. */
static int admission(const char *method, const char *path, uint64_t announced)
{
	struct request *r = new_request(method, path, announced, NULL);
	int status;

	routes_begin(r);
	if (!r->answer.status && !request_wants_body(r))
		routes_resume(r);
	status = r->answer.status;
	request_free(r);
	return status;
}

static void test_admission(void **state)
{
	struct config settings = {
	    .node = "", .max_body = 1000, .max_jobs = 1, .max_bodies = 1, .max_wait = 60};

	(void)state;
	config = &settings;
	admission_init();
	assert_int_equal(admission("POST", "/v1/filters/gaussian", 1000), 0);
	assert_int_equal(admission("POST", "/v1/filters/gaussian", UINT64_MAX), 0);
	assert_int_equal(admission("POST", "/v1/filters/gaussian", 1001), 413);
	assert_int_equal(admission("POST", "/v1/filters/gaussian", 0), 400);
	assert_int_equal(admission("POST", "/v1/filters/gausian", 10), 404);
	assert_int_equal(admission("POST", "/v1/chain", 10), 400); /* no filters */
	assert_int_equal(admission("PUT", "/v1/chain", 10), 405);
	assert_int_equal(admission("GET", "/v1/nothing", 0), 404);
	assert_int_equal(admission("GET", "/v1/filters/sobel", 0), 200);
	assert_int_equal(admission("HEAD", "/v1/filters", 0), 200);
	settings.max_jobs = 0;
	assert_int_equal(admission("POST", "/v1/filters/gaussian", 10), 429);
	settings.max_jobs = 1;
	routes_drain();
	assert_int_equal(admission("POST", "/v1/filters/gaussian", 10), 0);
}

static void note_cut(void *context)
{
	++*(int *)context;
}

static bool begin_unread(struct unread *u, const char *client, uint64_t size, int *cut)
{
	return !unread_begin(u, "id", client, size, note_cut, cut, &problem);
}

/* Above the bound the slowest reader goes if it is slow; otherwise what begins is refused. */
static void test_unread(void **state)
{
	enum { SIZE = 100 << 20 };
	const uint64_t minute = UINT64_C(60000000000);
	struct config settings = {.unread_size = 3 * SIZE, .unread_client_size = 4 * SIZE};
	struct unread u[5];
	int cut[5] = {0};

	(void)state;
	config = &settings;
	for (int i = 0; i < 3; i++)
		assert_true(begin_unread(&u[i], "client", SIZE, &cut[i]));
	assert_false(begin_unread(&u[3], "other", SIZE, &cut[3]));
	assert_int_equal(share_total(SHARE_ANSWERS), 3 * SIZE);
	for (int i = 0; i < 3; i++)
		u[i].since -= minute;
	unread_report(&u[0], SIZE);
	unread_report(&u[1], SIZE / 4);
	unread_report(&u[2], SIZE / 8);
	assert_true(begin_unread(&u[3], "other", SIZE, &cut[3]));
	assert_true(!cut[0] && !cut[1] && cut[2] && !cut[3]);
	unread_end(&u[2]);
	settings.unread_size = 100 * (uint64_t)SIZE;
	settings.unread_client_size = SIZE;
	assert_true(begin_unread(&u[4], "other", 9 * (uint64_t)SIZE, &cut[4]));
	assert_false(begin_unread(&u[2], "other", 1, &cut[2]));
	unread_end(&u[3]);
	assert_true(begin_unread(&u[2], "other", SIZE / 4, &cut[2]));
	assert_true(!cut[0] && !cut[1] && cut[2] == 1 && !cut[3] && !cut[4]);
	for (int i = 0; i < 5; i++)
		unread_end(&u[i]);
	assert_int_equal(share_total(SHARE_ANSWERS), 0);
}

/* A request's chain takes as much memory as it has filters and matrices. */
static void test_chain_memory(void **state)
{
	struct config settings = {.node = "", .max_body = 1000, .max_jobs = 1, .max_wait = 60};
	struct request *r = new_request("POST", "/v1/filters/gaussian", 100, NULL);

	(void)state;
	config = &settings;
	admission_init();
	routes_begin(r);
	assert_non_null(r->chain);
	assert_in_range(malloc_usable_size(r->chain), chain_size(r->chain), 2000);
	request_free(r);
}

/* The time that one more job takes follows from how fast those before it were done. */
static void test_drain_rate(void **state)
{
	struct config settings = {.max_jobs = 10, .max_wait = 3};
	const struct timespec pause = {.tv_nsec = 100000000};
	struct share jobs = {0};
	double one;

	(void)state;
	config = &settings;
	admission_init();
	assert_int_equal(admission_check("a", WORK_LIGHT, 0, &problem), ERR_OK);
	assert_true(admission_free() == 1);
	for (int i = 0; i < 9; i++)
		admission_began(WORK_LIGHT, 1000);
	assert_true(admission_predict(WORK_LIGHT, 1000) == 0); /* nothing is known yet */
	nanosleep(&pause, NULL);
	admission_ended(WORK_LIGHT, 1000);
	/* At least a tenth of a second each, and eight before this one. */
	one = admission_predict(WORK_LIGHT, 1000) / 9;
	assert_true(one >= 0.1 && one < 2);
	assert_true(admission_free() >= 0 && admission_free() <= 1 - 8 * 0.1 / 3);
	assert_true(admission_predict(WORK_BATCH, 1000) == 0);
	/* Others take no part of max_jobs but their number. */
	assert_int_equal(admission_check("a", WORK_BATCH, 0, &problem), ERR_OK);
	assert_int_equal(share_force(&jobs, SHARE_JOBS, "b", 10), ERR_OK);
	assert_int_equal(admission_check("a", WORK_BATCH, 0, &problem), ERR_QUEUE_FULL);
	share_give_all(&jobs);
	/* A body that would take too long. */
	assert_int_equal(admission_check("a", WORK_LIGHT, 1000000, &problem), ERR_QUEUE_FULL);
	assert_in_range(admission_retry_after(), 1, 20);
	/* Alone, any is let in. */
	for (int i = 0; i < 8; i++)
		admission_ended(WORK_LIGHT, 1000);
	assert_int_equal(admission_check("a", WORK_LIGHT, 1000000, &problem), ERR_OK);
	assert_int_equal(admission_retry_after(), 1);
	assert_true(admission_free() == 1);
}

/* Time without a device says nothing about how fast work gets done, though jobs come meanwhile. */
static void test_stalled(void **state)
{
	struct config settings = {.max_jobs = 10, .max_wait = 3};
	const struct timespec pause = {.tv_nsec = 100000000};
	uint64_t busy;

	(void)state;
	config = &settings;
	admission_init();
	busy = -loop_now();
	admission_began(WORK_LIGHT, 1000);
	admission_stalled(true);
	busy += loop_now();
	for (int i = 0; i < 3; i++) {
		nanosleep(&pause, NULL);
		admission_began(WORK_LIGHT, 1000);
	}
	busy -= loop_now();
	admission_stalled(false);
	nanosleep(&pause, NULL);
	admission_ended(WORK_LIGHT, 1000);
	busy += loop_now();
	assert_true(admission_predict(WORK_LIGHT, 0) >= 3 * 0.09);
	assert_true(admission_predict(WORK_LIGHT, 0) <= 3e-9 * (double)busy);
}

/* Jobs that wait for a program say nothing about how fast work gets done. */
static void test_held(void **state)
{
	struct config settings = {.max_jobs = 10, .max_wait = 3};
	const struct timespec pause = {.tv_nsec = 300000000};

	(void)state;
	config = &settings;
	admission_init();
	for (int i = 0; i < 3; i++) {
		admission_began(WORK_LIGHT, 1000);
		admission_held(WORK_LIGHT, true);
	}
	nanosleep(&pause, NULL);
	for (int i = 0; i < 3; i++)
		admission_held(WORK_LIGHT, false);
	admission_ended(WORK_LIGHT, 1000);
	assert_true(admission_predict(WORK_LIGHT, 1000) < 0.3);
	nanosleep(&pause, NULL);
	for (int i = 0; i < 2; i++)
		admission_held(WORK_LIGHT, i == 0); /* busy until now */
	assert_true(admission_predict(WORK_LIGHT, 1000) > 0.1);
	for (int i = 0; i < 2; i++)
		admission_held(WORK_LIGHT, true);
	assert_true(admission_predict(WORK_LIGHT, 1000) == 0);
}

/* A job is of the class that its pixels and its work make it, and counts there alone. */
static void test_reckoned(void **state)
{
	struct config settings = {.max_jobs = 10, .max_wait = 3};
	const double light = work_cost(235000),
	             heavy = work_cost_known(235000, UINT64_C(4) * 11000 * 11000, 0);

	(void)state;
	config = &settings;
	admission_init();
	assert_int_equal(work_class(false, light), WORK_LIGHT);
	assert_int_equal(work_class(false, work_cost_known(235000, 2 * 235000, 1e6)), WORK_LIGHT);
	assert_int_equal(work_class(false, heavy), WORK_HEAVY);
	assert_int_equal(work_class(false, work_cost_known(2400, 4800, 5e8)), WORK_HEAVY);
	assert_int_equal(work_class(false, work_cost(4 << 20)), WORK_HEAVY);
	assert_int_equal(work_class(true, light), WORK_BATCH);
	assert_true(work_cost_known(5000, 10, 0) >= work_cost(5000));
	admission_began(WORK_LIGHT, light);
	admission_changed(WORK_LIGHT, light, WORK_HEAVY, heavy);
	admission_changed(WORK_HEAVY, heavy, WORK_HEAVY, heavy + 1);
	admission_ended(WORK_HEAVY, heavy + 1);
	settings.max_jobs = 1;
	assert_int_equal(admission_check("a", WORK_LIGHT, 0, &problem), ERR_OK);
}

/* Appends, as who has been lent the spool does. */
static enum error extend(struct spool *spool, uint64_t before, const char *data, size_t size)
{
	enum error e = spool_extend(spool, before + size);

	if (!e)
		e = spool_take_file(spool);
	if (!e)
		assert_int_equal(pwrite(spool->writer, data, size, (off_t)before), size);
	return e;
}

static void test_spool(void **state)
{
	char directory[] = "/tmp/convolved-test-XXXXXX", data[600], back[1200];
	struct spool small, large, third;
	struct config settings = {
	    .max_memory = 1500, .spool_size = 1000, .cache_dir = directory, .client_share = 0.75};

	(void)state;
	assert_non_null(mkdtemp(directory));
	memset(data, 'x', sizeof data);
	config = &settings;
	assert_int_equal(spool_open(&small, 10), ERR_OK);
	assert_int_equal(extend(&small, 0, data, 600), ERR_OK);
	assert_true(small.in_memory);
	assert_int_equal(spool_memory(), 600);
	assert_int_equal(spool_settle(&small, 600), ERR_OK);
	/* Outgrows its memory: moves to a file, with what it holds. */
	assert_int_equal(spool_open(&large, 600), ERR_OK);
	assert_int_equal(extend(&large, 0, data, 600), ERR_OK);
	assert_int_equal(spool_open(&third, 700), ERR_QUEUE_FULL);
	assert_int_equal(extend(&large, 600, data, 600), ERR_OK);
	assert_false(large.in_memory);
	assert_int_equal(spool_memory(), 600);
	assert_int_equal(spool_settle(&large, 1200), ERR_OK);
	assert_int_equal(pread(large.fd, back, sizeof back, 0), 1200);
	assert_memory_equal(back + 600, data, 600);
	spool_close(&small);
	/* Answers leave a quarter to bodies, and to other clients what is theirs. */
	assert_int_equal(spool_open_answer(&small, 900, "a"), ERR_OK);
	assert_true(small.in_memory);
	assert_int_equal(spool_open_answer(&third, 300, "b"), ERR_OK);
	assert_false(third.in_memory);
	spool_close(&third);
	assert_int_equal(spool_open_answer(&third, 1, "a"), ERR_OK);
	assert_false(third.in_memory);
	spool_close(&third);
	assert_int_equal(spool_open_answer(&third, 1, "b"), ERR_OK);
	assert_true(third.in_memory);
	spool_close(&third);
	assert_int_equal(spool_open(&third, 300), ERR_OK);
	assert_true(third.in_memory);
	spool_close(&third);
	/* It may be larger than expected, but not by much. */
	assert_int_equal(pwrite(small.writer, back, 1200, 400), 1200);
	assert_int_equal(pwrite(small.writer, data, 400, 0), 400);
	assert_int_equal(spool_settle(&small, 1600), ERR_OK);
	assert_int_equal(spool_memory(), 1600);
	assert_int_equal(spool_open(&third, 1), ERR_QUEUE_FULL);
	assert_int_equal(spool_open_answer(&third, 1, "b"), ERR_OK);
	assert_false(third.in_memory);
	spool_close(&third);
	spool_close(&small);
	spool_close(&large);
	spool_close(&large);
	assert_int_equal(spool_memory(), 0);
	rmdir(directory);
	/* A file that cannot be made is told, each time. */
	assert_int_equal(spool_open(&large, 2000), ERR_OK);
	assert_int_equal(spool_take_file(&large), ERR_IO);
	assert_int_equal(spool_take_file(&large), ERR_IO);
	spool_close(&large);
	assert_int_equal(spool_count(false), 0);
}

/* However many large answers there are, in however many clients' names, small ones have memory. */
static void test_spool_small_answers(void **state)
{
	char directory[] = "/tmp/convolved-test-XXXXXX", name[16];
	struct config settings = {.max_memory = 80 << 20,
	                          .spool_size = 20 << 20,
	                          .cache_dir = directory,
	                          .client_share = 0.75};
	struct spool large[20], small;
	unsigned in_memory = 0;

	(void)state;
	assert_non_null(mkdtemp(directory));
	config = &settings;
	for (int i = 0; i < 20; i++) {
		snprintf(name, sizeof name, "%d", i / 5);
		assert_int_equal(spool_open_answer(&large[i], 10 << 20, name), ERR_OK);
		in_memory += large[i].in_memory;
	}
	assert_true(in_memory > 2 && in_memory <= 5);
	assert_int_equal(spool_open_answer(&small, 1 << 20, "another"), ERR_OK);
	assert_true(small.in_memory);
	spool_close(&small);
	for (int i = 0; i < 20; i++)
		spool_close(&large[i]);
	assert_int_equal(spool_memory(), 0);
	assert_int_equal(share_total(SHARE_ANSWER_MEMORY), 0);
	rmdir(directory);
}

static bool can_change(int fd)
{
	return pwrite(fd, "y", 1, 0) >= 0 || !ftruncate(fd, 1) || !ftruncate(fd, 10000) ||
	       mmap(NULL, 1, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) != MAP_FAILED;
}

/* Released memory or files cannot be changed by anybody, and are not released while somebody may:
 * who has a mapping of memory, and who keeps the descriptor of a file. */
static void test_spool_settled(void **state)
{
	char directory[] = "/tmp/convolved-test-XXXXXX", data[600], back[600];
	struct config settings = {.max_memory = 10000, .spool_size = 1000, .cache_dir = directory};
	struct spool spool;
	void *mapped;
	int worker;

	(void)state;
	assert_non_null(mkdtemp(directory));
	memset(data, 'x', sizeof data);
	config = &settings;
	for (int large = 0; large < 2; large++) {
		assert_int_equal(spool_open(&spool, large ? 5000 : 600), ERR_OK);
		assert_int_equal(extend(&spool, 0, data, 600), ERR_OK);
		worker = dup(spool.writer);
		mapped = mmap(NULL, 1, PROT_READ | PROT_WRITE, MAP_SHARED, worker, 0);
		assert_true((mapped == MAP_FAILED) == large);
		assert_false(memfd_seal(worker));
		assert_false(spool_release(&spool));
		assert_int_equal(spool_settle(&spool, UINT64_C(1) << 62), ERR_IO);
		assert_int_equal(spool_memory(), large ? 0 : 600);
		if (!large)
			munmap(mapped, 1);
		assert_int_equal(memfd_seal(worker), !large);
		assert_int_equal(can_change(worker), large);
		if (large) /* it has been */
			assert_int_equal(pwrite(worker, data, 600, 0), 600);
		close(worker);
		assert_true(spool_release(&spool));
		assert_int_equal(spool_settle(&spool, 601), ERR_IO);
		assert_int_equal(spool_settle(&spool, 600), ERR_OK);
		assert_false(can_change(spool.fd));
		assert_int_equal(pread(spool.fd, back, 600, 0), 600);
		assert_memory_equal(back, data, 600);
		spool_close(&spool);
	}
	assert_int_equal(spool_memory(), 0);
	rmdir(directory);
}

/* One byte far out is no answer of that size. */
static void test_spool_sparse(void **state)
{
	struct config settings = {
	    .max_memory = 100 << 20, .spool_size = 10 << 20, .client_share = 0.75};
	struct spool spool;

	(void)state;
	config = &settings;
	assert_int_equal(spool_open_answer(&spool, 1000, "a"), ERR_OK);
	assert_int_equal(pwrite(spool.writer, "x", 1, 5 << 20), 1);
	assert_int_equal(spool_settle(&spool, (5 << 20) + 1), ERR_IO);
	assert_int_equal(spool_memory(), 1000);
	spool_close(&spool);
	/* Nor within what it may have. */
	assert_int_equal(spool_open_answer(&spool, 1000, "a"), ERR_OK);
	assert_int_equal(pwrite(spool.writer, "x", 1, 500000), 1);
	assert_int_equal(spool_settle(&spool, 500001), ERR_IO);
	spool_close(&spool);
}

/* A body from elsewhere is one only if nobody can change it. */
static void test_spool_adopted(void **state)
{
	struct config settings = {.max_memory = 10000, .spool_size = 1000};
	struct spool spool = SPOOL_NONE;
	int fd;

	(void)state;
	config = &settings;
	for (int sealed = 0; sealed < 2; sealed++) {
		fd = memfd_create("body", MFD_ALLOW_SEALING);
		assert_int_equal(write(fd, "body", 4), 4);
		assert_int_equal(
		    fcntl(fd, F_ADD_SEALS, sealed ? SEALS_FINAL : F_SEAL_SHRINK | F_SEAL_GROW), 0);
		assert_int_equal(spool_adopt(&spool, 4, fd), sealed ? ERR_OK : ERR_IO);
	}
	assert_int_equal(spool_settle(&spool, 4), ERR_OK);
	spool_close(&spool);
	assert_int_equal(spool_adopt(&spool, 4, open("/dev/null", O_RDWR)), ERR_IO);
	assert_int_equal(spool_memory(), 0);
}

static void test_metrics(void **state)
{
	struct metric_summary s;
	size_t size;
	char *text;

	(void)state;
	metrics_fini();
	for (int i = 1; i <= 100; i++)
		metric_observe(METRIC_KERNEL_DURATION, "matrix", "a\"b\\c\n", i * 1e-3);
	metric_add(METRIC_TILE_RETRIES, NULL, NULL, 2);
	metric_add(METRIC_TILE_RETRIES, NULL, NULL, 1);
	assert_int_equal(metric_summary(METRIC_KERNEL_DURATION, 0, &s), 1);
	assert_int_equal(metric_summary(METRIC_KERNEL_DURATION, 1, &s), 0);
	assert_int_equal(s.count, 100);
	assert_true(s.p50 > 0.0499 && s.p50 < 0.0511 && s.p99 > 0.0989 && s.p99 < 0.1001);
	metric_observe_traced(METRIC_KERNEL_DURATION, "matrix", "b", 2e-5, "0af7");
	text = metrics_text(METRICS_OPENMETRICS, &size);
	assert_non_null(
	    strstr(text, "device=\"b\",le=\"2.5e-05\"} 1 # {trace_id=\"0af7\"} 2e-05 "));
	assert_non_null(strstr(text, "# TYPE convolved_tile_retries counter\n"));
	assert_string_equal(text + size - 6, "# EOF\n");
	free(text);
	text = metrics_text(METRICS_PROMETHEUS, &size);
	assert_null(strstr(text, "0af7"));
	assert_non_null(
	    strstr(text, "kernel=\"matrix\",device=\"a\\\"b\\\\c\\n\",le=\"0.05\"} 50\n"));
	assert_non_null(strstr(text, "le=\"+Inf\"} 100\n"));
	assert_non_null(strstr(text, "\nconvolved_tile_retries_total 3\n"));
	free(text);
	metrics_fini();
}

static struct loop_watch first, second;
static int pipes[2][2], called;

static void unwatch_other(void *context)
{
	loop_unwatch(context);
	called++;
}

static void stop(void *context)
{
	(void)context;
	called++;
	loop_stop();
}

static int stop_when_called(void)
{
	if (called)
		loop_stop();
	return called ? 0 : -1;
}

static int no_wait_limit(void)
{
	return -1;
}

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

struct walk {
	struct errand errand;
	int runs, woken, freed;
};

static void walk_run(struct errand *errand)
{
	((struct walk *)errand)->runs++;
}

static void walk_again(struct errand *errand)
{
	if (((struct walk *)errand)->runs < 3)
		errand_send(ERRAND_WRITE, errand);
}

static void walk_wake(void *context)
{
	((struct walk *)context)->woken++;
}

static void walk_free(struct errand *errand)
{
	((struct walk *)errand)->freed++;
}

static struct walk walk;
static int large_fd;

static int stop_when_closed(void)
{
	errands_turn();
	if (!is_open(large_fd) && walk.woken)
		loop_stop();
	return 1;
}

/* A large file is closed by a thread, and only after the turn of the loop. A caller that waits for
 * an errand is woken once, when it is not sent again; an abandoned one is freed. */
static void test_errands(void **state)
{
	int small = memfd_create("small", 0);

	(void)state;
	assert_int_equal(loop_init(), ERR_OK);
	assert_int_equal(errands_init(), ERR_OK);
	large_fd = memfd_create("large", 0);
	assert_int_equal(fallocate(large_fd, 0, 0, 8 << 20), 0);
	errand_close(small);
	errand_close(large_fd);
	assert_false(is_open(small));
	assert_true(is_open(large_fd));
	walk = (struct walk){{.run = walk_run, .done = walk_again, .free = walk_free}, 0, 0, 0};
	assert_false(errand_await(&walk.errand, walk_wake, &walk));
	errand_send(ERRAND_WRITE, &walk.errand);
	assert_true(errand_await(&walk.errand, walk_wake, &walk));
	loop_run(stop_when_closed);
	assert_int_equal(walk.runs, 3);
	assert_int_equal(walk.woken, 1);
	assert_false(errand_await(&walk.errand, walk_wake, &walk));
	assert_int_equal(walk.freed, 0);
	errand_abandon(&walk.errand);
	assert_int_equal(walk.freed, 1);
	errands_fini();
	loop_fini();
}

/* Runs a loop with two watches that are both ready; each callback gets the other watch. */
static void run_with_two(loop_callback *callback, int (*turn)(void))
{
	called = 0;
	assert_int_equal(loop_init(), ERR_OK);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(pipe(pipes[i]), 0);
		assert_int_equal(write(pipes[i][1], "x", 1), 1);
	}
	assert_int_equal(loop_watch(&first, pipes[0][0], EPOLLIN, callback, &second), ERR_OK);
	assert_int_equal(loop_watch(&second, pipes[1][0], EPOLLIN, callback, &first), ERR_OK);
	loop_run(turn);
	loop_fini();
}

/* An event of a watch that an earlier callback of the same batch took away is not delivered. */
static void test_loop_unwatch(void **state)
{
	(void)state;
	run_with_two(unwatch_other, stop_when_called);
	assert_int_equal(called, 1);
}

/* Nor is any once the loop was stopped. */
static void test_loop_stop(void **state)
{
	(void)state;
	run_with_two(stop, no_wait_limit);
	assert_int_equal(called, 1);
}

/* If looks come every 0.5 s, the one after a pause of the loop itself is known as such; no other
 * is. */
static struct link links[2];
static uint64_t linked, link_turns;

static void take_number(void *context, struct link_message *message)
{
	assert_int_equal(message->number, linked++);
	assert_true(!message->data_size && message->fd < 0);
	if (linked == *(const uint64_t *)context)
		loop_stop();
}

static void link_lost(void *context, const char *why)
{
	(void)context;
	fail_msg("the link broke: %s", why ? why : "closed");
}

static int link_turn(void)
{
	link_turns++;
	return -1;
}

/* Sends so many numbers from one end to the other; the loop stops at number `stop_at`. */
static void send_numbers(uint64_t count, uint64_t *stop_at)
{
	static const struct link_owner owner = {take_number, link_lost};
	struct link_message message = {.type = LINK_PONG};
	int fds[2];

	linked = link_turns = 0;
	assert_int_equal(loop_init(), ERR_OK);
	assert_int_equal(link_pair(fds), ERR_OK);
	for (int i = 0; i < 2; i++)
		assert_int_equal(link_open(&links[i], fds[i], &owner, stop_at), ERR_OK);
	for (; message.number < count; message.number++)
		assert_true(link_send(&links[0], &message));
}

static void close_links(void)
{
	link_close(&links[0]);
	link_close(&links[1]);
	loop_fini();
}

/* Messages for which there is no room are sent later, in order. */
static void test_link_queue(void **state)
{
	uint64_t count = 20000;

	(void)state;
	send_numbers(count, &count);
	assert_true(links[0].writable.fd >= 0);
	loop_run(link_turn);
	assert_int_equal(linked, count);
	assert_int_equal(links[0].writable.fd, -1);
	close_links();
}

/* That a message has been read does not wake its sender. */
static void test_link_wakes(void **state)
{
	struct loop_timer silence;
	uint64_t never = 0;

	(void)state;
	send_numbers(1, &never);
	assert_int_equal(loop_timer_init(&silence, stop, NULL), ERR_OK);
	loop_timer_start(&silence, 100);
	loop_run(link_turn);
	assert_int_equal(linked, 1);
	assert_true(link_turns <= 2); /* the message, the timer */
	loop_timer_fini(&silence);
	close_links();
}

/* A message that the other end would refuse is a fault of the sender: it ends at once, where the
 * fault is, and no truncated message leaves. */
static void test_link_refuses(void **state)
{
	static char data[LINK_DATA_MAX + 1];
	static const struct {
		uint32_t type, flags;
		size_t size;
		bool allowed;
	} cases[] = {
	    {LINK_PIECE, LINK_IS_LAST, LINK_DATA_MAX, true},
	    {LINK_PIECE, 0, LINK_DATA_MAX + 1, false},
	    {LINK_PONG, 0, 1, false},
	    {LINK_PONG, LINK_IS_PROXY, 0, false},
	    {LINK_PONG, LINK_HAS_FILE, 0, false},
	    {LINK_ROOM, LINK_HAS_FILE, 0, true},
	    {LINK_ROOM, 0, 0, true},
	};
	uint64_t none = 0;
	int status;

	(void)state;
	send_numbers(0, &none);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct link_message message = {.type = cases[i].type,
		                               .flags = cases[i].flags,
		                               .data = data,
		                               .data_size = cases[i].size,
		                               .fd = STDOUT_FILENO};
		pid_t child = fork();

		if (!child) {
			prctl(PR_SET_DUMPABLE, 0);
			close(STDERR_FILENO);
			_exit(!link_send(&links[0], &message));
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		if (cases[i].allowed)
			assert_true(WIFEXITED(status) && !WEXITSTATUS(status));
		else
			assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
	}
	close_links();
}

static void test_loop_held_up(void **state)
{
	uint64_t looked = 0;

	(void)state;
	assert_false(loop_held_up(&looked, 500));
	assert_false(loop_held_up(&looked, 500));
	looked -= 1000000000u;
	assert_false(loop_held_up(&looked, 500));
	looked -= 5000000000u;
	assert_true(loop_held_up(&looked, 500));
	assert_false(loop_held_up(&looked, 500));
}

/* A run of tile 5 of a job is back from a device, by a kernel. Returns what the codec worker hears.
 */
static bool run_of_tile(struct verified_tiles *tiles, struct job *job, unsigned device,
                        enum kernel kernel)
{
	struct task task = {.job = job, .device = device, .tile = {.index = 5}};
	struct message_tile_done done = {.launches = 1, .launch = {{.kernel = kernel}}};

	verified_expect(tiles, &task, &done);
	return done.others;
}

static bool comparison(struct verified_tiles *tiles, struct job *job, uint32_t run, bool same,
                       uint64_t mismatches, struct finding *finding)
{
	struct message_verified m = {
	    .index = 5, .run = run, .same = same, .samples = 100, .mismatches = mismatches};

	return verified_take(tiles, job, &m, finding);
}

/* Repetitions prove their point, and a codec worker that lies gains little by them. */
static void test_verified(void **state)
{
	struct message_device found = {.type = DEVICE_CPU};
	struct verified_tiles tiles = {0};
	struct job job = {.image = {.width = 100, .height = 1, .bands = 1}};
	struct finding f;

	(void)state;
	for (uint32_t i = 0; i < 2; i++) {
		found.device = i;
		device_table_add(&found)->worker.state = WORKER_UP;
	}
	assert_false(comparison(&tiles, &job, 0, true, 1, &f)); /* no tile has come back */

	/* Always the same: again by the same device, then by the other; nothing is proved. */
	assert_false(run_of_tile(&tiles, &job, 0, KERNEL_MATRIX));
	assert_false(comparison(&tiles, &job, 1, true, 1, &f));
	assert_false(comparison(&tiles, &job, 0, true, 101, &f));
	assert_true(comparison(&tiles, &job, 0, true, 3, &f));
	assert_true(f.doubtful && !f.differs && f.again->index == 5 && f.prefer == 1);
	assert_false(comparison(&tiles, &job, 0, true, 3, &f)); /* it is under way */
	assert_true(run_of_tile(&tiles, &job, 0, KERNEL_MATRIX));
	assert_true(comparison(&tiles, &job, 1, true, 3, &f));
	assert_true(!f.doubtful && !f.differs && f.again && f.prefer == 2);
	assert_false(run_of_tile(&tiles, &job, 1, KERNEL_MATRIX));
	assert_true(comparison(&tiles, &job, 2, false, 3, &f));
	assert_true(!f.doubtful && !f.differs && !f.again);
	assert_false(comparison(&tiles, &job, 2, false, 3, &f));
	assert_int_equal(job.verified.mismatches, 3); /* counts of the first run */

	/* Two results by one kernel of one device are a proof; by two kernels they are none. */
	for (int i = 0; i < 2; i++) {
		run_of_tile(&tiles, &job, 0, KERNEL_MATRIX);
		assert_true(comparison(&tiles, &job, 0, true, 3, &f));
		run_of_tile(&tiles, &job, 0, i ? KERNEL_MATRIX_WIDE : KERNEL_MATRIX);
		assert_true(comparison(&tiles, &job, 1, false, 0, &f));
		assert_true(f.differs == !i && !f.again && f.device == 0);
	}

	/* Every kernel is told from every other. */
	for (enum kernel k = 0; k < KERNELS; k++) {
		struct kernel_set set = {0}, next = {0};

		kernel_set_add(&set, k);
		kernel_set_add(&next, (k + 1) % KERNELS);
		assert_true(kernel_set_equals(&set, &set) && !kernel_set_equals(&set, &next));
		for (enum kernel other = 0; other < KERNELS; other++)
			assert_true(kernel_set_has(&set, other) == (other == k));
	}

	/* A tile that is as it should be is done with. */
	run_of_tile(&tiles, &job, 1, KERNEL_MATRIX);
	assert_true(comparison(&tiles, &job, 0, true, 0, &f));
	assert_true(!f.again && !f.doubtful && f.device == 1);
	assert_false(comparison(&tiles, &job, 0, true, 1, &f));
	device_table_clear();
}

/* A worker that sends without end: how many of its messages come in one turn of the loop, at most.
 */
static unsigned heard, heard_most, turns;
static int flooding; /* its end of the socket */

static void flood_message(struct worker *worker, const struct message *message)
{
	(void)worker;
	(void)message;
	heard++;
}

static void flood_down(struct worker *worker, const char *reason)
{
	(void)worker;
	fail_msg("%s", reason);
}

/* The socket is always full. */
static int flood_turn(void)
{
	struct message message = {.type = MSG_OBJECTS};

	heard_most = heard > heard_most ? heard : heard_most;
	heard = 0;
	while (!wire_send(flooding, &message, NULL))
		;
	if (++turns == 20)
		loop_stop();
	return 5000;
}

/* The socket to the process gives way to one that we write to. */
static void test_flood(void **state)
{
	static const struct worker_owner owner = {
	    .program = "convolved-codec", .message = flood_message, .down = flood_down};
	const struct config settings = {.start_timeout = 10, .log_level = 3 /* info */};
	struct worker worker = {.kind = "codec", .owner = &owner};
	struct message hello = {.type = MSG_HELLO};
	struct message ready = {.type = MSG_READY};
	int pair[2], other;

	(void)state;
	strcpy(hello.hello.version, WIRE_VERSION);
	assert_false(loop_init());
	config = &settings;
	assert_false(supervisor_init());
	assert_false(worker_start(&worker));
	assert_false(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, pair));
	flooding = pair[1];
	assert_false(wire_send(flooding, &hello, NULL) || wire_send(flooding, &ready, NULL));
	other = worker.socket.fd;
	loop_unwatch(&worker.socket);
	assert_false(loop_watch(&worker.socket, pair[0], EPOLLIN, worker.socket.callback, &worker));
	loop_run(flood_turn);
	worker_fini(&worker);
	supervisor_fini();
	loop_fini();
	metrics_fini();
	close(other);
	close(flooding);
	assert_in_range(heard_most, 1, 50);
}

/* Tells whether the next message to a worker is of this type and arena; or, of no type, there is
 * none. */
static bool hears(int socket, uint32_t type, unsigned arena)
{
	struct message message = {.type = 0};
	int fds[MESSAGE_FDS_MAX];
	enum wire_result result = wire_receive(socket, &message, fds);

	if (!type)
		return result == WIRE_NOTHING;
	for (unsigned i = 0; result == WIRE_MESSAGE && i < message_fds(message.type); i++)
		close(fds[i]);
	return result == WIRE_MESSAGE && message.type == type &&
	       (type == MSG_ARENA ? message.arena.arena : message.arena_drop.arena) == arena;
}

/* A worker hears of the arenas that are open when it joins, and of each change until it leaves. */
static void test_arenas(void **state)
{
	struct worker worker = {.kind = "test", .state = WORKER_UP};
	struct arena_user user = {.worker = NULL};
	int pair[2];

	(void)state;
	assert_false(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, pair));
	worker.socket.fd = pair[0];
	arenas_leave(&user);
	arenas_close(3);
	assert_null(arenas_get(3));
	assert_int_equal(arenas_open(3, 4096), ERR_OK);
	assert_int_equal(arenas_get(3)->size, 4096);
	arenas_join(&user, &worker, true);
	assert_true(user.fresh);
	assert_true(hears(pair[1], MSG_ARENA, 3));
	user.fresh = false;
	assert_int_equal(arenas_open(0, 4096), ERR_OK);
	assert_true(hears(pair[1], MSG_ARENA, 0) && user.fresh);
	arenas_close(3);
	arenas_close(3);
	assert_true(hears(pair[1], MSG_ARENA_DROP, 3));
	assert_true(hears(pair[1], 0, 0));
	arenas_leave(&user);
	arenas_leave(&user);
	arenas_close(0);
	assert_true(hears(pair[1], 0, 0));
	worker.state = WORKER_DYING; /* takes nothing any more */
	assert_int_equal(arenas_open(1, 4096), ERR_OK);
	arenas_join(&user, &worker, false);
	arenas_leave(&user);
	arenas_close(1);
	assert_true(hears(pair[1], 0, 0));
	close(pair[0]);
	close(pair[1]);
}

/* As in a service that allows all formats. */
static int offer_all_formats(void **state)
{
	static char all[] = "all";
	struct config settings = {.formats = {.item = {all}, .count = 1}};

	(void)state;
	config = &settings;
	repertoire_init();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_config_flags),
	    cmocka_unit_test(test_config_every_flag),
	    cmocka_unit_test(test_cores),
	    cmocka_unit_test(test_arenas),
	    cmocka_unit_test(test_config_invalid),
	    cmocka_unit_test(test_config_file),
	    cmocka_unit_test(test_listen),
	    cmocka_unit_test(test_address),
	    cmocka_unit_test(test_tokens),
	    cmocka_unit_test(test_request_parse),
	    cmocka_unit_test(test_request_invalid),
	    cmocka_unit_test(test_trace),
	    cmocka_unit_test(test_accept),
	    cmocka_unit_test(test_accept_encoding),
	    cmocka_unit_test(test_long_accept),
	    cmocka_unit_test(test_admission),
	    cmocka_unit_test(test_spool),
	    cmocka_unit_test(test_spool_settled),
	    cmocka_unit_test(test_spool_small_answers),
	    cmocka_unit_test(test_spool_sparse),
	    cmocka_unit_test(test_spool_adopted),
	    cmocka_unit_test(test_drain_rate),
	    cmocka_unit_test(test_held),
	    cmocka_unit_test(test_stalled),
	    cmocka_unit_test(test_unread),
	    cmocka_unit_test(test_chain_memory),
	    cmocka_unit_test(test_reckoned),
	    cmocka_unit_test(test_errands),
	    cmocka_unit_test(test_metrics),
	    cmocka_unit_test(test_loop_unwatch),
	    cmocka_unit_test(test_loop_stop),
	    cmocka_unit_test(test_loop_held_up),
	    cmocka_unit_test(test_link_queue),
	    cmocka_unit_test(test_link_wakes),
	    cmocka_unit_test(test_link_refuses),
	    cmocka_unit_test(test_request_parts),
	    cmocka_unit_test(test_request_no_filters),
	    cmocka_unit_test(test_verified),
	    cmocka_unit_test(test_flood),
	};

	return cmocka_run_group_tests(tests, offer_all_formats, NULL);
}
