/* Chooses how the answer is written. */
#ifndef CODEC_OUTPUT_FORMAT_H
#define CODEC_OUTPUT_FORMAT_H

#include "base/error.h"
#include "codec/decode.h"
#include "image/formats.h"
#include "wire/wire.h"

struct output_format {
	enum format format;
	struct image result; /* as composed */
	struct image image;  /* as written: type and bands may differ */
	uint32_t pages;      /* of this size */
	bool cmyk;
	bool to_srgb;         /* the result is CMYK, which the format cannot hold */
	struct coding coding; /* the quality is set, by default to the format's */
	bool full_chroma;     /* for JPEG */
	bool strip;
	uint32_t lost; /* bit (1 << enum loss) for each */
};

/* Returns a row of the answer, in output->result's sample type, valid until the next call; NULL:
 * there are no more. */
typedef const uint8_t *answer_row(void *context, uint32_t y);

/* Rows of all pages, one below the other. */
static inline uint32_t output_rows(const struct output_format *output)
{
	return output->pages * output->image.height;
}

/* Chooses the format and its settings for a result of this size. Without a requested format it is
 * the one with the greatest weight, and among equals the body's. ERR_UNENCODABLE lists the formats
 * that would do; ERR_BAD_PARAMETER says what the format supports. */
enum error output_format_choose(struct output_format *output, const struct message_job *job,
                                const struct decoded *decoded, uint32_t width, uint32_t height,
                                struct problem *problem) MUST_CHECK;

#endif
