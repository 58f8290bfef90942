/* A format's own writer makes most answers, libvips the others. Runs in the job's encoding thread,
 * except for generate(), which libvips calls in a thread of its own.
 *
 * The hard part: libvips requests pixels while the image is still being decoded. It has a single
 * worker thread (vips_concurrency_set(1) in main.c), so it requests rows from top to bottom, and
 * generate() can wait for the tile that holds a row. */
#include "codec/encode.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <vips/vips.h>

#include "codec/metadata/file_metadata.h"
#include "codec/metadata/library_error.h"
#include "codec/repertoire.h"
#include "codec/formats/samples.h"
#include "codec/formats/vips_reader.h"

struct encoder {
	const struct output_format *output;
	struct row_source rows;
	const struct writer *writer;
	bool plain;                    /* by the writer's write(), else by its save() */
	struct file_metadata metadata; /* the answer's */
	uint8_t *row;    /* a result row in the answer's type; NULL if the result has that type */
	VipsImage *vips; /* the answer, made as its rows come; NULL where libvips is not needed */
	VipsRegion *region; /* for reading rows of `vips` here */
	bool failed;        /* the last row of `vips` failed */
};

/* With libvips's default effort a palette takes twice as long, and is 0.3 dB closer to a
 * photograph. Below 4 libimagequant rounds the colours of a drawing, too. */
static int save_gif(const struct output_format *, VipsImage *image, VipsTarget *target)
{
	return vips_gifsave_target(image, target, "effort", 4, NULL);
}

const struct writer gif_writer = {.save = save_gif};

/* This is not in tiff.c because libtiff's macros have the names of our compressions. */
static int save_tiff(const struct output_format *output, VipsImage *image, VipsTarget *target)
{
	static const VipsForeignTiffCompression methods[COMPRESSION_LEVEL] = {
	    [COMPRESSION_DEFAULT] = VIPS_FOREIGN_TIFF_COMPRESSION_NONE,
	    [COMPRESSION_NONE] = VIPS_FOREIGN_TIFF_COMPRESSION_NONE,
	    [COMPRESSION_LZW] = VIPS_FOREIGN_TIFF_COMPRESSION_LZW,
	    [COMPRESSION_DEFLATE] = VIPS_FOREIGN_TIFF_COMPRESSION_DEFLATE,
	    [COMPRESSION_ZSTD] = VIPS_FOREIGN_TIFF_COMPRESSION_ZSTD,
	};

	/* 32-bit offsets reach 4 GiB; leave some room for metadata. */
	return vips_tiffsave_target(
	    image, target, "compression", methods[output->coding.compression], "predictor",
	    output->image.type == PIXEL_F32 ? VIPS_FOREIGN_TIFF_PREDICTOR_FLOAT
	                                    : VIPS_FOREIGN_TIFF_PREDICTOR_HORIZONTAL,
	    "bigtiff", image_size(&output->image) * output->pages > UINT64_C(4000000000), NULL);
}

const struct writer tiff_writer = {.save = save_tiff};

static const struct {
	VipsBandFormat format;
	VipsInterpretation grey, colour;
} kinds[PIXEL_TYPES] = {
    [PIXEL_U8] = {VIPS_FORMAT_UCHAR, VIPS_INTERPRETATION_B_W, VIPS_INTERPRETATION_sRGB},
    [PIXEL_U16] = {VIPS_FORMAT_USHORT, VIPS_INTERPRETATION_GREY16, VIPS_INTERPRETATION_RGB16},
    [PIXEL_F32] = {VIPS_FORMAT_FLOAT, VIPS_INTERPRETATION_B_W, VIPS_INTERPRETATION_scRGB},
};

/* A row of the result, in the answer's sample type. */
static const uint8_t *typed_row(struct encoder *encoder, uint32_t y)
{
	const struct image *result = &encoder->output->result;
	const uint8_t *row = encoder->rows.row(encoder->rows.context, y);

	if (!row || !encoder->row)
		return row;
	samples_convert(encoder->row, encoder->output->image.type, row, result->type,
	                (size_t)result->width * result->bands);
	return encoder->row;
}

/* Gives libvips a rectangle of the answer, which needs no rows above it. A row of full width is
 * freed as soon as it is copied, because the slots may hold only a few. */
