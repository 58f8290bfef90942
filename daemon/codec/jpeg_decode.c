/* Decodes by libjpeg's scanline interface, straight into the caller's rows: tiles in their slots.
 *
 * Every call of libjpeg is a step of jpeg_error_catch(), because it may leave by a jump. The file
 * is all there, in memory, so libjpeg never waits for input; when it asks for more, the file is
 * truncated. */
#include "codec/jpeg_decode.h"

#include <stdlib.h>
#include <string.h>

#include "codec/jpeg_metadata.h"
#include "codec/library_error.h"

/* libjpeg asks for errors by their numbers. */
#include <jerror.h>

enum { ROWS_AT_ONCE = 16 };

struct jpeg_decoder {
	struct jpeg_error error;
	struct jpeg_decompress_struct libjpeg;
	struct jpeg_source_mgr source;
	struct file_metadata metadata;
	bool begun, memory_short;
	uint8_t *row; /* libjpeg's: for rows of which only a part is wanted; NULL until needed */
};

/* The arguments of jpeg_decode_rows(). */
struct request {
	struct jpeg_decoder *decoder;
	uint32_t y, count, x, width;
	uint8_t *to;
	size_t pitch;
};

static void do_nothing(j_decompress_ptr libjpeg)
{
	(void)libjpeg;
}

static boolean end_of_file(j_decompress_ptr libjpeg)
{
	ERREXIT(libjpeg, JERR_INPUT_EOF);
	return FALSE;
}

static void skip_bytes(j_decompress_ptr libjpeg, long count)
{
	struct jpeg_source_mgr *source = libjpeg->src;

	if (count <= 0)
		return;
	if ((size_t)count > source->bytes_in_buffer)
		end_of_file(libjpeg);
	source->next_input_byte += count;
	source->bytes_in_buffer -= (size_t)count;
}

static void create(void *context)
{
	struct jpeg_decoder *d = context;

	jpeg_create_decompress(&d->libjpeg);
}

static void read_header(void *context)
{
	struct jpeg_decoder *d = context;

	jpeg_metadata_expect(&d->libjpeg);
	jpeg_read_header(&d->libjpeg, TRUE);
	jpeg_calc_output_dimensions(&d->libjpeg);
	d->memory_short = !jpeg_metadata_read(&d->metadata, &d->libjpeg);
}

static enum error complain(const struct jpeg_decoder *d, struct problem *problem)
{
	return jpeg_error_take(&d->error, problem, ERR_UNDECODABLE, "the JPEG decoder");
}

static enum error open_body(struct jpeg_decoder *d, const uint8_t *body, size_t size,
                            struct problem *problem)
{
	d->libjpeg.err = jpeg_error_init(&d->error);
	if (!jpeg_error_catch(&d->error, create, d))
		return complain(d, problem);
	d->source = (struct jpeg_source_mgr){.next_input_byte = body,
	                                     .bytes_in_buffer = size,
	                                     .init_source = do_nothing,
	                                     .fill_input_buffer = end_of_file,
	                                     .skip_input_data = skip_bytes,
	                                     .resync_to_restart = jpeg_resync_to_restart,
	                                     .term_source = do_nothing};
	d->libjpeg.src = &d->source;
	if (!jpeg_error_catch(&d->error, read_header, d))
		return complain(d, problem);
	return d->memory_short ? problem_set(problem, ERR_MEMORY, "no memory to decode") : ERR_OK;
}

enum error jpeg_decode_open(struct jpeg_decoder **decoder, struct jpeg_header *header,
                            const uint8_t *body, size_t size, struct problem *problem)
{
	struct jpeg_decoder *d = calloc(1, sizeof *d);
	J_COLOR_SPACE colours;
	enum error e;

	*decoder = d;
	if (!d)
		return problem_set(problem, ERR_MEMORY, "no memory to decode");
	e = open_body(d, body, size, problem);
	colours = d->libjpeg.out_color_space;
	if (e || !file_metadata_upright(&d->metadata) ||
	    (colours != JCS_GRAYSCALE && colours != JCS_RGB && colours != JCS_CMYK)) {
		jpeg_decode_close(decoder);
		return e;
	}
	*header = (struct jpeg_header){
	    .width = d->libjpeg.output_width,
	    .height = d->libjpeg.output_height,
	    .bands = (uint32_t)d->libjpeg.output_components,
	    .full_chroma = d->libjpeg.max_h_samp_factor == 1 && d->libjpeg.max_v_samp_factor == 1,
	    .multiscan = jpeg_has_multiple_scans(&d->libjpeg),
	};
	return ERR_OK;
}

void jpeg_decode_close(struct jpeg_decoder **decoder)
{
	struct jpeg_decoder *d = *decoder;

	if (!d)
		return;
	file_metadata_free(&d->metadata);
	jpeg_destroy_decompress(&d->libjpeg);
	free(d);
	*decoder = NULL;
}

static void begin(void *context)
{
	struct jpeg_decoder *d = context;

	if (!d->begun)
		jpeg_start_decompress(&d->libjpeg);
	d->begun = true;
}

enum error jpeg_decode_begin(struct jpeg_decoder *d, struct problem *problem)
{
	return jpeg_error_catch(&d->error, begin, d) ? ERR_OK : complain(d, problem);
}

/* Decodes a row into memory of its own. */
static const uint8_t *decode_aside(struct jpeg_decoder *d)
{
	if (!d->row)
		d->row = d->libjpeg.mem->alloc_large((j_common_ptr)&d->libjpeg, JPOOL_IMAGE,
		                                     (size_t)d->libjpeg.output_width *
		                                         (size_t)d->libjpeg.output_components);
	jpeg_read_scanlines(&d->libjpeg, &d->row, 1);
	return d->row;
}

static void decode_in_place(const struct request *r)
{
	JSAMPROW rows[ROWS_AT_ONCE];

	for (uint32_t done = 0; done < r->count;) {
		uint32_t left = r->count - done;

		for (uint32_t i = 0; i < ROWS_AT_ONCE && i < left; i++)
			rows[i] = r->to + (done + i) * r->pitch;
		done += jpeg_read_scanlines(&r->decoder->libjpeg, rows,
		                            left < ROWS_AT_ONCE ? left : ROWS_AT_ONCE);
	}
}

static void decode(void *context)
{
	const struct request *r = context;
	struct jpeg_decoder *d = r->decoder;
	const size_t pixel = (size_t)d->libjpeg.output_components;

	begin(d);
	while (d->libjpeg.output_scanline < r->y)
		decode_aside(d);
	if (r->width == d->libjpeg.output_width)
		decode_in_place(r);
	else
		for (uint32_t i = 0; i < r->count; i++)
			memcpy(r->to + i * r->pitch, decode_aside(d) + r->x * pixel,
			       r->width * pixel);
	/* Files hold what ink leaves of the paper's white. */
	for (uint32_t i = 0; d->libjpeg.out_color_space == JCS_CMYK && i < r->count; i++)
		for (size_t s = 0; s < r->width * pixel; s++)
			r->to[i * r->pitch + s] ^= 0xff;
}

enum error jpeg_decode_rows(struct jpeg_decoder *d, uint32_t y, uint32_t count, uint32_t x,
                            uint32_t width, uint8_t *to, size_t pitch, struct problem *problem)
{
	struct request request = {d, y, count, x, width, to, pitch};

	return jpeg_error_catch(&d->error, decode, &request) ? ERR_OK : complain(d, problem);
}

const struct file_metadata *jpeg_decode_metadata(const struct jpeg_decoder *d)
{
	return &d->metadata;
}
