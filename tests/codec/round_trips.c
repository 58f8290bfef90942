/* Images must come out as they went in: all formats, borders, sizes, orientations, and their
 * metadata. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "expect.h"
#include "pairwise.h"
#include "pictures.h"

static const char *const borders[] = {"replicate", "reflect",  "reflect101",
                                      "wrap",      "constant", "crop"};

/* Returns the picture that a file decodes to, less the halo. */
static struct picture cropped(const struct picture *p, uint32_t halo_x, uint32_t halo_y)
{
	struct picture c = {.image = p->image};
	size_t pixel = image_pixel_size(&p->image);

	c.image.width -= 2 * halo_x;
	c.image.height -= 2 * halo_y;
	c.pixels = malloc(image_size(&c.image));
	for (uint32_t y = 0; y < c.image.height; y++)
		memcpy(c.pixels + y * image_row_size(&c.image),
		       p->pixels + (y + halo_y) * image_row_size(&p->image) + halo_x * pixel,
		       image_row_size(&c.image));
	return c;
}

/* A file through one filter and border; lossless answers must decode to the same pixels. */
static void test_round_trip(const struct file *file, const char *filters, uint32_t halo_x,
                            uint32_t halo_y, const char *border, enum format format, bool exact,
                            const char *name)
{
	struct picture p, result;
	struct reply reply;
	bool crop = !strcmp(border, "crop");

	picture_load(&p, file->bytes, file->size);
	struct request request = {.body = file->bytes,
	                          .body_size = file->size,
	                          .filters = filters,
	                          .border = border,
	                          .format = format,
	                          .expected = &p,
	                          .samples_max = 5000,
	                          .reverse = true};
	if (p.image.type != PIXEL_F32 && !strcmp(border, "constant"))
		request.border_value = "77";
	if (crop && (p.image.width <= 2 * halo_x || p.image.height <= 2 * halo_y)) {
		expect_error(&request, ERR_IMAGE_TOO_SMALL, name);
	} else if (run_well(&request, &reply, name)) {
		result = crop ? cropped(&p, halo_x, halo_y) : cropped(&p, 0, 0);
		if (exact)
			expect(picture_equals_file(&result, reply.answer, reply.done.answer_size),
			       "%s: pixels differ", name);
		picture_fini(&result);
		reply_fini(&reply);
	}
	picture_fini(&p);
}

struct kind {
	const char *suffix;
	uint32_t bands;
	enum pixel_type type;
	bool alpha, exact;
};

static const struct kind kinds[] = {
    {".jpg", 3, PIXEL_U8, false, false},
    {".jpg", 1, PIXEL_U8, false, false},
    {".jpg[interlace]", 3, PIXEL_U8, false, false},
    {".jpg", 4, PIXEL_U8, false, false}, /* CMYK */
    {".png", 3, PIXEL_U8, false, true},
    {".png", 4, PIXEL_U16, true, true},
    {".png", 2, PIXEL_U8, true, true},
    {".png[interlace]", 1, PIXEL_U16, false, true},
    {".webp[lossless]", 3, PIXEL_U8, false, false},
    {".webp", 4, PIXEL_U8, true, false},
    {".tif", 1, PIXEL_F32, false, true},
    {".tif", 3, PIXEL_F32, false, true},
    {".tif", 4, PIXEL_F32, true, true},
    {".tif", 2, PIXEL_U16, false, true},
    {".tif[compression=deflate]", 4, PIXEL_U16, true, true},
    {".tif[tile,tile-width=32,tile-height=32]", 3, PIXEL_U8, false, true},
    {".tif", 4, PIXEL_U8, false, true}, /* CMYK */
    {".tif", 5, PIXEL_U8, false, true}, /* planes */
    {".tif[compression=deflate]", 6, PIXEL_U16, false, true},
    {".tif", 21, PIXEL_F32, false, true},
    {".gif", 4, PIXEL_U8, true, false},
    {".ppm", 3, PIXEL_U8, false, true},
    {".pgm", 1, PIXEL_U16, false, true},
    {".ppm[ascii]", 3, PIXEL_U16, false, true},
    {".pfm", 3, PIXEL_F32, false, true},
    {".pfm", 1, PIXEL_F32, false, true},
};

