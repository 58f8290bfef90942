/* The kernels of jpeg/ against libjpeg-turbo: coefficients, samples and encoded bytes are the same,
 * or an image is flagged; nothing is written outside what an image was given, whatever the bytes.
 *
 * test_jpeg [--platform N] [--device N] [--kernel-dir DIR] [--only NAME] [--brief] [--seed N]
 *           [--rounds N]
 * --brief: small images alone, for Oclgrind. --rounds: of damaged files, 64 in each. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "codec/jpeg_header.h"
#include "device/cl/environment.h"
#include "device/jpeg.h"
#include "jpegs.h"

enum { GUARD = 64, POISON = 0xA7, BATCH = 33 };

static struct device device;
static struct programs *programs;
static cl_command_queue queue;
static bool brief;
static uint32_t failures, rounds = 20;
static uint64_t random_state = 1;

static void check(cl_int code, const char *what)
{
	if (code) {
		fprintf(stderr, "%s: %s\n", what, opencl_error_name(code));
		exit(2);
	}
}

static uint32_t random_number(uint32_t below)
{
	random_state = random_state * 6364136223846793005 + 1442695040888963407;
	return (uint32_t)((random_state >> 33) % below);
}

/* An image on its way through the device. */
struct item {
	struct jpegs_wish wish;
	struct jpegs_picture picture;
	uint8_t *file;
	size_t size;
	struct jpeg_scan scan;
	uint64_t samples; /* place in the samples buffer */
	uint32_t pitch;
};

static void complain(const struct item *item, const char *what)
{
	const struct jpegs_wish *w = &item->wish;

	printf("# %ux%u sampling %d quality %u interval %u optimize %d: %s\n", w->width, w->height,
	       (int)w->sampling, w->quality, w->restart_interval, w->optimize, what);
	failures++;
}

static void item_make(struct item *item, struct jpegs_wish wish, enum jpegs_content content,
                      uint32_t seed)
{
	*item = (struct item){.wish = wish};
	item->picture =
	    jpegs_draw(wish.width, wish.height, wish.sampling == JPEGS_GRAY ? 1 : 3, content, seed);
	item->file = jpegs_encode(&item->picture, &wish, &item->size);
}

static void items_free(struct item *items, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		free(items[i].picture.samples);
		free(items[i].file);
	}
}

/* Gives each item a place of its own between guards; the size of the whole. Pitches differ. */
static uint64_t place_samples(struct item *items, uint32_t count)
{
	uint64_t at = GUARD;

	for (uint32_t i = 0; i < count; i++) {
		uint32_t row = items[i].picture.width * items[i].picture.bands;

		items[i].samples = at;
		items[i].pitch = (row + 7) / 8 * 8 + 8 * (i % 3);
		at += (uint64_t)items[i].pitch * items[i].picture.height + GUARD;
		at = (at + 7) / 8 * 8;
	}
	return at;
}

static cl_mem make_buffer(const void *bytes, uint64_t size)
{
	cl_int code;
	cl_mem buffer = clCreateBuffer(device.context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR,
	                               size, (void *)(size_t)bytes, &code);

	check(code, "clCreateBuffer");
	return buffer;
}

static void *read_buffer(cl_mem buffer, uint64_t from, uint64_t size)
{
	void *bytes = malloc(size ? size : 1);

	if (!bytes)
		abort();
	if (size)
		check(clEnqueueReadBuffer(queue, buffer, CL_TRUE, from, size, bytes, 0, NULL, NULL),
		      "clEnqueueReadBuffer");
	return bytes;
}

static bool all_poison(const uint8_t *bytes, uint64_t size)
{
	for (uint64_t i = 0; i < size; i++)
		if (bytes[i] != POISON)
			return false;
	return true;
}

/* Buffers are a little larger than asked for, and new: the rest must be as it was. */
static void check_spare(const struct jpeg_pipeline *p)
{
	for (uint32_t i = 0; i < p->direction->buffer_count; i++) {
		const struct jpeg_buffer *b = &p->direction->buffers[i];
		const struct jpeg_span *span = (const void *)((const char *)&p->all + b->span);
		uint64_t used = (uint64_t)span->count * b->bytes;
		uint8_t *spare;

		if (b->bytes <= 1 && b->span == JPEG_SPAN(image))
			continue; /* the caller's, or of another size */
		spare = read_buffer(p->buffer[i].memory, used, p->buffer[i].size - used);
		if (!all_poison(spare, p->buffer[i].size - used)) {
			printf("# buffer %u: bytes behind its end were written\n", i);
			failures++;
		}
		free(spare);
	}
}

