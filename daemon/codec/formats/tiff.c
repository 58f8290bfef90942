/* TIFFs that libvips's loader would misread: alpha by which colours are multiplied, YCbCr without
 * JPEG, JPEGs in tiles, separate planes. libtiff describes each page and converts some kinds to
 * RGB.
 *
 * libvips 8.14 distinguishes pages by their sample type and by only some of the other tags. So each
 * page is looked at before it is read: a table of rules names the first property that neither
 * libvips nor libtiff's conversion to RGB (TIFFRGBAImage) handles. */
#include "codec/formats/row.h" /* before libtiff, whose macros have names of ours */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libdeflate.h>
#include <tiffio.h>
#include <vips/vips.h>
#include <zlib.h>

#include "codec/formats/vips_reader.h"
#include "codec/metadata/containers.h"
#include "codec/metadata/library_error.h"

/* DNG has these; libtiff has no names for them. */
enum { PHOTOMETRIC_LINEAR_RAW = 34892, COMPRESSION_JP2K_YCC = 33003, COMPRESSION_JP2K_RGB = 33005 };

/* The way in which pages are loaded. */
struct way {
	uint8_t premultiplied; /* band of associated alpha, hidden from libvips; 0: none */
	const uint8_t *hidden; /* the byte of the file that was changed to hide it */
};

struct page {
	uint32_t width, height;
	uint16_t bits, samples, format, photometric, compression, planar, inks;
	uint16_t extra;     /* samples beside colours */
	uint8_t associated; /* the sample with the alpha by which colours are multiplied; or 0 */
	bool tiled;
};

/* libtiff reads a file by these. */
struct stream {
	const uint8_t *at;
	uint64_t size, position;
};

static tmsize_t read_stream(thandle_t handle, void *to, tmsize_t size)
{
	struct stream *s = handle;
	const uint64_t left = s->position < s->size ? s->size - s->position : 0;
	const uint64_t some = (uint64_t)size < left ? (uint64_t)size : left;

	memcpy(to, s->at + (s->size - left), some);
	s->position += some;
	return (tmsize_t)some;
}

static tmsize_t write_stream(thandle_t, void *, tmsize_t)
{
	return -1;
}

static toff_t seek_stream(thandle_t handle, toff_t offset, int whence)
{
	struct stream *s = handle;

	return s->position = offset + (whence == SEEK_CUR   ? s->position
	                               : whence == SEEK_END ? s->size
	                                                    : 0);
}

static int close_stream(thandle_t handle)
{
	g_free(handle);
	return 0;
}

static toff_t stream_size(thandle_t handle)
{
	return ((struct stream *)handle)->size;
}

static void note_error(const char *module, const char *format, va_list values)
{
	vips_verror(module, format, values);
}

static TIFF *open_file(const uint8_t *at, size_t size)
{
	struct stream *s = g_new(struct stream, 1);
	TIFF *file;

	*s = (struct stream){.at = at, .size = size};
	TIFFSetErrorHandler(note_error);
	TIFFSetWarningHandler(NULL);
	file = TIFFClientOpen("body", "rm", s, read_stream, write_stream, seek_stream, close_stream,
	                      stream_size, NULL, NULL);
	if (!file)
		g_free(s);
	return file;
}

/* Replaces libdeflate's function for libtiff, which accepts a stream that is longer than its strip,
 * though libdeflate then leaves the strip's last bytes unwritten. zlib writes them. */
enum libdeflate_result libdeflate_zlib_decompress(struct libdeflate_decompressor *d, const void *in,
                                                  size_t size, void *out, size_t room,
                                                  size_t *written)
{
	const enum libdeflate_result result =
	    libdeflate_zlib_decompress_ex(d, in, size, out, room, NULL, written);
	uLongf there = room;

	if (result == LIBDEFLATE_INSUFFICIENT_SPACE)
		uncompress(out, &there, in, size);
	return there == room ? result : LIBDEFLATE_BAD_DATA;
}

static uint16_t number(TIFF *file, uint32_t tag)
{
	uint16_t value = 0;

	return TIFFGetFieldDefaulted(file, tag, &value) ? value : 0;
}

