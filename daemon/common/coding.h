/* How an answer is encoded, as far as the client can choose. */
#ifndef COMMON_CODING_H
#define COMMON_CODING_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"

/* Compression: the methods are TIFF's; PNG's levels, 0 to 9, follow them. */
enum compression {
	COMPRESSION_DEFAULT,
	COMPRESSION_NONE,
	COMPRESSION_LZW,
	COMPRESSION_DEFLATE,
	COMPRESSION_ZSTD,
	COMPRESSION_LEVEL,
	COMPRESSIONS = COMPRESSION_LEVEL + 10
};

/* JPEG's chroma subsampling. */
enum subsample { SUBSAMPLE_AUTO, SUBSAMPLE_ON, SUBSAMPLE_OFF, SUBSAMPLES };

struct coding {
	uint32_t quality;       /* 1 to 100; 0: the format's default */
	uint32_t lossless;      /* 0 or 1 */
	uint32_t compression;   /* enum compression */
	uint32_t subsample;     /* enum subsample */
	uint32_t backgrounds;   /* number of values below: 0 (black), 1 (grey) or 3 */
	uint32_t background[3]; /* each 0 to 255 */
};

/* True if every field is within its limits. */
bool coding_valid(const struct coding *coding);

/* The compression of a name ("lzw") or level ("9"), or COMPRESSIONS. */
enum compression compression_parse(const char *text);
const char *compression_name(enum compression compression);
/* The setting of a name ("auto", "on", "off"), or SUBSAMPLES. */
enum subsample subsample_parse(const char *text);
/* Parses "G" or "R,G,B". Returns false on failure; the background is then undefined. */
bool background_parse(const char *text, struct coding *coding) MUST_CHECK;

#endif
