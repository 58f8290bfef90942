/* Netpbm's formats by its manual: pbm(5), pgm(5), ppm(5), pam(5), pfm(5). The first image in a file
 * is read. libvips takes comments in a header for pixels, and a missing sample for black; it writes
 * the date, and PFM's rows in the wrong order. Raw pixels are written like these formats, without a
 * header.
 *
 * Rows must be available in any order, but the samples of plain formats are numbers in text, of any
 * length and with comments between them, so all of them are read at once.
 *
 * A sample v with the maximum m becomes (v * full + m / 2) / m, rounded down, as in netpbm and
 * Pillow. Raw formats clamp samples above m to m, as Pillow does; plain formats refuse them, as all
 * readers do. */
#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <glib.h>

#include "base/vectorised.h"
#include "codec/metadata/containers.h"
#include "codec/formats/samples.h"

enum { LINE_SIZE = 256, MAXIMUM_MAX = 65535 };

struct pnm {
	const uint8_t *raster, *end;
	char magic; /* the second letter of the file */
	struct image image;
	bool cmyk, big_endian;
	uint32_t max;     /* the samples' full scale */
	uint32_t planes;  /* the file's, maybe more than the image's bands */
	size_t row_size;  /* bytes, of raw formats */
	uint8_t *samples; /* all, of plain formats; NULL until found */
};

/* The rest of a header, or of a plain raster. */
struct text {
	const uint8_t *at, *end;
};

static enum error broken(struct problem *problem, const char *what)
{
	return problem_set(problem, ERR_UNDECODABLE, "the PNM decoder says: %s", what);
}

/* Text ----------------------------------------------------------------------------------------- */

/* Returns the next character, or -1 at the end. Skips comments with the end of their line, so that
 * a number continues behind one. */
static int next_char(struct text *t)
{
	while (t->at < t->end && *t->at == '#') {
		while (t->at < t->end && *t->at != '\n' && *t->at != '\r')
			t->at++;
		t->at += t->at < t->end;
	}
	return t->at < t->end ? *t->at++ : -1;
}

/* Skips white space, and returns what follows. */
static int next_mark(struct text *t)
{
	int c = next_char(t);

	while (isspace(c))
		c = next_char(t);
	return c;
}

/* Reads a number and the one white-space character behind it. Returns false if there is no number,
 * or if it exceeds `most`. */
static bool read_number(struct text *t, uint32_t most, uint32_t *number)
{
	int c = next_mark(t);
	uint64_t n = 0;

	if (!isdigit(c))
		return false;
	for (; isdigit(c); c = next_char(t)) {
		n = n * 10 + (uint64_t)(c - '0');
		if (n > most)
			return false;
	}
	*number = (uint32_t)n;
	return c < 0 || isspace(c);
}

/* Reads a sample of a plain format. Those of P1 need nothing between them; 1 is black. */
static bool read_sample(const struct pnm *p, struct text *t, uint32_t *sample)
{
	int c;

	if (p->magic != '1')
		return read_number(t, p->max, sample);
	c = next_mark(t);
	*sample = c == '0';
	return c == '0' || c == '1';
}

/* Headers -------------------------------------------------------------------------------------- */

static enum error read_short_header(struct pnm *p, struct text *t, struct problem *problem)
{
	struct image *image = &p->image;

	if (!read_number(t, UINT32_MAX, &image->width) ||
	    !read_number(t, UINT32_MAX, &image->height))
		return broken(problem, "the header has no width and height");
	image->bands = p->planes = strchr("36F", p->magic) ? 3 : 1;
	p->max = 1;
	if (strchr("Ff", p->magic)) {
		/* The sign of PFM's number gives the order of bytes. Its magnitude is the unit of
		 * the samples, of which nothing else is told; like most readers, this one takes the
		 * samples as they are. */
		char text[LINE_SIZE] = "", *end;
		size_t size = 0;
		double scale;

		for (int c = next_mark(t); c > 0 && !isspace(c) && size + 1 < sizeof text;
		     c = next_char(t))
			text[size++] = (char)c;
		scale = g_ascii_strtod(text, &end);
		p->big_endian = scale > 0;
		if (!size || *end || !isfinite(scale) || scale == 0)
			return broken(problem, "the header's scale is not a number other than 0");
	} else if (strchr("2356", p->magic)) {
		if (!read_number(t, MAXIMUM_MAX, &p->max) || !p->max)
			return broken(problem, "the header has no maximum from 1 to 65535");
	}
	return ERR_OK;
}