static int generate(VipsRegion *out, void *, void *a, void *, gboolean *)
{
	struct encoder *encoder = a;
	const struct row_source *rows = &encoder->rows;
	const VipsRect *r = &out->valid;
	VipsPel *to = VIPS_REGION_ADDR_TOPLEFT(out);
	const size_t pixel = vips_format_sizeof(out->im->BandFmt) * (size_t)out->im->Bands;

	rows->free_above(rows->context, (uint32_t)r->top);
	for (int y = r->top; y < r->top + r->height; y++) {
		const uint8_t *row = typed_row(encoder, (uint32_t)y);

		if (!row) {
			vips_error("encode", "no row %d", y);
			return -1;
		}
		memcpy(to, row + (size_t)r->left * pixel, (size_t)r->width * pixel);
		to += VIPS_REGION_LSKIP(out);
		if (r->width == out->im->Xsize)
			rows->free_above(rows->context, (uint32_t)y + 1);
	}
	return 0;
}

/* Makes the answer for libvips. CMYK is converted to sRGB by the image's profile or, if it has no
 * CMYK profile, by libvips's own; the answer then has the sRGB profile. */
static enum error make_image(struct encoder *encoder, struct problem *problem)
{
	const struct output_format *output = encoder->output;
	const uint32_t colours = output->result.bands - output->result.alpha;
	const VipsInterpretation space = colours == 1   ? kinds[output->image.type].grey
	                                 : colours == 3 ? kinds[output->image.type].colour
	                                 : output->cmyk ? VIPS_INTERPRETATION_CMYK
	                                                : VIPS_INTERPRETATION_MULTIBAND;
	VipsImage *vips = vips_image_new();
	const void *profile;
	size_t size;

	encoder->vips = vips;
	vips_image_init_fields(vips, (int)output->result.width, (int)output_rows(output),
	                       (int)output->result.bands, kinds[output->image.type].format,
	                       VIPS_CODING_NONE, space, 1, 1);
	if (vips_image_pipelinev(vips, VIPS_DEMAND_STYLE_FATSTRIP, NULL) ||
	    vips_image_generate(vips, NULL, generate, NULL, encoder, NULL))
		return vips_error_take(problem, ERR_INTERNAL, "the encoder");
	file_metadata_tell(&encoder->metadata, output->pages, vips);
	if (!output->to_srgb)
		return ERR_OK;
	if (vips_icc_transform(vips, &encoder->vips, "srgb", "embedded", TRUE, "input_profile",
	                       "cmyk", "depth", output->image.type == PIXEL_U8 ? 8 : 16, NULL))
		encoder->vips = NULL;
	g_object_unref(vips);
	if (!encoder->vips ||
	    vips_image_get_blob(encoder->vips, VIPS_META_ICC_NAME, &profile, &size))
		return vips_error_take(problem, ERR_UNENCODABLE, "the conversion to sRGB");
	encoder->metadata.profile = (struct file_part){profile, size};
	return ERR_OK;
}

enum error encode_open(struct encoder **encoder, const struct output_format *output,
                       struct row_source rows, struct decoder *body, struct problem *problem)
{
	struct encoder *new = calloc(1, sizeof *new);
	const struct writer *w = repertoire_writer(output->format);
	const struct file_metadata *metadata = NULL;
	enum error e = ERR_OK;

	*encoder = new;
	if (!new)
		return no_memory(problem, "to encode");
	new->output = output;
	new->rows = rows;
	new->writer = w;
	if (output->image.type != output->result.type) {
		new->row = malloc((size_t)output->result.width * output->result.bands *
		                  pixel_type_rows[output->image.type].size);
		if (!new->row)
			e = no_memory(problem, "to encode");
	}
	new->plain = w->write && (!w->writes || w->writes(output));
	if (!e)
		e = decode_metadata(body, &metadata, problem);
	if (!e && !file_metadata_answer(&new->metadata, metadata, output->format, &output->image,
	                                output->strip))
		e = no_memory(problem, "for the metadata");
	if (!e && metadata && output->to_srgb) /* inks are converted by their profile */
		new->metadata.profile = metadata->profile;
	if (!e && (!new->plain || output->to_srgb))
		e = make_image(new, problem);
	if (e)
		encode_close(encoder);
	return e;
}

