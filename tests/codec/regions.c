/* Parts of images: cut out as if they were images, and placed on the image that they are from. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "expect.h"
#include "pairwise.h"
#include "pictures.h"

static const char *const borders[] = {"replicate", "reflect",  "reflect101",
                                      "wrap",      "constant", "crop"};

static struct picture cut_out(const struct picture *p, const struct area *a)
{
	struct picture c = {.image = p->image};
	size_t pixel = image_pixel_size(&p->image);

	c.image.width = a->width;
	c.image.height = a->height;
	c.pixels = malloc(image_size(&c.image));
	for (uint32_t y = 0; y < a->height; y++)
		memcpy(c.pixels + y * image_row_size(&c.image),
		       p->pixels + (y + a->y) * image_row_size(&p->image) + a->x * pixel,
		       image_row_size(&c.image));
	return c;
}

/* Returns a copy of the picture with another laid over it. */
static struct picture laid_over(const struct picture *p, const struct picture *part, uint32_t x,
                                uint32_t y)
{
	struct area all = {0, 0, p->image.width, p->image.height};
	struct picture c = cut_out(p, &all);

	for (uint32_t j = 0; j < part->image.height; j++)
		memcpy(
		    c.pixels + (y + j) * image_row_size(&c.image) + x * image_pixel_size(&c.image),
		    part->pixels + j * image_row_size(&part->image), image_row_size(&part->image));
	return c;
}

/* Returns the result for the picture: the ROI less the halo, alone or laid over the picture. */
static struct picture answer_to(const struct picture *p, const struct request *request,
                                uint32_t halo)
{
	struct area a = request->roi;
	struct picture part, whole;

	if (!a.width)
		a = (struct area){0, 0, p->image.width, p->image.height};
	if (!strcmp(request->border, "crop"))
		a = (struct area){a.x + halo, a.y + halo, a.width - 2 * halo, a.height - 2 * halo};
	part = cut_out(p, &a);
	if (!request->target)
		return part;
	whole = laid_over(p, &part, request->target[0], request->target[1]);
	picture_fini(&part);
	return whole;
}

static void check(const struct picture *p, struct request *request, uint32_t halo, const char *name)
{
	struct area all = {0, 0, p->image.width, p->image.height};
	struct picture roi = cut_out(p, request->roi.width ? &request->roi : &all), expected;
	struct reply reply;

	request->expected = &roi;
	if (run_well(request, &reply, name)) {
		expected = answer_to(p, request, halo);
		if (request->format == FORMAT_RAW)
			expect(reply.done.answer_size == image_size(&expected.image) &&
			           !memcmp(reply.answer, expected.pixels, reply.done.answer_size),
			       "%s: raw pixels differ", name);
		else
			expect(picture_equals_file(&expected, reply.answer, reply.done.answer_size),
			       "%s: pixels differ", name);
		expect(reply.header.answer.width == expected.image.width &&
		           reply.header.answer.height == expected.image.height &&
		           reply.header.image.width == roi.image.width &&
		           reply.header.image.height == roi.image.height,
		       "%s: announced as %ux%u", name, reply.header.answer.width,
		       reply.header.answer.height);
		picture_fini(&expected);
		reply_fini(&reply);
	}
	picture_fini(&roi);
}

