/* Encoding: from the answer's rows to the answer's bytes. */
#pragma once

#include "base/error.h"
#include "codec/decode.h"
#include "codec/formats/row.h"
#include "image/jpeg.h"

struct encoder;

/* Prepares to write an answer's rows, with the metadata of the body. The caller keeps the source of
 * the rows, output and body, which must outlive the encoder; the body may be decoded meanwhile. */
enum error encode_open(struct encoder **encoder, const struct output_format *output,
                       struct row_source rows, struct decoder *body,
                       struct problem *problem) MUST_CHECK;
void encode_close(struct encoder **encoder);

/* True if libvips has no part in writing the answer. */
bool encode_is_plain(const struct encoder *encoder);

/* Returns true if a device can encode the answer's scan, and describes that scan. */
bool encode_jpeg_target(const struct encoder *encoder, struct jpeg_target *target) MUST_CHECK;

/* A file, opened twice: its writer cannot map it, and its reader cannot change it. */
struct answer_file {
	int writer, reader;
};

/* Writes the whole answer to an empty file: with a scan made by a device, or (NULL) from its rows,
 * for whose tiles it waits and whose slots it frees. If the job was stopped, the returned error
 * does not count. */
enum error encode_run(struct encoder *encoder, const struct jpeg_bytes *scan,
                      const struct answer_file *file, struct problem *problem) MUST_CHECK;
