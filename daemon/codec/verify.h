/* Computes the reference of tiles, piece by piece: to use it as the result, or to compare a
 * device's with it. That is done here, where no driver has influence: for all tiles if the request
 * asks for it, otherwise for windows of a few. */
#ifndef CODEC_VERIFY_H
#define CODEC_VERIFY_H

#include "codec/tiles.h"

/* True for the share of tiles that are to be compared. */
bool verify_chosen(struct tiles *tiles);

/* Decoding side. Filters tile i, which has been sent, in place of a device. */
enum error verify_filter(struct tiles *tiles, uint32_t i) MUST_CHECK;

/* Encoding side. Waits until a strip's tiles are filtered, and compares those that are chosen
 * (never for VARIANT_REFERENCE), which sends MSG_VERIFIED. A tile with mismatches runs again; if
 * its results differ between runs, or complete verification still finds mismatches, the reference's
 * result replaces them in the slot. Failures to compare are logged and have no other effect. False
 * if the job was stopped. */
bool verify_await(struct tiles *tiles, uint32_t strip) MUST_CHECK;

#endif
