/* libvips makes a file of the case's pixels by libjpeg-turbo, decodes it, and encodes the samples
 * in the same way, so that the samples and the bytes that a device must make are known. */
#include "bench/bench.h"

#include <err.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <vips/vips.h>

#include "device/jpeg.h"

enum { QUALITY = 85, ROWS = 2 * JPEG_STAGES_MAX + 2 };

/* A file by libjpeg-turbo, and its scan. */
struct file {
	void *bytes;
	size_t size;
	const uint8_t *scan;
	size_t scan_size;
};

/* A kernel, or a direction. */
struct row {
	const char *name;
	enum jpeg_side side;
	double *ms;
	uint32_t launches;
};

struct bench {
	const struct session *session;
	const struct image *image;
	cl_mem samples, copy;
	uint32_t pitch;
	uint64_t size;    /* bytes of samples, with the pitch */
	uint8_t *decoded; /* packed: what the file decodes to */
	struct file file, again;
	struct jpeg_scan scan;
	struct jpeg_decoder decoder;
	struct jpeg_encoder encoder;
	struct jpeg_result result;
	struct row row[ROWS];
	uint32_t rows, runs, runs_max;
	double *ms; /* all rows' runs, and behind them the copy's */
};

/* Makes a file of packed pixels. */
static void encode(const struct image *image, const void *pixels, struct file *file)
{
	static const uint8_t start[] = {0xFF, 0xDA};
	VipsImage *from =
	    vips_image_new_from_memory(pixels, image_size(image), (int)image->width,
	                               (int)image->height, (int)image->bands, VIPS_FORMAT_UCHAR);

	if (!from || vips_jpegsave_buffer(from, &file->bytes, &file->size, "Q", QUALITY, "strip",
	                                  TRUE, NULL))
		errx(1, "jpeg: %s", vips_error_buffer());
	g_object_unref(from);
	/* The scan begins after the only SOS, whose length follows; the file ends with EOI. */
	file->scan = memmem(file->bytes, file->size, start, sizeof start);
	file->scan += 2 + (file->scan[2] << 8 | file->scan[3]);
	file->scan_size = (size_t)((uint8_t *)file->bytes + file->size - 2 - file->scan);
}

static uint8_t *decode(const struct file *file)
{
	VipsImage *image;
	uint8_t *pixels;
	size_t size;

	if (vips_jpegload_buffer(file->bytes, file->size, &image, "access", VIPS_ACCESS_SEQUENTIAL,
	                         NULL) ||
	    !(pixels = vips_image_write_to_memory(image, &size)))
		errx(1, "jpeg: %s", vips_error_buffer());
	g_object_unref(image);
	return pixels;
}

/* Adds a time of this run to its row, which may be a new one. */
static void add_time(struct bench *b, const char *name, enum jpeg_side side, double ms)
{
	struct row *row = b->row;

	while (row < b->row + b->rows && strcmp(row->name, name) != 0)
		row++;
	if (row == b->row + b->rows)
		*row = (struct row){name, side, b->ms + (size_t)b->rows++ * b->runs_max, 0};
	row->ms[b->runs] += ms;
	row->launches += !b->runs;
}

static void check(cl_int code)
{
	bench_check(code, "jpeg");
}

/* Reads the results of a direction, and adds up its times. */
static void finish(struct bench *b, const struct jpeg_pipeline *pipeline, struct jpeg_trace *trace,
                   enum jpeg_side side)
{
	static const char *const names[] = {
	    [JPEG_DECODE] = "jpeg decode", [JPEG_ENCODE] = "jpeg encode"};

	check(jpeg_pipeline_results(pipeline, b->session->queue, &b->result, NULL));
	check(clFinish(b->session->queue));
	for (uint32_t i = 0; trace && i < trace->count; i++) {
		cl_event event = trace->launch[i].event;
		uint64_t ns;

		check(opencl_time_between(event, event, &ns));
		add_time(b, names[side], side, (double)ns * 1e-6);
		add_time(b, trace->launch[i].name, side, (double)ns * 1e-6);
	}
	if (trace)
		jpeg_trace_release(trace);
}

/* trace: NULL, or empty. */
static void run_decode(struct bench *b, struct jpeg_trace *trace)
{
	const struct jpeg_decode_job job = {&b->scan, b->file.scan, 0, b->pitch};

	check(jpeg_decoder_enqueue(&b->decoder, b->session->queue, &job, 1, b->samples, trace));
	finish(b, &b->decoder.pipeline, trace, JPEG_DECODE);
}

/* Encodes the samples that run_decode() has made. */
static void run_encode(struct bench *b, struct jpeg_trace *trace)
{
	struct jpeg_encode_job job = {.width = b->scan.width,
	                              .height = b->scan.height,
	                              .components = b->scan.components,
	                              .h = b->scan.h,
	                              .v = b->scan.v,
	                              .pitch = b->pitch};

	for (enum jpeg_plane p = 0; p < JPEG_PLANES; p++)
		jpeg_quality_table(QUALITY, p, job.quantization[p]);
	check(jpeg_encoder_enqueue(&b->encoder, b->session->queue, &job, 1, b->samples, trace));
	finish(b, &b->encoder.pipeline, trace, JPEG_ENCODE);
}

/* Runs both directions and a copy until there are enough runs or the time is used up. */
static void run_all(struct bench *b)
{
	const double until = times_now() + b->session->options->budget * 1e3;

	for (; b->runs < b->runs_max && (b->runs < 4 || times_now() < until); b->runs++) {
		struct jpeg_trace decode = {0}, encode = {0};
		cl_event copy;
		cl_int code;

		run_decode(b, &decode);
		run_encode(b, &encode);
		check(clEnqueueCopyBuffer(b->session->queue, b->samples, b->copy, 0, 0,
		                          image_size(b->image), 0, NULL, &copy));
		code = clFinish(b->session->queue);
		b->ms[(size_t)ROWS * b->runs_max + b->runs] = times_of_event(copy, &code);
		check(code);
	}
}

