/* Damaged JPEG files through the kernels of jpeg/, compiled as C: they stay within their buffers,
 * and unflagged results are libjpeg-turbo's. The first bytes say the kind of file, the rest its
 * damage: a place, 2 bytes, and its new value. An undamaged one must be decoded, and its picture
 * encoded to the same bytes, if there are at most 64 a block. */
#include "codec/jpeg_header.h"
#include "device/jpeg.h"
#include "fuzz.h"
#include "jpegs.h"
#include "opencl_on_host.h"

static struct programs *programs; /* see opencl_on_host.c */

static uint32_t pitch_of(const struct jpegs_picture *p)
{
	return (p->width * p->bands + 7) / 8 * 8;
}

static void decode(const uint8_t *file, size_t size, const struct jpeg_scan *scan, bool damaged)
{
	struct jpegs_picture got = {scan->width, scan->height, scan->components, NULL}, expected;
	size_t row = (size_t)got.width * got.bands, pitch = pitch_of(&got);
	struct jpeg_decode_job job = {scan, file + scan->offset, 0, (uint32_t)pitch};
	static struct jpeg_decoder decoder; /* new for each image: buffers of its size */
	struct jpeg_result result;
	cl_int code;
	/* Nothing behind the last sample is the image's. */
	cl_mem samples =
	    clCreateBuffer(NULL, CL_MEM_READ_WRITE, pitch * (got.height - 1) + row, NULL, &code);

	got.samples = malloc(pitch * (got.height - 1) + row);
	must(got.samples && !jpeg_decoder_init(&decoder, programs) &&
	     !jpeg_decoder_enqueue(&decoder, NULL, &job, 1, samples, NULL) &&
	     !jpeg_pipeline_results(&decoder.pipeline, NULL, &result, NULL) &&
	     !clEnqueueReadBuffer(NULL, samples, CL_TRUE, 0, pitch * (got.height - 1) + row,
	                          got.samples, 0, NULL, NULL));
	must(damaged || !result.flags);
	if (!result.flags) {
		must(jpegs_decode_any(file, size, &expected));
		for (uint32_t y = 0; y < got.height; y++)
			must(!memcmp(got.samples + y * pitch, expected.samples + y * row, row));
		free(expected.samples);
	}
	free(got.samples);
	jpeg_decoder_fini(&decoder);
	clReleaseMemObject(samples);
}

/* Returns bytes that a device has for a scan: 64 a block. */
static size_t room_of(const struct jpeg_scan *scan)
{
	size_t across = (scan->width + 8 * scan->h - 1) / (8 * scan->h),
	       down = (scan->height + 8 * scan->v - 1) / (8 * scan->v),
	       blocks = scan->h * scan->v + scan->components - 1;

	return across * down * blocks * JPEG_BLOCK;
}

/* Encodes rows that lie one behind the other, widened to a pitch. */
static void encode(const struct jpegs_picture *p, const struct jpeg_scan *scan, const uint8_t *file)
{
	size_t row = (size_t)p->width * p->bands, pitch = pitch_of(p);
	struct jpeg_encode_job job = {p->width, p->height, p->bands, scan->h,
	                              scan->v,  {{0}},     0,        (uint32_t)pitch};
	cl_int code;
	cl_mem samples =
	    clCreateBuffer(NULL, CL_MEM_READ_WRITE, pitch * (p->height - 1) + row, NULL, &code);
	static struct jpeg_encoder encoder;
	struct jpeg_result result;
	uint8_t *bytes;

	for (uint32_t y = 0; y < p->height; y++)
		must(!clEnqueueWriteBuffer(NULL, samples, CL_TRUE, y * pitch, row,
		                           p->samples + y * row, 0, NULL, NULL));
	for (int plane = 0; plane < JPEG_PLANES; plane++)
		memcpy(job.quantization[plane], scan->quantization[plane],
		       sizeof job.quantization[plane]);
	must(jpeg_encode_job_valid(&job) && !jpeg_encoder_init(&encoder, programs) &&
	     !jpeg_encoder_enqueue(&encoder, NULL, &job, 1, samples, NULL) &&
	     !jpeg_pipeline_results(&encoder.pipeline, NULL, &result, NULL));
	if (result.flags) {
		must(result.flags == JPEG_FLAG_ROOM && scan->size > room_of(scan));
	} else {
		must(result.size == scan->size);
		bytes = malloc(result.size);
		must(bytes && !jpeg_encoder_read(&encoder, NULL, 0, result.size, bytes, NULL) &&
		     !memcmp(bytes, file + scan->offset, result.size));
		free(bytes);
	}
	jpeg_encoder_fini(&encoder);
	clReleaseMemObject(samples);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	enum { LIKE = 6, CHANGE = 3 };
	uint8_t like[LIKE] = {0};
	struct jpegs_wish wish;
	struct jpegs_picture picture;
	struct jpeg_scan scan;
	size_t bytes;
	uint8_t *file;

	memcpy(like, data, size < LIKE ? size : LIKE);
	wish = (struct jpegs_wish){
	    1 + like[0] % 48,  1 + like[1] % 48, (enum jpegs_sampling)(like[2] % (JPEGS_420 + 1)),
	    1 + like[3] % 100, like[4] % 8,      .optimize = like[4] >> 4 & 1};
	picture = jpegs_draw(wish.width, wish.height, wish.sampling == JPEGS_GRAY ? 1 : 3,
	                     (enum jpegs_content)(like[5] % JPEGS_CONTENTS), like[5]);
	file = jpegs_encode(&picture, &wish, &bytes);
	must(!jpeg_header_read(file, bytes, &scan));
	if (size < LIKE + CHANGE && !wish.restart_interval && !wish.optimize)
		encode(&picture, &scan, file);
	if (size > LIKE)
		change(file + scan.offset, scan.size, data + LIKE, size - LIKE);
	if (!jpeg_header_read(file, bytes, &scan))
		decode(file, bytes, &scan, size >= LIKE + CHANGE);
	free(file);
	free(picture.samples);
	return 0;
}