/* Copies a line without its end, and nothing of a comment. Returns false if the text ends first, or
 * the line is too long or no text. */
static bool next_line(struct text *t, char line[LINE_SIZE])
{
	const uint8_t *end = memchr(t->at, '\n', (size_t)(t->end - t->at));
	size_t size = end && *t->at != '#' ? (size_t)(end - t->at) : 0;

	if (!end || size >= LINE_SIZE || memchr(t->at, 0, size))
		return false;
	memcpy(line, t->at, size);
	line[size] = 0;
	t->at = end + 1;
	return true;
}

/* Accepts each number once. Several lines TUPLTYPE are one, joined by blanks. */
static bool accept_line(struct pnm *p, const char *name, const char *value, char type[LINE_SIZE])
{
	const struct {
		const char *name;
		uint32_t *to;
	} numbers[] = {{"WIDTH", &p->image.width},
	               {"HEIGHT", &p->image.height},
	               {"DEPTH", &p->planes},
	               {"MAXVAL", &p->max}};
	guint64 number;

	if (!strcmp(name, "TUPLTYPE")) {
		g_strlcat(type, *type ? " " : "", LINE_SIZE);
		return g_strlcat(type, value, LINE_SIZE) < LINE_SIZE;
	}
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
		if (!strcmp(name, numbers[i].name)) {
			if (*numbers[i].to ||
			    !g_ascii_string_to_unsigned(value, 10, 1, UINT32_MAX, &number, NULL))
				return false;
			*numbers[i].to = (uint32_t)number;
			return true;
		}
	return false;
}

static enum error read_pam_header(struct pnm *p, struct text *t, struct problem *problem)
{
	static const struct {
		const char *name;
		uint32_t bands, alpha;
		bool cmyk;
	} types[] = {
	    {"BLACKANDWHITE", 1, 0, false}, {"BLACKANDWHITE_ALPHA", 2, 1, false},
	    {"GRAYSCALE", 1, 0, false},     {"GRAYSCALE_ALPHA", 2, 1, false},
	    {"RGB", 3, 0, false},           {"RGB_ALPHA", 4, 1, false},
	    {"CMYK", 4, 0, true},
	};
	char line[LINE_SIZE], type[LINE_SIZE] = "", *name = NULL, *value;

	while (!name || strcmp(name, "ENDHDR")) {
		if (!next_line(t, line))
			return broken(problem, "the header does not end with ENDHDR");
		name = strtok_r(line, " \t\v\f\r", &value);
		if (name && strcmp(name, "ENDHDR") &&
		    !accept_line(p, name, g_strstrip(value), type))
			return broken(problem, "a line of the header is unknown, or there twice, "
			                       "or has no number");
	}
	if (!p->image.width || !p->image.height || !p->planes || !p->max || p->max > MAXIMUM_MAX)
		return broken(problem, "the header has no WIDTH, HEIGHT, DEPTH, or MAXVAL from 1 "
		                       "to 65535");
	/* Ignores planes beyond those of the type, as the manual recommends. An unknown type tells
	 * neither the bands nor whether one of them is alpha. */
	p->image.bands = p->planes;
	for (size_t i = 0; i < sizeof types / sizeof *types; i++)
		if (!strcmp(type, types[i].name)) {
			p->image.bands = types[i].bands;
			p->image.alpha = types[i].alpha;
			p->cmyk = types[i].cmyk;
		}
	return p->image.bands <= p->planes
	           ? ERR_OK
	           : broken(problem, "the header's DEPTH is less than its tuple type has");
}

static enum error read_header(struct pnm *p, const uint8_t *file, struct problem *problem)
{
	struct text t = {file + 2, p->end};
	enum error e;