/* Decoding ------------------------------------------------------------------------------------- */

/* Returns the coefficient k, in zigzag order, of a block as the device has it. DC: still the
 * difference. */
static int coefficient(const int16_t *block, uint32_t k)
{
	uint32_t zigzag = jpeg_zigzag[k], place = zigzag % 8 * 8 + zigzag / 8;

	if (k == 0)
		return block[0] >> 4;
	return place / 8 > (uint32_t)(block[0] & 7) ? 0 : block[place];
}

/* Compares all coefficients, with DC summed up over blocks in the order of the scan. */
static bool coefficients_equal(const struct item *item, const struct jpeg_image *image,
                               const int16_t *blocks)
{
	int16_t *expected[JPEG_COMPONENTS];
	uint32_t across[JPEG_COMPONENTS], down[JPEG_COMPONENTS];
	int predictor[JPEG_COMPONENTS] = {0};
	bool equal = true;

	for (uint32_t c = 0; c < image->components; c++)
		expected[c] = jpegs_coefficients(item->file, item->size, c, &across[c], &down[c]);
	for (uint32_t b = 0; equal && b < image->blocks.count; b++) {
		uint32_t mcu = b / image->mcu_blocks, k = b % image->mcu_blocks;
		uint32_t c = k < image->luma_blocks ? 0 : k - image->luma_blocks + 1;
		uint32_t h = c ? 1 : image->h, v = c ? 1 : image->v;
		uint32_t x = mcu % image->mcus_x * h + (c ? 0 : k % h);
		uint32_t y = mcu / image->mcus_x * v + (c ? 0 : k / h);
		const int16_t *block = blocks + (uint64_t)b * JPEG_BLOCK;

		if (k == 0 && mcu % image->restart_interval == 0)
			memset(predictor, 0, sizeof predictor);
		predictor[c] += coefficient(block, 0);
		for (uint32_t i = 0; i < JPEG_BLOCK && x < across[c] && y < down[c]; i++)
			equal &= (i ? coefficient(block, i) : predictor[c]) ==
			         expected[c][((uint64_t)y * across[c] + x) * JPEG_BLOCK + i];
	}
	for (uint32_t c = 0; c < image->components; c++)
		free(expected[c]);
	return equal;
}

static bool rows_equal(const struct item *item, const uint8_t *samples,
                       const struct jpegs_picture *expected)
{
	size_t row = (size_t)expected->width * expected->bands;

	for (uint32_t y = 0; y < expected->height; y++)
		if (memcmp(samples + item->samples + (uint64_t)y * item->pitch,
		           expected->samples + y * row, row))
			return false;
	return true;
}

/* Tells whether all bytes are poison, once those that images may write have been poisoned again. */
static bool guards_intact(const struct item *items, uint32_t count, uint8_t *samples, uint64_t size)
{
	for (uint32_t i = 0; i < count; i++)
		for (uint32_t y = 0; y < items[i].picture.height; y++)
			memset(samples + items[i].samples + (uint64_t)y * items[i].pitch, POISON,
			       (size_t)items[i].picture.width * items[i].picture.bands);
	return all_poison(samples, size);
}

static void new_decoder(struct jpeg_decoder *decoder)
{
	check(jpeg_decoder_init(decoder, programs) ? CL_INVALID_KERNEL : CL_SUCCESS, "decoder");
}

static void decode(struct jpeg_decoder *decoder, const struct item *items, uint32_t count,
                   cl_mem samples, struct jpeg_result *results)
{
	struct jpeg_decode_job jobs[JPEG_BATCH_MAX];

	for (uint32_t i = 0; i < count; i++)
		jobs[i] =
		    (struct jpeg_decode_job){&items[i].scan, items[i].file + items[i].scan.offset,
		                             items[i].samples, items[i].pitch};
	check(jpeg_decoder_enqueue(decoder, queue, jobs, count, samples, NULL),
	      "jpeg_decoder_enqueue");
	check(jpeg_pipeline_results(&decoder->pipeline, queue, results, NULL), "results");
	check(clFinish(queue), "clFinish");
}

static uint64_t make_samples(struct item *items, uint32_t count, cl_mem *buffer)
{
	uint64_t size = place_samples(items, count);
	uint8_t *bytes = malloc(size);

	if (!bytes)
		abort();
	memset(bytes, POISON, size);
	*buffer = make_buffer(bytes, size);
	free(bytes);
	return size;
}

