/* JPEG XL (ISO/IEC 18181-1 and -2): the headers before the pixels. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct jxl_header {
	bool long_one; /* the headers are longer than the part that is read; the rest is unknown */
	bool animated;
	/* channels in addition to grey or RGB; if there are several, `type` ends the headers */
	uint32_t extra;
	uint32_t type;      /* type of the first of these, 0: alpha */
	bool premultiplied; /* colours, by that channel, which is alpha */
	uint64_t profile;   /* bytes of coded ICC profile */
};

/* Finds the codestream, in boxes or bare, and reads its headers. Returns false if there is none
 * that a decoder would accept. */
bool jxl_header_read(struct jxl_header *header, const uint8_t *file, size_t size) MUST_CHECK;

/* Largest size of expanded metadata, in bytes. */
enum { JXL_METADATA_MAX = 1 << 20 };

/* Returns true if there is compressed metadata (boxes "brob"). */
bool jxl_has_packed(const uint8_t *file, size_t size);
/* Makes decoders skip compressed metadata, except small EXIF and XMP alone of their types. */
void jxl_hide_packed(uint8_t *file, size_t size);

/* Expands the only metadata of a type ("Exif", "xml ") if it is compressed. Returns a new block of
 * *unpacked bytes, to be freed; NULL if there is none, or it is damaged or too large. *box: the
 * position in the file of the box's type. */
uint8_t *jxl_unpack(const uint8_t *file, size_t size, const char type[4], const uint8_t **box,
                    size_t *unpacked);
