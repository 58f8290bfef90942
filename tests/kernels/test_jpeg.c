/* The kernels of jpeg/ against libjpeg-turbo: samples and encoded bytes are the same, or an image
 * is flagged; nothing is written outside what an image was given, whatever the bytes. The options
 * are those of harness.c; --brief is for Oclgrind. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#include <glib.h>

#include "codec/jpeg_header.h"
#include "harness.h"
#include "jpeg_file.h"

enum { GUARD = 64, POISON = 0xFF, BATCH = 33 };

static struct harness harness;
static cl_command_queue queue;

/* An image on its way through the device. */
struct item {
	struct jpeg_file file;
	uint64_t samples; /* place in the samples buffer */
	uint32_t pitch;
};

static void complain(const struct item *item, const char *what)
{
	const struct jpegs_wish *w = &item->file.wish;

	fail("%ux%u sampling %d quality %u interval %u optimize %d: %s", w->width, w->height,
	     (int)w->sampling, w->quality, w->restart_interval, w->optimize, what);
}

static void items_free(struct item *items, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		jpeg_file_free(&items[i].file);
}

/* Returns poison where each item has a place of its own between guards. Pitches differ. */
static uint8_t *place_samples(struct item *items, uint32_t count, uint64_t *size)
{
	uint8_t *samples;

	*size = GUARD;
	for (uint32_t i = 0; i < count; i++) {
		const struct jpegs_picture *p = &items[i].file.picture;

		items[i].samples = *size;
		items[i].pitch = (p->width * p->bands + 7) / 8 * 8 + 8 * (i % 3);
		*size += (uint64_t)items[i].pitch * p->height + GUARD;
		*size = (*size + 7) / 8 * 8;
	}
	samples = g_malloc(*size);
	memset(samples, POISON, *size);
	return samples;
}

static cl_mem make_buffer(const void *bytes, uint64_t size)
{
	cl_int code;
	cl_mem buffer =
	    clCreateBuffer(harness.device.context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, size,
	                   (void *)(size_t)bytes, &code);

	must(code);
	return buffer;
}

static void *read_buffer(cl_mem buffer, uint64_t from, uint64_t size)
{
	void *bytes = g_malloc(size);

	if (size)
		must(clEnqueueReadBuffer(queue, buffer, CL_TRUE, from, size, bytes, 0, NULL, NULL));
	return bytes;
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
		if (!all_poison(spare, p->buffer[i].size - used, POISON))
			fail("buffer %u: bytes behind its end were written", i);
		free(spare);
	}
}

/* Buffers have grown to the size that is computed ahead, and not further. scans: bytes. */
static void check_room(const struct jpeg_pipeline *p, const struct item *items, uint32_t count,
                       uint64_t scans)
{
	enum { SLACK = 4096 };
	uint64_t bytes = 0, most = 0;

	for (int i = 0; i < JPEG_BUFFERS_MAX; i++)
		bytes += p->buffer[i].size;
	for (uint32_t i = 0; i < count; i++) {
		const struct jpegs_picture *picture = &items[i].file.picture;

		most +=
		    jpeg_room(p->direction, picture->width, picture->height, picture->bands).bytes;
	}
	if (bytes > most / 8 * 9 + 3 * scans + SLACK)
		fail("buffers are larger than was worked out");
}

/* Decoding ------------------------------------------------------------------------------------- */

/* Tells whether the samples are what libjpeg makes of the file. */
static bool samples_equal(const struct item *item, const uint8_t *samples)
{
	const size_t row = (size_t)item->file.picture.width * item->file.picture.bands;
	struct jpegs_picture expected;
	bool equal = true;

	if (!jpegs_decode_any(item->file.bytes, item->file.size, &expected))
		return false;
	for (uint32_t y = 0; equal && y < expected.height; y++)
		equal = !memcmp(samples + item->samples + (uint64_t)y * item->pitch,
		                expected.samples + y * row, row);
	free(expected.samples);
	return equal;
}

static void new_decoder(struct jpeg_decoder *decoder)
{
	if (jpeg_decoder_init(decoder, harness.programs))
		die("no decoder");
}

static void new_encoder(struct jpeg_encoder *encoder)
{
	if (jpeg_encoder_init(encoder, harness.programs))
		die("no encoder");
}

