/* Encoding: filtered tiles, in order, into an image file or bare pixels. */
#ifndef CODEC_ENCODE_H
#define CODEC_ENCODE_H

#include "codec/decode.h"
#include "codec/tiles.h"

/* The answer of a job. */
struct output {
	int answer;          /* descriptor; the job's */
	enum format format;
	struct image image;  /* as it is written: of the type that the format holds */
	VipsImage *vips;     /* produces the pixels as they are filtered; NULL for bare ones */
	struct tiles *tiles;
	uint32_t quality;
	bool strip;
	uint64_t waited;     /* ns that the encoder waited for tiles */
};

/* Chooses the format and refuses an image that it cannot hold. The tiling must be set. Takes the input's metadata,
 * so it comes before the input is decoded. output_close() in every case. */
enum error output_open(struct output *output, const struct input *input, struct tiles *tiles,
                       int answer, struct problem *problem) MUST_CHECK;
void output_close(struct output *output);

/* Writes the whole answer; ends early if the job fails. Returns the time that it was busy, in ns. */
uint64_t output_encode(struct output *output);

#endif
