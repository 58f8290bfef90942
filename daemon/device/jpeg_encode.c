/* The encoder of jpeg.h. */
#include "device/jpeg.h"

/* The buffers beside those of both directions: bytes for each element of an image's span. */
#define ENCODE_BUFFERS(BUFFER)                                                                     \
	BUFFER(PLANES, planes, 1)                                                                  \
	BUFFER(COEFFICIENTS, blocks, JPEG_BLOCK * sizeof(uint16_t))                                \
	BUFFER(MASKS, blocks, 8)                                                                   \
	BUFFER(CODES, image, 1) /* see send_constants() */                                         \
	BUFFER(ZIGZAG_HALVES, image, 1)                                                            \
	BUFFER(PARTS, parts, sizeof(uint32_t))                                                     \
	BUFFER(PARTS_USED, image, sizeof(uint32_t))                                                \
	BUFFER(PART_BITS, groups, sizeof(uint32_t))                                                \
	BUFFER(PART_FIRST, groups, sizeof(uint32_t))                                               \
	BUFFER(PART_OFFSET, groups, sizeof(uint32_t))                                              \
	BUFFER(WORDS, words, sizeof(uint32_t))                                                     \
	BUFFER(BYTES, image, sizeof(uint32_t))                                                     \
	BUFFER(PIECE_COUNTS, pieces, sizeof(uint32_t))                                             \
	BUFFER(PIECE_STARTS, pieces, sizeof(uint32_t))                                             \
	BUFFER(OUT, out, 1)

enum {
	LAST_COMMON = JPEG_BUFFERS_COMMON - 1,
	ENCODE_BUFFERS(JPEG_BUFFER_NUMBER) SAMPLES, /* the caller's */
	BUFFERS
};
_Static_assert((int)BUFFERS <= (int)JPEG_BUFFERS_MAX, "more buffers than there is room for");

static const struct jpeg_buffer buffers[BUFFERS] = {
    [JPEG_IMAGES] = {JPEG_SPAN(image), sizeof(struct jpeg_image)},
    [JPEG_RESULTS] = {JPEG_SPAN(image), sizeof(struct jpeg_result)},
    ENCODE_BUFFERS(JPEG_BUFFER_ROW)};

/* Work-items along a row of 8 pixels; Y's rows fill whole MCUs, and each chroma has one row. */
static void groups_pixels(const struct jpeg_image *image, uint32_t groups[2])
{
	groups[0] = jpeg_parts(image->mcus_x * image->h, JPEG_COLOR_GROUP);
	groups[1] = image->mcus_y * 8;
}

/* These take pieces in turn, because most scans are far smaller than their maximum. */
static void groups_pieces(const struct jpeg_image *image, uint32_t groups[2])
{
	enum { GROUPS_MAX = 512 };

	groups[0] = image->pieces.count < GROUPS_MAX ? image->pieces.count : GROUPS_MAX;
	groups[1] = 1;
}

static const struct jpeg_stage stages[] = {
    {"jpeg/downsample.cl", "downsample_color", JPEG_COLOR_GROUP, .groups = groups_pixels,
     .buffers = {SAMPLES, PLANES}},
    {"jpeg/fdct.cl", "fdct", JPEG_IDCT_BLOCKS * 8, .groups = jpeg_groups_transform,
     .buffers = {PLANES, COEFFICIENTS, MASKS, PARTS_USED, JPEG_RESULTS}},
    {"jpeg/code.cl", "code", JPEG_GROUP, JPEG_SPAN(groups), 1,
     .buffers = {CODES, ZIGZAG_HALVES, COEFFICIENTS, MASKS, PARTS, PARTS_USED, PART_BITS,
                 PART_FIRST, JPEG_RESULTS}},
    {"jpeg/merge.cl", "merge_prefix", JPEG_GROUP, JPEG_SPAN(image), 1,
     .buffers = {PART_BITS, PART_OFFSET, WORDS, BYTES, JPEG_RESULTS}},
    {"jpeg/merge.cl", "merge", JPEG_COLOR_GROUP, JPEG_SPAN(groups), 1,
     .buffers = {PARTS, PART_BITS, PART_FIRST, PART_OFFSET, WORDS, BYTES}},
    {"jpeg/stuff.cl", "stuff_count", JPEG_GROUP, .groups = groups_pieces,
     .buffers = {WORDS, BYTES, PIECE_COUNTS}},
    {"jpeg/stuff.cl", "stuff_prefix", JPEG_GROUP, JPEG_SPAN(image), 1,
     .buffers = {PIECE_COUNTS, BYTES, PIECE_STARTS, OUT, JPEG_RESULTS}},
    {"jpeg/stuff.cl", "stuff_move", JPEG_GROUP, .groups = groups_pieces,
     .buffers = {WORDS, BYTES, PIECE_STARTS, OUT, JPEG_RESULTS}},
};