/* Returns the samples of a batch, around which nothing may be written. */
static uint8_t *decode(struct jpeg_decoder *decoder, struct item *items, uint32_t count,
                       struct jpeg_result results[JPEG_BATCH_MAX])
{
	struct jpeg_decode_job jobs[JPEG_BATCH_MAX];
	uint64_t size;
	uint8_t *samples = place_samples(items, count, &size);
	const uint8_t *before = samples;
	cl_mem buffer = make_buffer(samples, size);
	bool intact = true;

	for (uint32_t i = 0; i < count; i++)
		jobs[i] =
		    (struct jpeg_decode_job){&items[i].file.scan, jpeg_file_scan(&items[i].file),
		                             items[i].samples, items[i].pitch};
	must(jpeg_decoder_enqueue(decoder, queue, jobs, count, buffer, NULL));
	must(jpeg_pipeline_results(&decoder->pipeline, queue, results, NULL));
	must(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, size, samples, 0, NULL, NULL));
	for (uint32_t i = 0; i < count; i++) {
		const struct jpegs_picture *p = &items[i].file.picture;
		const struct rows rows = {samples + items[i].samples, (size_t)p->width * p->bands,
		                          items[i].pitch, p->height};
		const uint8_t *end =
		    samples + items[i].samples + (p->height - 1) * rows.pitch + rows.bytes;

		intact &= poison_around(&rows, before, end, POISON);
		before = end;
	}
	if (!intact || !all_poison(before, (size_t)(samples + size - before), POISON))
		fail("bytes around the samples were written");
	clReleaseMemObject(buffer);
	return samples;
}

/* Decodes files that must be decoded, and compares everything. */
static void try_decode(struct item *items, uint32_t count)
{
	struct jpeg_result results[JPEG_BATCH_MAX];
	struct jpeg_decoder decoder;
	uint64_t scans = 0;
	uint8_t *samples;

	new_decoder(&decoder);
	samples = decode(&decoder, items, count, results);
	for (uint32_t i = 0; i < count; i++) {
		if (results[i].flags)
			complain(&items[i], "flags, of decoding");
		else if (!samples_equal(&items[i], samples))
			complain(&items[i], "samples differ");
		scans += items[i].file.scan.size;
	}
	check_spare(&decoder.pipeline);
	check_room(&decoder.pipeline, items, count, scans);
	free(samples);
	jpeg_decoder_fini(&decoder);
}

/* Encoding ------------------------------------------------------------------------------------- */

static void compare_scan(const struct item *item, const struct jpeg_encoder *encoder,
                         uint32_t number, const struct jpeg_result *result)
{
	const struct jpegs_picture *p = &item->file.picture;
	const struct jpegs_wish wish = {p->width, p->height, item->file.wish.sampling,
	                                .quality = item->file.wish.quality};
	const uint64_t room = encoder->pipeline.image[number].words.count * sizeof(uint32_t);
	struct jpeg_file wanted;
	uint8_t *bytes = g_malloc(result->size);

	jpeg_file_encode(&wanted, *p, wish);
	if (result->size)
		must(jpeg_encoder_read(encoder, queue, number, result->size, bytes, NULL));
	must(clFinish(queue));
	/* Noise of the highest quality may need more room than there is. */
	if (result->flags == JPEG_FLAG_ROOM && wish.quality > 95 && wanted.scan.size > room)
		printf("# %ux%u: no room\n", wish.width, wish.height);
	else if (result->flags)
		complain(item, "flags, of encoding");
	else if (result->size != wanted.scan.size ||
	         memcmp(bytes, jpeg_file_scan(&wanted), result->size))
		complain(item, "encoded bytes differ");
	free(bytes);
	free(wanted.bytes);
}

