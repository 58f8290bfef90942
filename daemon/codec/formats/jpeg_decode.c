/* Decodes by libjpeg's scanline interface, straight into the caller's rows: tiles in their slots.
 * Every call of libjpeg is a step of jpeg_error_catch(), because it may leave by a jump. When it
 * asks for more input, the file is truncated. */
#include <string.h>

#include "codec/metadata/jpeg_metadata.h"
#include "codec/metadata/library_error.h"
#include "codec/formats/row.h"

/* libjpeg asks for errors by their numbers. */
#include <jerror.h>

enum { ROWS_AT_ONCE = 16 };

struct jpeg_decoder {
	const struct body *body;
	struct jpeg_error error;
	struct jpeg_decompress_struct libjpeg;
	struct file_metadata metadata;
	uint32_t shrunk; /* a draft's ratio */
	bool begun, memory_short;
	/* libjpeg's row, for rows of which only a part is wanted; NULL until needed */
	uint8_t *row;
};

/* The arguments of read_rows(). */
struct request {
	struct jpeg_decoder *decoder;
	const struct area *area;
	uint8_t *to;
	size_t pitch;
};

static boolean end_of_file(j_decompress_ptr libjpeg)
{
	ERREXIT(libjpeg, JERR_INPUT_EOF);
	return FALSE;
}

static void read_header(void *context)
{
	struct jpeg_decoder *d = context;

	jpeg_create_decompress(&d->libjpeg);
	jpeg_mem_src(&d->libjpeg, d->body->at, d->body->size);
	d->libjpeg.src->fill_input_buffer = end_of_file;
	jpeg_metadata_expect(&d->libjpeg);
	jpeg_read_header(&d->libjpeg, TRUE);
	jpeg_calc_output_dimensions(&d->libjpeg);
	d->memory_short = !jpeg_metadata_read(&d->metadata, &d->libjpeg);
}

static enum error complain(const struct jpeg_decoder *d, struct problem *problem)
{
	return jpeg_error_take(&d->error, problem, ERR_UNDECODABLE, "the JPEG decoder");
}

static void close_decoder(void *state)
{
	jpeg_destroy_decompress(&((struct jpeg_decoder *)state)->libjpeg);
}

/* Leaves files to libvips whose orientation is not upright, or whose colours are none of grey, RGB
 * and CMYK (0: no ink). A file of several scans is decoded completely before the first row; its
 * coefficients have 16 bits. */
static enum error open_decoder(void *state, struct decoded *decoded, const struct body *body,
                               struct problem *problem)
{
	struct jpeg_decoder *d = state;
	const struct jpeg_decompress_struct *libjpeg = &d->libjpeg;
	bool full_chroma;

	d->body = body;
	d->libjpeg.err = jpeg_error_init(&d->error);
	if (!jpeg_error_catch(&d->error, read_header, d))
		return complain(d, problem);
	if (d->memory_short)
		return no_memory(problem, "to decode");
	decoded->plain =
	    file_metadata_upright(&d->metadata) &&
	    (libjpeg->out_color_space == JCS_GRAYSCALE || libjpeg->out_color_space == JCS_RGB ||
	     libjpeg->out_color_space == JCS_CMYK);
	decoded->whole = (struct image){.width = libjpeg->output_width,
	                                .height = libjpeg->output_height,
	                                .bands = (uint32_t)libjpeg->output_components,
	                                .type = PIXEL_U8};
	decoded->cmyk = decoded->whole.bands == 4;
	full_chroma = libjpeg->max_h_samp_factor == 1 && libjpeg->max_v_samp_factor == 1;
	decoded->full_chroma = full_chroma && !decoded->cmyk;
	if (jpeg_has_multiple_scans(&d->libjpeg))
		decoded->held = full_chroma || decoded->cmyk ? 2 * decoded->whole.bands : 3;
	return ERR_OK;
}

static void scale(void *context)
{
	struct jpeg_decoder *d = context;

	d->libjpeg.scale_num = 1;
	d->libjpeg.scale_denom = d->shrunk;
	jpeg_calc_output_dimensions(&d->libjpeg);
}

/* A smaller inverse DCT makes samples that are each in the middle of a square, in the last column
 * and row also of what the file's blocks have outside the image. */
static enum error shrink(void *state, uint32_t by, struct image *image, struct problem *problem)
{
	struct jpeg_decoder *d = state;

	d->shrunk = by;
	if (!jpeg_error_catch(&d->error, scale, d))
		return complain(d, problem);
	image_shrink(image, d->libjpeg.output_width, d->libjpeg.output_height, by);
	return ERR_OK;
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

static void decode(void *context)
{
	const struct request *r = context;
	const struct area *area = r->area;
	struct jpeg_decoder *d = r->decoder;
	const size_t pixel = (size_t)d->libjpeg.output_components;
	JSAMPROW rows[ROWS_AT_ONCE];

	if (!d->begun)
		jpeg_start_decompress(&d->libjpeg);
	d->begun = true;
	while (d->libjpeg.output_scanline < area->y)
		decode_aside(d);
	if (area->width == d->libjpeg.output_width)
		for (uint32_t done = 0; done < area->height;) {
			const uint32_t some = MIN(area->height - done, ROWS_AT_ONCE);

			for (uint32_t i = 0; i < some; i++)
				rows[i] = r->to + (done + i) * r->pitch;
			done += jpeg_read_scanlines(&d->libjpeg, rows, some);
		}
	else
		for (uint32_t i = 0; i < area->height; i++)
			memcpy(r->to + i * r->pitch, decode_aside(d) + area->x * pixel,
			       area->width * pixel);
	/* Files hold what ink leaves of the paper's white. */
	for (uint32_t i = 0; d->libjpeg.out_color_space == JCS_CMYK && i < area->height; i++)
		for (size_t s = 0; s < area->width * pixel; s++)
			r->to[i * r->pitch + s] ^= 0xff;
}

/* Allocates nothing after the first call. */
static enum error read_rows(void *state, const struct area *area, uint8_t *to, size_t pitch,
                            struct problem *problem)
{
	struct jpeg_decoder *d = state;
	struct request request = {d, area, to, pitch};

	return jpeg_error_catch(&d->error, decode, &request) ? ERR_OK : complain(d, problem);
}

const struct reader jpeg_reader = {
    .size = sizeof(struct jpeg_decoder),
    .metadata = offsetof(struct jpeg_decoder, metadata),
    .open = open_decoder,
    .close = close_decoder,
    .shrink = shrink,
    .rows = read_rows,
};
