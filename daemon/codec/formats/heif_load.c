/* HEIF files with HEVC or AV1, by libheif. libvips's loader cannot tell whether a picture is
 * complete, takes limited-range grey for full-range, and reports a wrong size where a file turns
 * its picture before it gives the size.
 *
 * The hard part is that libheif does not ask its decoders whether the picture is complete, nor how
 * large it is before memory for it is allocated. libheif's calls of libde265 and dav1d therefore
 * come here first and go on to the libraries. A worker has one job: one watch suffices. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include <dav1d/dav1d.h>
#include <libde265/de265.h>
#include <libheif/heif.h>
#include <vips/vips.h>

#include "codec/formats/bounds.h"
#include "codec/formats/heif.h"
#include "codec/metadata/known_memory.h"
#include "codec/metadata/library_error.h"
#include "codec/formats/vips_reader.h"

enum { COLOURS = 3, PLANES = COLOURS + 1 };

/* Findings about the decoders of a picture. */
static struct {
	uint64_t pixels_max; /* maximum for a coded picture */
	bool too_large, left_out;
	de265_error damage; /* DE265_OK: none */
} watch;

struct plane {
	const uint8_t *at;
	size_t pitch;
	uint32_t width, height;
	bool wide;       /* samples of two bytes */
	uint16_t *scale; /* from a sample to the image's; owned */
	unsigned mask;
};

struct picture {
	struct heif_context *context;
	struct heif_image_handle *handle;
	struct heif_image *image; /* NULL until decoded */
	struct plane planes[PLANES];
};

/* Decoders ------------------------------------------------------------------------------------- */

static int get_buffer(de265_decoder_context *decoder, struct de265_image_spec *spec,
                      struct de265_image *image, void *data)
{
	const bool too_large = (uint64_t)spec->width * (uint64_t)spec->height > watch.pixels_max;

	watch.too_large |= too_large;
	return !too_large && de265_get_default_image_allocation_functions()->get_buffer(
	                         decoder, spec, image, data);
}

/* Checks whether the start of a 16x16 block, the smallest coding unit, was left unwritten: libde265
 * does not report a slice that ends too soon. The borders of a block may have been smoothed with
 * its neighbours. */
static void release_buffer(de265_decoder_context *decoder, struct de265_image *image, void *data)
{
	enum { BLOCK = 16, MARGIN = 4, COLUMNS = 4 };
	static const uint32_t pattern[] = {KNOWN_PATTERN, KNOWN_PATTERN};
	const int bytes = (de265_get_bits_per_pixel(image, 0) + 7) / 8;
	const size_t size = COLUMNS * (size_t)bytes;
	int pitch;
	const uint8_t *plane = de265_get_image_plane(image, 0, &pitch);

	for (int y = 0; y + BLOCK / 2 <= de265_get_image_height(image, 0); y += BLOCK)
		for (int x = 0; x + BLOCK / 2 <= de265_get_image_width(image, 0); x += BLOCK) {
			const uint8_t *at = plane + (ptrdiff_t)(y + MARGIN) * pitch +
			                    (ptrdiff_t)(x + MARGIN) * bytes;

			watch.left_out |=
			    !memcmp(at, pattern, size) && !memcmp(at + pitch, pattern, size);
		}
	de265_get_default_image_allocation_functions()->release_buffer(decoder, image, data);
}

de265_decoder_context *de265_new_decoder(void)
{
	static struct de265_image_allocation allocation = {get_buffer, release_buffer};
	de265_decoder_context *(*next)(void), *decoder;

	*(void **)&next = dlsym(RTLD_NEXT, "de265_new_decoder");
	decoder = next();
	if (decoder)
		de265_set_image_allocation_functions(decoder, &allocation, NULL);
	return decoder;
}

/* The last that libheif has to do with a decoder. */
de265_error de265_free_decoder(de265_decoder_context *decoder)
{
	de265_error (*next)(de265_decoder_context *), warning;

	while ((warning = de265_get_warning(decoder)) != DE265_OK)
		if (warning != DE265_WARNING_NO_WPP_CANNOT_USE_MULTITHREADING &&
		    warning != DE265_WARNING_NUMBER_OF_THREADS_LIMITED_TO_MAXIMUM &&
		    warning != DE265_WARNING_SPS_MISSING_CANNOT_DECODE_SEI)
			watch.damage = warning;
	*(void **)&next = dlsym(RTLD_NEXT, "de265_free_decoder");
	return next(decoder);
}

