/* Encoding JPEGs whose scan a device may have encoded. */
#ifndef CODEC_JPEG_ENCODE_H
#define CODEC_JPEG_ENCODE_H

#include "base/error.h"
#include "codec/row.h"
#include "image/jpeg.h"

/* True if a device can encode the scan of such an answer, which then is to be like this. Images of
 * a single row of MCUs stay here. */
bool jpeg_encode_target(const struct output_format *output, struct jpeg_target *target) MUST_CHECK;

/* Writes an answer with such a scan, as jpeg_writer would. */
enum error jpeg_encode_scan(const struct output_format *output,
                            const struct file_metadata *metadata, const struct jpeg_bytes *scan,
                            int file, struct problem *problem) MUST_CHECK;

#endif
