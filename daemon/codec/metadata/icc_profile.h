/* ICC profiles (ICC.1:2010). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* True if a profile has a valid header and table of tags, for colours of at most so many bands. */
bool icc_profile_fits(const uint8_t *profile, size_t size, unsigned bands);

/* Returns true if it is such a profile, of grey or (colours) RGB. */
bool icc_profile_is_of(const uint8_t *profile, size_t size, bool colours);

/* Returns true if every reader accepts the profile for an image in grey or colours: it is complete,
 * and its header and table of tags are right. */
bool icc_profile_is_sound(const uint8_t *profile, size_t size, bool colours);
