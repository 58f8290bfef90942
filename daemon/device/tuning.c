/* The file is JSON and is rewritten after each choice. It names the device, its driver and a digest
 * of the kernels; if any of them differs, its choices are discarded. */
#include "device/tuning.h"

#include <errno.h>
#include <glib.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/log.h"
#include "device/cl/source.h"
#include "device/plan/variant.h"

struct tuning {
	const struct device *device;
	char path[4096], sources[65]; /* path: empty if there is no file */
	uint32_t count;
	struct message_choice choice[CHOICES_MAX];
};

uint32_t tuning_count(const struct tuning *tuning)
{
	return tuning->count;
}

const struct message_choice *tuning_get(const struct tuning *tuning, uint32_t i)
{
	return i < tuning->count ? &tuning->choice[i] : NULL;
}

const struct message_choice *tuning_find(const struct tuning *tuning,
                                         const struct message_choice *kind)
{
	for (uint32_t i = 0; i < tuning->count; i++)
		if (choice_is_for(&tuning->choice[i], kind))
			return &tuning->choice[i];
	return NULL;
}

static json_t *choice_json(const struct message_choice *c)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < c->count; i++)
		json_array_append_new(
		    list,
		    json_pack("{s:s, s:[i,i,i,i], s:I}", "kernel",
		              kernel_name(c->candidate[i].kernel), "shape", (int)c->candidate[i].x,
		              (int)c->candidate[i].y, (int)c->candidate[i].group_x,
		              (int)c->candidate[i].group_y, "ns", (json_int_t)c->candidate[i].ns));
	return json_pack("{s:s, s:i, s:I, s:o}", "work", c->work, "chosen", (int)c->chosen,
	                 "samples", (json_int_t)c->samples, "candidates", list);
}

static void save(const struct tuning *c)
{
	json_t *list = json_array(), *all;
	char path[sizeof c->path + 8];

	for (uint32_t i = 0; i < c->count; i++)
		json_array_append_new(list, choice_json(&c->choice[i]));
	all = json_pack("{s:s, s:s, s:s, s:o}", "device", c->device->name, "driver",
	                c->device->driver, "kernels", c->sources, "choices", list);
	snprintf(path, sizeof path, "%s.new", c->path);
	if (*c->path &&
	    (json_dump_file(all, path, JSON_INDENT(1) | JSON_COMPACT) || rename(path, c->path)))
		log_warning("cannot write %s: %s", path, strerror(errno));
	json_decref(all);
}

/* Reads one candidate; false if it is invalid. */
static bool read_candidate(json_t *json, struct message_choice *c, uint32_t i)
{
	const char *name;
	int x, y, group_x, group_y;
	json_int_t ns;

	if (json_unpack(json, "{s:s, s:[i,i,i,i], s:I}", "kernel", &name, "shape", &x, &y, &group_x,
	                &group_y, "ns", &ns))
		return false;
	c->candidate[i].kernel = kernel_parse(name);
	c->candidate[i].x = (uint16_t)x;
	c->candidate[i].y = (uint16_t)y;
	c->candidate[i].group_x = (uint16_t)group_x;
	c->candidate[i].group_y = (uint16_t)group_y;
	c->candidate[i].ns = (uint64_t)ns;
	return c->candidate[i].kernel < KERNELS && x > 0 && x <= UINT16_MAX && y > 0 &&
	       y <= UINT16_MAX && group_x > 0 && group_x <= UINT16_MAX && group_y > 0 &&
	       group_y <= UINT16_MAX && ns >= 0;
}

static bool read_choice(json_t *json, struct message_choice *c)
{
	json_t *list, *item;
	const char *work;
	int chosen;
	json_int_t samples;
	size_t i;

	*c = (struct message_choice){0};
	if (json_unpack(json, "{s:s, s:i, s:I, s:o}", "work", &work, "chosen", &chosen, "samples",
	                &samples, "candidates", &list) ||
	    !json_is_array(list) || json_array_size(list) > CANDIDATES_MAX || chosen < 0 ||
	    (size_t)chosen >= json_array_size(list))
		return false;
	snprintf(c->work, sizeof c->work, "%s", work);
	c->chosen = (uint32_t)chosen;
	c->count = (uint32_t)json_array_size(list);
	c->samples = (uint64_t)samples;
	json_array_foreach(list, i, item) if (!read_candidate(item, c, (uint32_t)i)) return false;
	return true;
}

/* Loads the choices that were measured on the same device, with the same driver and kernels. */
static void load(struct tuning *c)
{
	json_error_t error;
	json_t *all = json_load_file(c->path, 0, &error), *list, *item;
	const char *name, *driver, *sources;
	size_t i;

	if (!all) {
		if (access(c->path, F_OK) == 0)
			log_warning("%s: %s: measuring everything again", c->path, error.text);
		return;
	}
	if (json_unpack(all, "{s:s, s:s, s:s, s:o}", "device", &name, "driver", &driver, "kernels",
	                &sources, "choices", &list)) {
		log_warning("%s is not a tuning file: measuring everything again", c->path);
	} else if (strcmp(name, c->device->name) || strcmp(driver, c->device->driver) ||
	           strcmp(sources, c->sources)) {
		log_info("%s is for another device, driver or kernels: measuring everything again",
		         c->path);
	} else {
		json_array_foreach(list, i, item)
		{
			struct message_choice *choice = &c->choice[c->count];

			if (c->count < CHOICES_MAX && read_choice(item, choice) &&
			    !tuning_find(c, choice))
				c->count++;
		}
	}
	json_decref(all);
}

/* The SHA-256 of all kernel sources and of the shapes that the kernels have. */
static bool digest_sources(const char *kernel_dir, char text[65])
{
	GChecksum *sum = g_checksum_new(G_CHECKSUM_SHA256);
	bool complete = true;

	for (size_t i = 0; i < kernels_embedded_count; i++) {
		char *source = source_load(kernel_dir, kernels_embedded[i].name);

		complete &= source != NULL;
		if (source)
			g_checksum_update(sum, (const guchar *)source, -1);
		free(source);
	}
	for (enum kernel k = 0; k < KERNELS; k++)
		g_checksum_update(sum, (const guchar *)variant_get(k)->shape,
		                  sizeof variant_get(k)->shape);
	snprintf(text, 65, "%s", g_checksum_get_string(sum));
	g_checksum_free(sum);
	return complete;
}

struct tuning *tuning_new(const struct device *device, const char *state_dir,
                          const char *kernel_dir, unsigned platform, unsigned index)
{
	struct tuning *c = calloc(1, sizeof *c);

	if (!c)
		return NULL;
	c->device = device;
	if (!digest_sources(kernel_dir, c->sources)) {
		tuning_free(&c);
		return NULL;
	}
	if (state_dir && mkdir(state_dir, 0700) && errno != EEXIST)
		log_warning("cannot create the directory %s: %s", state_dir, strerror(errno));
	if (state_dir) {
		snprintf(c->path, sizeof c->path, "%.4000s/tuning-%u-%u.json", state_dir, platform,
		         index);
		load(c);
	}
	return c;
}

void tuning_free(struct tuning **tuning)
{
	free(*tuning);
	*tuning = NULL;
}

void tuning_add(struct tuning *tuning, const struct message_choice *choice)
{
	tuning->choice[tuning->count++] = *choice;
	save(tuning);
}
