/* Maps libvips's pixel formats to ours, converts some that we lack, and describes others. */
#include "codec/pixels.h"

#include <vips/vips.h>

#include "image/formats.h"

enum pixel_type pixels_type(const VipsImage *vips)
{
	if (vips->Coding != VIPS_CODING_NONE)
		return PIXEL_TYPES;
	switch (vips->BandFmt) {
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

/* The white of files' CIELAB is D50, and that of sRGB D65; libvips takes one for the other. So
 * there is a step from white to white between, by Bradford's matrix (ICC.1:2022, annex E).
 * libvips has 10 bits for the lightness of packed samples, and a file fills 8 of them. The profile
 * describes the colours that were. */
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

bool pixels_convert(VipsImage **image, uint32_t *lost)
{
	VipsImage *out = NULL;

	if (convert(*image, &out, lost))
		return false;
	if (out) {
		g_object_unref(*image);
		*image = out;
	}
	return true;
}

/* The name of an unsupported sample type. */
static const char *type_text(VipsBandFormat format)
{
	static const char *const texts[VIPS_FORMAT_LAST] = {
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

	return format >= 0 && format < VIPS_FORMAT_LAST ? texts[format] : "an unknown type";
}

/* Filters and conversions are wrong in colour spaces whose bands are not amounts of light or
 * ink. */
static bool space_supported(const VipsImage *vips)
{
	switch (vips->Type) {
	case VIPS_INTERPRETATION_MULTIBAND:
	case VIPS_INTERPRETATION_B_W:
	case VIPS_INTERPRETATION_GREY16:
	case VIPS_INTERPRETATION_RGB:
	case VIPS_INTERPRETATION_sRGB:
	case VIPS_INTERPRETATION_RGB16:
	case VIPS_INTERPRETATION_scRGB:
	case VIPS_INTERPRETATION_CMYK:
		return true;
	default:
		return false;
	}
}

enum error pixels_check(const VipsImage *vips, struct problem *problem)
{
	if (!space_supported(vips))
		return problem_set(problem, ERR_UNSUPPORTED_PIXELS,
		                   "the image's colours are %s; grey, RGB and CMYK are supported: "
		                   "convert it to sRGB before it is sent",
		                   vips_enum_nick(VIPS_TYPE_INTERPRETATION, vips->Type));
	if (pixels_type(vips) == PIXEL_TYPES || vips->Bands > IMAGE_BANDS_MAX || vips->Bands < 1)
		return problem_set(
		    problem, ERR_UNSUPPORTED_PIXELS,
		    "the image has %d band%s of %s; 1 to %d bands of integers of 8, 16 or 32 bits "
		    "or of floats are supported",
		    vips->Bands, vips->Bands == 1 ? "" : "s", type_text(vips->BandFmt),
		    IMAGE_BANDS_MAX);
	return ERR_OK;
}