/* Links the library: RTLD_NEXT does not find those that plugins of libheif load. */
static const char *(*const linked)(void)__attribute__((used)) = dav1d_version;

int dav1d_open(Dav1dContext **decoder, const Dav1dSettings *settings)
{
	int (*next)(Dav1dContext **, const Dav1dSettings *);
	Dav1dSettings own = *settings;

	own.logger.callback = NULL; /* else it tells standard error about damaged files */
	if (watch.pixels_max < UINT32_MAX)
		own.frame_size_limit = (unsigned)watch.pixels_max;
	*(void **)&next = dlsym(RTLD_NEXT, "dav1d_open");
	return next(decoder, &own);
}

/* Pixels --------------------------------------------------------------------------------------- */

static bool complain(const char *what)
{
	vips_error("heif", "%s", what);
	return false;
}

/* Newer versions of libheif must be told not to make grey RGB; older ones, to convert nothing. */
static enum heif_colorspace wanted_colours(const struct heif_image_handle *handle)
{
#if LIBHEIF_NUMERIC_VERSION >= 0x01110000 /* 1.17 */
	enum heif_colorspace colours;
	enum heif_chroma chroma;

	if (heif_image_handle_get_preferred_decoding_colorspace(handle, &colours, &chroma).code ||
	    colours != heif_colorspace_monochrome)
		return heif_colorspace_RGB;
	return heif_colorspace_monochrome;
#else
	(void)handle;
	return heif_colorspace_undefined;
#endif
}

/* full: the image's full scale. */
static bool open_plane(struct plane *plane, const struct heif_image *image,
                       enum heif_channel channel, bool limited, uint32_t full)
{
	const int bits = heif_image_get_bits_per_pixel_range(image, channel);
	int pitch, low, range;

	*plane = (struct plane){.at = heif_image_get_plane_readonly(image, channel, &pitch)};
	if (!plane->at || bits < 1 || bits > 16)
		return complain("a picture without such a plane");
	plane->pitch = (size_t)pitch;
	plane->width = (uint32_t)heif_image_get_width(image, channel);
	plane->height = (uint32_t)heif_image_get_height(image, channel);
	plane->wide = heif_image_get_bits_per_pixel(image, channel) > 8;
	plane->mask = (1u << bits) - 1;
	plane->scale = malloc(sizeof *plane->scale << bits);
	if (!plane->scale)
		return complain("out of memory");
	low = limited ? 16 << bits >> 8 : 0;
	range = limited ? 219 << bits >> 8 : (int)plane->mask;
	for (int v = 0; v <= (int)plane->mask; v++) {
		int64_t above = v < low ? 0 : v - low > range ? range : v - low;

		plane->scale[v] = (uint16_t)((above * full + range / 2) / range);
	}
	return true;
}

static bool open_planes(struct picture *p, const VipsImage *out)
{
	static const enum heif_channel colours[COLOURS] = {heif_channel_R, heif_channel_G,
	                                                   heif_channel_B};
	const bool grey = heif_image_get_colorspace(p->image) == heif_colorspace_monochrome;
	struct heif_color_profile_nclx *nclx = NULL;
	/* To samples from 16 to 235, of 8 bits. */
	const bool limited = grey && !heif_image_get_nclx_color_profile(p->image, &nclx).code &&
	                     nclx && !nclx->full_range_flag;
	const uint32_t full = out->BandFmt == VIPS_FORMAT_UCHAR ? UINT8_MAX : UINT16_MAX;
	bool there = true;

	heif_nclx_color_profile_free(nclx);
	for (int i = 0; there && i < out->Bands; i++) {
		const enum heif_channel channel = i == COLOURS ? heif_channel_Alpha
		                                  : grey       ? heif_channel_Y
		                                               : colours[i];

		there = open_plane(&p->planes[i], p->image, channel, limited && i < COLOURS, full);
	}
	return there;
}

