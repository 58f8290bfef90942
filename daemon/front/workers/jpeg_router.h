/* Chooses whether a job's codec worker decodes and encodes its JPEGs, or a device, as one tile with
 * scans. The answer's bytes are the same. */
#pragma once

#include "front/jobs/job.h"

/* Called before the image is known: returns the reason why no device may do the job, or NONE, and
 * then the largest number of pixels that the image may have. */
enum jpeg_reason jpeg_router_ask(const struct job *job, uint32_t *pixels_max) MUST_CHECK;

/* Chooses for a job whose jpeg_form can be such a tile: returns NONE and the devices that may have
 * it, or the reason why none may. workers: the number of codec workers, at least one. */
enum jpeg_reason jpeg_router_choose(struct job *job, const struct image *image, unsigned workers,
                                    uint64_t *devices) MUST_CHECK;

/* Learns the time of a choice from a job that has just ended well. */
void jpeg_router_learn(const struct job *job);

/* Records that a JPEG of this device was compared and is wrong. */
void jpeg_router_distrust(unsigned device);
