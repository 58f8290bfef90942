/* Encoding JPEG without libvips: from the answer's rows to the answer's bytes. */
#ifndef CODEC_JPEG_ENCODE_H
#define CODEC_JPEG_ENCODE_H

#include "base/error.h"
#include "codec/output_format.h"
#include "image/jpeg.h"

struct file_metadata;

/* True if jpeg_encode() writes such an answer. If not, libvips converts it. */
bool jpeg_encodes(const struct output_format *output);

/* Takes rows one after another and writes them to an empty file. metadata: of a JPEG; NULL: none.
 * Rows that end too early are no error here. Allocates nothing a row. */
enum error jpeg_encode(const struct output_format *output, const struct file_metadata *metadata,
                       answer_row *row, void *context, int file,
                       struct problem *problem) MUST_CHECK;

/* True if a device can encode the scan of such an answer, which then is to be like this. Images of
 * a single row of MCUs stay here. */
bool jpeg_encode_target(const struct output_format *output, struct jpeg_target *target) MUST_CHECK;

/* As jpeg_encode(), for a scan that a device has encoded by jpeg_encode_target(). */
enum error jpeg_encode_scan(const struct output_format *output,
                            const struct file_metadata *metadata, const struct jpeg_bytes *scan,
                            int file, struct problem *problem) MUST_CHECK;

#endif
