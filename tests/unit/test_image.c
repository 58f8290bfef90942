/* Descriptions of images and their parts, and the table of formats. */
#include "image/formats.h"
#include "image/image.h"
#include "unit.h"

TEST(test_image_parse)
{
	static const char *const bad[] = {"",          "640x480",        "640x480x3",  "0x1x1:u8",
	                                  "1x1x22:u8", "1x1x0:u8",       "1x1x1:u9",   "1x1x1:u8 ",
	                                  "-1x1x1:u8", "1000001x1x1:u8", "1x1x1:f322", " 1x1x1:u8"};
	struct image image;

	assert_true(image_parse("640x480x3:u16", &image));
	assert_int_equal(image.width, 640);
	assert_int_equal(image.type, PIXEL_U16);
	assert_int_equal(image_size(&image), 640 * 480 * 6);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_false(image_parse(bad[i], &image));
	assert_true(image_parse("2x3x21:f32", &image));
	assert_int_equal(image_planes(&image), 21);
	assert_int_equal(image_plane(&image).bands, 1);
	image.alpha = 1;
	assert_false(image_valid(&image));
	image.bands = 4;
	assert_int_equal(image_planes(&image), 1);
	assert_int_equal(image_plane(&image).bands, 4);
}

/* Another process says what a draft is. */
TEST(test_draft)
{
	struct image image = {.width = 4001, .height = 8, .bands = 3};

	image_shrink(&image, 501, 1, 8);
	assert_int_equal(image.width, 501);
	assert_int_equal(image.draft.width, 4001);
	assert_int_equal(image.draft.after[0], 7);
	assert_int_equal(image.draft.after[1], 0);
	assert_true(image_valid(&image));
	image.draft.before[0] = 1;
	assert_false(image_valid(&image));
	image.draft.before[0] = -8;
	assert_false(image_valid(&image));
	image.draft.before[0] = 0;
	image.draft.height = 9;
	assert_false(image_valid(&image));
	image.draft.height = 0;
	assert_false(image_valid(&image));
	image.draft = (struct draft){.after = {1, 0}};
	assert_false(image_valid(&image));
	image.draft = (struct draft){0};
	assert_true(image_valid(&image));
}

/* tests/http tries parts of a request; this is one that another process says. */
TEST(test_area)
{
	const struct image image = {100, 50, 1, PIXEL_U8, 0, {0}};

	assert_true(area_inside(&(struct area){1, 1, 99, 49}, &image));
	assert_false(area_inside(&(struct area){UINT32_MAX, UINT32_MAX, 2, 2}, &image));
}

/* Each text about a format must lead back to it, and a row must have everything that others read of
 * it. */
TEST(test_formats)
{
	const struct format_offer *offer;
	size_t offered = 0;
	char all[96];

	for (enum format f = FORMAT_NONE + 1; f < FORMATS; f++) {
		const struct format_row *r = &format_rows[f];

		assert_int_equal(format_parse(format_naming(f)->name), f);
		assert_int_equal(format_parse_media_type(format_naming(f)->media_type), f);
		if (!format_in(format_sets_known().written, f)) {
			assert_false(r->saver || r->kinds || r->types || r->side_max);
			continue;
		}
		assert_true(r->kinds & KIND_GREY && r->kinds & KIND_RGB && r->kinds_text);
		assert_true(r->types & TYPE_U8 && r->side_max && r->side_max <= IMAGE_SIDE_MAX);
		assert_true(!r->lossless || r->lossy);
		assert_true(!r->quality == !(r->lossy & 1 << LOSS_SAMPLES));
		assert_true(!r->compression_text == !r->compression_first);
		/* AVIF has a reader of its own. */
		assert_true(!r->saver || r->loader || f == FORMAT_AVIF);
	}
	for (; (offer = format_offer(offered)); offered++)
		assert_int_equal(format_parse(offer->name), offer->format);
	assert_true(offered >= FORMATS - 1);
	assert_int_equal(format_parse("JPG"), FORMAT_JPEG);
	assert_int_equal(format_parse("jxr"), FORMAT_NONE);
	assert_int_equal(format_parse_media_type("image/x-portable-graymap"), FORMAT_PNM);
	assert_string_equal(format_naming(FORMAT_NONE)->name, "none");
	format_list_compressions(format_sets_known().written, all, sizeof all);
	assert_string_equal(all,
	                    "a level from 0 to 9 for png, and none, lzw, deflate or zstd for tiff");
	format_list_compressions(1 << FORMAT_PNG | 1 << FORMAT_GIF, all, sizeof all);
	assert_string_equal(all, "a level from 0 to 9 for png");
	format_list(1 << FORMAT_GIF | 1 << FORMAT_PNG, all, sizeof all);
	assert_string_equal(all, "png, gif");
}