enum { STAGES = sizeof stages / sizeof *stages };
_Static_assert((int)STAGES <= (int)JPEG_STAGES_MAX, "more stages than there is room for");

static void count_spans(struct jpeg_image *image)
{
	image->groups.count = jpeg_parts(image->blocks.count, JPEG_GROUP);
	image->words.count = image->blocks.count * JPEG_BLOCK_WORDS + JPEG_SPARE_WORDS;
	if (image->words.count > JPEG_WORDS_MAX)
		image->words.count = JPEG_WORDS_MAX;
	image->parts.count = image->words.count + image->groups.count;
	image->pieces.count = image->words.count * 4 / JPEG_CHUNK + 1;
	image->out.count = image->words.count * 5;
}

const struct jpeg_direction jpeg_encode_direction = {
    .stages = stages,
    .buffers = buffers,
    .stage_count = STAGES,
    .buffer_count = BUFFERS,
    .count_spans = count_spans,
    .tables = sizeof((struct jpeg_encoder *)0)->codes + sizeof((struct jpeg_encoder *)0)->halves};

enum error jpeg_encoder_init(struct jpeg_encoder *encoder, struct programs *programs)
{
	*encoder = (struct jpeg_encoder){.constants_sent = false};
	return jpeg_pipeline_init(&encoder->pipeline, programs, &jpeg_encode_direction);
}

void jpeg_encoder_fini(struct jpeg_encoder *encoder)
{
	jpeg_pipeline_fini(&encoder->pipeline);
}

bool jpeg_encode_job_valid(const struct jpeg_encode_job *job)
{
	bool color = job->components == JPEG_COMPONENTS;

	if (job->width < 1 || job->width > JPEG_SIDE_MAX || job->height < 1 ||
	    job->height > JPEG_SIDE_MAX || (!color && job->components != 1) || job->h < 1 ||
	    job->h > (color ? 2 : 1) || job->v < 1 || job->v > job->h)
		return false;
	for (int p = 0; p < (color ? JPEG_PLANES : 1); p++)
		for (int i = 0; i < JPEG_BLOCK; i++)
			if (job->quantization[p][i] < 1 || job->quantization[p][i] > 255)
				return false;
	return job->samples % 8 == 0 && job->pitch % 8 == 0 &&
	       job->pitch >= (uint64_t)job->width * job->components;
}

