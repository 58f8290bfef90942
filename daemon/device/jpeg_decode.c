/* The decoder of jpeg.h. */
#include "device/jpeg.h"

#include <stdlib.h>
#include <string.h>

/* The buffers beside those of both directions: bytes for each element of an image's span. */
#define DECODE_BUFFERS(BUFFER)                                                                     \
	BUFFER(SCAN, scan, 1)                                                                      \
	BUFFER(CHUNK_COUNTS, chunks, sizeof(uint32_t))                                             \
	BUFFER(CHUNK_KEPT, chunks, sizeof(uint32_t))                                               \
	BUFFER(CHUNK_RESTARTS, chunks, sizeof(uint32_t))                                           \
	BUFFER(STREAM, stream, sizeof(uint32_t))                                                   \
	BUFFER(INTERVAL_STARTS, intervals, sizeof(uint32_t))                                       \
	BUFFER(INTERVAL_FIRSTS, intervals, sizeof(uint32_t))                                       \
	BUFFER(SUBSEQUENCES, image, sizeof(uint32_t))                                              \
	BUFFER(ENTRIES, subsequences, sizeof(uint32_t))                                            \
	BUFFER(EXITS, subsequences, sizeof(uint32_t))                                              \
	BUFFER(ENDED, subsequences, sizeof(uint32_t))                                              \
	BUFFER(BEGINS, subsequences, sizeof(uint32_t))                                             \
	BUFFER(ENDS, subsequences, sizeof(uint32_t))                                               \
	BUFFER(BORDER_STATES, subsequences, sizeof(uint32_t))                                      \
	BUFFER(BEFORE, subsequences, sizeof(uint32_t))                                             \
	BUFFER(TABLES, image, 1) /* see send_tables() */                                           \
	BUFFER(DC, blocks, sizeof(uint16_t))                                                       \
	BUFFER(DC_PREFIXES, mcus, sizeof(cl_uint4))                                                \
	BUFFER(DC_TOTALS, groups, sizeof(cl_uint4))                                                \
	BUFFER(PLANES, planes, 1)

enum {
	LAST_COMMON = DECODE_COEFFICIENTS,
	DECODE_BUFFERS(JPEG_BUFFER_NUMBER) SAMPLES, /* the caller's */
	BUFFERS
};
_Static_assert((int)BUFFERS <= (int)JPEG_BUFFERS_MAX, "more buffers than there is room for");

enum { SET_BYTES = JPEG_TABLE_ENTRIES * sizeof(uint16_t) };

static const struct jpeg_buffer buffers[BUFFERS] = {
    [JPEG_IMAGES] = {JPEG_SPAN(image), sizeof(struct jpeg_image)},
    [JPEG_RESULTS] = {JPEG_SPAN(image), sizeof(struct jpeg_result)},
    [DECODE_COEFFICIENTS] = {JPEG_SPAN(blocks), 64 * sizeof(uint16_t)},
    DECODE_BUFFERS(JPEG_BUFFER_ROW)};

static void groups_pixels(const struct jpeg_image *image, uint32_t groups[2])
{
	groups[0] = jpeg_parts(image->width, 8 * JPEG_COLOR_GROUP);
	groups[1] = image->chroma_height;
}

