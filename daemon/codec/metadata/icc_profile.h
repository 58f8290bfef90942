/* ICC profiles (ICC.1:2010). */
#ifndef CODEC_METADATA_ICC_PROFILE_H
#define CODEC_METADATA_ICC_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* True if a profile has a valid header and table of tags, and its colours need no more than this
 * many bands. */
bool icc_profile_fits(const uint8_t *profile, size_t size, unsigned bands);

/* True if it is one in grey or (colours) RGB, and fits so. */
bool icc_profile_is_of(const uint8_t *profile, size_t size, bool colours);

/* True if every reader takes the profile, which is all there, for an image in grey or colours: what
 * the header and the table of tags say is right. */
bool icc_profile_is_sound(const uint8_t *profile, size_t size, bool colours);

#endif
