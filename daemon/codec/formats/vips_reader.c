#include "codec/formats/vips_reader.h"

#include <stdio.h>
#include <string.h>

#include <vips/vips.h>

#include "codec/metadata/library_error.h"

enum { CANVAS_SIZE = 8 }; /* bytes a pixel for composing frames, as measured */

/* Kinds of pixels ------------------------------------------------------------------------------ */

enum pixel_type vips_reader_type(const VipsImage *image)
{
	if (image->Coding != VIPS_CODING_NONE)
		return PIXEL_TYPES;
	switch (image->BandFmt) {
	case VIPS_FORMAT_UCHAR:
		return PIXEL_U8;
	case VIPS_FORMAT_USHORT:
		return PIXEL_U16;
	case VIPS_FORMAT_FLOAT:
		return PIXEL_F32;
	default:
		return PIXEL_TYPES;
	}
}

/* libvips takes D50, the white of CIELAB files, for D65, the white of sRGB; a conversion by
 * Bradford's matrix (ICC.1:2022, annex E) corrects that. libvips has 10 bits for the lightness of
 * packed samples, and a file uses 8 of them. The file's profile described the former colours. */
static int convert_lab(VipsImage *image, VipsImage **out)
{
	double gains[] = {image->Coding == VIPS_CODING_LABQ ? 1023 / 1020.0 : 1, 1, 1},
	       none[3] = {0};
	const double d50[] = {96.422, 100, 82.521};
	VipsArrayDouble *white = vips_array_double_new(d50, 3);
	VipsImage *matrix =
	    vips_image_new_matrixv(3, 3, 0.9555766, -0.0230393, 0.0631636, -0.0282895, 1.0099416,
	                           0.0210077, 0.0122982, -0.0204830, 1.3299098);
	VipsImage *step[4] = {NULL};
	const int failed = !matrix ||
	                   vips_colourspace(image, &step[0], VIPS_INTERPRETATION_LAB, NULL) ||
	                   vips_linear(step[0], &step[1], gains, none, 3, NULL) ||
	                   vips_Lab2XYZ(step[1], &step[2], "temp", white, NULL) ||
	                   vips_recomb(step[2], &step[3], matrix, NULL) ||
	                   vips_colourspace(step[3], out, VIPS_INTERPRETATION_RGB16, NULL);

	vips_area_unref(VIPS_AREA(white));
	g_clear_object(&matrix);
	for (int i = 0; i < 4; i++)
		g_clear_object(&step[i]);
	if (!failed)
		vips_image_remove(*out, VIPS_META_ICC_NAME);
	return failed;
}

/* *out stays NULL where there is nothing to convert. */
static int convert(VipsImage *image, VipsImage **out, uint32_t *lost)
{
	if (image->Coding == VIPS_CODING_RAD)
		return vips_rad2float(image, out, NULL);
	if (image->Type == VIPS_INTERPRETATION_LAB || image->Type == VIPS_INTERPRETATION_LABQ ||
	    image->Type == VIPS_INTERPRETATION_LABS) {
		*lost |= 1u << LOSS_INKS;
		return convert_lab(image, out);
	}
	switch (image->BandFmt) {
	case VIPS_FORMAT_UINT:
	case VIPS_FORMAT_INT:
		*lost |= 1u << LOSS_BITS;
		return vips_cast_float(image, out, NULL);
	case VIPS_FORMAT_CHAR:
	case VIPS_FORMAT_SHORT:
		return vips_cast_float(image, out, NULL);
	default:
		return 0;
	}
}

enum error vips_reader_check(const struct vips_reader *v, struct problem *problem)
{
	static const char *const types[VIPS_FORMAT_LAST] = {
	    [VIPS_FORMAT_UCHAR] = "8-bit unsigned integers",
	    [VIPS_FORMAT_CHAR] = "8-bit signed integers",
	    [VIPS_FORMAT_USHORT] = "16-bit unsigned integers",
	    [VIPS_FORMAT_SHORT] = "16-bit signed integers",
	    [VIPS_FORMAT_UINT] = "32-bit unsigned integers",
	    [VIPS_FORMAT_INT] = "32-bit signed integers",
	    [VIPS_FORMAT_FLOAT] = "32-bit floats",
	    [VIPS_FORMAT_COMPLEX] = "complex numbers",
	    [VIPS_FORMAT_DOUBLE] = "64-bit floats",
	    [VIPS_FORMAT_DPCOMPLEX] = "complex numbers",
	};
	/* Filters give wrong results where bands are not amounts of light or ink. */
	static const VipsInterpretation supported[] = {
	    VIPS_INTERPRETATION_MULTIBAND, VIPS_INTERPRETATION_B_W,  VIPS_INTERPRETATION_GREY16,
	    VIPS_INTERPRETATION_RGB,       VIPS_INTERPRETATION_sRGB, VIPS_INTERPRETATION_RGB16,
	    VIPS_INTERPRETATION_scRGB,     VIPS_INTERPRETATION_CMYK,
	};
	const VipsImage *image = v->image;
	const bool known = image->BandFmt >= 0 && image->BandFmt < VIPS_FORMAT_LAST;
	size_t i = 0;

