/* The files of a device worker: the tuner's choices, which are within their bounds and are the same
 * when they have been written and read again; and a compiled program, which is what was kept under
 * its key. The first byte says which. */
#include "file.h"
#include "quiet.h"

#include <jansson.h>

/* The text that is the tuner's file. */
static char *tuning;

static json_t *load_text(json_error_t *error)
{
	return json_loads(tuning, 0, error);
}

static int dump_text(const json_t *json, size_t flags)
{
	free(tuning);
	tuning = json_dumps(json, flags);
	return tuning ? 0 : -1;
}

#define json_load_file(path, flags, error) ((void)(path), load_text(error))
#define json_dump_file(json, path, flags)  ((void)(path), dump_text(json, flags))
#define rename(from, to)                   0
#define load                               load_choices
#include "../../daemon/device/tuner.c"
#undef load
#undef CHOICES_MAX
#undef rename
#include "../../daemon/device/cl/cache.c"

static struct device tuned = {.name = "device", .driver = "driver"};

const struct device *programs_device(const struct programs *programs)
{
	(void)programs;
	return &tuned;
}

static void read_choices(const uint8_t *input, size_t size)
{
	static struct tuner tuner, again;

	tuner.choices = again.choices = 0;
	strcpy(tuner.path, "tuning.json");
	strcpy(tuner.sources, "kernels");
	strcpy(again.path, tuner.path);
	strcpy(again.sources, tuner.sources);
	tuning = strndup((const char *)input, size);
	load_choices(&tuner);
	must(tuner.choices <= CHOICES_MAX);
	for (uint32_t i = 0; i < tuner.choices; i++) {
		const struct message_choice *c = &tuner.choice[i];

		must(c->count && c->count <= CANDIDATES_MAX && c->chosen < c->count);
		must(strlen(c->work) < sizeof c->work && find_choice(&tuner, c) == c);
		for (uint32_t k = 0; k < c->count; k++)
			must(c->candidate[k].kernel < KERNELS && c->candidate[k].shape.x);
	}
	save(&tuner);
	load_choices(&again);
	must(again.choices == tuner.choices);
	must(!memcmp(again.choice, tuner.choice, tuner.choices * sizeof *tuner.choice));
	free(tuning);
}

/* The input is the file: as it is; or a program, as it was kept, with changes. */
static void read_program(const uint8_t *input, size_t size, bool as_kept)
{
	static struct memory_file file;
	static const char key[] = "key", program[] = "program";
	static uint8_t kept[HEX + sizeof program];
	size_t got;
	uint8_t *binary;

	if (as_kept) {
		digest(key, program, sizeof program, (char *)kept);
		memcpy(kept + HEX, program, sizeof program);
		change(kept, sizeof kept, input, size);
		input = kept;
		size = sizeof kept;
	}
	fill_file(&file, input, size);
	binary = read_checked(file.fd, key, &got);
	if (binary)
		must(got == size - HEX && !memcmp(binary, input + HEX, got));
	if (binary && as_kept)
		must(!memcmp(binary, program, sizeof program));
	must(binary || !as_kept || size);
	free(binary);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	if (size && input[0] % 8 < 6)
		read_choices(input + 1, size - 1);
	else if (size)
		read_program(input + 1, size - 1, input[0] & 1);
	return 0;
}
