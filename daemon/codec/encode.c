/* Encoding, with libvips or straight to the answer.
 *
 * libvips asks for the image's pixels, strip by strip from the top, through generate(), which waits
 * for the tile that has them. That order is kept only while libvips uses one thread. */
#include "codec/encode.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct {
	uint32_t side_max;  /* pixels */
	bool holds[PIXEL_TYPES];
	uint32_t quality;   /* when none is asked for */
} formats[FORMATS] = {
    [FORMAT_JPEG] = {65535, {true, false, false}, 85},
    [FORMAT_PNG] = {IMAGE_SIDE_MAX, {true, true, false}, 0},
    [FORMAT_WEBP] = {16383, {true, false, false}, 80},
    [FORMAT_TIFF] = {IMAGE_SIDE_MAX, {true, true, true}, 0},
    [FORMAT_GIF] = {65535, {true, false, false}, 0},
    [FORMAT_PNM] = {IMAGE_SIDE_MAX, {true, true, true}, 0},
    [FORMAT_RAW] = {IMAGE_SIDE_MAX, {true, true, true}, 0},
};

/* Copies samples, or makes them smaller by the ratio of the types' full scales, rounded. */
typedef void convert_row(void *to, const void *from, size_t samples);

static void convert_u16_u8(void *to, const void *from, size_t samples)
{
	uint8_t *t = to;
	const uint16_t *f = from;

	for (size_t i = 0; i < samples; i++)
		t[i] = (uint8_t)((f[i] + 128u) / 257u);
}

/* A float's share of full scale; what is not a number is 0. */
static float clamp_share(float f)
{
	return f > 0 ? (f < 1 ? f : 1) : 0;
}

static void convert_f32_u8(void *to, const void *from, size_t samples)
{
	uint8_t *t = to;
	const float *f = from;

	for (size_t i = 0; i < samples; i++)
		t[i] = (uint8_t)lrintf(clamp_share(f[i]) * 255);
}

static void convert_f32_u16(void *to, const void *from, size_t samples)
{
	uint16_t *t = to;
	const float *f = from;

	for (size_t i = 0; i < samples; i++)
		t[i] = (uint16_t)lrintf(clamp_share(f[i]) * 65535);
}

static convert_row *const conversions[PIXEL_TYPES][PIXEL_TYPES] = {
    [PIXEL_U16] = {[PIXEL_U8] = convert_u16_u8},
    [PIXEL_F32] = {[PIXEL_U8] = convert_f32_u8, [PIXEL_U16] = convert_f32_u16},
};

/* Copies row y of the result, from column `left`, converted to the type of the answer. */
static void copy_row(const struct output *out, const uint8_t *tile, uint32_t y, uint32_t left,
                     uint32_t width, void *to)
{
	const struct tiling *t = &out->tiles->tiling;
	const uint8_t *from = tile + (uint64_t)(y % t->rows) * t->out_pitch +
	                      left * image_pixel_size(&t->image);
	convert_row *convert = conversions[t->image.type][out->image.type];

	if (convert)
		convert(to, from, (size_t)width * t->image.bands);
	else
		memcpy(to, from, width * image_pixel_size(&t->image));
}

/* Frees the slot of the tile that row y ends, if it does. */
static void row_read(const struct output *out, uint32_t y)
{
	const struct tiling *t = &out->tiles->tiling;

	if (y + 1 == t->height || (y + 1) % t->rows == 0)
		tiles_free_slot(out->tiles, y / t->rows);
}

static int generate(VipsRegion *region, void *sequence, void *a, void *b, gboolean *stop)
{
	struct output *out = b;
	const VipsRect *r = &region->valid;

	(void)sequence, (void)a;
	for (int y = r->top; y < r->top + r->height; y++) {
		const uint8_t *tile = tiles_wait_filtered(
		    out->tiles, (uint32_t)y / out->tiles->tiling.rows, &out->waited);

		if (!tile) {
			*stop = TRUE;
			return -1;
		}
		copy_row(out, tile, (uint32_t)y, (uint32_t)r->left, (uint32_t)r->width,
		         region_row(region, image_pixel_size(&out->image), r->left, y));
		if ((uint32_t)(r->left + r->width) == out->image.width)
			row_read(out, (uint32_t)y);
	}
	return 0;
}

