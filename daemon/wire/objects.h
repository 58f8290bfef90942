/* The kinds of objects that a device worker counts. */
#ifndef WIRE_OBJECTS_H
#define WIRE_OBJECTS_H

enum object {
#define OBJECT(symbol, ...) OBJECT_##symbol,
#include "wire/objects.def"
#undef OBJECT
	OBJECTS
};

#endif