/* Decodes files that must be decoded, and compares everything. */
static void try_decode(struct item *items, uint32_t count)
{
	struct jpeg_result results[JPEG_BATCH_MAX];
	struct jpeg_decoder decoder;
	cl_mem buffer;
	uint64_t size;
	uint8_t *samples;

	for (uint32_t i = 0; i < count; i++) {
		enum jpeg_reason odd =
		    jpeg_header_read(items[i].file, items[i].size, &items[i].scan);

		if (odd) {
			complain(&items[i], jpeg_reason_slug(odd));
			return;
		}
	}
	size = make_samples(items, count, &buffer);
	new_decoder(&decoder);
	decode(&decoder, items, count, buffer, results);
	samples = read_buffer(buffer, 0, size);
	for (uint32_t i = 0; i < count; i++) {
		const struct jpeg_image *image = &decoder.pipeline.image[i];
		struct jpegs_picture expected = {.samples = NULL};
		int16_t *blocks =
		    read_buffer(decoder.pipeline.buffer[DECODE_COEFFICIENTS].memory,
		                (uint64_t)image->blocks.first * sizeof(int16_t[JPEG_BLOCK]),
		                (uint64_t)image->blocks.count * sizeof(int16_t[JPEG_BLOCK]));

		if (results[i].flags) {
			char flags[32];

			snprintf(flags, sizeof flags, "decoding: flags %x", results[i].flags);
			complain(&items[i], flags);
		} else if (!coefficients_equal(&items[i], image, blocks)) {
			complain(&items[i], "coefficients differ");
		} else if (!jpegs_decode(items[i].file, items[i].size, &expected) ||
		           !rows_equal(&items[i], samples, &expected)) {
			complain(&items[i], "samples differ");
		}
		free(expected.samples);
		free(blocks);
	}
	if (!guards_intact(items, count, samples, size))
		complain(items, "bytes around the samples were written");
	check_spare(&decoder.pipeline);
	free(samples);
	clReleaseMemObject(buffer);
	jpeg_decoder_fini(&decoder);
}

/* Encoding ------------------------------------------------------------------------------------- */

static void compare_scan(const struct item *item, const struct jpeg_encoder *encoder,
                         uint32_t number, const struct jpeg_result *result)
{
	struct jpegs_wish wish = item->wish;
	struct jpeg_scan scan;
	uint8_t *file, *bytes;
	size_t size;

	wish.optimize = false;
	wish.restart_interval = 0;
	file = jpegs_encode(&item->picture, &wish, &size);
	if (jpeg_header_read(file, size, &scan))
		abort();
	bytes = malloc(result->size + 1);
	if (!bytes)
		abort();
	if (result->size)
		check(jpeg_encoder_read(encoder, queue, number, result->size, bytes, NULL), "read");
	check(clFinish(queue), "clFinish");
	/* Noise of the highest quality may need more room than there is. */
	if (result->flags == JPEG_FLAG_ROOM && item->wish.quality > 95 &&
	    scan.size > encoder->pipeline.image[number].words.count * sizeof(uint32_t))
		printf("# %ux%u: no room\n", item->wish.width, item->wish.height);
	else if (result->flags)
		complain(item, "encoding: flags");
	else if (result->size != scan.size || memcmp(bytes, file + scan.offset, scan.size))
		complain(item, "encoded bytes differ");
	free(bytes);
	free(file);
}

