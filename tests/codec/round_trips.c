/* The pixels of files of all kinds, of their parts and of what is around these: as libvips decodes
 * them, and through arenas of any size. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "expect.h"
#include "pairwise.h"

static const struct kind {
	const char *suffix;
	uint32_t bands;
	enum pixel_type type;
	bool alpha;
} kinds[] = {
    {".jpg", 3, PIXEL_U8, false},
    {".jpg", 1, PIXEL_U8, false},
    {".jpg[interlace]", 3, PIXEL_U8, false},
    {".jpg", 4, PIXEL_U8, false}, /* CMYK */
    {".png", 3, PIXEL_U8, false},
    {".png", 4, PIXEL_U16, true},
    {".png[interlace]", 2, PIXEL_U8, true},
    {".webp[lossless]", 3, PIXEL_U8, false},
    {".webp", 4, PIXEL_U8, true},
    {".avif", 3, PIXEL_U8, false},
    {".avif", 4, PIXEL_U8, true},
    {".tif", 1, PIXEL_F32, false},
    {".tif", 4, PIXEL_F32, true},
    {".tif", 2, PIXEL_U16, false},
    {".tif[compression=deflate]", 4, PIXEL_U16, true},
    {".tif[tile,tile-width=32,tile-height=32]", 3, PIXEL_U8, false},
    {".tif", 4, PIXEL_U8, false}, /* CMYK */
    {".tif", 5, PIXEL_U8, false}, /* planes */
    {".tif[compression=deflate]", 6, PIXEL_U16, false},
    {".tif", 21, PIXEL_F32, false},
    {".gif", 4, PIXEL_U8, true},
    {".ppm", 3, PIXEL_U8, false},
    {".pgm", 1, PIXEL_U16, false},
    {".ppm[ascii]", 3, PIXEL_U16, false},
};

static const uint32_t sizes[][2] = {{1, 1}, {3, 2}, {17, 33}, {61, 139}};

static const char *const filters[] = {
    "box=size=1",           "box=size=3", "box=size=25", "box=size=501", "convolve=kernel=1 2 1",
    "convolve=kernel=1;2;1"};

/* In eighths of the image, each at least a pixel: from x and y to x and y. None, all, corners,
 * within, rows, columns, a pixel. */
static const uint32_t parts[][4] = {{0, 0, 0, 0}, {0, 0, 8, 8}, {0, 0, 3, 2}, {5, 6, 8, 8},
                                    {2, 1, 6, 5}, {0, 3, 8, 5}, {6, 0, 7, 8}, {3, 4, 3, 4}};

/* In eighths of the room beside the part. None, above, below, over the part, beside it. */
enum { NOWHERE = UINT32_MAX };
static const uint32_t targets[][2] = {{NOWHERE, 0}, {0, 0}, {8, 8}, {3, 4}, {8, 0}};

enum { KIND, SIZE, FILTER, BORDER, PART, TARGET, ORIENTATION, FACTORS };

static const unsigned levels[FACTORS] = {
    [KIND] = G_N_ELEMENTS(kinds),
    [SIZE] = G_N_ELEMENTS(sizes),
    [FILTER] = G_N_ELEMENTS(filters),
    [BORDER] = BORDERS,
    [PART] = G_N_ELEMENTS(parts),
    [TARGET] = G_N_ELEMENTS(targets),
    [ORIENTATION] = 8,
};

static struct area part_of(const struct image *image, const uint32_t part[4])
{
	struct area a = {image->width * part[0] / 8, image->height * part[1] / 8,
	                 image->width * part[2] / 8, image->height * part[3] / 8};

	if (!part[2])
		return (struct area){0};
	a.width = MAX(a.width - a.x, 1);
	a.height = MAX(a.height - a.y, 1);
	return a;
}

/* Makes a file that is turned, if its format can be, and the picture that is to be seen in it. */
static struct file make_file(const struct kind *kind, const uint32_t size[2], int orientation,
                             struct picture *p)
{
	VipsImage *image;
	struct file file;

	picture_make(p, size[0], size[1], kind->bands, kind->type, kind->alpha);
	image = picture_to_vips(p);
	if (g_str_has_prefix(kind->suffix, ".jpg") || g_str_has_prefix(kind->suffix, ".tif"))
		vips_image_set_int(image, VIPS_META_ORIENTATION, orientation);
	file = file_save(image, kind->suffix);
	g_object_unref(image);
	picture_fini(p);
	picture_load(p, file.bytes, file.size);
	return file;
}