/* How libvips shall understand the bands. */
static VipsInterpretation interpretation(const struct output *out, const struct input *in)
{
	bool colour = out->image.bands > 2;

	if (in->vips && in->vips->Type == VIPS_INTERPRETATION_CMYK && out->image.bands == 4)
		return VIPS_INTERPRETATION_CMYK;
	if (out->image.type == PIXEL_U16)
		return colour ? VIPS_INTERPRETATION_RGB16 : VIPS_INTERPRETATION_GREY16;
	if (out->image.type == PIXEL_U8)
		return colour ? VIPS_INTERPRETATION_sRGB : VIPS_INTERPRETATION_B_W;
	/* Floats are written as they are; as scRGB the PFM writer would turn them into sRGB. */
	if (out->format == FORMAT_PNM)
		return VIPS_INTERPRETATION_MULTIBAND;
	return colour ? VIPS_INTERPRETATION_scRGB : VIPS_INTERPRETATION_B_W;
}

static void *strip_field(VipsImage *image, const char *name, GValue *value, void *a)
{
	(void)value, (void)a;
	if (strcmp(name, VIPS_META_ICC_NAME) && strcmp(name, VIPS_META_RESOLUTION_UNIT))
		vips_image_remove(image, name);
	return NULL;
}

/* Drops the metadata but the colour profile and the resolution: without those the pixels mean
 * something else. (The savers' own `strip` drops the profile too.) */
static void strip_metadata(VipsImage *image)
{
	vips_image_map(image, strip_field, NULL);
}

static enum error open_vips(struct output *out, const struct input *in, struct problem *problem)
{
	static const VipsBandFormat band_formats[PIXEL_TYPES] = {
	    VIPS_FORMAT_UCHAR, VIPS_FORMAT_USHORT, VIPS_FORMAT_FLOAT};
	VipsBandFormat format = band_formats[out->image.type];

	out->vips = vips_image_new();
	if (in->vips)
		vips_image_pipelinev(out->vips, VIPS_DEMAND_STYLE_FATSTRIP, in->vips, NULL);
	vips_image_init_fields(out->vips, (int)out->image.width, (int)out->image.height,
	                       (int)out->image.bands, format, VIPS_CODING_NONE,
	                       interpretation(out, in), in->vips ? in->vips->Xres : 1,
	                       in->vips ? in->vips->Yres : 1);
	vips_autorot_remove_angle(out->vips);
	if (out->strip)
		strip_metadata(out->vips);
	vips_image_pipelinev(out->vips, VIPS_DEMAND_STYLE_FATSTRIP, NULL);
	if (!vips_image_generate(out->vips, NULL, generate, NULL, NULL, out))
		return ERR_OK;
	vips_error_clear();
	return problem_set(problem, ERR_MEMORY, "no memory for the encoder");
}

static enum format choose_format(const struct message_job *job, const struct input *in)
{
	if (job->format)
		return job->format;
	return job->accept & 1u << in->format ? in->format : (enum format)job->accept_best;
}

static enum error check_format(const struct output *out, struct problem *problem)
{
	const struct image *image = &out->image;

	if (!out->format || out->format >= FORMATS)
		return problem_set(problem, ERR_NOT_ACCEPTABLE,
		                   "the image's own format is not accepted; ask for one with format=");
	if (image->width > formats[out->format].side_max || image->height > formats[out->format].side_max)
		return problem_set(problem, ERR_UNENCODABLE,
		                   "%s holds at most %u pixels a side; the result is %ux%u",
		                   format_name(out->format), formats[out->format].side_max, image->width,
		                   image->height);
	if (out->format == FORMAT_PNM && image->bands != 1 && image->bands != 3)
		return problem_set(problem, ERR_UNENCODABLE,
		                   "PGM, PPM and PFM hold 1 or 3 bands; the result has %u: ask for "
		                   "format=%s",
		                   image->bands, image->type == PIXEL_F32 ? "tiff" : "png");
	return ERR_OK;
}