static cl_int send_constants(struct jpeg_encoder *encoder, cl_command_queue queue)
{
	const struct {
		uint32_t buffer;
		const void *from;
		size_t size;
	} rows[] = {{CODES, encoder->codes, sizeof encoder->codes},
	            {ZIGZAG_HALVES, encoder->halves, sizeof encoder->halves}};
	struct jpeg_pipeline *p = &encoder->pipeline;
	cl_int code = CL_SUCCESS;

	if (encoder->constants_sent)
		return CL_SUCCESS;
	/* The standard codes: length << 16 | code, by value; DC, then AC; luma, then chroma. */
	for (int plane = 0; plane < JPEG_PLANES; plane++)
		for (int c = 0; c < JPEG_CLASSES; c++) {
			const struct jpeg_huffman *table = &jpeg_standard_huffman[plane][c];
			uint32_t *to = encoder->codes[plane] + (c == JPEG_AC ? 16 : 0);
			uint32_t word = 0, next = 0;

			for (uint32_t length = 1; length <= 16; length++, word <<= 1)
				for (int i = 0; i < table->bits[length - 1]; i++)
					to[table->values[next++]] = length << 16 | word++;
		}
	/* For each of the 16 half columns of a block, and each of its masks: the places of its
	 * coefficients in zigzag order, the first being the highest bit. */
	for (unsigned z = 0; z < JPEG_BLOCK; z++) {
		unsigned place = jpeg_column_place(z);

		for (unsigned mask = 0; mask < 16; mask++)
			if (mask >> place % 4 & 1)
				encoder->halves[place / 4][mask] |= UINT64_C(1) << (63 - z);
	}
	for (int i = 0; !code && i < 2; i++) {
		struct growing_buffer *to = &p->buffer[rows[i].buffer];

		code = growing_buffer_reserve(to, p->device, rows[i].size);
		if (!code)
			code = clEnqueueWriteBuffer(queue, to->memory, CL_FALSE, 0, rows[i].size,
			                            rows[i].from, 0, NULL, NULL);
	}
	encoder->constants_sent = !code;
	return code;
}

static bool add_image(struct jpeg_encoder *encoder, const struct jpeg_encode_job *job)
{
	struct jpeg_image image =
	    jpeg_frame(job->width, job->height, job->components, job->h, job->v);

	/* Checked before the spans are counted in 32 bits: 5 bytes for each of 16 words a block. */
	if ((uint64_t)image.mcus_x * image.mcus_y * image.mcu_blocks > UINT32_MAX / 128)
		return false;
	count_spans(&image);
	image.samples = job->samples;
	image.samples_pitch = job->pitch;
	for (uint32_t p = 0; p < JPEG_PLANES; p++)
		for (uint32_t i = 0; i < JPEG_BLOCK; i++) {
			uint64_t divisor = 8 * (uint64_t)job->quantization[p][i];
			uint32_t *step = &image.steps[2 * (p * JPEG_BLOCK + jpeg_column_place(i))];

			if (!divisor) /* chroma of a gray image */
				divisor = 8;
			step[0] = (uint32_t)(((UINT64_C(1) << 32) + divisor - 1) / divisor);
			step[1] = (uint32_t)(divisor / 2);
		}
	return jpeg_pipeline_add(&encoder->pipeline, &image);
}

cl_int jpeg_encoder_enqueue(struct jpeg_encoder *encoder, cl_command_queue queue,
                            const struct jpeg_encode_job *jobs, uint32_t count, cl_mem samples,
                            struct jpeg_trace *trace)
{
	struct jpeg_pipeline *p = &encoder->pipeline;
	cl_int code;

	p->count = 0;
	p->all = (struct jpeg_image){0};
	for (uint32_t i = 0; i < count; i++)
		if (!add_image(encoder, &jobs[i]))
			return CL_INVALID_BUFFER_SIZE;
	code = send_constants(encoder, queue);
	if (!code)
		code = jpeg_pipeline_prepare(p, queue);
	return code ? code : jpeg_pipeline_run(p, queue, samples, trace);
}

cl_int jpeg_encoder_read(const struct jpeg_encoder *encoder, cl_command_queue queue,
                         uint32_t number, uint32_t size, void *to, cl_event *event)
{
	const struct jpeg_pipeline *p = &encoder->pipeline;

	return clEnqueueReadBuffer(queue, p->buffer[OUT].memory, CL_FALSE,
	                           p->image[number].out.first, size, to, 0, NULL, event);
}