static void try_encode(struct item *items, uint32_t count)
{
	struct jpeg_encode_job jobs[JPEG_BATCH_MAX];
	struct jpeg_result results[JPEG_BATCH_MAX];
	struct jpeg_encoder encoder;
	uint64_t size;
	uint8_t *samples = place_samples(items, count, &size);
	cl_mem buffer;

	for (uint32_t i = 0; i < count; i++) {
		const struct jpegs_picture *p = &items[i].file.picture;
		const struct jpeg_target target = jpeg_file_target(&items[i].file.wish);
		const size_t row = (size_t)p->width * p->bands;

		for (uint32_t y = 0; y < p->height; y++)
			memcpy(samples + items[i].samples + (uint64_t)y * items[i].pitch,
			       p->samples + y * row, row);
		jobs[i] = (struct jpeg_encode_job){.width = p->width,
		                                   .height = p->height,
		                                   .components = p->bands,
		                                   .h = target.h,
		                                   .v = target.v,
		                                   .samples = items[i].samples,
		                                   .pitch = items[i].pitch};
		memcpy(jobs[i].quantization, target.quantization, sizeof target.quantization);
		if (!jpeg_encode_job_valid(&jobs[i]))
			complain(&items[i], "not valid");
	}
	buffer = make_buffer(samples, size);
	new_encoder(&encoder);
	must(jpeg_encoder_enqueue(&encoder, queue, jobs, count, buffer, NULL));
	must(jpeg_pipeline_results(&encoder.pipeline, queue, results, NULL));
	must(clFinish(queue));
	for (uint32_t i = 0; i < count; i++)
		compare_scan(&items[i], &encoder, i, &results[i]);
	check_spare(&encoder.pipeline);
	check_room(&encoder.pipeline, items, count, 0);
	free(samples);
	clReleaseMemObject(buffer);
	jpeg_encoder_fini(&encoder);
}

/* Tests ---------------------------------------------------------------------------------------- */

/* All sizes to 33 x 33, with everything else at random. */
static void test_sizes(void)
{
	static const uint32_t intervals[] = {0, 0, 1, 2, 5};
	const uint32_t step = options.brief ? 11 : 1;

	for (uint32_t height = 1; height <= BATCH; height += MAX(step, (uint32_t)options.every)) {
		struct item items[BATCH];
		uint32_t count = 0;

		for (uint32_t width = 1 + height % step; width <= BATCH; width += step) {
			const struct jpegs_wish wish = {
			    width,
			    height,
			    (enum jpegs_sampling)random_below(JPEGS_420 + 1),
			    1 + random_below(100),
			    intervals[random_below(5)],
			    .optimize = random_below(3) == 0};

			jpeg_file_make(&items[count++].file, wish,
			               (enum jpegs_content)random_below(JPEGS_CONTENTS),
			               random_below(1000));
		}
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
	    {{701, 433, JPEGS_420, .quality = 85}, JPEGS_SMOOTH},
	    {{640, 480, JPEGS_444, 95, .restart_interval = 7}, JPEGS_SMOOTH},
	    {{515, 300, JPEGS_422, .quality = 90}, JPEGS_NOISE},
	    {{200, 100, JPEGS_444, .quality = 100}, JPEGS_NOISE},
	    {{1024, 1024, JPEGS_420, .quality = 75}, JPEGS_FLAT},
	    {{900, 257, JPEGS_GRAY, 60, 40, .optimize = true}, JPEGS_PAGE},
	    {{333, 777, JPEGS_420, 90, 0, .optimize = true}, JPEGS_PAGE},
	};
	enum { IMAGES = sizeof images / sizeof *images };
	struct item items[IMAGES];

	for (uint32_t i = 0; i < IMAGES; i++) {
		jpeg_file_make(&items[i].file, images[i].wish, images[i].content, i);
		try_decode(&items[i], 1);
		try_encode(&items[i], 1);
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
		const struct jpegs_wish wish = {16 + i, 24, i % 5 ? JPEGS_420 : JPEGS_GRAY,
		                                50 + i / 2, .optimize = i % 3 > 0};

		jpeg_file_make(&files[i].file, wish, JPEGS_SMOOTH, i);
	}
	new_decoder(&decoder);
	for (uint32_t batch = 0; batch < howmany(BATCHES, (uint32_t)options.every); batch++) {
		const uint32_t count =
		    batch % 10 == 9 ? JPEG_BATCH_MAX : 1 + random_below(batch % 4 ? 4 : 20);
		const uint32_t few = batch % 2 ? FILES : 6; /* the same again, or any */
		uint8_t *samples;

		for (uint32_t i = 0; i < count; i++)
			items[i] = files[random_below(few)];
		samples = decode(&decoder, items, count, results);
		for (uint32_t i = 0; i < count; i++)
			if (results[i].flags || !samples_equal(&items[i], samples))
				complain(&items[i], "decoded by other tables");
		free(samples);
	}
	jpeg_decoder_fini(&decoder);
	items_free(files, FILES);
}