/* A file is answered like its bare pixels. */
static void test_row(const uint8_t row[FACTORS], int shift)
{
	const struct kind *kind = &kinds[row[KIND]];
	const uint32_t *place = targets[row[TARGET]];
	struct picture p;
	struct file file = make_file(kind, sizes[row[SIZE]], 1 + row[ORIENTATION], &p);
	const struct area roi = part_of(&p.image, parts[row[PART]]);
	const uint32_t target[2] = {roi.width ? (p.image.width - roi.width) * place[0] / 8 : 0,
	                            roi.height ? (p.image.height - roi.height) * place[1] / 8 : 0};
	struct request request = {.body = file,
	                          .filters = filters[row[FILTER]],
	                          .border = row[BORDER],
	                          .format = FORMAT_RAW,
	                          .roi = roi,
	                          .target = place[0] == NOWHERE ? NULL : target,
	                          .samples_max = 700,
	                          .shift = shift,
	                          .reverse = true};
	struct reply whole, bare;
	char name[160];

	snprintf(name, sizeof name,
	         "%s x%u %s %ux%u %s border %u roi %u,%u,%u,%u at %d,%u turned %u", kind->suffix,
	         kind->bands, pixel_type_rows[kind->type].name, p.image.width, p.image.height,
	         request.filters, request.border, roi.x, roi.y, roi.width, roi.height,
	         (int)place[0], place[1], row[ORIENTATION]);
	if (kind->type != PIXEL_F32 && row[BORDER] == BORDER_CONSTANT)
		request.border_value = "77";
	if (run(&request, &whole, name)) {
		request.raw = &p;
		if (run(&request, &bare, name))
			expect(whole.done.error == bare.done.error, "%s: %s, and bare %s", name,
			       error_row(whole.done.error)->slug, error_row(bare.done.error)->slug);
		if (!whole.done.error && !bare.done.error)
			expect_same(&whole, &bare, name);
		reply_fini(&bare);
	}
	reply_fini(&whole);
	file_fini(&file);
	picture_fini(&p);
}

/* Any two circumstances meet; with TEST_ALL, in several ways. */
static void test_kinds(void)
{
	static struct pairwise rows;

	for (uint64_t seed = 0; seed < (getenv("TEST_ALL") ? 8 : 1); seed++) {
		if (!expect(pairwise_init(&rows, levels, FACTORS, seed), "rows"))
			return;
		for (size_t i = 0; i < rows.rows; i++)
			test_row(rows.row[i], i % 2 ? 1 : -1);
	}
}

/* Answers do not depend on the arena: with slots of one row, which are fewer than an encoder asks
 * for at a time; or of some, with many rows above a part. */
static void test_small_arenas(void)
{
	static const char *const suffixes[] = {".jpg", ".png", ".tif", ".webp", ".gif", ".ppm"};
	static const uint32_t target[2] = {350, 3};
	static const struct {
		uint64_t size;
		uint32_t tiles; /* at least */
		struct request request;
	} arenas[] = {
	    {16 << 10, 70, {.filters = "box=size=1"}},
	    {56 << 10, 10, {.border = BORDER_WRAP, .shift = -1}},
	    {32 << 10, 4, {.roi = {333, 41, 259, 29}, .target = target, .shift = 1}},
	};
	struct reply whole = {0}, cut = {0};
	struct peer small;

	for (size_t i = 0; i < G_N_ELEMENTS(arenas); i++) {
		peer_start(&small, program, arenas[i].size);
		for (size_t k = 0; k < G_N_ELEMENTS(suffixes); k++) {
			struct file file = file_make(1200, 70, 3, suffixes[k]);
			struct request request = arenas[i].request;

			request.body = file;
			if (run_well(&request, &whole, suffixes[k]) &&
			    expect(peer_run(&small, &request, &cut) && !cut.done.error,
			           "%s in a small arena", suffixes[k])) {
				expect_same(&whole, &cut, suffixes[k]);
				expect(cut.header.tiles >= arenas[i].tiles, "%s: %u tiles",
				       suffixes[k], cut.header.tiles);
			}
			reply_fini(&whole);
			reply_fini(&cut);
			file_fini(&file);
		}
		peer_stop(&small);
	}
}

/* PNG has no floats: they become 16 bits, to the nearest, but for ties. */
static void test_float_to_png(void)
{
	enum { WIDTH = 53, HEIGHT = 90, SAMPLES = WIDTH * HEIGHT * 3 };
	struct picture p, seen;
	const struct request request = {.raw = &p, .format = FORMAT_PNG};
	struct reply reply;
	unsigned wrong = 0;

	picture_make(&p, WIDTH, HEIGHT, 3, PIXEL_F32, false);
	for (size_t i = 0; i < SAMPLES; i++)
		image_put_sample(p.pixels, i, PIXEL_F32, 1.2 * (double)i / SAMPLES - 0.1);
	if (run_well(&request, &reply, "floats to PNG")) {
		picture_load(&seen, reply.answer, reply.done.answer_size);
		for (size_t i = 0; i < SAMPLES; i++) {
			double wanted = CLAMP(image_get_sample(p.pixels, i, PIXEL_F32), 0, 1);

			wrong += fabs(image_get_sample(seen.pixels, i, PIXEL_U16) -
			              65535 * wanted) > 0.51;
		}
		expect(seen.image.type == PIXEL_U16 && !wrong, "floats to PNG: %u are wrong",
		       wrong);
		picture_fini(&seen);
		reply_fini(&reply);
	}
	picture_fini(&p);
}

void test_round_trips(void)
{
	test_kinds();
	test_small_arenas();
	test_float_to_png();
}