static void try_encode(struct item *items, uint32_t count)
{
	uint64_t size = place_samples(items, count);
	struct jpeg_encode_job jobs[JPEG_BATCH_MAX];
	struct jpeg_result results[JPEG_BATCH_MAX];
	struct jpeg_encoder encoder;
	uint8_t *samples = malloc(size);
	cl_mem buffer;

	if (!samples)
		abort();
	memset(samples, POISON, size);
	for (uint32_t i = 0; i < count; i++) {
		const struct jpegs_picture *p = &items[i].picture;
		const struct jpegs_wish *w = &items[i].wish;
		size_t row = (size_t)p->width * p->bands;
		struct jpeg_encode_job job = {p->width,
		                              p->height,
		                              p->bands,
		                              w->sampling >= JPEGS_422 ? 2 : 1,
		                              w->sampling == JPEGS_420 ? 2 : 1,
		                              {{0}},
		                              items[i].samples,
		                              items[i].pitch};

		for (uint32_t y = 0; y < p->height; y++)
			memcpy(samples + items[i].samples + (uint64_t)y * items[i].pitch,
			       p->samples + y * row, row);
		for (int plane = 0; plane < JPEG_PLANES; plane++)
			jpeg_quality_table(w->quality, (enum jpeg_plane)plane,
			                   job.quantization[plane]);
		jobs[i] = job;
		if (!jpeg_encode_job_valid(&job))
			complain(&items[i], "not valid");
	}
	buffer = make_buffer(samples, size);
	check(jpeg_encoder_init(&encoder, programs) ? CL_INVALID_KERNEL : CL_SUCCESS, "encoder");
	check(jpeg_encoder_enqueue(&encoder, queue, jobs, count, buffer, NULL),
	      "jpeg_encoder_enqueue");
	check(jpeg_pipeline_results(&encoder.pipeline, queue, results, NULL), "results");
	check(clFinish(queue), "clFinish");
	for (uint32_t i = 0; i < count; i++)
		compare_scan(&items[i], &encoder, i, &results[i]);
	check_spare(&encoder.pipeline);
	free(samples);
	clReleaseMemObject(buffer);
	jpeg_encoder_fini(&encoder);
}

/* Tests ---------------------------------------------------------------------------------------- */

/* All sizes to 33 x 33, with everything else at random. */
static void test_sizes(void)
{
	static const uint32_t intervals[] = {0, 0, 1, 2, 5};
	uint32_t step = brief ? 11 : 1;

	for (uint32_t height = 1; height <= BATCH; height += step) {
		struct item items[BATCH];
		uint32_t count = 0;

		for (uint32_t width = 1 + height % step; width <= BATCH; width += step)
			item_make(
			    &items[count++],
			    (struct jpegs_wish){width, height,
			                        (enum jpegs_sampling)random_number(JPEGS_420 + 1),
			                        1 + random_number(100), intervals[random_number(5)],
			                        .optimize = random_number(3) == 0},
			    (enum jpegs_content)random_number(JPEGS_CONTENTS), random_number(1000));
		try_decode(items, count);
		try_encode(items, count);
		items_free(items, count);
	}
}

/* Images of several groups and windows, alone and as a batch of different ones; flat ones never
 * fall into step, noise fills a window of the encoder more than once. */
static void test_large(void)
{
	static const struct {
		struct jpegs_wish wish;
		enum jpegs_content content;
	} images[] = {
	    {{701, 433, JPEGS_420, 85, 0, 0, 0, 0}, JPEGS_SMOOTH},
	    {{640, 480, JPEGS_444, 95, 7, 0, 0, 0}, JPEGS_SMOOTH},
	    {{515, 300, JPEGS_422, 90, 0, 0, 0, 0}, JPEGS_NOISE},
	    {{200, 100, JPEGS_444, 100, 0, 0, 0, 0}, JPEGS_NOISE},
	    {{1024, 1024, JPEGS_420, 75, 0, 0, 0, 0}, JPEGS_FLAT},
	    {{900, 257, JPEGS_GRAY, 60, 40, .optimize = true}, JPEGS_PAGE},
	    {{333, 777, JPEGS_420, 90, 0, .optimize = true}, JPEGS_PAGE},
	};
	enum { IMAGES = sizeof images / sizeof *images };
	struct item items[IMAGES];

	for (uint32_t i = 0; i < IMAGES; i++) {
		item_make(&items[i], images[i].wish, images[i].content, i);
		try_decode(&items[i], 1);
	}
	try_decode(items, IMAGES);
	try_encode(items, IMAGES);
	items_free(items, IMAGES);
}