	while (i < G_N_ELEMENTS(supported) && image->Type != supported[i])
		i++;
	if (i == G_N_ELEMENTS(supported))
		return problem_set(problem, ERR_UNSUPPORTED_PIXELS,
		                   "the image's colours are %s; grey, RGB and CMYK are supported: "
		                   "convert it to sRGB before it is sent",
		                   vips_enum_nick(VIPS_TYPE_INTERPRETATION, image->Type));
	if (vips_reader_type(image) == PIXEL_TYPES || image->Bands > IMAGE_BANDS_MAX ||
	    image->Bands < 1)
		return problem_set(
		    problem, ERR_UNSUPPORTED_PIXELS,
		    "the image has %d band%s of %s; 1 to %d bands of integers of 8, 16 or 32 bits "
		    "or of floats are supported",
		    image->Bands, image->Bands == 1 ? "" : "s",
		    known ? types[image->BandFmt] : "an unknown type", IMAGE_BANDS_MAX);
	return ERR_OK;
}

/* Loading -------------------------------------------------------------------------------------- */

static enum error complain(const struct vips_reader *v, struct problem *problem)
{
	return vips_error_take(problem, ERR_UNDECODABLE, v->who);
}

static void replace(VipsImage **image, VipsImage *other)
{
	if (!other)
		return;
	g_object_unref(*image);
	*image = other;
}

/* Returns a number that the file's loader tells, or 0. */
static int number_of(VipsImage *image, const char *name)
{
	int number = 0;

	if (vips_image_get_typeof(image, name))
		vips_image_get_int(image, name, &number);
	return number;
}

static bool samples_chroma(VipsImage *image, const char *how)
{
	const char *subsampling;

	return vips_image_get_typeof(image, "jpeg-chroma-subsample") &&
	       !vips_image_get_string(image, "jpeg-chroma-subsample", &subsampling) &&
	       !strcmp(subsampling, how);
}

static void describe(VipsImage *image, struct decoded *decoded)
{
	const int pages = number_of(image, VIPS_META_N_PAGES);

	decoded->whole = (struct image){
	    .width = (uint32_t)image->Xsize,
	    .height = (uint32_t)image->Ysize / decoded->pages,
	    .bands = (uint32_t)image->Bands,
	    .type = vips_reader_type(image),
	    .alpha =
	        image->Bands % 2 == 0 && image->Bands <= BANDS_MAX && vips_image_hasalpha(image),
	};
	decoded->cmyk = image->Type == VIPS_INTERPRETATION_CMYK && image->Bands == 4;
	decoded->full_chroma = samples_chroma(image, "4:4:4");
	if (pages > 1)
		decoded->file_pages = (uint32_t)pages;
}

enum error vips_reader_load(struct vips_reader *v, bool any_order, struct decoded *decoded,
                            struct problem *problem)
{
	const struct reader *helper = v->helper;
	const struct part *p = &v->part;
	VipsImage *converted = NULL;
	const char *first;
	enum error e = ERR_OK;

	vips_reader_close(v);
	snprintf(v->who, sizeof v->who, "the %s decoder", format_naming(decoded->format)->title);
	v->part.who = v->who;
	if (helper->load)
		e = helper->load(&v->image, &v->part, problem);
	if (!e && !v->image) {
		/* libvips's GIF loader has no level between accepting anything and rejecting any
		 * flaw. Not every loader has pages; the list ends early for loaders that read only
		 * the first one. A JPEG has one, and may shrink. */
		first = p->by ? "shrink" : !p->frames && (p->page || p->all) ? "page" : NULL;
		v->source = vips_source_new_from_memory(p->body->at, p->body->size);
		if (!v->source ||
		    vips_call(format_rows[decoded->format].loader, v->source, &v->image, "access",
		              any_order ? VIPS_ACCESS_RANDOM : VIPS_ACCESS_SEQUENTIAL, "fail_on",
		              VIPS_FAIL_ON_ERROR, first, (int)(p->by ? p->by : p->page),
		              p->by ? NULL : "n", p->all ? -1 : 1, NULL))
			e = complain(v, problem);
	}
	if (!e && helper->amend)
		e = helper->amend(&v->image, &v->part, problem);
	if (!e && convert(v->image, &converted, &decoded->lost))
		e = complain(v, problem);
	if (e)
		return e;
	replace(&v->image, converted);
	describe(v->image, decoded);
	return ERR_OK;
}

