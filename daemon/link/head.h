/* The head of a request, as the HTTP worker sends it to the front: one block of texts, each with
 * its kind. The reader treats the block as input. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum {
	HEAD_PARAMETERS_MAX = 64,
	HEAD_CLIENT_SIZE = 48,     /* a client's name with its NUL */
	HEAD_VALUE_MAX = 64 << 10, /* bytes of a parameter in a form */
	/* bytes of all of them, with names of up to 8 KiB */
	HEAD_FORM_MAX = HEAD_PARAMETERS_MAX * (HEAD_VALUE_MAX + (8 << 10)),
};

enum head_text {
	HEAD_METHOD = 1,
	HEAD_PATH,   /* decoded, without the query */
	HEAD_CLIENT, /* an address, or `user` and its number; may be left out, like the rest */
	HEAD_NAME,   /* a query parameter's, decoded; its value follows */
	HEAD_VALUE,
	HEAD_MASK, /* the number of bytes in the body of a form before its mask */
#define HEADER(symbol, name, many) HEAD_##symbol,
#include "link/headers.def"
	HEAD_TEXTS
};

struct head {
	char *data; /* the block, which the texts are in; owned */
	size_t size;
	char *form_data;              /* the same for the form's parameters; NULL: not read yet */
	const char *text[HEAD_TEXTS]; /* NULL: missing; not those of parameters */
	struct {
		const char *name, *value;
	} parameter[HEAD_PARAMETERS_MAX];
	unsigned parameters; /* number given; only the first are kept */
	uint64_t announced;  /* Content-Length; UINT64_MAX if missing */
	uint64_t mask;       /* bytes of the body before its mask; 0: it has none */
	bool loopback;       /* it arrived at a loopback address */
	bool monitoring;     /* it arrived at an address for metrics and health only */
	bool form;           /* its body is one: parameters may follow */
};

/* Bytes to which more can be appended; all zeros: none. Without memory, `failed` is set. */
struct head_writer {
	char *data; /* owned until it is read */
	size_t size, room;
	bool failed;
};

/* Adds a text, more to the last one, or bytes. */
void head_add(struct head_writer *writer, enum head_text what, const char *text);
void head_extend(struct head_writer *writer, const char *text, size_t size);
void head_append(struct head_writer *writer, const void *data, size_t size);

/* Adds what decides the result of a request for work: method, path, Accept, mask, parameters. */
void head_pack(struct head_writer *writer, const struct head *head);

/* Reads a block, which belongs to the head from then on, even on failure. ERR_BAD_REQUEST: it is no
 * block with a method and a path in which nothing occurs twice. */
enum error head_read(struct head *head, char *data, size_t size) MUST_CHECK;

/* Reads a block of the form's parameters and its mask in the same way. ERR_BAD_REQUEST: it is none,
 * or there are too many of them. */
enum error head_read_form(struct head *head, struct head_writer *block) MUST_CHECK;
void head_fini(struct head *head);
