/* The messages of a decoder's or encoder's library, in ours. */
#ifndef CODEC_LIBRARY_ERROR_H
#define CODEC_LIBRARY_ERROR_H

#include "common/error.h"

/* Describes the problem by the first of the library's lines, "the JPEG decoder says: ...". Returns
 * e, or what some line indicates instead: ERR_DECODER_DIED for a lack of memory, ERR_IO for a
 * failed system call. */
enum error library_error_describe(struct problem *problem, enum error e, const char *who,
                                  const char *lines) MUST_CHECK;

#endif
