/* Writes bitmaps: 8 bits with a palette of greys, 24 bits, or 32 bits with masks, of which the last
 * is alpha's. The header is the shortest that can say so, as most readers know it. Layout:
 * Microsoft, BITMAPINFOHEADER, BITMAPV4HEADER and BITMAPV5HEADER. Runs in the job's encoding
 * thread. */
#include "codec/bmp_encode.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "codec/convert.h"
#include "codec/icc_profile.h"
#include "codec/plain.h"
#include "common/file.h"

enum { FILE_HEAD = 14, INFO_HEAD = 40, V4_HEAD = 108, V5_HEAD = 124 };
enum { GREYS = 256, GREYS_SIZE = 4 * GREYS };
enum { WITH_MASKS = 3, FOR_IMAGES = 4 };

/* The file up to its pixels. */
struct head {
	uint8_t bytes[FILE_HEAD + V5_HEAD + GREYS_SIZE];
	size_t bitmap; /* bytes of the bitmap's header */
	size_t size;   /* of all */
};

static void put(uint8_t *to, uint64_t number)
{
	for (size_t i = 0; i < 4; i++)
		to[i] = (uint8_t)(number >> 8 * i);
}

static void put_greys(uint8_t *to)
{
	for (uint32_t i = 0; i < GREYS; i++)
		put(to + 4 * i, i * 0x10101);
}

/* Per metre. */
static uint32_t density(double per_mm)
{
	return (uint32_t)fmin(rint(per_mm * 1000), INT32_MAX);
}

static void put_masks(uint8_t *bitmap)
{
	put(bitmap + 40, 0xff0000);
	put(bitmap + 44, 0xff00);
	put(bitmap + 48, 0xff);
	put(bitmap + 52, 0xff000000);
}

static void make_head(struct head *h, const struct output_format *output,
                      const struct file_metadata *m, uint64_t pixels, size_t profile)
{
	const struct image *image = &output->image;
	uint8_t *bitmap = h->bytes + FILE_HEAD;
	bool grey = image->bands == 1;

	*h = (struct head){.bitmap = profile ? V5_HEAD : image->alpha ? V4_HEAD : INFO_HEAD};
	h->size = FILE_HEAD + h->bitmap + (grey ? GREYS_SIZE : 0);
	memcpy(h->bytes, "BM", 2);
	put(h->bytes + 2, h->size + pixels + profile);
	put(h->bytes + 10, h->size);
	put(bitmap, h->bitmap);
	put(bitmap + 4, image->width);
	put(bitmap + 8, image->height);
	put(bitmap + 12, 1 | 8 * image->bands << 16); /* planes and bits, of 16 bits each */
	put(bitmap + 16, image->alpha ? WITH_MASKS : 0);
	put(bitmap + 20, pixels);
	put(bitmap + 24, m ? density(m->resolution.x) : 0);
	put(bitmap + 28, m ? density(m->resolution.y) : 0);
	put(bitmap + 32, grey ? GREYS : 0);
	if (image->alpha)
		put_masks(bitmap);
	if (h->bitmap > INFO_HEAD)
		memcpy(bitmap + 56, profile ? "DEBM" : "BGRs", 4); /* embedded, or sRGB */
	if (profile) {
		put(bitmap + 108, FOR_IMAGES);
		put(bitmap + 112, h->size - FILE_HEAD + pixels);
		put(bitmap + 116, profile);
	}
	if (grey)
		put_greys(bitmap + h->bitmap);
}

static void put_row(const struct output_format *output, uint8_t *to, const uint8_t *row)
{
	if (output->image.bands > 1)
		convert_to_bgr(to, output->image.bands, output, row);
	else
		convert_samples(to, PIXEL_U8, row, output->result.type, output->image.width);
}

/* The profile, if it is one for the pixels: malloc'd; else NULL, of size 0. */
static enum error take_profile(const struct file_metadata *m, const struct image *image,
                               uint8_t **profile, size_t *size, struct problem *problem)
{
	*size = m ? file_metadata_profile_size(m) : 0;
	*profile = *size ? file_metadata_profile(m, size) : NULL;
	if (*size && !*profile)
		return problem_set(problem, ERR_MEMORY, "no memory for the profile");
	if (!*profile || icc_profile_fits(*profile, *size, image->bands - image->alpha))
		return ERR_OK;
	free(*profile);
	*profile = NULL;
	*size = 0;
	return ERR_OK;
}

static enum error write_file(const struct head *head, const struct plain_layout *layout,
                             answer_row *row, void *context, int file, struct problem *problem)
{
	if (!file_write(file, head->bytes, head->size, 0))
		return plain_failed(problem);
	return plain_write(layout, row, context, file, problem);
}

enum error bmp_encode(const struct output_format *output, const struct file_metadata *metadata,
                      answer_row *row, void *context, int file, struct problem *problem)
{
	const struct image *image = &output->image;
	struct plain_layout layout = {.output = output,
	                              .row_size = (image_row_size(image) + 3) / 4 * 4,
	                              .bottom_up = true,
	                              .put = put_row};
	const uint64_t pixels = layout.row_size * (uint64_t)image->height;
	struct head head;
	uint8_t *profile;
	size_t size;
	enum error e = take_profile(metadata, image, &profile, &size, problem);

	if (e)
		return e;
	make_head(&head, output, metadata, pixels, size);
	layout.start = head.size;
	e = write_file(&head, &layout, row, context, file, problem);
	if (!e && profile && !file_write(file, profile, size, head.size + pixels))
		e = plain_failed(problem);
	free(profile);
	return e;
}
