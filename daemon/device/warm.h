/* Warming up: some drivers compile a kernel only when it is first launched. */
#ifndef DEVICE_WARM_H
#define DEVICE_WARM_H

#include "device/lane.h"

/* Launches every general kernel of every type on a small tile, on an idle lane, and waits for it.
 */
enum error warm_up(struct programs *programs, struct lane *lane) MUST_CHECK;

#endif
