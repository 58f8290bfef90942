/* Decoding, with libvips or straight from the body.
 *
 * The decoding thread owns the region it reads through; the image itself was opened by the encoding
 * thread, which takes its metadata, before this one started. */
#include "codec/decode.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROWS_AT_ONCE = 64 };

static const struct {
	const char *loader; /* how the name of libvips' class begins */
	enum format format;
	bool whole;         /* has no way to decode row by row */
} loaders[] = {
    {"VipsForeignLoadJpeg", FORMAT_JPEG, false}, {"VipsForeignLoadPng", FORMAT_PNG, false},
    {"VipsForeignLoadWebp", FORMAT_WEBP, true},  {"VipsForeignLoadTiff", FORMAT_TIFF, false},
    {"VipsForeignLoadNsgif", FORMAT_GIF, true},  {"VipsForeignLoadPpm", FORMAT_PNM, false},
};

void vips_problem(char *line, size_t size)
{
	const char *text = vips_error_buffer();
	size_t length = strcspn(text, "\n");

	snprintf(line, size, "%.*s", (int)length, text);
	for (char *c = line; *c; c++)
		if (!isprint((unsigned char)*c))
			*c = '?';
	vips_error_clear();
}

/* What the first bytes of a body look like, for the person who sent it. */
static void describe_start(int body, char *text, size_t size)
{
	unsigned char bytes[16];
	ssize_t count = pread(body, bytes, sizeof bytes, 0);
	size_t used = 0;

	for (ssize_t i = 0; i < count && used < size; i++)
		used += (size_t)snprintf(text + used, size - used, isprint(bytes[i]) ? "%c" : "\\x%02x",
		                         bytes[i]);
}

static enum error find_loader(struct input *in, VipsSource *source, struct problem *problem)
{
	const char *name = vips_foreign_find_load_source(source);
	char start[80] = "";

	for (size_t i = 0; name && i < sizeof loaders / sizeof *loaders; i++)
		if (!strncmp(name, loaders[i].loader, strlen(loaders[i].loader))) {
			in->format = loaders[i].format;
			in->whole = loaders[i].whole;
			return ERR_OK;
		}
	vips_error_clear();
	describe_start(in->body, start, sizeof start);
	return problem_set(problem, ERR_NOT_AN_IMAGE,
	                   "JPEG, PNG, WebP, TIFF, GIF, PPM, PGM and PFM are read; the body begins with "
	                   "\"%s\" (for bare pixels give raw=WIDTHxHEIGHTxBANDS:TYPE)",
	                   start);
}

static enum error undecodable(const struct input *in, struct problem *problem)
{
	char line[160];

	vips_problem(line, sizeof line);
	return problem_set(problem, ERR_UNDECODABLE, "this %s is damaged or cut off: %s",
	                   format_name(in->format), *line ? line : "the decoder gives no reason");
}

/* Opens the body with libvips from its start. */
static VipsImage *load(VipsSource *source, VipsAccess access)
{
	return vips_image_new_from_source(source, "", "access", access, "fail_on",
	                                  VIPS_FAIL_ON_ERROR, NULL);
}

static VipsSource *open_source(int body)
{
	lseek(body, 0, SEEK_SET);
	return vips_source_new_from_descriptor(body);
}

static enum error check_pixels(const struct input *in, const struct message_job *job,
                               struct problem *problem)
{
	uint64_t pixels = (uint64_t)in->vips->Xsize * (uint64_t)in->vips->Ysize;
	uint64_t most = in->whole ? job->buffered_pixels_max : job->pixels_max;

	if (pixels <= most && in->vips->Xsize <= IMAGE_SIDE_MAX && in->vips->Ysize <= IMAGE_SIDE_MAX)
		return ERR_OK;
	return problem_set(problem, ERR_TOO_MANY_PIXELS,
	                   "the image is %dx%d; at most %llu pixels are accepted%s, and %d a side",
	                   in->vips->Xsize, in->vips->Ysize, (unsigned long long)most,
	                   in->whole ? " in a file that must be decoded whole" : "", IMAGE_SIDE_MAX);
}

static enum error describe(struct input *in, struct problem *problem)
{
	static const struct {
		VipsBandFormat format;
		enum pixel_type type;
	} types[] = {{VIPS_FORMAT_UCHAR, PIXEL_U8},
	             {VIPS_FORMAT_USHORT, PIXEL_U16},
	             {VIPS_FORMAT_FLOAT, PIXEL_F32}};
	const VipsImage *v = in->vips;