static struct page read_page(TIFF *file)
{
	struct page p = {
	    .bits = number(file, TIFFTAG_BITSPERSAMPLE),
	    .samples = number(file, TIFFTAG_SAMPLESPERPIXEL),
	    .format = number(file, TIFFTAG_SAMPLEFORMAT),
	    .photometric = number(file, TIFFTAG_PHOTOMETRIC),
	    .compression = number(file, TIFFTAG_COMPRESSION),
	    .planar = number(file, TIFFTAG_PLANARCONFIG),
	    .inks = number(file, TIFFTAG_INKSET),
	    .tiled = TIFFIsTiled(file),
	};
	const uint16_t *kinds;

	TIFFGetField(file, TIFFTAG_IMAGEWIDTH, &p.width);
	TIFFGetField(file, TIFFTAG_IMAGELENGTH, &p.height);
	if (p.format == SAMPLEFORMAT_VOID)
		p.format = SAMPLEFORMAT_UINT;
	if (!TIFFGetFieldDefaulted(file, TIFFTAG_EXTRASAMPLES, &p.extra, &kinds))
		p.extra = 0;
	for (uint16_t i = 0; i < p.extra && p.extra < p.samples; i++)
		if (kinds[i] == EXTRASAMPLE_ASSOCALPHA)
			p.associated = (uint8_t)(p.samples - p.extra + i);
	return p;
}

/* Kinds of pages --------------------------------------------------------------------------------*/

static bool is_grey(const struct page *p)
{
	return p->photometric == PHOTOMETRIC_MINISBLACK || p->photometric == PHOTOMETRIC_MINISWHITE;
}

/* The number of colour samples, for kinds that have exactly one such number. */
static unsigned colours(const struct page *p)
{
	return is_grey(p) || p->photometric == PHOTOMETRIC_PALETTE ? 1
	       : p->photometric == PHOTOMETRIC_SEPARATED           ? 4
	                                                           : 3;
}

static bool is_uint(const struct page *p, unsigned bits)
{
	return p->format == SAMPLEFORMAT_UINT && p->bits == bits;
}

/* True if each of several samples has a plane of its own. */
static bool is_apart(const struct page *p)
{
	return p->planar == PLANARCONFIG_SEPARATE && p->samples > 1;
}

static bool has_jpeg_tiles(const struct page *p)
{
	return p->tiled && p->compression == COMPRESSION_JPEG;
}

/* Returns true if libtiff must convert a page that may be read. libvips reads YCbCr only where the
 * JPEG decoder converts it, separate planes only where it need not look at their samples, and no
 * bits in such planes; it does not check the size of JPEGs in tiles. */
static bool is_converted(const struct page *p, bool single)
{
	const bool ycc = p->photometric == PHOTOMETRIC_YCBCR;

	if (p->bits > 8 || p->format != SAMPLEFORMAT_UINT || p->samples != colours(p) ||
	    colours(p) > 3 || (ycc && is_apart(p)))
		return false;
	return p->compression == COMPRESSION_OJPEG || has_jpeg_tiles(p) ||
	       (ycc && p->compression != COMPRESSION_JPEG) ||
	       (is_apart(p) && p->photometric == PHOTOMETRIC_RGB && (p->tiled || !single)) ||
	       (p->planar == PLANARCONFIG_SEPARATE && p->samples == 1 && (p->bits < 8 || p->tiled));
}

/* Colours of TIFFs, and the samples that libvips or libtiff reads for them. */
static const struct space {
	uint16_t photometric;
	const char *text;
	uint16_t samples_min, samples_max; /* 0: none are read */
	uint16_t bits_max;
	bool small;     /* also fewer than 8 bits, if there is a single sample */
	bool only_uint; /* neither signed integers nor floats */
} spaces[] = {
    {PHOTOMETRIC_MINISWHITE, "grey of which 0 is white", 0, UINT16_MAX, 32, true, true},
    {PHOTOMETRIC_MINISBLACK, "grey", 0, UINT16_MAX, 32, true, false},
    {PHOTOMETRIC_RGB, "RGB", 3, UINT16_MAX, 32, false, false},
    {PHOTOMETRIC_PALETTE, "a palette", 0, UINT16_MAX, 16, true, true},
    {PHOTOMETRIC_SEPARATED, "inks", 4, 4, 32, false, false},
    {PHOTOMETRIC_YCBCR, "YCbCr", 3, 3, 8, false, true},
    {PHOTOMETRIC_CIELAB, "CIELAB", 3, 3, 32, false, false},
    {.photometric = PHOTOMETRIC_MASK, .text = "a transparency mask"},
    {.photometric = PHOTOMETRIC_ICCLAB, .text = "ICC L*a*b*"},
    {.photometric = PHOTOMETRIC_ITULAB, .text = "ITU L*a*b*"},
    {.photometric = PHOTOMETRIC_LOGL, .text = "LogL"},
    {.photometric = PHOTOMETRIC_LOGLUV, .text = "LogLuv"},
    {.photometric = PHOTOMETRIC_CFA, .text = "a sensor's raw samples"},
    {.photometric = PHOTOMETRIC_LINEAR_RAW, .text = "a sensor's raw samples"},
};

