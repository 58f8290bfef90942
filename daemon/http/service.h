/* The service, behind a link: what link/serve.h says is done in the front. */
#ifndef HTTP_SERVICE_H
#define HTTP_SERVICE_H

#include <stdbool.h>

#include "common/error.h"

struct service_calls {
	void (*drain)(bool last); /* accept no more (last: after those that wait) */
	void (*lost)(void);       /* the front has gone, or cannot be understood */
};

/* Connects to the front by a socket of link_pair(), which is then the service's. */
enum error service_init(int socket, const struct service_calls *calls) MUST_CHECK;

/* Does what is due; returns the milliseconds that the loop may wait, -1: any time. Call it before
 * each wait. */
int service_turn(void);

/* False while the front, which asks for a sign of life twice a second, has said nothing for a
 * while, or has no room for more. */
bool service_speaks(void);

/* True while so much waits to be sent to the front that no more should be read of clients. */
bool service_is_full(void);

/* Tells the front how many requests are under way; drained: and that no more come. */
void service_report(unsigned requests, bool drained);

#endif