	for (size_t i = 0; i < sizeof types / sizeof *types; i++)
		if (v->BandFmt == types[i].format && v->Coding == VIPS_CODING_NONE && v->Bands >= 1 &&
		    v->Bands <= BANDS_MAX) {
			in->image = (struct image){(uint32_t)v->Xsize, (uint32_t)v->Ysize,
			                           (uint32_t)v->Bands, types[i].type,
			                           v->Bands % 2 == 0 && vips_image_hasalpha(in->vips)};
			return ERR_OK;
		}
	return problem_set(problem, ERR_UNSUPPORTED_PIXELS,
	                   "the image has %d bands of %s; 1 to %d bands of 8 or 16 bit unsigned "
	                   "integers or 32 bit floats are filtered",
	                   v->Bands, vips_enum_nick(VIPS_TYPE_BAND_FORMAT, v->BandFmt), BANDS_MAX);
}

/* Turns the image upright; it is then read from memory. */
static enum error orient(struct input *in, struct problem *problem)
{
	VipsSource *source = open_source(in->body);
	VipsImage *loaded = source ? load(source, VIPS_ACCESS_RANDOM) : NULL;
	VipsImage *upright = NULL;

	VIPS_UNREF(source);
	if (loaded && !vips_autorot(loaded, &upright, NULL)) {
		VIPS_UNREF(in->vips);
		in->vips = upright;
		in->in_memory = true;
	}
	VIPS_UNREF(loaded);
	return in->in_memory ? ERR_OK : undecodable(in, problem);
}

static enum error open_file(struct input *in, const struct message_job *job, struct problem *problem)
{
	VipsSource *source = open_source(in->body);
	enum error e = source ? find_loader(in, source, problem)
	                      : problem_set(problem, ERR_MEMORY, "no memory for the decoder");
	bool turned;

	if (!e) {
		in->vips = load(source, VIPS_ACCESS_SEQUENTIAL);
		if (!in->vips)
			e = undecodable(in, problem);
	}
	VIPS_UNREF(source);
	if (e)
		return e;
	turned = vips_image_get_orientation(in->vips) > 1;
	in->whole |= turned || vips_image_get_typeof(in->vips, "jpeg-multiscan") ||
	             vips_image_get_typeof(in->vips, "interlaced");
	e = check_pixels(in, job, problem);
	if (!e && turned)
		e = orient(in, problem);
	if (!e)
		e = describe(in, problem);
	return e;
}

static enum error open_raw(struct input *in, const struct message_job *job, struct problem *problem)
{
	const struct image *image = &job->raw_image;
	char text[64];

	in->format = FORMAT_RAW;
	in->image = *image;
	if (!image_valid(image))
		return problem_set(problem, ERR_BAD_PARAMETER, "the size of the pixels is not valid");
	snprintf(text, sizeof text, "%ux%ux%u:%s", image->width, image->height, image->bands,
	         pixel_type_name(image->type));
	if ((uint64_t)image->width * image->height > job->pixels_max)
		return problem_set_parameter(problem, ERR_TOO_MANY_PIXELS, "raw", text,
		                             "at most %llu pixels are accepted",
		                             (unsigned long long)job->pixels_max);
	if (job->body_size != image_size(image))
		return problem_set_parameter(problem, ERR_BAD_PARAMETER, "raw", text,
		                             "these pixels take %llu bytes; the body has %llu",
		                             (unsigned long long)image_size(image),
		                             (unsigned long long)job->body_size);
	return ERR_OK;
}

enum error input_open(struct input *in, const struct message_job *job, int body,
                      struct problem *problem)
{
	*in = (struct input){.body = body};
	return job->raw ? open_raw(in, job, problem) : open_file(in, job, problem);
}

void input_close(struct input *in)
{
	VIPS_UNREF(in->vips);
	vips_error_clear();
}

/* Where rows are read from: libvips through a region, or the body at an offset. */
struct reader {
	struct input *input;
	VipsRegion *region;
	uint32_t first, end; /* rows of the image that the region holds */
};

static enum error reader_open(struct reader *r, struct input *in, struct problem *problem)
{
	*r = (struct reader){.input = in};
	if (!in->vips)
		return ERR_OK;
	r->region = vips_region_new(in->vips);
	return r->region ? ERR_OK : undecodable(in, problem);
}

static void reader_close(struct reader *r)
{
	VIPS_UNREF(r->region);
}

/* Reads bare pixels of one row. */
static enum error read_raw(const struct reader *r, uint32_t y, uint8_t *row, struct problem *problem)
{
	size_t size = image_row_size(&r->input->image), done = 0;

