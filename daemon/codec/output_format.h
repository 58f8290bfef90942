/* Choosing how the answer is written. */
#ifndef CODEC_OUTPUT_FORMAT_H
#define CODEC_OUTPUT_FORMAT_H

#include "codec/decode.h"
#include "common/error.h"
#include "common/formats.h"
#include "common/wire.h"

struct output_format {
	enum format format;
	struct image result; /* as it is composed */
	struct image image;  /* as it is written: type and bands may differ */
	bool cmyk;
	bool to_srgb;         /* the format holds no CMYK, which the result is */
	struct coding coding; /* with the quality that the format has by default */
	bool full_chroma;     /* of a JPEG */
	bool strip;
	uint32_t lost; /* bit (1 << enum loss) for each */
};

/* Chooses the format and all that follows from it for a result of this size. Without a format asked
 * for, it is that with the greatest weight, and among equals the body's. ERR_UNENCODABLE says which
 * formats would do, ERR_BAD_PARAMETER what the format can be asked for. */
enum error output_format_choose(struct output_format *output, const struct message_job *job,
                                const struct decoded *decoded, uint32_t width, uint32_t height,
                                struct problem *problem) MUST_CHECK;

#endif
