/* The kinds of objects that a device worker counts. */
#ifndef COMMON_OBJECTS_H
#define COMMON_OBJECTS_H

enum object {
#define OBJECT(symbol, ...) OBJECT_##symbol,
#include "common/objects.def"
#undef OBJECT
	OBJECTS
};

#endif