static const struct jpeg_stage stages[] = {
    {"jpeg/destuff.cl", "destuff_count", JPEG_GROUP, JPEG_SPAN(chunks), 1,
     .buffers = {SCAN, CHUNK_COUNTS}},
    {"jpeg/destuff.cl", "destuff_prefix", JPEG_GROUP, JPEG_SPAN(image), 1,
     .buffers = {CHUNK_COUNTS, CHUNK_KEPT, CHUNK_RESTARTS, STREAM, INTERVAL_STARTS, JPEG_RESULTS}},
    {"jpeg/destuff.cl", "destuff_move", JPEG_GROUP, JPEG_SPAN(chunks), 1,
     .buffers = {SCAN, CHUNK_KEPT, CHUNK_RESTARTS, STREAM, INTERVAL_STARTS, JPEG_RESULTS}},
    {"jpeg/sync.cl", "sync_divide", JPEG_GROUP, JPEG_SPAN(image), 1,
     .buffers = {INTERVAL_STARTS, INTERVAL_FIRSTS, SUBSEQUENCES, JPEG_RESULTS}},
    {"jpeg/sync.cl", "sync_first", JPEG_SYNC_GROUP, JPEG_SPAN(subsequences), JPEG_SYNC_GROUP,
     .buffers = {TABLES, STREAM, INTERVAL_STARTS, INTERVAL_FIRSTS, SUBSEQUENCES, ENTRIES, EXITS,
                 ENDED, BEGINS, ENDS, BORDER_STATES}},
    /* A window learns the result of another one late. Photographs need two launches; flat pictures
     * need as many as there are windows, but have few. */
    {"jpeg/sync.cl", "sync_again", JPEG_SYNC_GROUP, JPEG_SPAN(subsequences), JPEG_SYNC_WINDOW,
     .again = 2,
     .buffers = {TABLES, STREAM, SUBSEQUENCES, ENTRIES, EXITS, ENDED, BEGINS, ENDS, BORDER_STATES}},
    {"jpeg/sync.cl", "sync_prefix", JPEG_GROUP, JPEG_SPAN(image), 1,
     .buffers = {SUBSEQUENCES, ENDED, BEFORE}},
    {"jpeg/write.cl", "write_coefficients", JPEG_SYNC_GROUP, JPEG_SPAN(subsequences),
     JPEG_SYNC_GROUP,
     .buffers = {TABLES, STREAM, INTERVAL_FIRSTS, SUBSEQUENCES, ENTRIES, EXITS, BEGINS, ENDS,
                 BEFORE, INTERVAL_STARTS, DECODE_COEFFICIENTS, JPEG_RESULTS}},
    {"jpeg/dc.cl", "dc_local", JPEG_GROUP, JPEG_SPAN(mcus), JPEG_GROUP,
     .buffers = {DECODE_COEFFICIENTS, DC_PREFIXES, DC_TOTALS, DC}},
    {"jpeg/dc.cl", "dc_prefix", JPEG_GROUP, JPEG_SPAN(image), 1, .buffers = {DC_TOTALS}},
    {"jpeg/idct.cl", "idct", JPEG_IDCT_BLOCKS * 8, .groups = jpeg_groups_transform,
     .buffers = {DECODE_COEFFICIENTS, DC, DC_PREFIXES, DC_TOTALS, PLANES, JPEG_RESULTS}},
    {"jpeg/upsample.cl", "upsample_color", JPEG_COLOR_GROUP, .groups = groups_pixels,
     .buffers = {PLANES, SAMPLES}},
};

enum { STAGES = sizeof stages / sizeof *stages };
_Static_assert((int)STAGES <= (int)JPEG_STAGES_MAX, "more stages than there is room for");

static void count_spans(struct jpeg_image *image)
{
	const uint32_t bytes = image->scan.count, mcus = image->mcus.count;

	image->chunks.count = jpeg_parts(bytes, JPEG_CHUNK);
	image->stream.count = bytes / 4 + JPEG_STREAM_PADDING;
	image->intervals.count = jpeg_parts(mcus, image->restart_interval);
	image->subsequences.count = bytes / image->subsequence + image->intervals.count + 1;
	image->groups.count = jpeg_parts(mcus, JPEG_GROUP);
}

const struct jpeg_direction jpeg_decode_direction = {.stages = stages,
                                                     .buffers = buffers,
                                                     .stage_count = STAGES,
                                                     .buffer_count = BUFFERS,
                                                     .count_spans = count_spans,
                                                     .tables = SET_BYTES};

