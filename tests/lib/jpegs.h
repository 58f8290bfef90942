/* JPEG files by libjpeg-turbo, the measure for devices' decoding and encoding. Any failure but that
 * of jpegs_decode_any() ends the process. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum jpegs_sampling { JPEGS_GRAY, JPEGS_444, JPEGS_422, JPEGS_420, JPEGS_440, JPEGS_411 };

/* The properties of a file. */
struct jpegs_wish {
	uint32_t width, height;
	enum jpegs_sampling sampling;
	unsigned quality, restart_interval;
	bool optimize, progressive, arithmetic, adobe;
	int colors; /* as libjpeg's J_COLOR_SPACE; 0: its default for the bands */
};

/* Packed rows of 1 or 3 bands, or of 4 inks. */
struct jpegs_picture {
	uint32_t width, height, bands;
	uint8_t *samples;
};

enum jpegs_content { JPEGS_SMOOTH, JPEGS_NOISE, JPEGS_FLAT, JPEGS_PAGE, JPEGS_CONTENTS };

/* Returns pixels that depend on their place and the seed only. Free their samples. */
struct jpegs_picture jpegs_draw(uint32_t width, uint32_t height, uint32_t bands,
                                enum jpegs_content content, uint32_t seed);

/* Encodes a picture. Free the file. */
uint8_t *jpegs_encode(const struct jpegs_picture *picture, const struct jpegs_wish *wish,
                      size_t *size);

/* Decodes a file as the service does, gray or RGB, also one that libjpeg warns of. False if libjpeg
 * refuses it; there is then nothing to free. */
bool jpegs_decode_any(const uint8_t *file, size_t size, struct jpegs_picture *picture);