static bool has_known_samples(const struct page *p)
{
	const unsigned bits = p->bits;

	if (p->format == SAMPLEFORMAT_IEEEFP)
		return bits == 32;
	if (p->format != SAMPLEFORMAT_UINT && p->format != SAMPLEFORMAT_INT)
		return false;
	return bits == 8 || bits == 16 || bits == 32 ||
	       (p->format == SAMPLEFORMAT_UINT && (bits == 1 || bits == 2 || bits == 4));
}

static const char *samples_text(uint16_t format)
{
	return format == SAMPLEFORMAT_UINT     ? "unsigned integers"
	       : format == SAMPLEFORMAT_INT    ? "signed integers"
	       : format == SAMPLEFORMAT_IEEEFP ? "floats"
	                                       : "complex numbers";
}

static bool has_right_samples(const struct page *p, const struct space *s)
{
	return p->samples >= s->samples_min && p->samples <= s->samples_max &&
	       p->bits <= s->bits_max && (p->bits >= 8 || (s->small && p->samples == 1)) &&
	       (p->format == SAMPLEFORMAT_UINT || !s->only_uint) &&
	       (p->photometric != PHOTOMETRIC_SEPARATED || p->inks == INKSET_CMYK) &&
	       (p->photometric != PHOTOMETRIC_CIELAB ||
	        (p->bits == 32) == (p->format == SAMPLEFORMAT_IEEEFP));
}

/* True if libtiff converts the page, or libvips reads it as it is. */
static bool is_laid_out_well(const struct page *p, bool single)
{
	if (is_converted(p, single))
		return true;
	if (p->compression == COMPRESSION_OJPEG)
		return false;
	if (has_jpeg_tiles(p))
		return p->photometric == PHOTOMETRIC_SEPARATED && p->planar == PLANARCONFIG_CONTIG;
	return !is_apart(p) ||
	       (single && !p->tiled && p->bits >= 8 &&
	        (p->photometric == PHOTOMETRIC_RGB || p->photometric == PHOTOMETRIC_SEPARATED));
}

static enum error refuse(struct problem *problem, const char *what)
{
	return problem_set(
	    problem, ERR_UNSUPPORTED_PIXELS,
	    "the TIFF has %s; it may be grey, RGB, CMYK, CIELAB, YCbCr of 8 bits or a "
	    "palette: convert it before it is sent",
	    what);
}

static enum error check_page(const struct page *p, bool single, struct problem *problem)
{
	const TIFFCodec *codec = TIFFFindCODEC(p->compression);
	const char *compression = NULL; /* one that is not read */
	struct space space = {.text = "unknown"};
	char what[160];

	for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++)
		if (spaces[i].photometric == p->photometric)
			space = spaces[i];
	if (p->compression == COMPRESSION_JP2K_YCC || p->compression == COMPRESSION_JP2K_RGB ||
	    p->compression == COMPRESSION_JP2000)
		compression = "JPEG 2000";
	else if (!TIFFIsCODECConfigured(p->compression))
		compression = codec ? codec->name : "unknown";
	if (!space.samples_max)
		snprintf(what, sizeof what, "colours that are %s (PhotometricInterpretation %u)",
		         space.text, p->photometric);
	else if (compression)
		snprintf(what, sizeof what, "a compression that is not read here: %s (%u)",
		         compression, p->compression);
	else if (!has_known_samples(p))
		snprintf(what, sizeof what, "samples that are %u-bit %s", p->bits,
		         samples_text(p->format));
	else if (!has_right_samples(p, &space))
		snprintf(what, sizeof what, "%u sample%s (%u-bit %s%s) of %s", p->samples,
		         p->samples == 1 ? "" : "s", p->bits, samples_text(p->format),
		         p->photometric == PHOTOMETRIC_SEPARATED && p->inks != INKSET_CMYK
		             ? ", other than cyan, magenta, yellow and black"
		             : "",
		         space.text);
	else if (p->associated &&
	         (p->associated != colours(p) || p->photometric == PHOTOMETRIC_MINISWHITE ||
	          p->photometric == PHOTOMETRIC_PALETTE ||
	          !(is_uint(p, 8) || is_uint(p, 16) || p->format == SAMPLEFORMAT_IEEEFP)))
		snprintf(what, sizeof what, "associated alpha (sample %u) in %u-bit %s of %s",
		         p->associated, p->bits, samples_text(p->format), space.text);
	else if (!is_laid_out_well(p, single))
		snprintf(what, sizeof what, "%u-bit samples of %s in %s%s%s", p->bits, space.text,
		         p->compression == COMPRESSION_OJPEG  ? "an old-style JPEG"
		         : p->compression == COMPRESSION_JPEG ? "JPEGs"
		                                              : "planes",
		         is_apart(p) ? " that lie apart" : "", p->tiled ? ", in tiles" : "");
	else
		return ERR_OK;
	return refuse(problem, what);
}

