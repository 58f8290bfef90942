#include "jpeg_file.h"

#include <stdlib.h>

#include "codec/jpeg_header.h"
#include "harness.h"

void jpeg_file_encode(struct jpeg_file *file, struct jpegs_picture picture, struct jpegs_wish wish)
{
	enum jpeg_reason odd;

	*file = (struct jpeg_file){.wish = wish, .picture = picture};
	file->bytes = jpegs_encode(&picture, &wish, &file->size);
	odd = jpeg_header_read(file->bytes, file->size, &file->scan);
	if (odd)
		die(jpeg_reason_slugs[odd]);
}

void jpeg_file_make(struct jpeg_file *file, struct jpegs_wish wish, enum jpegs_content content,
                    uint32_t seed)
{
	const uint32_t bands = wish.sampling == JPEGS_GRAY ? 1 : 3;

	jpeg_file_encode(file, jpegs_draw(wish.width, wish.height, bands, content, seed), wish);
}

void jpeg_file_free(struct jpeg_file *file)
{
	free(file->picture.samples);
	free(file->bytes);
}

const uint8_t *jpeg_file_scan(const struct jpeg_file *file)
{
	return file->bytes + file->scan.offset;
}

struct jpeg_target jpeg_file_target(const struct jpegs_wish *wish)
{
	struct jpeg_target target = {.h = wish->sampling >= JPEGS_422 ? 2 : 1,
	                             .v = wish->sampling == JPEGS_420 ? 2 : 1};

	for (int p = 0; p < JPEG_PLANES; p++)
		jpeg_quality_table(wish->quality, (enum jpeg_plane)p, target.quantization[p]);
	return target;
}