	if (p->end - file < 3 || file[0] != 'P' || !file[1] || !strchr("1234567Ff", file[1]) ||
	    !(isspace(file[2]) || file[2] == '#'))
		return broken(problem, "there is no header");
	p->magic = (char)file[1];
	e = p->magic == '7' ? read_pam_header(p, &t, problem) : read_short_header(p, &t, problem);
	if (e)
		return e;
	if (!p->image.width || !p->image.height)
		return broken(problem, "the image has no pixels");
	if (p->planes > IMAGE_BANDS_MAX)
		return problem_set(problem, ERR_UNSUPPORTED_PIXELS,
		                   "the image has %u bands; 1 to %d are supported", p->planes,
		                   IMAGE_BANDS_MAX);
	p->image.type = strchr("Ff", p->magic) ? PIXEL_F32 : p->max < 256 ? PIXEL_U8 : PIXEL_U16;
	p->row_size = p->magic == '4' ? ((size_t)p->image.width + 7) / 8
	                              : (size_t)p->image.width * p->planes *
	                                    pixel_type_rows[p->image.type].size;
	p->raster = t.at;
	return ERR_OK;
}

/* Rasters -------------------------------------------------------------------------------------- */

static bool is_plain(const struct pnm *p)
{
	return strchr("123", p->magic);
}

static enum error truncated(struct problem *problem, uint64_t there, uint64_t needed,
                            const char *what)
{
	return problem_set(problem, ERR_UNDECODABLE,
	                   "the PNM decoder says: the file is truncated: it holds %" PRIu64
	                   " of the image's %" PRIu64 " %s",
	                   there, needed, what);
}

static void put_sample(const struct pnm *p, uint8_t *to, uint32_t v)
{
	const uint32_t full = p->image.type == PIXEL_U8 ? 255 : 65535;
	uint16_t scaled = (uint16_t)(v < p->max ? v : full);

	if (v < p->max && p->max != full)
		scaled = (uint16_t)((v * full + p->max / 2) / p->max);
	if (p->image.type == PIXEL_U8)
		*to = (uint8_t)scaled;
	else
		memcpy(to, &scaled, sizeof scaled);
}

/* Returns the least size of the pixels in bytes: a plain sample takes at least a character. */
static uint64_t least_size(const struct pnm *p)
{
	return (is_plain(p) ? (uint64_t)p->image.width * p->image.bands : p->row_size) *
	       p->image.height;
}

static enum error find_rows(void *state, struct problem *problem)
{
	struct pnm *p = state;
	const uint64_t there = (uint64_t)(p->end - p->raster), least = least_size(p);
	const size_t size = pixel_type_rows[p->image.type].size;
	const uint64_t all = image_size(&p->image) / size;
	struct text t = {p->raster, p->end}, before;
	uint32_t sample;

	if (there < least)
		return truncated(problem, there, least, "bytes of pixels, or more");
	if (!is_plain(p))
		return ERR_OK;
	p->samples = malloc(all * size);
	if (!p->samples)
		return no_memory(problem, "to decode");
	for (uint64_t i = 0; i < all; i++) {
		before = t;
		if (read_sample(p, &t, &sample))
			put_sample(p, p->samples + i * size, sample);
		else if (next_mark(&before) < 0)
			return truncated(problem, i, all, "samples");
		else
			return broken(problem, "a sample is not a number from 0 to the maximum");
	}
	return ERR_OK;
}

/* u8 up to a maximum of 255, u16 above it, f32 of PFM. */
static enum error open_pnm(void *state, struct decoded *decoded, const struct body *body,
                           struct problem *problem)
{
	struct pnm *p = state, next;
	uint32_t images = 0;
	enum error e;

	p->end = body->at + body->size;
	e = read_header(p, body->at, problem);
	if (e)
		return e;
	decoded->whole = p->image;
	decoded->cmyk = p->cmyk;
	/* Counts the complete raw images in the file. */
	next = *p;
	while (!e && !is_plain(&next) &&
	       (size_t)(p->end - next.raster) / next.row_size >= next.image.height) {
		const uint8_t *after = next.raster + next.row_size * next.image.height;

		images++;
		next = (struct pnm){.end = p->end};
		e = read_header(&next, after, NULL);
	}
	decoded->file_pages = MAX(images, 1);
	decoded->plain = decoded->any_order = true;
	/* Refuses a truncated file before memory is allocated. */
	if (is_plain(p) && (uint64_t)(p->end - p->raster) >= least_size(p))
		decoded->held = image_pixel_size(&p->image);
	return ERR_OK;
}

