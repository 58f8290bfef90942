#include "codec/planes.h"

/* Copies `count` samples, so many samples apart on either side. */
static inline void copy(void *to, size_t to_step, const void *from, size_t from_step,
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

void planes_split(uint8_t *to, uint64_t pitch, const uint8_t *row, uint32_t planes, uint32_t width,
                  size_t size)
{
	for (uint32_t p = 0; p < planes; p++)
		copy(to + p * pitch, 1, row + p * size, planes, width, size);
}

void planes_weave(uint8_t *row, const uint8_t *from, uint64_t pitch, uint32_t planes,
                  uint32_t width, size_t size)
{
	for (uint32_t p = 0; p < planes; p++)
		copy(row + p * size, planes, from + p * pitch, 1, width, size);
}