/* Files of many Huffman tables through one decoder, which keeps tables from batch to batch. */
static void test_tables(void)
{
	enum { FILES = 90, BATCHES = 30 };
	struct item files[FILES], items[JPEG_BATCH_MAX];
	struct jpeg_result results[JPEG_BATCH_MAX];
	struct jpeg_decoder decoder;

	for (uint32_t i = 0; i < FILES; i++) {
		item_make(&files[i],
		          (struct jpegs_wish){16 + i, 24, i % 5 ? JPEGS_420 : JPEGS_GRAY,
		                              50 + i / 2, 0, .optimize = i % 3 > 0},
		          JPEGS_SMOOTH, i);
		if (jpeg_header_read(files[i].file, files[i].size, &files[i].scan))
			abort();
	}
	new_decoder(&decoder);
	for (uint32_t batch = 0; batch < BATCHES; batch++) {
		const uint32_t count =
		    batch % 10 == 9 ? JPEG_BATCH_MAX : 1 + random_number(batch % 4 ? 4 : 20);
		const uint32_t few = batch % 2 ? FILES : 6; /* the same again, or any */
		uint64_t size;
		cl_mem buffer;
		uint8_t *samples;

		for (uint32_t i = 0; i < count; i++)
			items[i] = files[random_number(few)];
		size = make_samples(items, count, &buffer);
		decode(&decoder, items, count, buffer, results);
		samples = read_buffer(buffer, 0, size);
		for (uint32_t i = 0; i < count; i++) {
			struct jpegs_picture expected;

			if (!jpegs_decode(items[i].file, items[i].size, &expected))
				abort();
			if (results[i].flags || !rows_equal(&items[i], samples, &expected))
				complain(&items[i], "decoded by other tables");
			free(expected.samples);
		}
		free(samples);
		clReleaseMemObject(buffer);
	}
	jpeg_decoder_fini(&decoder);
	items_free(files, FILES);
}

/* Changes a few bytes of a scan, or the number of a restart marker, or cuts it. */
static void mutate(struct item *item)
{
	uint8_t *scan = item->file + item->scan.offset;
	uint32_t size = (uint32_t)item->scan.size, at = random_number(size);

	while (item->wish.restart_interval && at + 1 < size && (scan[at] != 0xFF || !scan[at + 1]))
		at++;
	if (item->wish.restart_interval && at + 1 < size && random_number(2)) {
		scan[at + 1] = (uint8_t)(0xD0 + random_number(8));
		return;
	}
	for (uint32_t n = random_number(3); n < 3; n++)
		scan[random_number(size)] = (uint8_t)random_number(256);
	if (random_number(4) == 0) {
		uint32_t cut = random_number(size);

		memmove(scan + cut, scan + size, item->size - item->scan.offset - size);
		item->size -= size - cut;
	}
}

static void item_random(struct item *item)
{
	item_make(item,
	          (struct jpegs_wish){16 + random_number(100), 16 + random_number(60),
	                              (enum jpegs_sampling)random_number(JPEGS_420 + 1),
	                              20 + random_number(80), random_number(2) * random_number(9),
	                              .optimize = random_number(2)},
	          (enum jpegs_content)random_number(JPEGS_CONTENTS), random_number(1000));
	if (jpeg_header_read(item->file, item->size, &item->scan))
		abort();
}

/* Makes a damaged copy of a file, without the picture. False if its header says that it is. */
static bool item_damage(struct item *item, const struct item *whole)
{
	*item = *whole;
	item->picture.samples = NULL;
	item->file = malloc(whole->size);
	if (!item->file)
		abort();
	memcpy(item->file, whole->file, whole->size);
	mutate(item);
	return !jpeg_header_read(item->file, item->size, &item->scan);
}

struct tally {
	uint64_t exact, flagged, refused;
};

static void judge_damaged(const struct item *items, uint32_t count,
                          const struct jpeg_result *results, const uint8_t *samples,
                          struct tally *tally)
{
	for (uint32_t i = 0; i < count; i++) {
		struct jpegs_picture expected = {.samples = NULL};

		if (results[i].flags)
			tally->flagged++;
		else if (!jpegs_decode_any(items[i].file, items[i].size, &expected) ||
		         !rows_equal(&items[i], samples, &expected))
			complain(&items[i], "damaged, and decoded to something else");
		else
			tally->exact++;
		free(expected.samples);
	}
}

/* A batch of damaged files; with `spare`, the decoder's buffers are new. */
static void try_damaged(struct jpeg_decoder *decoder, uint32_t tried, bool spare,
                        struct tally *tally)
{
	enum { ALIKE = 8 };
	struct item items[JPEG_BATCH_MAX], whole = {.file = NULL};
	struct jpeg_result results[JPEG_BATCH_MAX];
	uint32_t count = 0;
	cl_mem buffer;
	uint64_t size;
	uint8_t *samples;