	while (done < size) {
		ssize_t count = pread(r->input->body, row + done, size - done, (off_t)(y * (uint64_t)size + done));

		if (count <= 0)
			return problem_set(problem, ERR_IO, "the body cannot be read");
		done += (size_t)count;
	}
	return ERR_OK;
}

/* Reads row y; rows are read in order. */
static enum error read_row(struct reader *r, uint32_t y, uint8_t *row, struct problem *problem)
{
	const struct image *image = &r->input->image;
	uint32_t rows = image->height - y < ROWS_AT_ONCE ? image->height - y : ROWS_AT_ONCE;
	VipsRect area = {0, (int)y, (int)image->width, (int)rows};

	if (!r->region)
		return read_raw(r, y, row, problem);
	if (y < r->first || y >= r->end) {
		if (vips_region_prepare(r->region, &area))
			return undecodable(r->input, problem);
		r->first = y;
		r->end = y + rows;
	}
	memcpy(row, region_row(r->region, image_pixel_size(image), 0, (int)y), image_row_size(image));
	return ERR_OK;
}

/* With wrap, what lies above the first row are the last ones. */
struct ends {
	uint8_t *head, *tail;
	uint32_t rows;
};

static void ends_close(struct ends *ends)
{
	free(ends->head);
	free(ends->tail);
}

/* Decodes the image once only to keep its ends; what comes after starts again from the body. */
static enum error ends_open(struct ends *ends, struct input *in, const struct tiles *tiles,
                            struct problem *problem)
{
	size_t size = image_row_size(&in->image);
	uint32_t height = in->image.height;
	struct reader reader;
	enum error e;

	*ends = (struct ends){0};
	if (tiles->chain->border != BORDER_WRAP || !tiles->tiling.halo_y)
		return ERR_OK;
	ends->rows = tiles->tiling.halo_y < height ? tiles->tiling.halo_y : height;
	ends->head = malloc(ends->rows * size);
	ends->tail = malloc(ends->rows * size);
	if (!ends->head || !ends->tail)
		return problem_set(problem, ERR_MEMORY, "no memory for the rows of the border");
	e = reader_open(&reader, in, problem);
	for (uint32_t y = 0; !e && y < height; y++) {
		/* Every row goes through the head's buffer or the tail's; the right ones stay. */
		uint8_t *to = y < ends->rows ? ends->head + y * size : ends->tail;

		if (y >= height - ends->rows)
			to = ends->tail + (y - (height - ends->rows)) * size;
		e = read_row(&reader, y, to, problem);
		if (!e && y < ends->rows && y >= height - ends->rows)
			memcpy(ends->head + y * size, to, size);
	}
	reader_close(&reader);
	return e;
}

/* Opens the file again, for a second pass. */
static enum error reopen(struct input *in, struct problem *problem)
{
	VipsSource *source;

	if (!in->vips || in->in_memory)
		return ERR_OK;
	source = open_source(in->body);
	VIPS_UNREF(in->vips);
	in->vips = source ? load(source, VIPS_ACCESS_SEQUENTIAL) : NULL;
	VIPS_UNREF(source);
	return in->vips ? ERR_OK : undecodable(in, problem);
}

static enum error decode_tiles(struct input *in, struct tiles *tiles, const struct ends *ends,
                               uint64_t *waited, struct problem *problem)
{
	struct reader reader;
	enum error e = reader_open(&reader, in, problem);
	uint32_t first, end;

	for (uint32_t i = 0; !e && i < tiles->tiling.count; i++) {
		if (!tiles_wait_free(tiles, i, waited))
			break;
		tiles_new_rows(tiles, i, &first, &end);
		for (uint32_t y = first; !e && y < end; y++)
			e = read_row(&reader, y, tiles_row(tiles, i, y), problem);
		if (!e)
			tiles_complete(tiles, i, ends->head, ends->tail);
	}
	reader_close(&reader);
	return e;
}

uint64_t input_decode(struct input *in, struct tiles *tiles)
{
	uint64_t start = tiles_now(), waited = 0;
	struct problem problem;
	struct ends ends;
	enum error e = ends_open(&ends, in, tiles, &problem);

	if (!e && ends.rows)
		e = reopen(in, &problem);
	if (!e)
		e = decode_tiles(in, tiles, &ends, &waited, &problem);
	ends_close(&ends);
	if (e)
		tiles_fail(tiles, e, &problem);
	return tiles_now() - start - waited;
}
