/* JPEG XL (ISO/IEC 18181-1 and -2): what a file says before its pixels. */
#ifndef CODEC_FORMATS_JXL_H
#define CODEC_FORMATS_JXL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct jxl_header {
	bool long_one; /* it goes on for longer than is looked at; then the rest is not known */
	bool animated;
	uint32_t extra;     /* channels beside grey or RGB; if there are several, `type` ends it */
	uint32_t type;      /* type of the first of these, 0: alpha */
	bool premultiplied; /* colours, by that channel, which is alpha */
	uint64_t profile;   /* bytes of coded ICC profile */
};

/* Finds the codestream, in boxes or bare, and reads its headers. False if there is none that a
 * decoder would take. */
bool jxl_header_read(struct jxl_header *header, const uint8_t *file, size_t size) MUST_CHECK;

/* The most bytes that compressed metadata may become. */
enum { JXL_METADATA_MAX = 1 << 20 };

/* True if there is metadata that is compressed (boxes "brob"). */
bool jxl_has_packed(const uint8_t *file, size_t size);
/* Makes decoders skip it, but for EXIF and XMP that are not too large, each the only one. */
void jxl_hide_packed(uint8_t *file, size_t size);

/* Expands the only metadata of a type ("Exif", "xml "), if it is compressed: a new block of so many
 * bytes, to be freed; NULL if there is none such, or it is damaged or too large. *box: where in the
 * file the type of its box is. */
uint8_t *jxl_unpack(const uint8_t *file, size_t size, const char type[4], const uint8_t **box,
                    size_t *unpacked);

#endif
