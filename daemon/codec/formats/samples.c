#include "codec/formats/samples.h"

#include <assert.h>
#include <sys/param.h>

#include "base/file.h"

/* Returns 0 for NaN; written so that compilers vectorise it. */
static inline float scaled(float value, float full)
{
	value *= full;
	value = value > 0 ? value : 0;
	return (value < full ? value : full) + 0.5f;
}

static void f32_to_u8(void *to, const void *from, size_t samples)
{
	const float *in = from;
	uint8_t *out = to;

	for (size_t i = 0; i < samples; i++)
		out[i] = (uint8_t)scaled(in[i], 255);
}

static void f32_to_u16(void *to, const void *from, size_t samples)
{
	const float *in = from;
	uint16_t *out = to;

	for (size_t i = 0; i < samples; i++)
		out[i] = (uint16_t)scaled(in[i], 65535);
}

/* 65535 is 255 * 257, and 257 is odd, so there are no ties. */
static void u16_to_u8(void *to, const void *from, size_t samples)
{
	const uint16_t *in = from;
	uint8_t *out = to;

	for (size_t i = 0; i < samples; i++)
		out[i] = (uint8_t)((in[i] + 128u) / 257u);
}

static void (*const converters[PIXEL_TYPES][PIXEL_TYPES])(void *, const void *, size_t) = {
    [PIXEL_U8] = {[PIXEL_U16] = u16_to_u8, [PIXEL_F32] = f32_to_u8},
    [PIXEL_U16] = {[PIXEL_F32] = f32_to_u16},
};

void samples_convert(void *to, enum pixel_type to_type, const void *from, enum pixel_type from_type,
                     size_t samples)
{
	assert(converters[to_type][from_type]);
	converters[to_type][from_type](to, from, samples);
}

void samples_to_bgr(uint8_t *to, uint32_t bands, const struct output_format *output,
                    const uint8_t *row)
{
	const struct image *from = output->to_srgb ? &output->image : &output->result;
	const uint32_t green = from->bands > 2 ? 1 : 0;

	for (uint32_t x = 0; x < from->width; x++, row += from->bands, to += bands) {
		to[0] = row[2 * green];
		to[1] = row[green];
		to[2] = row[0];
		if (bands == 4)
			to[3] = from->alpha ? row[from->bands - 1] : 255;
	}
}

/* Copies `count` samples; the steps between them are in samples. */
static inline void copy_apart(void *to, size_t to_step, const void *from, size_t from_step,
                              uint32_t count, size_t size)
{
	for (uint32_t i = 0; i < count; i++)
		if (size == 1)
			((uint8_t *)to)[i * to_step] = ((const uint8_t *)from)[i * from_step];
		else if (size == 2)
			((uint16_t *)to)[i * to_step] = ((const uint16_t *)from)[i * from_step];
		else
			((uint32_t *)to)[i * to_step] = ((const uint32_t *)from)[i * from_step];
}

void samples_split(uint8_t *to, uint64_t pitch, const uint8_t *row, uint32_t planes, uint32_t width,
                   size_t size)
{
	for (uint32_t p = 0; p < planes; p++)
		copy_apart(to + p * pitch, 1, row + p * size, planes, width, size);
}

void samples_weave(uint8_t *row, const uint8_t *from, uint64_t pitch, uint32_t planes,
                   uint32_t width, size_t size)
{
	for (uint32_t p = 0; p < planes; p++)
		copy_apart(row + p * size, planes, from + p * pitch, 1, width, size);
}

enum error samples_write(const struct answer *answer, const struct row_layout *l, const void *head,
                         struct problem *problem)
{
	const uint32_t height = output_rows(answer->output);
	const uint32_t rows_max = (uint32_t)((256 << 10) / l->row_size) + 1;
	uint8_t *rows = calloc(rows_max, l->row_size);
	bool written = file_write(answer->file, head, l->start, 0);

	if (!rows)
		return no_memory(problem, "to write the answer");
	for (uint32_t first = 0, count; written && first < height; first += count) {
		uint64_t place;

		count = MIN(height - first, rows_max);
		place = l->bottom_up ? height - first - count : first;
		for (uint32_t i = 0; written && i < count; i++) {
			const uint8_t *row = answer->row(answer->context, first + i);
			uint32_t at = l->bottom_up ? count - 1 - i : i;

			written = row;
			if (row)
				l->put(answer->output, rows + at * l->row_size, row);
		}
		written = written && file_write(answer->file, rows, count * l->row_size,
		                                l->start + place * l->row_size);
	}
	free(rows);
	return written ? ERR_OK : problem_set(problem, ERR_IO, "cannot write the answer");
}