enum error jpeg_decoder_init(struct jpeg_decoder *decoder, struct programs *programs)
{
	*decoder = (struct jpeg_decoder){.tables = malloc(JPEG_BATCH_MAX * SET_BYTES)};
	if (!decoder->tables)
		return ERR_MEMORY;
	if (!jpeg_pipeline_init(&decoder->pipeline, programs, &jpeg_decode_direction))
		return ERR_OK;
	jpeg_decoder_fini(decoder);
	return ERR_DEVICE;
}

void jpeg_decoder_fini(struct jpeg_decoder *decoder)
{
	jpeg_pipeline_fini(&decoder->pipeline);
	free(decoder->tables);
	decoder->tables = NULL;
}

/* Fills in the two tables of a Huffman table: `near` by the next JPEG_NEAR_BITS bits, 0 for longer
 * codes; `far`, for these, by the next 16 bits less the result. See table_entry() in
 * jpeg/common.cl for an entry's bits. */
static uint32_t fill_table(const struct jpeg_huffman *table, enum jpeg_class class, uint16_t *near,
                           uint16_t *far)
{
	const uint16_t none = 16 | 127 << 5;
	uint32_t code = 0, next = 0, far_code = UINT32_MAX;

	for (int i = 0; i < JPEG_FAR; i++)
		far[i] = none;
	memset(near, 0, JPEG_NEAR * sizeof *near);
	for (unsigned length = 1; length <= 16; length++, code <<= 1) {
		for (unsigned i = 0; i < table->bits[length - 1]; i++, code++) {
			unsigned value = table->values[next++], size = value & 15, run = value >> 4;
			unsigned steps = class == JPEG_DC ? 1
			                 : size           ? run + 1
			                 : run == 15      ? 16
			                                  : 64;
			uint16_t entry = (uint16_t)(length + size) | (uint16_t)(steps << 5) |
			                 (uint16_t)(size << 12);
			unsigned first = code << (16 - length), count = 1u << (16 - length);

			if (length <= JPEG_NEAR_BITS) {
				for (unsigned j = 0; j < count >> 6; j++)
					near[(first >> 6) + j] = entry;
				continue;
			}
			if (far_code == UINT32_MAX)
				far_code = first & ~63u;
			for (unsigned j = 0; j < count; j++)
				far[first - far_code + j] = entry;
		}
		/* Behind the last code: none. */
		if (far_code == UINT32_MAX && length == 16)
			far_code = 0x10000 - JPEG_FAR;
	}
	return far_code;
}

static uint32_t find_set(const struct jpeg_decoder *decoder, const struct jpeg_scan *scan)
{
	uint32_t i = 0;

	while (i < decoder->sets &&
	       (decoder->set[i].components != scan->components ||
	        memcmp(decoder->set[i].huffman, scan->huffman, sizeof scan->huffman)))
		i++;
	return i;
}

static bool add_set(struct jpeg_decoder *decoder, const struct jpeg_scan *scan)
{
	struct jpeg_table_set *set = &decoder->set[decoder->sets];
	uint16_t *near, *far;

	if (decoder->sets == JPEG_BATCH_MAX)
		return false;
	near = decoder->tables + (size_t)decoder->sets++ * JPEG_TABLE_ENTRIES;
	far = near + JPEG_TABLES * JPEG_NEAR;
	for (unsigned t = 0; t < JPEG_TABLES; t++) {
		/* A grayscale image has no chroma. */
		unsigned plane = scan->components == 1 ? 0 : t / JPEG_CLASSES;
		enum jpeg_class class = (enum jpeg_class)(t % JPEG_CLASSES);

		set->far_code[t] = fill_table(&scan->huffman[plane][class], class,
		                              near + t * JPEG_NEAR, far + t * JPEG_FAR);
	}
	set->components = scan->components;
	memcpy(set->huffman, scan->huffman, sizeof scan->huffman);
	return true;
}