static void make_random(struct jpeg_file *file)
{
	jpeg_file_make(file,
	               (struct jpegs_wish){16 + random_below(100), 16 + random_below(60),
	                                   (enum jpegs_sampling)random_below(JPEGS_420 + 1),
	                                   20 + random_below(80), random_below(2) * random_below(9),
	                                   .optimize = random_below(2)},
	               (enum jpegs_content)random_below(JPEGS_CONTENTS), random_below(1000));
}

/* Makes a damaged copy of a file, without the picture: some bytes of the scan are others, or the
 * number of a restart marker, or it is cut. False if its header says so; it is freed then. */
static bool damage(struct jpeg_file *file, const struct jpeg_file *whole)
{
	const uint32_t size = (uint32_t)whole->scan.size;
	uint32_t at = random_below(size);
	uint8_t *scan;

	*file = *whole;
	file->picture.samples = NULL;
	file->bytes = g_memdup2(whole->bytes, whole->size);
	scan = file->bytes + whole->scan.offset;
	while (file->wish.restart_interval && at + 1 < size && (scan[at] != 0xFF || !scan[at + 1]))
		at++;
	if (file->wish.restart_interval && at + 1 < size && random_below(2)) {
		scan[at + 1] = (uint8_t)(0xD0 + random_below(8));
	} else {
		for (uint32_t n = random_below(3); n < 3; n++)
			scan[random_below(size)] = (uint8_t)random_below(256);
		if (random_below(4) == 0) {
			uint32_t cut = random_below(size);

			memmove(scan + cut, scan + size, whole->size - whole->scan.offset - size);
			file->size -= size - cut;
		}
	}
	if (!jpeg_header_read(file->bytes, file->size, &file->scan))
		return true;
	jpeg_file_free(file);
	return false;
}

/* Damaged files: unflagged results are libjpeg's. */
static void test_damaged(void)
{
	enum { ROUNDS = 20, ALIKE = 8, OF_A_DECODER = 8 };
	const uint32_t most =
	    options.rounds ? (uint32_t)options.rounds : howmany(ROUNDS, (uint32_t)options.every);
	const uint32_t rounds = options.brief ? 1 : most,
	               tried = options.brief ? 6 : JPEG_BATCH_MAX;
	uint64_t exact = 0, flagged = 0, refused = 0;
	struct jpeg_decoder decoder;

	for (uint32_t round = 0; round < rounds; round++) {
		struct item items[JPEG_BATCH_MAX];
		struct jpeg_file whole = {.bytes = NULL};
		struct jpeg_result results[JPEG_BATCH_MAX];
		uint32_t count = 0;
		uint8_t *samples;

		for (uint32_t i = 0; i < tried; i++) {
			if (i % ALIKE == 0) {
				jpeg_file_free(&whole);
				make_random(&whole);
			}
			if (damage(&items[count].file, &whole))
				count++;
			else
				refused++;
		}
		if (round % OF_A_DECODER == 0)
			new_decoder(&decoder);
		samples = decode(&decoder, items, count, results);
		for (uint32_t i = 0; i < count; i++) {
			if (!results[i].flags && !samples_equal(&items[i], samples))
				complain(&items[i], "damaged, and decoded to something else");
			*(results[i].flags ? &flagged : &exact) += 1;
		}
		if (round % OF_A_DECODER == 0) /* its buffers are new */
			check_spare(&decoder.pipeline);
		if (round % OF_A_DECODER == OF_A_DECODER - 1 || round == rounds - 1)
			jpeg_decoder_fini(&decoder);
		free(samples);
		jpeg_file_free(&whole);
		items_free(items, count);
	}
	printf("# damaged: %llu exact, %llu flagged, %llu refused\n", (unsigned long long)exact,
	       (unsigned long long)flagged, (unsigned long long)refused);
	if (!options.brief && (!exact || !flagged || !refused))
		fail("expected some of each");
}

/* Returns a prefix code with at least one code of two bits, and perhaps some of more than 10. */
static struct jpeg_huffman random_table(enum jpeg_class class)
{
	struct jpeg_huffman table = {.bits = {0}};
	uint32_t code = 0, left = class == JPEG_DC ? 16 : 256;