static const struct kind {
	const char *suffix;
	uint32_t bands;
	enum pixel_type type;
	bool alpha;
	enum format format; /* format of the answer: a lossless one */
} kinds[] = {
    {".jpg", 3, PIXEL_U8, false, FORMAT_PNG},
    {".jpg", 1, PIXEL_U8, false, FORMAT_TIFF},
    {".jpg[interlace]", 3, PIXEL_U8, false, FORMAT_PNG},
    {".jpg", 4, PIXEL_U8, false, FORMAT_TIFF}, /* CMYK */
    {".png", 3, PIXEL_U8, false, FORMAT_PNG},
    {".png", 4, PIXEL_U16, true, FORMAT_PNG},
    {".png[interlace]", 2, PIXEL_U8, true, FORMAT_PNG},
    {".webp", 4, PIXEL_U8, true, FORMAT_PNG},
    {".avif", 3, PIXEL_U8, false, FORMAT_PNG},
    {".avif", 4, PIXEL_U8, true, FORMAT_TIFF},
    {".tif", 3, PIXEL_F32, false, FORMAT_TIFF},
    {".tif[tile,tile-width=32,tile-height=32]", 3, PIXEL_U8, false, FORMAT_PNM},
    {".tif", 2, PIXEL_U16, false, FORMAT_RAW},
    {".gif", 4, PIXEL_U8, true, FORMAT_PNG},
    {".ppm", 3, PIXEL_U8, false, FORMAT_PNM},
    {".pgm", 1, PIXEL_U16, false, FORMAT_PNM},
    {".pfm", 3, PIXEL_F32, false, FORMAT_PNM},
};

/* Parts of an image of 61 by 139: each edge and corner, within, one pixel, one row, one column,
 * all. */
static const struct area rois[] = {
    {0, 0, 20, 30},   {41, 109, 20, 30}, {0, 50, 61, 33}, {17, 0, 19, 139},
    {13, 67, 1, 1},   {60, 138, 1, 1},   {0, 138, 61, 1}, {60, 0, 1, 139},
    {11, 23, 37, 71}, {0, 0, 61, 139},   {0, 0, 0, 0},
};

static const uint32_t none[2] = {UINT32_MAX, 0};

/* Above, below, over the part, beside it; and nowhere. */
static const uint32_t targets[][2] = {{UINT32_MAX, 0}, {0, 0}, {24, 68}, {7, 105}, {3, 11}};

/* Moves a target to where the result fits. */
static void fit(uint32_t target[2], const struct picture *p, const struct request *request,
                uint32_t halo)
{
	struct area a = request->roi;
	uint32_t less = !strcmp(request->border, "crop") ? 2 * halo : 0;
	uint32_t width = (a.width ? a.width : p->image.width) - less;
	uint32_t height = (a.height ? a.height : p->image.height) - less;

	if (target[0] > p->image.width - width)
		target[0] = p->image.width - width;
	if (target[1] > p->image.height - height)
		target[1] = p->image.height - height;
}

static const struct {
	const char *text;
	uint32_t halo;
} filters[] = {{"box=size=5", 2}, {"box=size=25", 12}};

enum { ROI, TARGET, FILTER, BORDER, FACTORS };

static const unsigned levels[FACTORS] = {
    [ROI] = G_N_ELEMENTS(rois),
    [TARGET] = G_N_ELEMENTS(targets),
    [FILTER] = G_N_ELEMENTS(filters),
    [BORDER] = G_N_ELEMENTS(borders),
};

static void test_row(const struct picture *p, struct request *request, const uint8_t *row,
                     const char *kind)
{
	const struct area *roi = &rois[row[ROI]];
	const uint32_t *wanted = targets[row[TARGET]], halo = filters[row[FILTER]].halo;
	uint32_t target[2] = {wanted[0], wanted[1]};
	char name[160];

	request->filters = filters[row[FILTER]].text;
	request->border = borders[row[BORDER]];
	request->roi = *roi;
	request->target = target[0] == none[0] ? NULL : target;
	snprintf(name, sizeof name, "%s, %s, roi %u,%u,%u,%u at %d,%u, %s", kind, request->filters,
	         roi->x, roi->y, roi->width, roi->height, (int)target[0], target[1],
	         request->border);
	if (!strcmp(request->border, "crop") && roi->width &&
	    (roi->width <= 2 * halo || roi->height <= 2 * halo)) {
		expect_error(request, ERR_IMAGE_TOO_SMALL, name);
		return;
	}
	if (request->target)
		fit(target, p, request, halo);
	check(p, request, halo, name);
}