/* PGM and PPM store the more significant byte first. */
VECTORISED static void copy_swapped(uint8_t *restrict to, const uint8_t *restrict from, size_t size)
{
	for (size_t i = 0; i < size; i += 2) {
		to[i] = from[i + 1];
		to[i + 1] = from[i];
	}
}

static void read_raw_row(const struct pnm *p, uint32_t y, uint32_t x, uint32_t width, uint8_t *to)
{
	const size_t size = pixel_type_rows[p->image.type].size;
	const uint8_t *from = p->raster + y * p->row_size;
	uint32_t v;

	if (p->magic == '4') {
		for (uint32_t end = x + width; x < end; x++)
			*to++ = from[x / 8] >> (7 - x % 8) & 1 ? 0 : 255;
		return;
	}
	from += (size_t)x * p->planes * size;
	if (p->planes == p->image.bands && size == 2 && p->max == 65535) {
		copy_swapped(to, from, (size_t)width * p->planes * size);
		return;
	}
	if (p->planes == p->image.bands &&
	    (size == 1 ? p->max == 255 : size == 4 && !p->big_endian)) {
		memcpy(to, from, (size_t)width * p->planes * size);
		return;
	}
	for (uint32_t i = 0; i < width; i++, from += p->planes * size)
		for (uint32_t band = 0; band < p->image.bands; band++, to += size) {
			v = (uint32_t)bytes_number(from + band * size, size, true);
			if (size == 4)
				memcpy(to, &v, size);
			else
				put_sample(p, to, v);
		}
}

/* PFM begins with the lowest row. */
static enum error read_rows(void *state, const struct area *area, uint8_t *to, size_t pitch,
                            struct problem *)
{
	const struct pnm *p = state;
	const size_t pixel = image_pixel_size(&p->image);

	for (uint32_t y = area->y; y < area->y + area->height; y++, to += pitch)
		if (p->samples)
			memcpy(to, p->samples + y * image_row_size(&p->image) + area->x * pixel,
			       area->width * pixel);
		else
			read_raw_row(p, p->image.type == PIXEL_F32 ? p->image.height - 1 - y : y,
			             area->x, area->width, to);
	return ERR_OK;
}

const struct reader pnm_reader = {
    .size = sizeof(struct pnm),
    .block = offsetof(struct pnm, samples),
    .open = open_pnm,
    .find = find_rows,
    .rows = read_rows,
};

/* Writing -------------------------------------------------------------------------------------- */

static void copy_row(const struct output_format *output, uint8_t *to, const uint8_t *row)
{
	memcpy(to, row, image_row_size(&output->image));
}

static void copy_swapped_row(const struct output_format *output, uint8_t *to, const uint8_t *row)
{
	copy_swapped(to, row, image_row_size(&output->image));
}

static enum error write_pnm(const struct answer *answer, struct problem *problem)
{
	const struct image *image = &answer->output->image;
	const bool colour = image->bands == 3, floats = image->type == PIXEL_F32;
	struct row_layout layout = {.row_size = image_row_size(image), .put = copy_row};
	char head[64] = "";

	if (answer->output->format == FORMAT_PNM) {
		/* A negative scale means little-endian floats. */
		layout.start =
		    (uint64_t)snprintf(head, sizeof head, "%s\n%u %u\n%s\n",
		                       floats ? (colour ? "PF" : "Pf") : (colour ? "P6" : "P5"),
		                       image->width, image->height,
		                       floats                    ? "-1.0"
		                       : image->type == PIXEL_U8 ? "255"
		                                                 : "65535");
		layout.bottom_up = floats;
		if (image->type == PIXEL_U16)
			layout.put = copy_swapped_row;
	}
	return samples_write(answer, &layout, head, problem);
}

const struct writer pnm_writer = {.write = write_pnm};