	for (uint32_t i = 0; i < tried; i++) {
		if (i % ALIKE == 0) {
			items_free(&whole, 1);
			item_random(&whole);
		}
		if (item_damage(&items[count], &whole)) {
			count++;
		} else {
			items_free(&items[count], 1);
			tally->refused++;
		}
	}
	size = make_samples(items, count, &buffer);
	decode(decoder, items, count, buffer, results);
	samples = read_buffer(buffer, 0, size);
	judge_damaged(items, count, results, samples, tally);
	if (!guards_intact(items, count, samples, size))
		complain(items, "bytes around the samples were written");
	if (spare)
		check_spare(&decoder->pipeline);
	free(samples);
	clReleaseMemObject(buffer);
	items_free(&whole, 1);
	items_free(items, count);
}

/* Damaged files: unflagged results are libjpeg's. */
static void test_damaged(void)
{
	enum { ROUNDS = 8 }; /* with one decoder */
	struct tally tally = {0, 0, 0};
	struct jpeg_decoder decoder;

	for (uint32_t round = 0; round < (brief ? 1 : rounds); round++) {
		if (round % ROUNDS == 0)
			new_decoder(&decoder);
		try_damaged(&decoder, brief ? 6 : JPEG_BATCH_MAX, round % ROUNDS == 0, &tally);
		if (round % ROUNDS == ROUNDS - 1 || round == (brief ? 1 : rounds) - 1)
			jpeg_decoder_fini(&decoder);
	}
	printf("# damaged: %llu exact, %llu flagged, %llu refused\n",
	       (unsigned long long)tally.exact, (unsigned long long)tally.flagged,
	       (unsigned long long)tally.refused);
	failures += !brief && (!tally.exact || !tally.flagged || !tally.refused);
}

/* Returns a prefix code with at least one code of two bits, and perhaps some of more than 10. */
static struct jpeg_huffman random_table(enum jpeg_class class)
{
	struct jpeg_huffman table = {.bits = {0}};
	uint32_t code = 0, left = class == JPEG_DC ? 16 : 256;

	for (uint32_t length = 2; length <= 16; length++) {
		uint32_t room = (1u << length) - 1 - (code *= 2), most = room < left ? room : left;
		uint32_t count = length == 2 ? 1 + random_number(2) : random_number(most / 2 + 1);

		table.bits[length - 1] = (uint8_t)count;
		code += count;
		left -= count;
	}
	for (int v = 0; v < 256; v++)
		table.values[v] = (uint8_t)random_number(class == JPEG_DC ? 16 : 256);
	if (!jpeg_huffman_valid(&table, class)) /* too many prefixes of long codes */
		memset(table.bits + JPEG_NEAR_BITS, 0, 16 - JPEG_NEAR_BITS);
	return table;
}

/* Any Huffman table, any bytes: no byte outside is written, and no loop is without end. */
static void test_hostile(void)
{
	for (uint32_t round = 0; round < (brief ? 1u : 12u); round++) {
		const uint32_t count = brief ? 6 : BATCH;
		struct item items[BATCH] = {{.size = 0}};
		struct jpeg_result results[BATCH];
		struct jpeg_decoder decoder;
		cl_mem buffer;
		uint64_t size;
		uint8_t *samples;

		for (uint32_t i = 0; i < count; i++) {
			struct item *item = &items[i];
			struct jpeg_scan *scan = &item->scan;

			scan->width = 1 + random_number(200);
			scan->height = 1 + random_number(100);
			scan->components = random_number(4) ? 3 : 1;
			scan->h = scan->components == 1 ? 1 : 1 + random_number(2);
			scan->v = 1 + random_number(scan->h);
			scan->restart_interval = random_number(3) ? 0 : random_number(20);
			scan->size = 1 + random_number(3000);
			for (int t = 0; t < JPEG_TABLES; t++)
				scan->huffman[t / 2][t % 2] =
				    random_table((enum jpeg_class)(t % 2));
			for (int q = 0; q < JPEG_COMPONENTS * JPEG_BLOCK; q++)
				scan->quantization[q / JPEG_BLOCK][q % JPEG_BLOCK] =
				    (uint16_t)random_number(65536);
			item->file = malloc(scan->size);
			if (!jpeg_scan_valid(scan) || !item->file)
				abort();
			for (uint64_t b = 0; b < scan->size; b++)
				item->file[b] =
				    (uint8_t)(i % 3 == 0 && b % 2 ? 0 : random_number(255));
			item->picture.width = scan->width;
			item->picture.height = scan->height;
			item->picture.bands = scan->components;
		}
		size = make_samples(items, count, &buffer);
		new_decoder(&decoder);
		decode(&decoder, items, count, buffer, results);
		samples = read_buffer(buffer, 0, size);
		if (!guards_intact(items, count, samples, size))
			complain(items, "bytes around the samples were written");
		check_spare(&decoder.pipeline);
		for (uint32_t i = 0; i < count; i++)
			if (!results[i].flags)
				complain(&items[i], "garbage was taken for an image");
		free(samples);
		clReleaseMemObject(buffer);
		jpeg_decoder_fini(&decoder);
		items_free(items, count);
	}
}

