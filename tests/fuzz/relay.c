/* Workers' lines on standard output and error: each is logged once, without the worker's
 * own idea of its name, or with the level that it states. */
#include <fcntl.h>
#include <unistd.h>

#include "base/log.h"
#include "base/loop.h"
#include "front/base/metrics.h"
#include "fuzz.h"

static const uint8_t *input;
static size_t input_left, piece;
static unsigned lines_logged;

static long read_input(char *to, size_t room)
{
	size_t some = room < piece ? room : piece;

	some = some < input_left ? some : input_left;
	memcpy(to, input, some);
	input += some;
	input_left -= some;
	return (long)some;
}

#define read(fd, to, room) read_input(to, room)
#include "../../daemon/front/workers/relay.c"
#undef read

void log_relay(enum log_level level, const char *program, pid_t pid,
               const struct log_fields *fields, const char *text)
{
	must(level >= LOG_LEVEL_ERROR && level <= LOG_LEVEL_DEBUG && fields->worker && pid == 1);
	must(!strcmp(program, "program") && !strchr(text, '\n'));
	must(strlen(text) < sizeof((struct relay *)0)->text);
	lines_logged++;
}

void metric_add(enum metric metric, const char *label1, const char *label2, double value)
{
	must(metric == METRIC_LOG_LOST && label1 && !label2 && value > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct relay r;
	unsigned lines = 0;

	if (size < 1)
		return 0;
	for (size_t i = 1; i < size; i++)
		lines += data[i] == '\n' && i > 1 && data[i - 1] != '\n';
	r = (struct relay){.kind = "kind", .name = "name", .program = "program", .pid = 1, .fd = 0};
	input = data + 1;
	input_left = size - 1;
	piece = data[0] + 1u;
	lines_logged = 0;
	while (read_lines(&r, UINT_MAX))
		must(r.length < sizeof r.text);
	say_line(&r, true);
	must(!r.length && !input_left && lines_logged >= lines);
	return 0;
}
