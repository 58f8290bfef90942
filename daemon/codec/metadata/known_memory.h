/* The content of newly allocated memory, which decoders may leave in a picture. */
#pragma once

/* This is repeated in aligned memory (memalign() and its like), from its start. Other memory is
 * zero. A build with a sanitizer has neither. */
#define KNOWN_PATTERN 0x37b9799e