/* Too large or too many images are refused before anything is sent. */
static void test_limits(void)
{
	static struct jpeg_decode_job jobs[JPEG_BATCH_MAX + 1];
	static struct jpeg_encode_job encode_jobs[JPEG_BATCH_MAX + 1];
	static struct jpeg_decoder decoder;
	static struct jpeg_encoder encoder;
	struct jpeg_scan scan = {.width = JPEG_SIDE_MAX,
	                         .height = JPEG_SIDE_MAX,
	                         .components = 3,
	                         .h = 1,
	                         .v = 1,
	                         .size = 1};

	memcpy(scan.huffman, jpeg_standard_huffman, sizeof scan.huffman);
	check(jpeg_decoder_init(&decoder, programs) || jpeg_encoder_init(&encoder, programs)
	          ? CL_INVALID_KERNEL
	          : CL_SUCCESS,
	      "kernels");
	for (uint32_t count = 1; count <= JPEG_BATCH_MAX + 1; count += JPEG_BATCH_MAX) {
		for (uint32_t i = 0; i < count; i++) {
			jobs[i] = (struct jpeg_decode_job){.scan = &scan, .bytes = ""};
			encode_jobs[i] = (struct jpeg_encode_job){
			    scan.width, scan.height, 3, 1, 1, {{1}}, 0, 3 * JPEG_SIDE_MAX};
		}
		failures += !jpeg_scan_valid(&scan);
		failures += jpeg_decoder_enqueue(&decoder, queue, jobs, count, NULL, NULL) !=
		            CL_INVALID_BUFFER_SIZE;
		failures += jpeg_encoder_enqueue(&encoder, queue, encode_jobs, count, NULL, NULL) !=
		            CL_INVALID_BUFFER_SIZE;
		scan.width = scan.height = 1; /* then too many */
	}
	jpeg_decoder_fini(&decoder);
	jpeg_encoder_fini(&encoder);
}

/* Sums the bits of an image's groups, `count` of `each` and one of `last`. */
static void merge_bits(cl_kernel kernel, uint32_t count, uint32_t each, uint32_t last, bool fits)
{
	enum { GROUPS_MAX = 1024, SPARE = 16 };
	static uint32_t bits[GROUPS_MAX], offsets[GROUPS_MAX], poison[SPARE];
	struct jpeg_image image = {.groups = {0, count + 1}, .words = {0, JPEG_WORDS_MAX}};
	struct jpeg_result result = {0, 0};
	const uint64_t all = (uint64_t)count * each + last, end = (uint64_t)JPEG_WORDS_MAX * 4;
	const size_t group = JPEG_GROUP;
	cl_int code;
	cl_mem words =
	    clCreateBuffer(device.context, CL_MEM_READ_WRITE, end + sizeof poison, NULL, &code);
	cl_mem buffers[] = {
	    make_buffer(&image, sizeof image),    NULL,
	    make_buffer(offsets, sizeof offsets), words,
	    make_buffer(&count, sizeof count),    make_buffer(&result, sizeof result)};
	uint32_t *bytes, *first;
	uint8_t *spare;

	check(code, "clCreateBuffer");
	for (uint32_t i = 0; i <= count; i++)
		bits[i] = i < count ? each : last;
	buffers[1] = make_buffer(bits, sizeof bits);
	memset(poison, POISON, sizeof poison);
	check(
	    clEnqueueWriteBuffer(queue, words, CL_TRUE, end, sizeof poison, poison, 0, NULL, NULL),
	    "clEnqueueWriteBuffer");
	for (cl_uint a = 0; a < 6; a++)
		check(clSetKernelArg(kernel, a, sizeof *buffers, &buffers[a]), "clSetKernelArg");
	check(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &group, &group, 0, NULL, NULL),
	      "clEnqueueNDRangeKernel");
	first = read_buffer(buffers[2], 0, sizeof offsets);
	bytes = read_buffer(buffers[4], 0, sizeof *bytes);
	spare = read_buffer(words, end, sizeof poison);
	check(clEnqueueReadBuffer(queue, buffers[5], CL_TRUE, 0, sizeof result, &result, 0, NULL,
	                          NULL),
	      "clEnqueueReadBuffer");
	if (result.flags != (fits ? 0 : JPEG_FLAG_ROOM) || *bytes != (fits ? (all + 7) / 8 : 0) ||
	    (fits && first[count] != all - last) || !all_poison(spare, sizeof poison)) {
		printf("# %llu bits: flags %u, %u bytes\n", (unsigned long long)all, result.flags,
		       *bytes);
		failures++;
	}
	free(first);
	free(bytes);
	free(spare);
	for (int i = 0; i < 6; i++)
		clReleaseMemObject(buffers[i]);
}