void encode_close(struct encoder **encoder)
{
	if (!*encoder)
		return;
	file_metadata_free(&(*encoder)->metadata);
	g_clear_object(&(*encoder)->vips);
	free((*encoder)->row);
	free(*encoder);
	*encoder = NULL;
}

bool encode_is_plain(const struct encoder *encoder)
{
	return !encoder->vips;
}

static const uint8_t *composed_row(void *context, uint32_t y)
{
	struct encoder *encoder = context;

	encoder->rows.free_above(encoder->rows.context, y);
	return typed_row(encoder, y);
}

static const uint8_t *converted_row(void *context, uint32_t y)
{
	struct encoder *encoder = context;
	const VipsRect row = {0, (int)y, (int)encoder->output->image.width, 1};

	if (!encoder->region)
		encoder->region = vips_region_new(encoder->vips);
	encoder->failed = !encoder->region || vips_region_prepare(encoder->region, &row);
	if (encoder->failed)
		return NULL;
	return vips_reader_pixel(encoder->region, 0, row.top);
}

static gint64 write_target(VipsTargetCustom *, const void *data, gint64 size, void *file)
{
	return write(((const struct answer_file *)file)->writer, data, (size_t)size);
}

static gint64 seek_target(VipsTargetCustom *, gint64 offset, int whence, void *file)
{
	return lseek(((const struct answer_file *)file)->writer, offset, whence);
}

/* TIFF's encoder reads what it has written. */
static gint64 read_target(VipsTargetCustom *target, void *data, gint64 size, void *file)
{
	const gint64 at = seek_target(target, 0, SEEK_CUR, file);
	ssize_t got = pread(((const struct answer_file *)file)->reader, data, (size_t)size, at);

	return got > 0 && seek_target(target, got, SEEK_CUR, file) < 0 ? -1 : got;
}

static enum error save(struct encoder *encoder, const struct answer_file *file,
                       struct problem *problem)
{
	const struct output_format *output = encoder->output;
	const struct writer *w = encoder->writer;
	VipsTargetCustom *target = vips_target_custom_new();
	void *data = (void *)(uintptr_t)file;
	GMappedFile *map;
	size_t size;
	bool saved;
	char who[32];
	enum error e = ERR_OK;

	g_signal_connect(target, "write", G_CALLBACK(write_target), data);
	g_signal_connect(target, "seek", G_CALLBACK(seek_target), data);
	g_signal_connect(target, "read", G_CALLBACK(read_target), data);
	if (w->save(output, encoder->vips, VIPS_TARGET(target))) {
		snprintf(who, sizeof who, "the %s encoder", format_naming(output->format)->name);
		e = vips_error_take(problem, ERR_UNENCODABLE, who);
	}
	g_clear_object(&target);
	if (e || !w->saved)
		return e;
	map = g_mapped_file_new_from_fd(file->reader, FALSE, NULL);
	size = map ? g_mapped_file_get_length(map) : 0;
	saved = size && w->saved(output, g_mapped_file_get_contents(map), size);
	g_clear_pointer(&map, g_mapped_file_unref);
	if (!size)
		return problem_set(problem, ERR_IO, "cannot read the answer");
	if (saved)
		return ERR_OK;
	return problem_set(problem, ERR_UNENCODABLE,
	                   "the %s encoder failed, most likely for lack of memory "
	                   "(codec-memory): the result is %ux%u",
	                   format_naming(output->format)->name, output->image.width,
	                   output->image.height);
}

bool encode_jpeg_target(const struct encoder *encoder, struct jpeg_target *target)
{
	return encoder->plain && encoder->writer->target &&
	       encoder->writer->target(encoder->output, target);
}

enum error encode_run(struct encoder *encoder, const struct jpeg_bytes *scan,
                      const struct answer_file *file, struct problem *problem)
{
	const struct answer answer = {.output = encoder->output,
	                              .metadata = &encoder->metadata,
	                              .row = encoder->vips ? converted_row : composed_row,
	                              .context = encoder,
	                              .scan = scan,
	                              .file = file->writer};
	enum error e;

	if (!encoder->plain)
		return save(encoder, file, problem);
	e = encoder->writer->write(&answer, problem);
	g_clear_object(&encoder->region); /* in the thread that made it */
	return encoder->failed ? vips_error_take(problem, ERR_UNENCODABLE, "the conversion to sRGB")
	                       : e;
}
