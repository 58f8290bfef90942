/* Composing: from the result's rows to the answer's. */
#ifndef CODEC_COMPOSE_H
#define CODEC_COMPOSE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "codec/decode.h"
#include "codec/row.h"
#include "codec/tiles.h"

struct composer;

/* The size of the answer to a result of this tiling: the result's, or with a target the whole
 * image's. ERR_BAD_PARAMETER if the result would exceed the image. */
enum error compose_size(const struct message_job *job, const struct decoded *decoded,
                        const struct tiling *tiling, uint32_t *width, uint32_t *height,
                        struct problem *problem) MUST_CHECK;

/* Prepares the answer's rows from those of `tiles`; with a target, opens the body a second time.
 * The caller keeps body and tiles, which must outlive the composer. */
enum error compose_open(struct composer **composer, struct tiles *tiles, int body,
                        struct problem *problem) MUST_CHECK;
void compose_close(struct composer **composer);

/* The answer's rows, in the devices' sample type. A failure here stops the job. */
struct row_source compose_rows(struct composer *composer);

#endif
