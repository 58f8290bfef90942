/* Metadata of JPEG files. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <jpeglib.h>

#include "base/error.h"
#include "codec/metadata/file_metadata.h"

/* Makes the decoder keep the segments. Call it before the header is read. */
void jpeg_metadata_expect(struct jpeg_decompress_struct *decoder);

/* Fills in the metadata after the header has been read. It refers to the decoder's memory. Returns
 * false without memory. */
bool jpeg_metadata_read(struct file_metadata *metadata,
                        const struct jpeg_decompress_struct *decoder) MUST_CHECK;

/* Writes the segments of an answer after its start. May leave by a jump. */
void jpeg_metadata_write(const struct file_metadata *answer, struct jpeg_compress_struct *encoder);
