/* Guests: the connections, as the service counts them. Each takes a place among all, of which one
 * client has only so many; a trusted proxy, before it has named its client, as many as there are.
 */
#ifndef FRONT_API_GUEST_H
#define FRONT_API_GUEST_H

#include <stdbool.h>

#include "common/error.h"
#include "front/config/config.h"

struct guest;

/* Tells the connection why it has no place; now or later, once a name. */
typedef void guest_refuse(void *context, enum error error, const struct problem *problem);

void guests_init(const struct config *config);

/* A connection has been made, which needs no place before it has a name. NULL: no memory. */
struct guest *guest_new(guest_refuse *refuse, void *context) MUST_CHECK;

/* It is this client's (its address, or its user); it takes a place, instead of the one that it may
 * have. */
void guest_name(struct guest *guest, const char *client, bool proxy);

/* It has been closed, after which nothing more is told. NULL is none. */
void guest_free(struct guest *guest);

#endif