/* Pairs of ROI, target, filter and border meet. */
static void test_file(const struct file *file, enum format format, const struct image *raw,
                      const char *kind)
{
	static struct pairwise rows;
	static uint64_t seed;
	struct picture p = {0};

	if (!expect(pairwise_init(&rows, levels, FACTORS, seed++), "rows"))
		return;
	if (raw)
		p = (struct picture){*raw, file->bytes};
	else
		picture_load(&p, file->bytes, file->size);
	for (size_t i = 0; i < rows.rows; i++) {
		struct request request = {.body = file->bytes,
		                          .body_size = file->size,
		                          .raw = raw,
		                          .format = format,
		                          .samples_max = 700,
		                          .reverse = true};

		test_row(&p, &request, rows.row[i], kind);
	}
	if (!raw)
		picture_fini(&p);
}

static void test_kinds(void)
{
	struct picture p;
	struct file file;

	for (size_t k = 0; k < G_N_ELEMENTS(kinds); k++) {
		picture_make(&p, 61, 139, kinds[k].bands, kinds[k].type, kinds[k].alpha);
		file = file_of_picture(&p, kinds[k].suffix);
		test_file(&file, kinds[k].format, NULL, kinds[k].suffix);
		file_fini(&file);
		picture_fini(&p);
	}
	picture_make(&p, 61, 139, 2, PIXEL_F32, false);
	file = (struct file){p.pixels, image_size(&p.image)};
	test_file(&file, FORMAT_RAW, &p.image, "raw");
	picture_fini(&p);
}

static void test_orientations(void)
{
	struct picture p;
	char name[64];

	for (int orientation = 2; orientation <= 8; orientation++) {
		bool turned = orientation > 4;
		VipsImage *vips;
		struct file file;

		picture_make(&p, turned ? 139 : 61, turned ? 61 : 139, 3, PIXEL_U8, false);
		vips = picture_to_vips(&p);
		vips_image_set_int(vips, VIPS_META_ORIENTATION, orientation);
		file = file_save(vips, orientation % 2 ? ".jpg" : ".tif");
		snprintf(name, sizeof name, "orientation %d", orientation);
		test_file(&file, FORMAT_PNG, NULL, name);
		file_fini(&file);
		g_object_unref(vips);
		picture_fini(&p);
	}
}

/* Rows above the ROI are many, its slots few; and those of the whole image are wider. */
static void test_small_arena(void)
{
	const uint32_t target[2] = {1000, 3};
	struct picture p;
	struct file file;

	picture_make(&p, 3000, 1500, 3, PIXEL_U8, false);
	file = file_of_picture(&p, ".png");
	peer_stop(&peer);
	peer_start(&peer, program, 64 << 10, 64 << 10);
	struct request request = {.body = file.bytes,
	                          .body_size = file.size,
	                          .filters = "box=size=3",
	                          .border = "wrap",
	                          .format = FORMAT_PNG,
	                          .roi = {999, 1001, 777, 499},
	                          .target = target};
	check(&p, &request, 1, "small arena");
	request.target = NULL;
	check(&p, &request, 1, "small arena, no target");
	peer_stop(&peer);
	peer_start(&peer, program, 64 << 20, 64 << 20);
	file_fini(&file);
	picture_fini(&p);
}

static void refused(struct request *request, struct area roi, const uint32_t *target,
                    const char *parameter, const char *detail)
{
	struct reply reply;

	request->roi = roi;
	request->target = target;
	if (!run(request, &reply, parameter))
		return;
	expect(reply.done.error == ERR_BAD_PARAMETER &&
	           !strcmp(reply.done.problem.parameter, parameter) &&
	           strstr(reply.done.problem.detail, detail),
	       "%s: %s (%s)", parameter, error_slug(reply.done.error), reply.done.problem.detail);
	reply_fini(&reply);
}

