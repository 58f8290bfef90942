/* Writing PNM and bare pixels. */
#ifndef CODEC_PLAIN_H
#define CODEC_PLAIN_H

#include "codec/answer.h"
#include "codec/compose.h"
#include "common/error.h"

/* Writes what the composer gives to an empty file as FORMAT_PNM or FORMAT_RAW; as encode_run(). */
enum error plain_run(const struct answer *answer, struct composer *composer, int file,
                     struct problem *problem) MUST_CHECK;

#endif