enum error output_open(struct output *out, const struct input *in, struct tiles *tiles, int answer,
                       struct problem *problem)
{
	const struct message_job *job = &tiles->job;
	enum error e;

	*out = (struct output){.answer = answer, .tiles = tiles, .strip = job->strip};
	out->format = choose_format(job, in);
	out->image = tiles->tiling.image;
	out->image.width = tiles->tiling.width;
	out->image.height = tiles->tiling.height;
	e = check_format(out, problem);
	if (e)
		return e;
	out->quality = job->quality ? job->quality : formats[out->format].quality;
	while (!formats[out->format].holds[out->image.type])
		out->image.type--;
	return out->format == FORMAT_RAW ? ERR_OK : open_vips(out, in, problem);
}

void output_close(struct output *out)
{
	VIPS_UNREF(out->vips);
	vips_error_clear();
}

static int save(const struct output *out, VipsTarget *target)
{
	VipsImage *image = out->vips;
	int quality = (int)out->quality;
	VipsForeignPpmFormat pnm = out->image.type == PIXEL_F32 ? VIPS_FOREIGN_PPM_FORMAT_PFM
	                           : out->image.bands == 1      ? VIPS_FOREIGN_PPM_FORMAT_PGM
	                                                        : VIPS_FOREIGN_PPM_FORMAT_PPM;

	switch (out->format) {
	case FORMAT_JPEG:
		return vips_jpegsave_target(image, target, "Q", quality, NULL);
	case FORMAT_PNG:
		return vips_pngsave_target(image, target, "compression", 6, NULL);
	case FORMAT_WEBP:
		return vips_webpsave_target(image, target, "Q", quality, NULL);
	case FORMAT_TIFF:
		return vips_tiffsave_target(image, target, NULL);
	case FORMAT_GIF:
		return vips_gifsave_target(image, target, NULL);
	default:
		/* Its only metadata is a comment with the time, which would make every answer differ. */
		return vips_ppmsave_target(image, target, "format", pnm, "strip", TRUE, NULL);
	}
}

static enum error encode_vips(struct output *out, struct problem *problem)
{
	VipsTarget *target = vips_target_new_to_descriptor(out->answer);
	char line[160];
	int failed = target ? save(out, target) : -1;

	VIPS_UNREF(target);
	if (!failed)
		return ERR_OK;
	vips_problem(line, sizeof line);
	return problem_set(problem, ERR_UNENCODABLE, "the %s cannot be written: %s",
	                   format_name(out->format), line);
}

static enum error write_all(int fd, const uint8_t *data, size_t size)
{
	while (size) {
		ssize_t count = write(fd, data, size);

		if (count <= 0)
			return ERR_IO;
		data += count;
		size -= (size_t)count;
	}
	return ERR_OK;
}

static enum error encode_raw(struct output *out, struct problem *problem)
{
	const struct tiling *t = &out->tiles->tiling;
	size_t row = image_row_size(&out->image);

	for (uint32_t y = 0; y < t->height; y++) {
		const uint8_t *tile = tiles_wait_filtered(out->tiles, y / t->rows, &out->waited);

		if (!tile)
			return ERR_OK; /* the job has failed, and knows why */
		if (write_all(out->answer, tile + (uint64_t)(y % t->rows) * t->out_pitch, row))
			return problem_set(problem, ERR_IO, "the answer cannot be stored");
		row_read(out, y);
	}
	return ERR_OK;
}

uint64_t output_encode(struct output *out)
{
	uint64_t start = tiles_now();
	struct problem problem;
	enum error e = out->vips ? encode_vips(out, &problem) : encode_raw(out, &problem);

	if (e)
		tiles_fail(out->tiles, e, &problem);
	return tiles_now() - start - out->waited;
}
