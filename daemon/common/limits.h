/* What connections may do, for who reads them: members of the configuration that a reload may
 * change. */
#ifndef COMMON_LIMITS_H
#define COMMON_LIMITS_H

#include <stdint.h>

#include "common/network.h"

struct limits {
	uint64_t idle_timeout, header_timeout, keepalive_timeout, body_timeout; /* seconds */
	uint64_t body_rate; /* least, bytes a second */
	struct networks trusted_proxies;
};

#endif