/* Returns the lowest byte of the first value of ExtraSamples in the page; NULL if there is none. */
static uint8_t *find_extra(TIFF *file, uint8_t *at, size_t size)
{
	static const size_t sizes[] = {[TIFF_BYTE] = 1, [TIFF_SHORT] = 2, [TIFF_LONG] = 4};
	struct tiff_directory directory;
	struct tiff_entry e;
	uint64_t first, place;
	struct tiff_file tiff;
	size_t width;

	if (!tiff_open(&tiff, at, size, &first) ||
	    !tiff_directory_open(&directory, &tiff, TIFFCurrentDirOffset(file)))
		return NULL;
	do
		if (!tiff_entry_next(&directory, &e))
			return NULL;
	while (e.tag != TIFFTAG_EXTRASAMPLES);
	width = e.type <= TIFF_LONG ? sizes[e.type] : 0;
	place = e.count * width > tiff.number ? e.value : (uint64_t)(e.field - at);
	if (!width || place > size || size - place < width)
		return NULL;
	return at + place + (tiff.big_endian ? width - 1 : 0);
}

/* libvips divides by alpha as if it had 8 or 16 bits, and rounds down. */
static enum error hide_alpha(struct way *way, TIFF *file, struct page *p, const struct part *part,
                             struct problem *problem)
{
	uint8_t *value = find_extra(file, part->body->at, part->body->size);

	way->premultiplied = p->associated;
	if (!p->associated) {
		if (value && value == way->hidden)
			way->premultiplied = p->associated = (uint8_t)colours(p);
		return ERR_OK;
	}
	if (!value || *value != EXTRASAMPLE_ASSOCALPHA)
		return refuse(problem, "associated alpha in a damaged directory");
	*value = EXTRASAMPLE_UNASSALPHA;
	way->hidden = value;
	return ERR_OK;
}

/* Conversion to RGB -----------------------------------------------------------------------------*/

struct converter {
	TIFF *file;
	uint32_t first, width, height; /* first page; size of a page */
	uint32_t rows;                 /* rows per strip or tile */
	size_t bands;
	uint32_t *block; /* a strip or a row of tiles */
	/* its first row among all pages that are read; UINT64_MAX: there is none */
	uint64_t from;
};

static void converter_free(void *data)
{
	struct converter *c = data;

	if (c->file)
		TIFFClose(c->file);
	free(c->block);
	g_free(c);
}

/* The orientation is applied later, as for other formats. */
static bool read_block(struct converter *c, uint32_t page, uint32_t row)
{
	const uint32_t rows = c->height - row < c->rows ? c->height - row : c->rows;
	char why[1024] = "";
	TIFFRGBAImage image;
	bool there;

	if (!TIFFSetDirectory(c->file, page))
		return false;
	if (!TIFFRGBAImageOK(c->file, why) || !TIFFRGBAImageBegin(&image, c->file, 1, why)) {
		vips_error("tiff", "%s", why);
		return false;
	}
	image.orientation = image.req_orientation = ORIENTATION_TOPLEFT;
	image.row_offset = (int)row;
	there = image.width == c->width && image.height == c->height &&
	        TIFFRGBAImageGet(&image, c->block, c->width, rows);
	TIFFRGBAImageEnd(&image);
	if (there)
		c->from = (uint64_t)(page - c->first) * c->height + row;
	return there;
}