/* Decodes once more, into poison. */
static void check_decode(struct bench *b, struct measured *m)
{
	const size_t row = image_row_size(b->image);
	uint8_t *got = bench_alloc(b->size);

	memset(got, POISON, b->size);
	check(clEnqueueWriteBuffer(b->session->queue, b->samples, CL_TRUE, 0, b->size, got, 0, NULL,
	                           NULL));
	run_decode(b, NULL);
	check(clEnqueueReadBuffer(b->session->queue, b->samples, CL_TRUE, 0, b->size, got, 0, NULL,
	                          NULL));
	m->verified = row * b->image->height;
	for (uint64_t i = 0; i < b->size; i++) {
		uint64_t y = i / b->pitch, x = i % b->pitch;
		int difference = x < row ? abs(got[i] - b->decoded[y * row + x]) : 0;

		m->outside += x >= row && got[i] != POISON;
		m->mismatches += difference != 0;
		m->max_difference = fmax(m->max_difference, difference);
	}
	if (b->result.flags)
		m->mismatches = m->verified;
	free(got);
}

/* Encodes once more, what has just been decoded. */
static void check_encode(struct bench *b, struct measured *m)
{
	const size_t size = b->again.scan_size;
	uint8_t *got = bench_alloc(size);
	bool good;

	run_encode(b, NULL);
	good = !b->result.flags && b->result.size == size;
	if (good)
		check(jpeg_encoder_read(&b->encoder, b->session->queue, 0, (uint32_t)size, got,
		                        NULL));
	check(clFinish(b->session->queue));
	m->verified = size;
	for (size_t i = 0; i < size; i++)
		m->mismatches += !good || got[i] != b->again.scan[i];
	free(got);
}

/* Makes the files, and the objects that the device needs for them. */
static void prepare(struct bench *b, const void *pixels)
{
	const struct device *device = &b->session->device;
	struct programs *programs = b->session->programs;
	struct jpeg_scan *s = &b->scan;
	cl_int code;

	b->ms = bench_alloc((size_t)(ROWS + 1) * b->runs_max * sizeof *b->ms);
	b->samples = device_buffer(device, CL_MEM_READ_WRITE, b->size, NULL, &code);
	check(code);
	b->copy = device_buffer(device, CL_MEM_READ_WRITE, b->size, NULL, &code);
	check(code);
	encode(b->image, pixels, &b->file);
	b->decoded = decode(&b->file);
	encode(b->image, b->decoded, &b->again);
	s->width = b->image->width;
	s->height = b->image->height;
	s->components = b->image->bands;
	s->h = s->v = s->components == 1 ? 1 : 2;
	for (uint32_t i = 0; i < s->components; i++)
		jpeg_quality_table(QUALITY, i ? JPEG_CHROMA : JPEG_LUMA, s->quantization[i]);
	memcpy(s->huffman, jpeg_standard_huffman, sizeof s->huffman);
	s->size = b->file.scan_size;
	programs_prepare(programs, true);
	programs_wait(programs);
	bench_must(jpeg_decoder_init(&b->decoder, programs));
	bench_must(jpeg_encoder_init(&b->encoder, programs));
}

bool jpeg_measures(const struct image *image)
{
	return image->type == PIXEL_U8 && (image->bands == 1 || image->bands == 3) &&
	       image->width <= JPEG_SIDE_MAX && image->height <= JPEG_SIDE_MAX;
}

void jpeg_measure(const struct session *session, const struct bench_case *c,
                  struct bench_result *result)
{
	struct measured sides[JPEG_SIDES] = {
	    [JPEG_DECODE] = {.origin = "jpeg", .form = "scan to pixels"},
	    [JPEG_ENCODE] = {.origin = "jpeg", .form = "pixels to scan"}};
	const struct bench_options *options = session->options;
	const struct image *image = &c->image;
	struct bench *b;

	if (!jpeg_measures(image) || options->source_roi.width)
		errx(2,
		     "--filter jpeg: expected a whole image of u8 or u8x3, up to %u pixels wide "
		     "and high",
		     (unsigned)JPEG_SIDE_MAX);
	b = bench_alloc(sizeof *b);
	b->session = session;
	b->image = image;
	b->pitch = (uint32_t)row_pitch(image_row_size(image));
	b->size = (uint64_t)b->pitch * image->height;
	b->runs_max = options->iterations + options->warmup;
	prepare(b, c->pixels);
	run_all(b);
	check_decode(b, &sides[JPEG_DECODE]);
	check_encode(b, &sides[JPEG_ENCODE]);
	result_begin(result, image, image, b->ms + (size_t)ROWS * b->runs_max, b->runs,
	             options->warmup);
	for (const struct row *row = b->row; row < b->row + b->rows; row++) {
		struct measured m = sides[row->side];

		if (!bench_options_want(options, row->name))
			continue;
		m.variant = row->name;
		m.launches = row->launches;
		m.times = times_of_runs(row->ms, b->runs, options->warmup, &m.runs);
		result_add(result, &m);
	}
	jpeg_decoder_fini(&b->decoder);
	jpeg_encoder_fini(&b->encoder);
	object_release(OBJECT_BUFFER, b->samples);
	object_release(OBJECT_BUFFER, b->copy);
	g_free(b->file.bytes);
	g_free(b->again.bytes);
	g_free(b->decoded);
	free(b->ms);
	free(b);
}
