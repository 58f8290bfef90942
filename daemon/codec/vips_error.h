/* What libvips says when it fails, for the person who sent the request. */
#ifndef CODEC_VIPS_ERROR_H
#define CODEC_VIPS_ERROR_H

#include <stdbool.h>

#include "common/error.h"

/* Fills the problem with what `who` ("the JPEG decoder") complained about, as one sentence without
 * paths, and empties libvips's error buffer. Returns e, or, if the complaint is of something else,
 * ERR_DECODER_DIED (the bound on memory was met) or ERR_IO. */
enum error vips_error_take(struct problem *problem, enum error e, const char *who);

#endif
