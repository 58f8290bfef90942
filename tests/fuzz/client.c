/* The client's reading of answers: documents of the service as tables, its metrics, and what
 * becomes of a request by its answer. Nothing that is printed can control a terminal, and a request
 * is always done, has failed with words, or is tried again.
 *
 * The first byte says which, the second how. */
#include <stdarg.h>
#include <sys/queue.h>

#include "client/exchange.h"
#include "client/interrupt.h"
#include "client/metrics.h"
#include "client/report.h"
#include "client/screen.h"
#include "client/top.h"
#include "client/transfer.h"
#include "client/views.h"
#include "fuzz.h"

#include "base/text.h"

static char *rest;
static size_t left;
static unsigned answers, how;

/* Returns the next part of the input, up to a line of = alone, for free(). */
static char *next_text(void)
{
	const char *end = left >= 3 ? memmem(rest, left, "\n=\n", 3) : NULL;
	const size_t size = end ? (size_t)(end - rest) : left;
	char *part = strndup(rest, size);

	rest += end ? size + 3 : left;
	left -= end ? size + 3 : left;
	return part;
}

/* Printing ------------------------------------------------------------------------------ */

static void check_printed(const char *printed)
{
	for (; *printed; printed++)
		must(*printed == '\n' || ((unsigned char)*printed >= ' ' && *printed != 0x7f));
}

static void print(const char *format, va_list args)
{
	char *line = NULL;

	must(vasprintf(&line, format, args) >= 0);
	utf8_flatten(line);
	check_printed(line);
	free(line);
}

#define REPORT(name)                                                                               \
	void name(const char *format, ...)                                                         \
	{                                                                                          \
		va_list args;                                                                      \
                                                                                                   \
		va_start(args, format);                                                            \
		print(format, args);                                                               \
		va_end(args);                                                                      \
	}
REPORT(report_error)
REPORT(report_remark)
REPORT(report_waiting)

double report_now(void)
{
	return 1;
}

void report_clear(void)
{
}

void screen_begin(void)
{
}

void screen_end(void)
{
}

bool screen_wait(int ms)
{
	must(ms >= 0);
	return false;
}

void screen_show(const char *view)
{
	check_printed(view);
}

/* Requests ------------------------------------------------------------------------------------- */

const char *options_parameter(const struct options *options, const char *name)
{
	(void)options, (void)name;
	return NULL;
}

int interrupt_number(void)
{
	return 0;
}

enum exit_code transfer_ask(const struct server *server, const struct exchange *request,
                            const char *name, char **answer)
{
	(void)server, (void)name;
	must(*request->target == '/');
	if (!left || answers++ == 8)
		return EXIT_UNREACHABLE;
	*answer = next_text();
	return EXIT_DONE;
}

static const struct server service = {
    .base = "http://h", .shown = "h", .timeout = 100, .retries = 3};

static long answered;

static int get_info(CURLINFO what, void *to)
{
	static char elsewhere[] = "http://u:p@elsewhere/?q=\x1b";

	if (what == CURLINFO_RESPONSE_CODE)
		*(long *)to = answered;
	else if (what == CURLINFO_REDIRECT_URL)
		*(char **)to = answered / 100 == 3 ? elsewhere : NULL;
	else if (what == CURLINFO_RETRY_AFTER)
		*(curl_off_t *)to = how % 3 ? how * 1000 : 0;
	else if (what == CURLINFO_OS_ERRNO)
		*(long *)to = how & 8 ? 2 : 0;
	else if (what == CURLINFO_HTTP_VERSION)
		*(long *)to = CURL_HTTP_VERSION_1_1;
	else
		*(curl_off_t *)to = how & 16 ? 5 : 0;
	return 0;
}

static int get_header(const char *name, struct curl_header **found)
{
	static struct curl_header header;

	if ((how + (unsigned)*name * 7) % 3 == 0)
		return 1;
	header.value = !strcmp(name, "Server-Timing")              ? "queue;dur=1"
	               : !strcmp(name, "Content-Type") && how & 32 ? "image/png"
	                                                           : "a\x1b";
	*found = &header;
	return 0;
}

#undef curl_easy_getinfo
#define curl_easy_getinfo(easy, what, to)                           get_info(what, to)
#define curl_easy_header(easy, name, index, origin, request, found) get_header(name, found)
#include "../../client/exchange.c"

static void judge(const char *answer)
{
	static const CURLcode codes[] = {CURLE_OK,
	                                 CURLE_OK,
	                                 CURLE_OK,
	                                 CURLE_OK,
	                                 CURLE_COULDNT_CONNECT,
	                                 CURLE_RECV_ERROR,
	                                 CURLE_OPERATION_TIMEDOUT,
	                                 CURLE_WRITE_ERROR};
	static const long statuses[] = {200, 202, 302, 400, 401, 404, 409, 422,
	                                429, 500, 502, 503, 504, 100, 0,   999};
	struct exchange e = {.target = "/v1/chain",
	                     .waits = how & 1,
	                     .own_format = how & 2,
	                     .body = how & 4 ? 0 : -1,
	                     .result = how & 64 ? 0 : -1,
	                     .accepted = how & 128 ? 202 : 0,
	                     .text = strdup(answer)};
	const CURLcode code = *answer ? codes[(unsigned char)*answer % 8] : CURLE_OK;

	answered = statuses[how % 16];
	exchange_judge(&e, &service, code);
	must(e.outcome || e.due > 0);
	must(e.outcome < OUTCOME_FAILED || e.text);
	if (e.outcome >= OUTCOME_FAILED)
		report_error("%s", e.text);
	free(e.text);
}

/* The other parts of the metrics' reader. */
static void try_metrics(void)
{
	struct metrics now, before;
	char label[8];
	const struct sample *s;

	metrics_init(&now, next_text());
	metrics_init(&before, next_text());
	for (size_t i = 0; i < now.count; i++) {
		s = &now.sample[i];
		must(metrics_sample(&now, s->name, 0));
		metrics_sum(&now, s->name, NULL);
		metrics_label(s, "device", label, sizeof label);
		must(strlen(label) < sizeof label);
		metrics_quantile(&now, &before, s->name, s->labels, 0.5);
	}
	metrics_fini(&now);
	metrics_fini(&before);
}

static void view(const struct options *options)
{
	static enum exit_code (*const views[])(const struct options *, const struct server *) = {
	    views_filters, views_devices,          views_kernels,
	    views_jobs,    views_check_parameters, top_run};
	FILE *const before = stdout;
	char *printed = NULL;
	size_t size;

	stdout = open_memstream(&printed, &size);
	views[how % 6](options, &service);
	fclose(stdout);
	stdout = before;
	if (!options->json)
		check_printed(printed);
	free(printed);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	const char *operands[] = {"box"};
	struct parameter parameter = {"unknown", "1"};
	struct options options = {.operands = operands,
	                          .parameters = &parameter,
	                          .parameter_count = 1,
	                          .interval = 1,
	                          .count = 2};
	char *copy, *answer;

	if (size < 2)
		return 0;
	copy = copy_of(input + 2, size - 2);
	rest = copy;
	left = size - 2;
	how = input[1];
	answers = 0;
	options.json = how >= 128;
	options.names = how & 64;
	options.operand_count = how & 32 ? 1 : 0;
	if (input[0] % 8 < 5) {
		view(&options);
	} else if (input[0] % 8 < 7) {
		answer = next_text();
		judge(answer);
		free(answer);
	} else {
		try_metrics();
	}
	free(copy);
	return 0;
}