void vips_reader_close(struct vips_reader *v)
{
	g_clear_object(&v->region);
	g_clear_object(&v->image);
	g_clear_object(&v->source);
}

bool vips_reader_turns(const struct vips_reader *v)
{
	return vips_image_get_orientation(v->image) > 2;
}

/* The decoder's own memory, as measured; the decoded image; a copy if the orientation turns it. */
uint64_t vips_reader_held(const struct vips_reader *v, const struct decoded *decoded)
{
	const struct format_row *row = &format_rows[decoded->format];
	const struct image *image = &decoded->whole;
	const struct part *p = &v->part;
	const bool scans = number_of(v->image, "jpeg-multiscan");
	const bool streams =
	    !row->decoder_pixel_size && !p->frames && !scans && !number_of(v->image, "interlaced");
	const size_t kept = image_pixel_size(image);
	uint64_t size = row->decoder_pixel_size * (image->type == PIXEL_U8 ? 1 : 2) +
	                (image->alpha ? row->decoder_alpha_size : 0);

	if (streams)
		return vips_reader_turns(v) ? kept : 0;
	if (scans) /* coefficients, of 16 bits */
		size += samples_chroma(v->image, "4:2:0") ? 3 : 2 * (uint64_t)image->bands;
	else
		size += kept * (row->keeps_pages ? decoded->pages : 1);
	if (row->keeps_pages && (p->page || p->all))
		size += CANVAS_SIZE;
	if (p->all)
		size += kept * row->page_copies;
	if (vips_reader_turns(v))
		size += kept;
	if (p->frames) /* the canvas, what it keeps, and a frame */
		size += 2 * kept;
	return size;
}

enum error vips_reader_turn(struct vips_reader *v, struct decoded *decoded, struct problem *problem)
{
	const bool turns = vips_reader_turns(v);
	VipsImage *upright = NULL;
	enum error e = ERR_OK;

	if (vips_image_get_orientation(v->image) <= 1)
		return ERR_OK;
	if (turns && v->part.all)
		return bad_parameter(problem, "pages", "all",
		                     "the pages are to be turned by their orientation (%d), which "
		                     "is done for a single page only: page=N names it",
		                     vips_image_get_orientation(v->image));
	if (turns)
		e = vips_reader_load(v, true, decoded, problem);
	if (e)
		return e;
	if (vips_autorot(v->image, &upright, NULL))
		return complain(v, problem);
	replace(&v->image, upright);
	describe(upright, decoded);
	return ERR_OK;
}

enum error vips_reader_shrink(struct vips_reader *v, uint32_t by, struct decoded *decoded,
                              struct problem *problem)
{
	/* The orientations (EXIF 2.3, 4.6.4) that begin with the last column or row. */
	static const unsigned begins_last[] = {1 << 2 | 1 << 3 | 1 << 6 | 1 << 7,
	                                       1 << 3 | 1 << 4 | 1 << 7 | 1 << 8};
	struct draft *d = &decoded->image.draft;
	struct decoded small = *decoded;
	int orientation;
	enum error e;

	v->part.by = by;
	e = vips_reader_load(v, false, &small, problem);
	if (e)
		return e;
	orientation = vips_image_get_orientation(v->image);
	e = vips_reader_turn(v, &small, problem);
	image_shrink(&decoded->image, small.whole.width, small.whole.height, by);
	for (int i = 0; i < 2; i++)
		if (begins_last[i] >> orientation & 1) {
			d->before[i] = d->after[i];
			d->after[i] = 0;
		}
	return e;
}

/* Rows ----------------------------------------------------------------------------------------- */

static size_t pixel_size(const VipsImage *image)
{
	return vips_format_sizeof(image->BandFmt) * (size_t)image->Bands;
}

uint8_t *vips_reader_pixel(const VipsRegion *region, int x, int y)
{
	return VIPS_REGION_ADDR_TOPLEFT(region) +
	       (size_t)(y - region->valid.top) * (size_t)VIPS_REGION_LSKIP(region) +
	       (size_t)(x - region->valid.left) * pixel_size(region->im);
}

enum error vips_reader_rows(struct vips_reader *v, const struct area *area, uint8_t *to,
                            size_t pitch, struct problem *problem)
{
	const VipsRect rows = {(int)area->x, (int)area->y, (int)area->width, (int)area->height};
	const uint8_t *from;

	if (!v->region)
		v->region = vips_region_new(v->image);
	if (!v->region || vips_region_prepare(v->region, &rows))
		return complain(v, problem);
	from = vips_reader_pixel(v->region, rows.left, rows.top);
	for (uint32_t i = 0; to && i < area->height; i++)
		memcpy(to + i * pitch, from + i * (size_t)VIPS_REGION_LSKIP(v->region),
		       area->width * pixel_size(v->image));
	return ERR_OK;
}