/* As many bits as can be counted, and more: an image is flagged before its sums wrap round. */
static void test_bits(void)
{
	const uint32_t quarter = 1u << 30, most = quarter - 5 * 32 + 31;
	struct jpeg_encoder encoder;
	uint32_t stage = 0;

	if (jpeg_encoder_init(&encoder, programs))
		exit(2);
	while (strcmp(encoder.pipeline.direction->stages[stage].name, "merge_prefix"))
		stage++;
	merge_bits(encoder.pipeline.kernel[stage], 3, quarter, most, true);
	merge_bits(encoder.pipeline.kernel[stage], 3, quarter, most + 1, false);
	merge_bits(encoder.pipeline.kernel[stage], 3, quarter, quarter, false);
	merge_bits(encoder.pipeline.kernel[stage], 4, quarter, 100000, false);
	merge_bits(encoder.pipeline.kernel[stage], 1023, quarter, 7, false);
	jpeg_encoder_fini(&encoder);
}

static const struct {
	const char *name;
	void (*run)(void);
	bool brief;
} tests[] = {{"sizes", test_sizes, true},     {"tables", test_tables, true},
             {"large", test_large, false},    {"damaged", test_damaged, true},
             {"hostile", test_hostile, true}, {"limits", test_limits, true},
             {"bits", test_bits, false}};

static void open_device(unsigned platform, unsigned number, const char *kernel_dir)
{
	struct message_programs count;
	cl_int code = CL_SUCCESS;

	environment_set(NULL);
	if (device_open(&device, platform, number))
		exit(2);
	device.in_test = true; /* poisons new buffers */
	if (programs_new(&programs, &device, kernel_dir, NULL, 0, -1))
		exit(2);
	programs_hurry(programs);
	programs_prepare(programs, true);
	programs_wait(programs);
	programs_count(programs, &count);
	if (!count.jpeg || count.failed)
		exit(2);
	queue = clCreateCommandQueue(device.context, device.id, 0, &code);
	check(code, "clCreateCommandQueue");
}

int main(int argc, char **argv)
{
	static const struct option options[] = {{"kernel-dir", required_argument, NULL, 'k'},
	                                        {"platform", required_argument, NULL, 'p'},
	                                        {"device", required_argument, NULL, 'd'},
	                                        {"only", required_argument, NULL, 'o'},
	                                        {"brief", no_argument, NULL, 'b'},
	                                        {"seed", required_argument, NULL, 's'},
	                                        {"rounds", required_argument, NULL, 'r'},
	                                        {0}};
	const char *kernel_dir = NULL, *only = NULL;
	unsigned platform = 0, number = 0, passed = 0, failed = 0;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1)
		if (c == 'k')
			kernel_dir = optarg;
		else if (c == 'p')
			platform = (unsigned)strtoul(optarg, NULL, 10);
		else if (c == 'd')
			number = (unsigned)strtoul(optarg, NULL, 10);
		else if (c == 'o')
			only = optarg;
		else if (c == 'b')
			brief = true;
		else if (c == 's')
			random_state = strtoull(optarg, NULL, 10);
		else if (c == 'r')
			rounds = (uint32_t)strtoul(optarg, NULL, 10);
		else
			return 2;
	open_device(platform, number, kernel_dir);
	for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
		if ((only && strcmp(only, tests[i].name)) || (brief && !tests[i].brief))
			continue;
		failures = 0;
		tests[i].run();
		printf("%sok - %s\n", failures ? "not " : "", tests[i].name);
		fflush(stdout);
		*(failures ? &failed : &passed) += 1;
	}
	clReleaseCommandQueue(queue);
	programs_free(&programs);
	device_close(&device);
	printf("%u passed, %u failed\n", passed, failed);
	return failed ? 1 : 0;
}