	for (uint32_t length = 2; length <= 16; length++) {
		uint32_t room = (1u << length) - 1 - (code *= 2), most = room < left ? room : left;
		uint32_t count = length == 2 ? 1 + random_below(2) : random_below(most / 2 + 1);

		table.bits[length - 1] = (uint8_t)count;
		code += count;
		left -= count;
	}
	for (int v = 0; v < 256; v++)
		table.values[v] = (uint8_t)random_below(class == JPEG_DC ? 16 : 256);
	if (!jpeg_huffman_valid(&table, class)) /* too many prefixes of long codes */
		memset(table.bits + JPEG_NEAR_BITS, 0, 16 - JPEG_NEAR_BITS);
	return table;
}

/* Any Huffman table, any bytes: no byte outside is written, and no loop is without end. */
static void test_hostile(void)
{
	enum { ROUNDS = 12 };
	const uint32_t rounds = options.brief ? 1 : howmany(ROUNDS, (uint32_t)options.every);

	for (uint32_t round = 0; round < rounds; round++) {
		const uint32_t count = options.brief ? 6 : BATCH;
		struct item items[BATCH] = {{.samples = 0}};
		struct jpeg_result results[JPEG_BATCH_MAX];
		struct jpeg_decoder decoder;

		for (uint32_t i = 0; i < count; i++) {
			struct jpeg_file *file = &items[i].file;
			struct jpeg_scan *scan = &file->scan;

			scan->width = 1 + random_below(200);
			scan->height = 1 + random_below(100);
			scan->components = random_below(4) ? 3 : 1;
			scan->h = scan->components == 1 ? 1 : 1 + random_below(2);
			scan->v = 1 + random_below(scan->h);
			scan->restart_interval = random_below(3) ? 0 : random_below(20);
			scan->size = 1 + random_below(3000);
			for (int t = 0; t < JPEG_TABLES; t++)
				scan->huffman[t / 2][t % 2] =
				    random_table((enum jpeg_class)(t % 2));
			for (int q = 0; q < JPEG_COMPONENTS * JPEG_BLOCK; q++)
				scan->quantization[q / JPEG_BLOCK][q % JPEG_BLOCK] =
				    (uint16_t)random_below(65536);
			file->bytes = g_malloc(scan->size);
			if (!jpeg_scan_valid(scan))
				abort();
			for (uint64_t b = 0; b < scan->size; b++)
				file->bytes[b] =
				    (uint8_t)(i % 3 == 0 && b % 2 ? 0 : random_below(255));
			file->picture.width = scan->width;
			file->picture.height = scan->height;
			file->picture.bands = scan->components;
		}
		new_decoder(&decoder);
		free(decode(&decoder, items, count, results));
		check_spare(&decoder.pipeline);
		for (uint32_t i = 0; i < count; i++)
			if (!results[i].flags)
				complain(&items[i], "garbage was taken for an image");
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
	new_decoder(&decoder);
	new_encoder(&encoder);
	for (uint32_t count = 1; count <= JPEG_BATCH_MAX + 1; count += JPEG_BATCH_MAX) {
		for (uint32_t i = 0; i < count; i++) {
			jobs[i] = (struct jpeg_decode_job){.scan = &scan, .bytes = ""};
			encode_jobs[i] = (struct jpeg_encode_job){
			    scan.width, scan.height, 3, 1, 1, {{1}}, 0, 3 * JPEG_SIDE_MAX};
		}
		if (!jpeg_scan_valid(&scan) ||
		    jpeg_decoder_enqueue(&decoder, queue, jobs, count, NULL, NULL) !=
		        CL_INVALID_BUFFER_SIZE ||
		    jpeg_encoder_enqueue(&encoder, queue, encode_jobs, count, NULL, NULL) !=
		        CL_INVALID_BUFFER_SIZE)
			fail("%u images of %u pixels square are taken", count, scan.width);
		scan.width = scan.height = 1; /* then too many */
	}
	jpeg_decoder_fini(&decoder);
	jpeg_encoder_fini(&encoder);
}

/* Sums the bits of an image's groups, `count` of `each` and one of `last`. */
static void merge_bits(cl_kernel kernel, uint32_t count, uint32_t each, uint32_t last, bool fits)
{
	enum { GROUPS_MAX = 1024, SPARE = 16, ARGUMENTS = 6 };
	static uint32_t bits[GROUPS_MAX], offsets[GROUPS_MAX];
	uint8_t poison[SPARE];
	struct jpeg_image image = {.groups = {0, count + 1}, .words = {0, JPEG_WORDS_MAX}};
	struct jpeg_result result = {0, 0}, *got;
	const uint64_t all = (uint64_t)count * each + last, end = (uint64_t)JPEG_WORDS_MAX * 4;
	const size_t group = JPEG_GROUP;
	cl_int code;
	cl_mem words = clCreateBuffer(harness.device.context, CL_MEM_READ_WRITE,
	                              end + sizeof poison, NULL, &code);
	cl_mem buffers[ARGUMENTS];
	uint32_t *bytes, *first;
	uint8_t *spare;

	must(code);
	for (uint32_t i = 0; i <= count; i++)
		bits[i] = i < count ? each : last;
	memset(poison, POISON, sizeof poison);
	must(
	    clEnqueueWriteBuffer(queue, words, CL_TRUE, end, sizeof poison, poison, 0, NULL, NULL));
	buffers[0] = make_buffer(&image, sizeof image);
	buffers[1] = make_buffer(bits, sizeof bits);
	buffers[2] = make_buffer(offsets, sizeof offsets);
	buffers[3] = words;
	buffers[4] = make_buffer(&count, sizeof count);
	buffers[5] = make_buffer(&result, sizeof result);
	for (cl_uint a = 0; a < ARGUMENTS; a++)
		must(clSetKernelArg(kernel, a, sizeof *buffers, &buffers[a]));
	must(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &group, &group, 0, NULL, NULL));
	first = read_buffer(buffers[2], 0, sizeof offsets);
	bytes = read_buffer(buffers[4], 0, sizeof *bytes);
	got = read_buffer(buffers[5], 0, sizeof *got);
	spare = read_buffer(words, end, sizeof poison);
	if (got->flags != (fits ? 0 : JPEG_FLAG_ROOM) || *bytes != (fits ? (all + 7) / 8 : 0) ||
	    (fits && first[count] != all - last) || !all_poison(spare, sizeof poison, POISON))
		fail("%llu bits: flags %u, %u bytes", (unsigned long long)all, got->flags, *bytes);
	free(first);
	free(bytes);
	free(got);
	free(spare);
	for (int i = 0; i < ARGUMENTS; i++)
		clReleaseMemObject(buffers[i]);
}