static const struct {
	const char *text;
	uint32_t halo_x, halo_y;
} filters[] = {{"box=size=1", 0, 0},
               {"box=size=3", 1, 1},
               {"convolve=kernel=1 2 1", 1, 0},
               {"convolve=kernel=1;2;1", 0, 1},
               {"box=size=25", 12, 12}};

static const uint32_t sizes[][2] = {{1, 1}, {3, 2}, {17, 33}, {61, 139}};

enum { SIZE, FILTER, BORDER, FACTORS };

static const unsigned levels[FACTORS] = {
    [SIZE] = G_N_ELEMENTS(sizes),
    [FILTER] = G_N_ELEMENTS(filters),
    [BORDER] = G_N_ELEMENTS(borders),
};

/* Images of a kind and size, through the filters and borders that the rows have for the size. */
static void test_kind(const struct kind *kind, unsigned size, const struct pairwise *rows)
{
	const uint32_t width = sizes[size][0], height = sizes[size][1];
	struct picture p;
	struct file file;
	char name[160];

	picture_make(&p, width, height, kind->bands, kind->type, kind->alpha);
	file = file_of_picture(&p, kind->suffix);
	for (size_t i = 0; i < rows->rows; i++) {
		const uint8_t *row = rows->row[i], f = row[FILTER];

		if (row[SIZE] != size)
			continue;
		snprintf(name, sizeof name, "%s x%u %s %ux%u %s %s", kind->suffix, kind->bands,
		         pixel_type_name(kind->type), width, height, filters[f].text,
		         borders[row[BORDER]]);
		test_round_trip(&file, filters[f].text, filters[f].halo_x, filters[f].halo_y,
		                borders[row[BORDER]], FORMAT_NONE, kind->exact, name);
	}
	file_fini(&file);
	picture_fini(&p);
}

/* Pairs of size, filter and border meet for each kind, in different rows for different kinds. */
static void test_kinds(void)
{
	static struct pairwise rows;

	for (size_t k = 0; k < G_N_ELEMENTS(kinds); k++) {
		if (!expect(pairwise_init(&rows, levels, FACTORS, k), "rows"))
			return;
		for (unsigned size = 0; size < levels[SIZE]; size++)
			test_kind(&kinds[k], size, &rows);
	}
}

static void test_large_halo(void)
{
	struct picture p;
	struct file file;
	char name[64];

	picture_make(&p, 31, 200, 1, PIXEL_U8, false);
	file = file_of_picture(&p, ".png");
	for (size_t b = 0; b < 5; b++) {
		snprintf(name, sizeof name, "halo of 250 and %s", borders[b]);
		test_round_trip(&file, "box=size=501", 250, 250, borders[b], FORMAT_PNG, true,
		                name);
	}
	file_fini(&file);
	picture_fini(&p);
}

/* Answers do not depend on the arena's size. */
static void test_arena_sizes(void)
{
	static const char *const suffixes[] = {".jpg", ".png", ".tif", ".webp", ".gif"};
	struct picture p;
	struct reply small, large;
	bool both;

	picture_make(&p, 257, 500, 3, PIXEL_U8, false);
	for (size_t i = 0; i < G_N_ELEMENTS(suffixes); i++) {
		struct file file = file_of_picture(&p, suffixes[i]);
		struct request request = {.body = file.bytes,
		                          .body_size = file.size,
		                          .filters = "box=size=9",
		                          .border = "wrap"};

		peer_stop(&peer);
		peer_start(&peer, program, 48 << 10, 48 << 10);
		both = run_well(&request, &small, suffixes[i]);
		peer_stop(&peer);
		peer_start(&peer, program, 64 << 20, 64 << 20);
		both = both && run_well(&request, &large, suffixes[i]);
		if (both)
			expect(small.header.tiles > large.header.tiles &&
			           small.done.answer_size == large.done.answer_size &&
			           !memcmp(small.answer, large.answer, small.done.answer_size),
			       "%s: the answer depends on the arena", suffixes[i]);
		reply_fini(&small);
		reply_fini(&large);
		file_fini(&file);
	}
	picture_fini(&p);
}