static void test_refusals(void)
{
	static const uint32_t at[][2] = {{0, 0}, {1, 0}, {22, 0}, {0, 110}, {9999999, 0}};
	struct picture p;
	struct file file;

	picture_make(&p, 61, 139, 3, PIXEL_U8, false);
	file = file_of_picture(&p, ".png");
	struct request request = {
	    .body = file.bytes, .body_size = file.size, .filters = "box=size=3"};
	refused(&request, (struct area){0, 0, 62, 1}, NULL, "roi", "61x139");
	refused(&request, (struct area){1, 0, 61, 1}, NULL, "roi", "61x139");
	refused(&request, (struct area){0, 139, 1, 1}, NULL, "roi", "61x139");
	refused(&request, (struct area){UINT32_MAX, UINT32_MAX, 2, 2}, at[0], "roi", "61x139");
	refused(&request, (struct area){0}, at[1], "target", "x is at most 0 and y at most 0");
	refused(&request, (struct area){9, 9, 40, 30}, at[2], "target",
	        "x is at most 21 and y at most 109");
	refused(&request, (struct area){9, 9, 40, 30}, at[3], "target", "40x30");
	refused(&request, (struct area){9, 9, 40, 30}, at[4], "target", "61x139");
	file_fini(&file);
	picture_fini(&p);
	expect_alive("regions that do not fit");
}

/* A file that is decoded whole is then held twice, or more. */
static void test_budget(void)
{
	static const uint32_t target[2] = {0, 0};
	struct picture p;
	struct file file;
	struct reply reply;

	picture_make(&p, 100, 100, 3, PIXEL_U8, false);
	file = file_of_picture(&p, ".jpg[interlace]");
	struct request request = {.body = file.bytes,
	                          .body_size = file.size,
	                          .filters = "box=size=3",
	                          .buffered_size_max = 59999};
	if (run_well(&request, &reply, "progressive, no target"))
		reply_fini(&reply);
	request.target = target;
	expect_error(&request, ERR_TOO_MANY_PIXELS, "progressive and target");
	request.buffered_size_max = 60000;
	if (run_well(&request, &reply, "progressive and target at the limit"))
		reply_fini(&reply);
	request.border = "wrap";
	expect_error(&request, ERR_TOO_MANY_PIXELS, "progressive, target and wrap");
	request.target = NULL;
	if (run_well(&request, &reply, "progressive and wrap at the limit"))
		reply_fini(&reply);
	request.buffered_size_max = 59999;
	expect_error(&request, ERR_TOO_MANY_PIXELS, "progressive and wrap");
	request.filters = "invert";
	if (run_well(&request, &reply, "progressive and nothing to wrap"))
		reply_fini(&reply);
	file_fini(&file);
	picture_fini(&p);
}

/* Damage below the ROI is seen only by those who look there. */
static void test_failures_there(void)
{
	static const uint32_t target[2] = {0, 0};
	struct picture p;
	struct file file;
	struct reply reply;

	picture_make(&p, 200, 900, 3, PIXEL_U8, false);
	file = file_of_picture(&p, ".png");
	struct request request = {.body = file.bytes,
	                          .body_size = file.size * 2 / 3,
	                          .filters = "box=size=3",
	                          .roi = {10, 20, 150, 100},
	                          .samples_max = 3000};
	if (run_well(&request, &reply, "cut off below the ROI"))
		reply_fini(&reply);
	request.target = target;
	expect_error(&request, ERR_UNDECODABLE, "cut off below the ROI, with target");
	request.roi.y = 700;
	request.target = NULL;
	expect_error(&request, ERR_UNDECODABLE, "cut off above the ROI");
	request.body_size = file.size;
	request.target = target;
	for (int at = 1; at <= 4; at += 3) {
		request.cancel_at = at;
		expect_error(&request, ERR_CANCELLED, "target, cancelled");
		request.cancel_at = 0;
		request.fail_at = at;
		expect_error(&request, ERR_DEVICE, "target, failed");
		request.fail_at = 0;
	}
	expect_alive("targets that fail");
	file_fini(&file);
	picture_fini(&p);
}

void test_regions(void)
{
	test_kinds();
	test_orientations();
	test_small_arena();
	test_refusals();
	test_budget();
	test_failures_there();
}
