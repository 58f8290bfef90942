/* Turns libvips's errors into messages for the client. */
#ifndef CODEC_VIPS_ERROR_H
#define CODEC_VIPS_ERROR_H

#include <stdbool.h>

#include "common/error.h"

/* Fills in the problem with the error of `who` ("the JPEG decoder"), as one sentence without paths,
 * and empties libvips's error buffer. Returns e; if the cause is another, ERR_DECODER_DIED (the
 * memory limit was reached) or ERR_IO. */
enum error vips_error_take(struct problem *problem, enum error e, const char *who);

#endif
