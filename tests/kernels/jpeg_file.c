#include "jpeg_file.h"

#include <stdlib.h>
#include <string.h>

#include "codec/jpeg_header.h"
#include "harness.h"

void jpeg_file_encode(struct jpeg_file *file, struct jpegs_picture picture, struct jpegs_wish wish)
{
	enum jpeg_reason odd;

	*file = (struct jpeg_file){.wish = wish, .picture = picture};
	file->bytes = jpegs_encode(&picture, &wish, &file->size);
	odd = jpeg_header_read(file->bytes, file->size, &file->scan);
	if (odd)
		die(jpeg_reason_slug(odd));
}

void jpeg_file_make(struct jpeg_file *file, struct jpegs_wish wish, enum jpegs_content content,
                    uint32_t seed)
{
	const uint32_t bands = wish.sampling == JPEGS_GRAY ? 1 : 3;

	jpeg_file_encode(file, jpegs_draw(wish.width, wish.height, bands, content, seed), wish);
}

void jpeg_file_random(struct jpeg_file *file)
{
	jpeg_file_make(file,
	               (struct jpegs_wish){16 + random_below(100), 16 + random_below(60),
	                                   (enum jpegs_sampling)random_below(JPEGS_420 + 1),
	                                   20 + random_below(80), random_below(2) * random_below(9),
	                                   .optimize = random_below(2)},
	               (enum jpegs_content)random_below(JPEGS_CONTENTS), random_below(1000));
}

void jpeg_file_free(struct jpeg_file *file)
{
	free(file->picture.samples);
	free(file->bytes);
}

bool jpeg_file_damage(struct jpeg_file *file, const struct jpeg_file *whole)
{
	const uint32_t size = (uint32_t)whole->scan.size;
	uint32_t at = random_below(size);
	uint8_t *scan;

	*file = *whole;
	file->picture.samples = NULL;
	file->bytes = malloc(whole->size);
	if (!file->bytes)
		abort();
	memcpy(file->bytes, whole->bytes, whole->size);
	scan = file->bytes + whole->scan.offset;
	while (file->wish.restart_interval && at + 1 < size && (scan[at] != 0xFF || !scan[at + 1]))
		at++;
	if (file->wish.restart_interval && at + 1 < size && random_below(2)) {
		scan[at + 1] = (uint8_t)(0xD0 + random_below(8));
	} else {
		for (uint32_t n = random_below(3); n < 3; n++)
			scan[random_below(size)] = (uint8_t)random_below(256);
		if (random_below(4) == 0) {
			uint32_t cut = random_below(size);

			memmove(scan + cut, scan + size, whole->size - whole->scan.offset - size);
			file->size -= size - cut;
		}
	}
	if (!jpeg_header_read(file->bytes, file->size, &file->scan))
		return true;
	jpeg_file_free(file);
	return false;
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
