/* Who decodes and encodes the JPEGs of a job: its codec worker, or a device, as one tile with
 * scans. The answer's bytes are the same. */
#ifndef FRONT_WORKERS_JPEG_ROUTER_H
#define FRONT_WORKERS_JPEG_ROUTER_H

#include "front/jobs/job.h"

/* Before the image is known: the reason why no device may do the job, or NONE, and then the most
 * pixels that it may have. */
enum jpeg_reason jpeg_router_ask(const struct job *job, uint32_t *pixels_max) MUST_CHECK;

/* Chooses for a job whose jpeg_form can be such a tile: NONE, and the devices that may have it, or
 * the reason why none shall. `waiting`: jobs for each codec worker that wait for one. */
enum jpeg_reason jpeg_router_choose(const struct job *job, const struct image *image,
                                    double waiting, uint64_t *devices) MUST_CHECK;

/* Learns how long codec workers, or devices (in each case without waiting), took for these sides of
 * a job that either could do. */
enum jpeg_lane { JPEG_LANE_CODEC, JPEG_LANE_DEVICE, JPEG_LANES };
void jpeg_router_learn(enum jpeg_lane lane, enum tile_form form, const struct image *image,
                       double ns);

/* A JPEG of this device was compared and is wrong. */
void jpeg_router_distrust(unsigned device);

/* The expected time of these sides of an image, without waiting. */
double jpeg_router_expect(enum jpeg_lane lane, enum tile_form form, const struct image *image);

#endif