static bool decode(struct picture *p, const VipsImage *out)
{
	const enum heif_colorspace colours = wanted_colours(p->handle);
	struct heif_error error;
	const char *wrong;

	watch.pixels_max = (uint64_t)out->Xsize * (uint64_t)out->Ysize + (1 << 20);
	watch.too_large = watch.left_out = false;
	watch.damage = DE265_OK;
	error = heif_decode_image(
	    p->handle, &p->image, colours,
	    colours == heif_colorspace_RGB ? heif_chroma_444 : heif_chroma_undefined, NULL);
	wrong = watch.too_large  ? "a coded picture is larger than the image"
	        : watch.damage   ? de265_get_error_text(watch.damage)
	        : watch.left_out ? "a part of the picture is missing"
	        : error.code     ? error.message
	                         : NULL;
	if (wrong)
		return complain(wrong);
	if (heif_image_get_primary_width(p->image) == out->Xsize &&
	    heif_image_get_primary_height(p->image) == out->Ysize)
		return open_planes(p, out);
	vips_error("heif", "the picture is %dx%d, and the file says %dx%d",
	           heif_image_get_primary_width(p->image), heif_image_get_primary_height(p->image),
	           out->Xsize, out->Ysize);
	return false;
}

/* A plane of alpha may have another size. */
static void fill_row(const struct plane *plane, const VipsRegion *out, uint32_t y, int band)
{
	const VipsRect *r = &out->valid;
	const uint64_t width = (uint64_t)out->im->Xsize, height = (uint64_t)out->im->Ysize;
	const uint8_t *row = plane->at + y * (uint64_t)plane->height / height * plane->pitch;
	const uint16_t *wide = (const uint16_t *)(const void *)row;
	uint8_t *to = vips_reader_pixel(out, r->left, (int)y);

	for (size_t i = 0, at = (size_t)band; i < (size_t)r->width;
	     i++, at += (size_t)out->im->Bands) {
		size_t x = (size_t)r->left + i;
		unsigned v;

		if (plane->width != width)
			x = x * plane->width / width;
		v = plane->scale[(plane->wide ? wide[x] : row[x]) & plane->mask];
		if (out->im->BandFmt == VIPS_FORMAT_UCHAR)
			to[at] = (uint8_t)v;
		else
			((uint16_t *)(void *)to)[at] = (uint16_t)v;
	}
}

static int generate(VipsRegion *out, void *, void *from, void *, gboolean *)
{
	struct picture *p = from;
	const VipsRect *r = &out->valid;

	if (!p->image && !decode(p, out->im))
		return -1;
	for (int y = r->top; y < r->top + r->height; y++)
		for (int band = 0; band < out->im->Bands; band++)
			fill_row(&p->planes[band], out, (uint32_t)y, band);
	return 0;
}

/* Metadata ------------------------------------------------------------------------------------- */

static enum error attach_metadata(VipsImage *image, const struct heif_image_handle *handle,
                                  struct problem *problem)
{
	enum { MOST = 16, OFFSET = 4 };
	heif_item_id ids[MOST];
	int count = heif_image_handle_get_list_of_metadata_block_IDs(handle, NULL, ids, MOST);
	size_t size = heif_image_handle_get_raw_color_profile_size(handle);
	uint8_t *block = size ? malloc(size) : NULL;
	enum error e = ERR_OK;

	if (block && !heif_image_handle_get_raw_color_profile(handle, block).code &&
	    heif_image_handle_get_color_profile_type(handle) != heif_color_profile_type_nclx)
		vips_image_set_blob_copy(image, VIPS_META_ICC_NAME, block, size);
	free(block);
	for (int i = 0; !e && i < count; i++) {
		const char *type = heif_image_handle_get_metadata_type(handle, ids[i]);
		const char *content = heif_image_handle_get_metadata_content_type(handle, ids[i]);
		bool there;

		size = heif_image_handle_get_metadata_size(handle, ids[i]);
		block = size ? malloc(size) : NULL;
		there = block && !heif_image_handle_get_metadata(handle, ids[i], block).code;
		if (there && !g_strcmp0(type, "Exif") && size > OFFSET) {
			/* Skips the offset of the TIFF header in the block, maybe titled. */
			e = bounds_check_exif(block + OFFSET, size - OFFSET, problem);
			if (!e)
				vips_image_set_blob_copy(image, VIPS_META_EXIF_NAME, block + OFFSET,
				                         size - OFFSET);
			vips_autorot_remove_angle(image); /* the file's own orientation counts */
		} else if (there && !g_strcmp0(content, "application/rdf+xml")) {
			vips_image_set_blob_copy(image, VIPS_META_XMP_NAME, block, size);
		}
		free(block);
	}
	return e;
}

/* The image ------------------------------------------------------------------------------------ */

static void picture_free(void *data)
{
	struct picture *p = data;

	for (int i = 0; i < PLANES; i++)
		free(p->planes[i].scale);
	heif_image_release(p->image);
	heif_image_handle_release(p->handle);
	heif_context_free(p->context);
	g_free(p);
}