static int generate(VipsRegion *out, void *, void *from, void *, gboolean *)
{
	struct converter *c = from;
	const VipsRect *r = &out->valid;
	bool there = true;

	for (int y = r->top; y < r->top + r->height; y++) {
		const uint32_t row = (uint32_t)y % c->height, start = row - row % c->rows;
		const uint64_t block = (uint32_t)y - row + start;
		uint8_t *to = vips_reader_pixel(out, r->left, y);
		const uint32_t *pixel;

		if (block != c->from) {
			c->from = UINT64_MAX;
			there = read_block(c, c->first + (uint32_t)y / c->height, start);
		}
		if (!there)
			break;
		pixel = c->block + (size_t)(row - start) * c->width + (uint32_t)r->left;
		for (int x = 0; x < r->width; x++)
			for (size_t i = 0; i < c->bands; i++)
				*to++ = (uint8_t)(pixel[x] >> 8 * i);
	}
	return there ? 0 : -1;
}

/* As libvips does with other kinds. */
static void copy_metadata(VipsImage *to, TIFF *file)
{
	static const struct {
		uint32_t tag;
		const char *name;
	} blobs[] = {{TIFFTAG_ICCPROFILE, VIPS_META_ICC_NAME},
	             {TIFFTAG_XMLPACKET, VIPS_META_XMP_NAME},
	             {TIFFTAG_RICHTIFFIPTC, VIPS_META_IPTC_NAME},
	             {TIFFTAG_PHOTOSHOP, VIPS_META_PHOTOSHOP_NAME}};
	const uint16_t orientation = number(file, TIFFTAG_ORIENTATION);
	const uint16_t unit = number(file, TIFFTAG_RESOLUTIONUNIT);
	const double cells = unit == RESUNIT_INCH ? 25.4 : unit == RESUNIT_CENTIMETER ? 10 : 1;
	const void *data;
	uint32_t size;
	float x, y;

	for (size_t i = 0; i < sizeof blobs / sizeof *blobs; i++)
		if (TIFFGetField(file, blobs[i].tag, &size, &data))
			vips_image_set_blob_copy(to, blobs[i].name, data, size);
	if (orientation >= 1 && orientation <= 8)
		vips_image_set_int(to, VIPS_META_ORIENTATION, orientation);
	to->Xres = to->Yres = 1;
	if (TIFFGetField(file, TIFFTAG_XRESOLUTION, &x) &&
	    TIFFGetField(file, TIFFTAG_YRESOLUTION, &y)) {
		to->Xres = x / cells;
		to->Yres = y / cells;
	}
}

static enum error describe(VipsImage *to, struct converter *c, const struct part *part,
                           struct problem *problem)
{
	const struct page p = read_page(c->file);
	uint32_t pages = TIFFNumberOfDirectories(c->file);
	uint64_t size;

	if (!TIFFSetDirectory(c->file, part->page)) /* back from the last */
		pages = 0;
	c->first = part->page;
	c->width = p.width;
	c->height = p.height;
	c->bands = is_grey(&p) ? 1 : 3;
	c->from = UINT64_MAX;
	if (!TIFFGetFieldDefaulted(c->file, p.tiled ? TIFFTAG_TILELENGTH : TIFFTAG_ROWSPERSTRIP,
	                           &c->rows) ||
	    c->rows > c->height)
		c->rows = c->height;
	if (!c->rows || !c->width || c->width > VIPS_MAX_COORD || c->height > VIPS_MAX_COORD ||
	    pages <= part->page)
		return problem_set(problem, ERR_UNDECODABLE, "the TIFF decoder says: no pixels");
	size = (uint64_t)c->width * c->rows * 2 * sizeof *c->block;
	if (size > part->memory_max)
		return problem_set(
		    problem, ERR_TOO_MANY_PIXELS,
		    "the image is %ux%u, and cannot be decoded in parts of less than "
		    "%u rows, which takes %" PRIu64 " bytes of memory; the limit is %" PRIu64,
		    c->width, c->height, c->rows, size, part->memory_max);
	c->block = malloc(size / 2);
	if (!c->block)
		return no_memory(problem, "to decode");
	vips_image_init_fields(
	    to, (int)p.width, (int)(p.height * (part->all ? pages - part->page : 1)), (int)c->bands,
	    VIPS_FORMAT_UCHAR, VIPS_CODING_NONE,
	    c->bands == 1 ? VIPS_INTERPRETATION_B_W : VIPS_INTERPRETATION_sRGB, 1, 1);
	vips_image_set_int(to, VIPS_META_N_PAGES, (int)pages);
	vips_image_set_int(to, VIPS_META_PAGE_HEIGHT, (int)p.height);
	copy_metadata(to, c->file);
	return ERR_OK;
}

