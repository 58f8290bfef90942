/* The pieces of files: numbers, boxes, chunks, segments and directories. Each reader advances
 * behind the piece that it reads, never beyond the end. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The number of this many bytes, 8 at most. */
static inline uint64_t bytes_number(const uint8_t *at, size_t size, bool big_endian)
{
	uint64_t n = 0;

	for (size_t i = 0; i < size; i++)
		n = n << 8 | at[big_endian ? i : size - 1 - i];
	return n;
}

static inline void bytes_put(uint8_t *at, uint64_t number, size_t size, bool big_endian)
{
	for (size_t i = 0; i < size; i++)
		at[big_endian ? size - 1 - i : i] = (uint8_t)(number >> 8 * i);
}

/* True if the bytes begin with this text, without its end. */
bool bytes_begin(const uint8_t *at, size_t size, const char *text);

/* Skips a zero-terminated text. Returns NULL if it does not end, or if `at` is NULL. */
const uint8_t *bytes_text_end(const uint8_t *at, const uint8_t *end);

/* A box of HEIF, JPEG XL and others (ISO/IEC 14496-12, 4.2). */
struct box {
	const uint8_t *type, *at;
	size_t size; /* its content's, as much as there is */
	bool cut;    /* it is longer than what there is */
};

bool next_box(const uint8_t **at, const uint8_t *end, struct box *box);
bool box_is(const struct box *box, const char *type);

/* Bytes of a PNG before the first chunk, and of a chunk around its data: length and name, and a
 * checksum (W3C, Portable Network Graphics, chapter 5). */
enum { PNG_SIGNATURE = 8, PNG_CHUNK_HEAD = 8, PNG_CHUNK_FRAME = 12 };

extern const uint8_t png_signature[PNG_SIGNATURE];

struct png_chunk {
	const uint8_t *name; /* 4 letters */
	const uint8_t *data;
	uint32_t size; /* the data's, as much as there is */
	bool cut;      /* the file ends before the chunk does */
};

/* Reads a chunk, whatever its checksum is. */
bool png_chunk_next(const uint8_t **at, const uint8_t *end, struct png_chunk *chunk);
bool png_chunk_is(const struct png_chunk *chunk, const char *name);

/* A marker segment of a JPEG (T.81, B.1.1.4). */
struct jpeg_segment {
	const uint8_t *start; /* its marker's two bytes */
	uint8_t marker;
	const uint8_t *data;
	size_t size; /* the data's, as much as there is */
	bool cut;    /* the file ends before the segment does, or its length is invalid */
};

/* Skips everything between segments, coded pixels included. Returns false also at EOI. */
bool jpeg_segment_next(const uint8_t **at, const uint8_t *end, struct jpeg_segment *segment);

/* A TIFF (Adobe, TIFF 6.0), or a block of EXIF after its title. */
struct tiff_file {
	const uint8_t *at;
	size_t size;
	bool big_endian;
	size_t number; /* bytes of an offset: BigTIFF's are longer */
};

struct tiff_entry {
	uint64_t tag, type, count;
	uint64_t value;       /* as an offset; short values are in place of it */
	const uint8_t *field; /* the place of the offset */
};

struct tiff_directory {
	const struct tiff_file *tiff;
	const uint8_t *at;
	uint64_t left; /* entries */
};

/* Sets *first to the offset of the first directory. Returns false if this is no TIFF header. */
bool tiff_open(struct tiff_file *tiff, const uint8_t *at, size_t size, uint64_t *first);
/* False if the directory does not begin in the file. */
bool tiff_directory_open(struct tiff_directory *directory, const struct tiff_file *tiff,
                         uint64_t offset);
bool tiff_entry_next(struct tiff_directory *directory, struct tiff_entry *entry);
/* Returns, after the last entry, the offset of the next directory; 0 if there is none. */
uint64_t tiff_directory_end(const struct tiff_directory *directory);
