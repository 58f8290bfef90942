/* Encodes by libjpeg's scanline interface, straight from the caller's rows: the devices' results in
 * their slots. Runs in the job's encoding thread. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <vips/vips.h>

#include "base/file.h"
#include "codec/metadata/jpeg_metadata.h"
#include "codec/metadata/library_error.h"
#include "codec/formats/row.h"
#include "image/jpeg.h"

enum { BUFFER = 64 << 10 };

struct encoding {
	const struct answer *answer;
	struct jpeg_error error;
	struct jpeg_compress_struct libjpeg;
	struct jpeg_destination_mgr destination;
	bool write_failed;
	uint64_t written; /* bytes */
	uint8_t buffer[BUFFER];
};

static struct encoding *encoding_of(j_compress_ptr libjpeg)
{
	return libjpeg->client_data;
}

static void use_buffer(j_compress_ptr libjpeg)
{
	libjpeg->dest->next_output_byte = encoding_of(libjpeg)->buffer;
	libjpeg->dest->free_in_buffer = BUFFER;
}

/* Drops further output after a failure, because a jump out of here would lose memory. */
static void write_bytes(struct encoding *e, const uint8_t *from, size_t size)
{
	if (!e->write_failed)
		e->write_failed = !file_write(e->answer->file, from, size, e->written);
	e->written += size;
}

static boolean buffer_full(j_compress_ptr libjpeg)
{
	write_bytes(encoding_of(libjpeg), encoding_of(libjpeg)->buffer, BUFFER);
	use_buffer(libjpeg);
	return TRUE;
}

static void end_file(j_compress_ptr libjpeg)
{
	write_bytes(encoding_of(libjpeg), encoding_of(libjpeg)->buffer,
	            BUFFER - libjpeg->dest->free_in_buffer);
}

/* Memory of libjpeg's for a row of the answer. */
static JSAMPROW allocate_row(struct encoding *e)
{
	return e->libjpeg.mem->alloc_large((j_common_ptr)&e->libjpeg, JPOOL_IMAGE,
	                                   image_row_size(&e->answer->output->image));
}

/* Writes the answer's rows. Inverts ink, because files store the white that it leaves. */
static void write_rows(struct encoding *e)
{
	const struct answer *a = e->answer;
	const size_t size = image_row_size(&a->output->image);
	JSAMPROW inverted = a->output->cmyk ? allocate_row(e) : NULL;

	for (uint32_t y = 0; y < a->output->image.height && !e->write_failed; y++) {
		const uint8_t *row = a->row(a->context, y);
		JSAMPROW samples = inverted ? inverted : (JSAMPROW)(uintptr_t)row;

		if (!row)
			return;
		for (size_t i = 0; inverted && i < size; i++)
			inverted[i] = row[i] ^ 0xff;
		jpeg_write_scanlines(&e->libjpeg, &samples, 1);
	}
	if (!e->write_failed)
		jpeg_finish_compress(&e->libjpeg);
}

static void encode(void *context)
{
	static const uint8_t end[] = {0xFF, JPEG_EOI};
	struct encoding *e = context;
	struct jpeg_compress_struct *c = &e->libjpeg;
	const struct output_format *output = e->answer->output;
	JSAMPROW blank;

	jpeg_create_compress(c);
	e->destination = (struct jpeg_destination_mgr){.init_destination = use_buffer,
	                                               .empty_output_buffer = buffer_full,
	                                               .term_destination = end_file};
	c->dest = &e->destination;
	c->client_data = e;
	c->image_width = output->image.width;
	c->image_height = output->image.height;
	c->input_components = (int)output->image.bands;
	c->in_color_space = output->cmyk               ? JCS_CMYK
	                    : output->image.bands == 3 ? JCS_RGB
	                                               : JCS_GRAYSCALE;
	jpeg_set_defaults(c);
	jpeg_set_quality(c, (int)output->coding.quality, TRUE);
	for (int i = 0; i < c->num_components && output->full_chroma; i++)
		c->comp_info[i].h_samp_factor = c->comp_info[i].v_samp_factor = 1;
	/* No JFIF segment: the resolution is in EXIF, and some readers are confused by both. */
	c->write_JFIF_header = FALSE;
	jpeg_start_compress(c, TRUE);
	jpeg_metadata_write(e->answer->metadata, c);
	if (!e->answer->scan) {
		write_rows(e);
		return;
	}
	/* libjpeg writes the header with the first row; it encodes only whole rows of MCUs. */
	blank = allocate_row(e);
	memset(blank, 0, image_row_size(&output->image));
	jpeg_write_scanlines(c, &blank, 1);
	end_file(c);
	write_bytes(e, e->answer->scan->at, e->answer->scan->size);
	write_bytes(e, end, sizeof end);
}

/* libvips writes an answer that it has to convert. */
static bool writes(const struct output_format *output)
{
	return !output->to_srgb && output->image.bands == output->result.bands;
}

/* Images of a single row of MCUs stay here. */
static bool find_target(const struct output_format *output, struct jpeg_target *target)
{
	uint32_t factor = output->image.bands == 3 && !output->full_chroma ? 2 : 1;

	target->h = target->v = factor;
	for (enum jpeg_plane p = JPEG_LUMA; p < JPEG_PLANES; p++)
		jpeg_quality_table(output->coding.quality, p, target->quantization[p]);
	return writes(output) && !output->cmyk && output->result.type == PIXEL_U8 &&
	       output->image.height > 8 * factor;
}

/* Allocates nothing a row. */
static enum error write_jpeg(const struct answer *answer, struct problem *problem)
{
	struct encoding *e = malloc(sizeof *e);
	enum error error = ERR_OK;

	if (!e)
		return no_memory(problem, "to encode");
	memset(e, 0, offsetof(struct encoding, buffer));
	e->answer = answer;
	e->libjpeg.err = jpeg_error_init(&e->error);
	if (!jpeg_error_catch(&e->error, encode, e))
		error = jpeg_error_take(&e->error, problem, ERR_UNENCODABLE, "the jpeg encoder");
	else if (e->write_failed)
		error = problem_set(problem, ERR_IO, "cannot write the answer");
	jpeg_destroy_compress(&e->libjpeg);
	free(e);
	return error;
}

static int save_jpeg(const struct output_format *output, VipsImage *image, VipsTarget *target)
{
	const struct coding *c = &output->coding;
	double background[3] = {c->background[0], c->background[1], c->background[2]};
	/* One value stands for all bands. */
	VipsArrayDouble *colour = vips_array_double_new(background, c->backgrounds == 3 ? 3 : 1);
	int failed = vips_jpegsave_target(
	    image, target, "Q", (int)c->quality, "background", colour, "subsample_mode",
	    output->full_chroma ? VIPS_FOREIGN_SUBSAMPLE_OFF : VIPS_FOREIGN_SUBSAMPLE_ON, NULL);

	vips_area_unref(VIPS_AREA(colour));
	return failed;
}

const struct writer jpeg_writer = {
    .write = write_jpeg,
    .writes = writes,
    .target = find_target,
    .save = save_jpeg,
};