/* Slots of one row: fewer than an encoder asks for at a time. */
static void test_narrow_slots(void)
{
	static const enum format formats[] = {FORMAT_JPEG, FORMAT_PNG, FORMAT_TIFF, FORMAT_WEBP,
	                                      FORMAT_PNM};
	struct picture p;
	struct reply reply;

	picture_make(&p, 3500, 70, 3, PIXEL_U8, false);
	peer_stop(&peer);
	peer_start(&peer, program, 48 << 10, 48 << 10);
	for (size_t i = 0; i < G_N_ELEMENTS(formats); i++) {
		struct request request = {.body = p.pixels,
		                          .body_size = image_size(&p.image),
		                          .raw = &p.image,
		                          .filters = "box=size=1",
		                          .format = formats[i],
		                          .expected = &p};

		if (run_well(&request, &reply, format_name(formats[i]))) {
			expect(reply.header.tiles == p.image.height, "%s: %u tiles",
			       format_name(formats[i]), reply.header.tiles);
			reply_fini(&reply);
		}
	}
	peer_stop(&peer);
	peer_start(&peer, program, 64 << 20, 64 << 20);
	picture_fini(&p);
}

static void test_orientations(void)
{
	struct picture p;
	char name[64];

	picture_make(&p, 45, 70, 3, PIXEL_U8, false);
	for (int orientation = 1; orientation <= 8; orientation++) {
		VipsImage *vips = picture_to_vips(&p);
		struct file file;

		vips_image_set_int(vips, VIPS_META_ORIENTATION, orientation);
		file = file_save(vips, orientation % 2 ? ".jpg" : ".tif");
		snprintf(name, sizeof name, "orientation %d", orientation);
		for (size_t b = 0; b < G_N_ELEMENTS(borders); b++)
			test_round_trip(&file, "box=size=7", 3, 3, borders[b], FORMAT_PNG, true,
			                name);
		test_round_trip(&file, "box=size=7", 3, 3, "wrap", FORMAT_TIFF, true, name);
		file_fini(&file);
		g_object_unref(vips);
	}
	picture_fini(&p);
}

static void check_metadata(const struct file *file, enum format format, uint32_t strip)
{
	struct reply reply;
	struct request request = {.body = file->bytes,
	                          .body_size = file->size,
	                          .filters = "box=size=3",
	                          .format = format,
	                          .strip = strip};
	VipsImage *vips;

	if (!run_well(&request, &reply, "metadata"))
		return;
	vips = vips_image_new_from_buffer(reply.answer, reply.done.answer_size, "", NULL);
	expect(vips && vips_image_get_typeof(vips, VIPS_META_ICC_NAME), "%s: ICC profile lost",
	       format_name(format));
	expect(vips && fabs(vips->Xres - 5) < 0.05, "%s: resolution lost: %g", format_name(format),
	       vips->Xres);
	expect(vips && !!vips_image_get_typeof(vips, VIPS_META_XMP_NAME) == !strip,
	       "%s: XMP with strip=%u", format_name(format), strip);
	g_object_unref(vips);
	reply_fini(&reply);
}

static void test_metadata(void)
{
	struct picture p;
	VipsBlob *profile;
	VipsImage *vips;
	struct file file;
	const void *data;
	size_t size;

	picture_make(&p, 64, 64, 3, PIXEL_U8, false);
	vips = picture_to_vips(&p);
	if (vips_profile_load("srgb", &profile, NULL))
		exit(1);
	data = vips_blob_get(profile, &size);
	vips_image_set_blob_copy(vips, VIPS_META_ICC_NAME, data, size);
	vips_image_set_blob_copy(vips, VIPS_META_XMP_NAME, "<x:xmpmeta/>", 12);
	vips->Xres = vips->Yres = 5;
	file = file_save(vips, ".jpg");
	for (uint32_t strip = 0; strip < 2; strip++) {
		check_metadata(&file, FORMAT_JPEG, strip);
		check_metadata(&file, FORMAT_PNG, strip);
		check_metadata(&file, FORMAT_TIFF, strip);
	}
	vips_area_unref(VIPS_AREA(profile));
	g_object_unref(vips);
	file_fini(&file);
	picture_fini(&p);
}

void test_round_trips(void)
{
	test_kinds();
	test_large_halo();
	test_arena_sizes();
	test_narrow_slots();
	test_orientations();
	test_metadata();
}
