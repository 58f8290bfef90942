/* Encoding: from the answer's rows to the answer's bytes. */
#ifndef CODEC_ENCODE_H
#define CODEC_ENCODE_H

#include "codec/compose.h"
#include "codec/output_format.h"
#include "common/error.h"

struct encoder;
struct _VipsImage;

/* Prepares to write what the composer gives. Takes over what it needs of metadata (an image, or
 * NULL), which may be decoded afterwards. Composer and output stay the caller's and must outlive
 * the encoder. */
enum error encode_open(struct encoder **encoder, const struct output_format *output,
                       struct composer *composer, struct _VipsImage *metadata,
                       struct problem *problem) MUST_CHECK;
void encode_close(struct encoder **encoder);

/* Writes the whole answer to an empty file, waiting for tiles and freeing their slots. If the job
 * was stopped by someone else, returns ERR_OK; the reason is with the tiles. */
enum error encode_run(struct encoder *encoder, int file, struct problem *problem) MUST_CHECK;

#endif
