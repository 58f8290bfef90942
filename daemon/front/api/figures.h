/* The metrics as JSON: once, and once a second as a stream of events. */
#ifndef FRONT_API_FIGURES_H
#define FRONT_API_FIGURES_H

#include "front/api/request.h"

enum error figures_init(void) MUST_CHECK;
void figures_fini(void);

/* Ends the streams, as the service is about to. */
void figures_drain(void);

/* Routes. */
void figures_get(struct request *request);
void figures_get_events(struct request *request);

#endif
