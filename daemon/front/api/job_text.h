/* What operators are told of a job, in log lines and spans. Texts that do not fit are cut off. */
#ifndef FRONT_API_JOB_TEXT_H
#define FRONT_API_JOB_TEXT_H

#include <stddef.h>

#include "front/jobs/job.h"

/* The labels of the devices that had a part in it, "gpu0,gpu1". */
void job_text_devices(const struct job *job, char *text, size_t room);

/* Its filters in their order, "gaussian,luma:sobel". */
void job_text_filters(const struct job *job, char *text, size_t room);

/* The image that was decoded, as far as it got, "640x480x3:u8". */
void job_text_image(const struct job *job, char *text, size_t room);

#endif
