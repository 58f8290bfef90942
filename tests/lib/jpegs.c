#include "jpegs.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <jpeglib.h>

static uint32_t hash(uint32_t n)
{
	n = (n ^ n >> 16) * 0x7feb352d;
	n = (n ^ n >> 15) * 0x846ca68b;
	return n ^ n >> 16;
}

static uint8_t sample(uint32_t x, uint32_t y, uint32_t band, enum jpegs_content content,
                      uint32_t seed)
{
	uint32_t random = hash(seed * 31 + band + 3 * hash(x + 65536 * y));
	uint32_t cell = hash(seed + x / 5 + y / 7 * 977);

	switch (content) {
	case JPEGS_SMOOTH:
		return (uint8_t)((x * (3 + band) + y * 2 + seed) % 251 * 3 / 4 + random % 9);
	case JPEGS_NOISE:
		return (uint8_t)random;
	case JPEGS_FLAT:
		return (uint8_t)(60 + 50 * band + seed % 7);
	case JPEGS_PAGE:
		return cell % 4 ? 255 : 20;
	case JPEGS_CONTENTS:
		break;
	}
	abort();
}

struct jpegs_picture jpegs_draw(uint32_t width, uint32_t height, uint32_t bands,
                                enum jpegs_content content, uint32_t seed)
{
	struct jpegs_picture p = {width, height, bands, malloc((size_t)width * height * bands)};
	uint8_t *at = p.samples;

	if (!at)
		abort();
	for (uint32_t y = 0; y < height; y++)
		for (uint32_t x = 0; x < width; x++)
			for (uint32_t b = 0; b < bands; b++)
				*at++ = sample(x, y, b, content, seed);
	return p;
}

uint8_t *jpegs_encode(const struct jpegs_picture *picture, const struct jpegs_wish *wish,
                      size_t *size)
{
	static const uint8_t factors[][2] = {
	    [JPEGS_GRAY] = {1, 1}, [JPEGS_444] = {1, 1}, [JPEGS_422] = {2, 1},
	    [JPEGS_420] = {2, 2},  [JPEGS_440] = {1, 2}, [JPEGS_411] = {4, 1},
	};
	struct jpeg_compress_struct c = {0};
	struct jpeg_error_mgr error;
	unsigned char *file = NULL;
	unsigned long bytes = 0;

	c.err = jpeg_std_error(&error);
	jpeg_create_compress(&c);
	jpeg_mem_dest(&c, &file, &bytes);
	c.image_width = picture->width;
	c.image_height = picture->height;
	c.input_components = (int)picture->bands;
	c.in_color_space = picture->bands == 1   ? JCS_GRAYSCALE
	                   : picture->bands == 3 ? JCS_RGB
	                                         : JCS_CMYK;
	jpeg_set_defaults(&c);
	if (wish->colors)
		jpeg_set_colorspace(&c, (J_COLOR_SPACE)wish->colors);
	c.write_Adobe_marker |= wish->adobe;
	jpeg_set_quality(&c, (int)wish->quality, TRUE);
	c.comp_info[0].h_samp_factor = factors[wish->sampling][0];
	c.comp_info[0].v_samp_factor = factors[wish->sampling][1];
	c.restart_interval = wish->restart_interval;
	c.optimize_coding = wish->optimize;
	c.arith_code = wish->arithmetic;
	if (wish->progressive)
		jpeg_simple_progression(&c);
	jpeg_start_compress(&c, TRUE);
	while (c.next_scanline < c.image_height) {
		JSAMPROW row =
		    picture->samples + (size_t)c.next_scanline * picture->width * picture->bands;

		jpeg_write_scanlines(&c, &row, 1);
	}
	jpeg_finish_compress(&c);
	jpeg_destroy_compress(&c);
	*size = bytes;
	return file;
}

struct failing {
	struct jpeg_error_mgr manager;
	jmp_buf where;
};

static void fail(j_common_ptr c)
{
	longjmp(((struct failing *)c->err)->where, 1);
}

static void quiet(j_common_ptr c, int level)
{
	(void)c, (void)level;
}

bool jpegs_decode_any(const uint8_t *file, size_t size, struct jpegs_picture *picture)
{
	struct jpeg_decompress_struct d = {0};
	struct failing failing;
	uint8_t *volatile samples = NULL;

	d.err = jpeg_std_error(&failing.manager);
	failing.manager.error_exit = fail;
	failing.manager.emit_message = quiet;
	if (setjmp(failing.where)) {
		jpeg_destroy_decompress(&d);
		free(samples);
		return false;
	}
	jpeg_create_decompress(&d);
	jpeg_mem_src(&d, file, size);
	jpeg_read_header(&d, TRUE);
	jpeg_start_decompress(&d);
	samples = malloc((size_t)d.output_width * d.output_height * (size_t)d.output_components);
	if (!samples)
		abort();
	while (d.output_scanline < d.output_height) {
		JSAMPROW row = samples + (size_t)d.output_scanline * d.output_width *
		                             (size_t)d.output_components;

		jpeg_read_scanlines(&d, &row, 1);
	}
	jpeg_finish_decompress(&d);
	*picture = (struct jpegs_picture){d.output_width, d.output_height,
	                                  (uint32_t)d.output_components, samples};
	jpeg_destroy_decompress(&d);
	return true;
}
