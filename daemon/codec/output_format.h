/* Chooses how the answer is written. */
#ifndef CODEC_OUTPUT_FORMAT_H
#define CODEC_OUTPUT_FORMAT_H

#include "base/error.h"
#include "codec/row.h"
#include "wire/wire.h"

/* Chooses the format and its settings for a result of this size. Without a requested format it is
 * the one with the greatest weight, and among equals the body's. ERR_UNENCODABLE lists the formats
 * that would do; ERR_BAD_PARAMETER says what the format supports. */
enum error output_format_choose(struct output_format *output, const struct message_job *job,
                                const struct decoded *decoded, uint32_t width, uint32_t height,
                                struct problem *problem) MUST_CHECK;

#endif