/* As many bits as can be counted, and more: an image is flagged before its sums wrap round. */
static void test_bits(void)
{
	const uint32_t quarter = 1u << 30, most = quarter - 5 * 32 + 31;
	struct jpeg_encoder encoder;
	uint32_t stage = 0;

	new_encoder(&encoder);
	while (strcmp(encoder.pipeline.direction->stages[stage].name, "merge_prefix"))
		stage++;
	merge_bits(encoder.pipeline.kernel[stage], 3, quarter, most, true);
	merge_bits(encoder.pipeline.kernel[stage], 3, quarter, most + 1, false);
	merge_bits(encoder.pipeline.kernel[stage], 3, quarter, quarter, false);
	merge_bits(encoder.pipeline.kernel[stage], 4, quarter, 100000, false);
	merge_bits(encoder.pipeline.kernel[stage], 1023, quarter, 7, false);
	jpeg_encoder_fini(&encoder);
}

int main(int argc, char **argv)
{
	static const struct test tests[] = {
	    {"sizes", test_sizes, true},     {"tables", test_tables, true},
	    {"large", test_large, false},    {"damaged", test_damaged, true},
	    {"hostile", test_hostile, true}, {"limits", test_limits, true},
	    {"bits", test_bits, false},
	};
	int status;

	options_parse(argc, argv);
	harness_init(&harness, 1 << 20);
	harness_prepare_jpeg(&harness);
	queue = device_queue(&harness.device, 0);
	tests_run(tests, sizeof tests / sizeof *tests);
	status = tests_end();
	clReleaseCommandQueue(queue);
	harness_fini(&harness);
	return status;
}
