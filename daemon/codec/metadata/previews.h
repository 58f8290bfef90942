/* Removes pictures from metadata: previews show what an image was before it was filtered. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <glib.h>

/* Each returns the rest of a block, which the caller frees; NULL if nothing remains, or if the
 * block is malformed, because a part that cannot be parsed could be a picture. The intact beginning
 * of a truncated block is kept. */

/* An XMP packet (ISO 16684-1). Pictures are text there, of known names or long runs of base64. */
GByteArray *previews_drop_from_xmp(const uint8_t *block, size_t size);

/* Photoshop's image resources ("8BIM", after "Photoshop 3.0" as in JPEG or bare as in TIFF), or the
 * bare data sets of IPTC-IIM. */
GByteArray *previews_drop_from_resources(const uint8_t *block, size_t size);