/* Sets *image to an image of 8-bit RGB or grey, decoded on request. */
static enum error convert(VipsImage **image, const struct part *part, struct problem *problem)
{
	struct converter *c = g_new0(struct converter, 1);
	VipsImage *out = vips_image_new();
	enum error e = ERR_OK;
	bool there;

	g_object_set_data_full(G_OBJECT(out), "converter", c, converter_free);
	c->file = open_file(part->body->at, part->body->size);
	there = c->file && TIFFSetDirectory(c->file, part->page);
	if (there)
		e = describe(out, c, part, problem);
	if (!e && (!there || vips_image_pipelinev(out, VIPS_DEMAND_STYLE_THINSTRIP, NULL) ||
	           vips_image_generate(out, NULL, generate, NULL, c, NULL)))
		e = vips_error_take(problem, ERR_UNDECODABLE, part->who);
	if (e)
		g_object_unref(out);
	else
		*image = out;
	return e;
}

/* The reader ----------------------------------------------------------------------------------- */

/* Changes associated alpha in the file to unassociated alpha. A file that libtiff does not open is
 * left to libvips, which says what is wrong. */
static enum error load(VipsImage **image, const struct part *part, struct problem *problem)
{
	TIFF *file = open_file(part->body->at, part->body->size);
	struct way *way = part->state;
	enum error e = ERR_OK;
	struct page first, next;
	bool converts = false; /* by convert(), else by libvips */

	way->premultiplied = 0;
	if (file && TIFFSetDirectory(file, part->page)) {
		first = read_page(file);
		e = check_page(&first, !part->all, problem);
		converts = is_converted(&first, !part->all);
		if (!e)
			e = hide_alpha(way, file, &first, part, problem);
		while (!e && part->all && TIFFReadDirectory(file)) {
			next = read_page(file);
			e = check_page(&next, false, problem);
			if (!e &&
			    (first.width != next.width || first.height != next.height ||
			     first.samples != next.samples || first.associated != next.associated ||
			     is_converted(&first, false) != is_converted(&next, false) ||
			     is_grey(&first) != is_grey(&next)))
				e = problem_set(problem, ERR_UNDECODABLE,
				                "the TIFF's pages differ in kind");
		}
	}
	if (file)
		TIFFClose(file);
	vips_error_clear();
	return e || !converts ? e : convert(image, part, problem);
}

/* Divides colours by the alpha that was hidden from libvips. libvips takes a float alpha below 0.01
 * for 0, so floats are first enlarged by a power of two. */
static enum error amend(VipsImage **image, const struct part *part, struct problem *problem)
{
	const int alpha = ((struct way *)part->state)->premultiplied;
	VipsImage *in = *image, *step[4] = {NULL};
	const bool floats = in->BandFmt == VIPS_FORMAT_FLOAT;
	const double full = in->BandFmt == VIPS_FORMAT_UCHAR ? 255 : floats ? 1 << 24 : 65535;
	bool done;

	if (!alpha)
		return ERR_OK;
	done =
	    !(floats ? vips_linear1(in, &step[0], full, 0, NULL) : vips_copy(in, &step[0], NULL)) &&
	    !vips_unpremultiply(step[0], &step[1], "max_alpha", full, "alpha_band", alpha, NULL) &&
	    !(floats ? vips_linear1(step[1], &step[2], 1 / full, 0, NULL)
	             : vips_rint(step[1], &step[2], NULL)) &&
	    !vips_cast(step[2], &step[3], in->BandFmt, NULL);
	if (done) {
		*image = step[3];
		step[3] = in;
	}
	for (int i = 0; i < 4; i++)
		g_clear_object(&step[i]);
	return done ? ERR_OK : vips_error_take(problem, ERR_UNDECODABLE, part->who);
}

const struct reader tiff_reader = {
    .check = body_make_writable,
    .size = sizeof(struct way),
    .load = load,
    .amend = amend,
};