static bool add_image(struct jpeg_decoder *decoder, const struct jpeg_decode_job *job,
                      uint32_t count)
{
	enum { SHORT = 64, LONG = 256, SHORT_BLOCK = 16, FEW = 4 << 20 };
	const struct jpeg_scan *scan = job->scan;
	struct jpeg_image image =
	    jpeg_frame(scan->width, scan->height, scan->components, scan->h, scan->v);
	const uint32_t size = (uint32_t)scan->size, mcus = image.mcus.count;
	const uint32_t set = find_set(decoder, scan);

	if (set == decoder->sets && !add_set(decoder, scan))
		return false;
	image.samples = job->samples;
	image.samples_pitch = job->pitch;
	image.restart_interval =
	    scan->restart_interval && scan->restart_interval < mcus ? scan->restart_interval : mcus;
	/* Short subsequences keep a GPU busy with few bytes if blocks are short too, because
	 * synchronizing takes some blocks. */
	image.subsequence =
	    (uint64_t)count * size < FEW && size / image.blocks.count < SHORT_BLOCK ? SHORT : LONG;
	image.scan.count = size;
	count_spans(&image);
	image.tables = set * JPEG_TABLE_ENTRIES;
	memcpy(image.far_code, decoder->set[set].far_code, sizeof image.far_code);
	for (uint32_t c = 0; c < JPEG_COMPONENTS; c++)
		for (uint32_t i = 0; i < JPEG_BLOCK; i++) {
			uint32_t at = c * JPEG_BLOCK + jpeg_column_place(i);

			image.steps[at / 2] |= (uint32_t)scan->quantization[c][i] << at % 2 * 16;
		}
	return jpeg_pipeline_add(&decoder->pipeline, &image);
}

/* Sends the sets of tables that the device lacks. */
static cl_int send_tables(struct jpeg_decoder *decoder, cl_command_queue queue)
{
	struct growing_buffer *buffer = &decoder->pipeline.buffer[TABLES];
	size_t sent = decoder->sets_sent * SET_BYTES, all = decoder->sets * SET_BYTES;
	cl_int code;

	if (all > buffer->size) /* growing loses its content */
		sent = 0;
	decoder->sets_sent = 0;
	code = growing_buffer_reserve(buffer, decoder->pipeline.device, all);
	if (!code && sent < all)
		code = clEnqueueWriteBuffer(queue, buffer->memory, CL_FALSE, sent, all - sent,
		                            (const char *)decoder->tables + sent, 0, NULL, NULL);
	decoder->sets_sent = code ? 0 : decoder->sets;
	return code;
}

cl_int jpeg_decoder_enqueue(struct jpeg_decoder *decoder, cl_command_queue queue,
                            const struct jpeg_decode_job *jobs, uint32_t count, cl_mem samples,
                            struct jpeg_trace *trace)
{
	struct jpeg_pipeline *p = &decoder->pipeline;
	uint64_t room = p->buffer[TABLES].size / SET_BYTES, sets = decoder->sets;
	cl_int code;

	p->count = 0;
	p->all = (struct jpeg_image){0};
	for (uint32_t i = 0; i < count; i++)
		sets += find_set(decoder, jobs[i].scan) == decoder->sets;
	/* The batch's sets might not fit beside the others. */
	if (sets > JPEG_BATCH_MAX || (sets > room && sets > count))
		decoder->sets = decoder->sets_sent = 0;
	for (uint32_t i = 0; i < count; i++)
		if (!add_image(decoder, &jobs[i], count))
			return CL_INVALID_BUFFER_SIZE;
	code = send_tables(decoder, queue);
	if (!code)
		code = jpeg_pipeline_prepare(p, queue);
	for (uint32_t i = 0; !code && i < count; i++) {
		cl_event *event = !trace || !trace->ends ? NULL
		                  : !i                   ? &trace->scans[0]
		                  : i + 1 == count       ? &trace->scans[1]
		                                         : NULL;

		code = clEnqueueWriteBuffer(queue, p->buffer[SCAN].memory, CL_FALSE,
		                            p->image[i].scan.first, jobs[i].scan->size,
		                            jobs[i].bytes, 0, NULL, event);
		if (!code && event)
			object_add(OBJECT_EVENT, *event);
	}
	return code ? code : jpeg_pipeline_run(p, queue, samples, trace);
}
