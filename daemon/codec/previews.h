/* Blocks of metadata without the pictures in them: previews and thumbnails show what an image was
 * before it was filtered. */
#ifndef CODEC_PREVIEWS_H
#define CODEC_PREVIEWS_H

#include <stddef.h>
#include <stdint.h>

#include <glib.h>

/* Each returns what is left of a block, the caller's to free, or NULL if that is nothing: also
 * where the block is not of the form that it should have, for what cannot be read could be a
 * picture. Of a block that is cut off what comes before is kept. */

/* An XMP packet (ISO 16684-1). Pictures stand in it as text, under names that are known or as a
 * long run of base64. */
GByteArray *previews_drop_from_xmp(const uint8_t *block, size_t size);

/* Photoshop's image resources ("8BIM", after "Photoshop 3.0" as in JPEG or bare as in TIFF), or the
 * bare data sets of IPTC-IIM. */
GByteArray *previews_drop_from_resources(const uint8_t *block, size_t size);

#endif
