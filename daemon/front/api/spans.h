/* What operators are told of a request and of its job: spans for a collector of traces, and texts
 * for log lines and spans. Texts that do not fit are cut off. */
#ifndef FRONT_API_SPANS_H
#define FRONT_API_SPANS_H

#include <stddef.h>

#include "front/api/request.h"

/* A job has ended: sends the spans of its stages. */
void spans_of_job(const struct job *job);

/* A request is answered: sends its span. */
void spans_of_request(const struct request *request);

/* The labels of the devices that had a part in it, "gpu0,gpu1". */
void job_text_devices(const struct job *job, char *text, size_t room);

/* Its filters in their order, "gaussian,luma:sobel". */
void job_text_filters(const struct job *job, char *text, size_t room);

/* The image that was decoded, as far as it got, "640x480x3:u8". */
void job_text_image(const struct job *job, char *text, size_t room);

#endif