/* Opens the file and fills in the image's size and samples. */
static bool open_file(VipsImage *image, struct picture *p, const uint8_t *file, size_t size)
{
	struct heif_error error;
	int bits;

	p->context = heif_context_alloc();
	if (!p->context)
		return complain("out of memory");
	heif_context_set_max_decoding_threads(p->context, 0);
	error = heif_context_read_from_memory_without_copy(p->context, file, size, NULL);
	if (!error.code)
		error = heif_context_get_primary_image_handle(p->context, &p->handle);
	if (error.code)
		return complain(error.message);
	bits = heif_image_handle_get_luma_bits_per_pixel(p->handle);
	if (bits < 1 || bits > 16)
		return complain("the samples have no number of bits");
	vips_image_init_fields(
	    image, heif_image_handle_get_width(p->handle), heif_image_handle_get_height(p->handle),
	    COLOURS + heif_image_handle_has_alpha_channel(p->handle),
	    bits > 8 ? VIPS_FORMAT_USHORT : VIPS_FORMAT_UCHAR, VIPS_CODING_NONE,
	    bits > 8 ? VIPS_INTERPRETATION_RGB16 : VIPS_INTERPRETATION_sRGB, 1, 1);
	vips_image_set_int(image, VIPS_META_N_PAGES,
	                   heif_context_get_number_of_top_level_images(p->context));
	return image->Xsize > 0 && image->Ysize > 0 ? true : complain("the image has no size");
}

/* The primary picture, upright, as full-range RGB or RGBA of 8 or 16 bits, with its metadata and,
 * as pages, the number of pictures in the file. The first row's request decodes all of it. */
static enum error load(VipsImage **image, const struct part *part, struct problem *problem)
{
	struct picture *p = g_new0(struct picture, 1);
	VipsImage *out = vips_image_new();
	enum error e;

	g_object_set_data_full(G_OBJECT(out), "picture", p, picture_free);
	if (!open_file(out, p, part->body->at, part->body->size) ||
	    vips_image_pipelinev(out, VIPS_DEMAND_STYLE_THINSTRIP, NULL) ||
	    vips_image_generate(out, NULL, generate, NULL, p, NULL))
		e = vips_error_take(problem, ERR_UNDECODABLE, part->who);
	else
		e = attach_metadata(out, p->handle, problem);
	if (e)
		g_object_unref(out);
	else
		*image = out;
	return e;
}

static enum error check(const struct body *body, struct problem *problem)
{
	enum error e;

	if (heif_is_cut(body->at, body->size))
		return problem_set(problem, ERR_UNDECODABLE,
		                   "the file is truncated: its last box is longer");
	if (!heif_order(body->at, body->size, false))
		return ERR_OK;
	e = body_make_writable(body, problem);
	if (!e)
		heif_order(body->at, body->size, true);
	return e;
}

/* libheif's codecs may be plugins in files and packages of their own; libvips has its operations
 * even without them. They are loaded here, because libheif would find none in the sandbox. */
static bool has_decoder(enum format format)
{
	heif_init(NULL);
	return heif_have_decoder_for_format(format == FORMAT_AVIF ? heif_compression_AV1
	                                                          : heif_compression_HEVC);
}

const struct reader avif_reader = {.works = has_decoder, .check = check, .load = load};

/* Writing -------------------------------------------------------------------------------------- */

static bool has_encoder(void)
{
	heif_init(NULL);
	return heif_have_encoder_for_format(heif_compression_AV1);
}

/* With libvips's default effort an answer takes eight times as long and is hardly smaller. */
static int save(const struct output_format *output, VipsImage *image, VipsTarget *target)
{
	return vips_heifsave_target(
	    image, target, "compression", VIPS_FOREIGN_HEIF_COMPRESSION_AV1, "effort", 2, "Q",
	    (int)output->coding.quality, "subsample_mode",
	    output->full_chroma ? VIPS_FOREIGN_SUBSAMPLE_OFF : VIPS_FOREIGN_SUBSAMPLE_ON, NULL);
}

/* libheif does not report an encoder's failure, but writes a file without its picture. */
static bool has_pictures(const struct output_format *output, const void *file, size_t size)
{
	return heif_count_pictures(file, size) == 1u + output->image.alpha;
}

const struct writer avif_writer = {.works = has_encoder, .save = save, .saved = has_pictures};
