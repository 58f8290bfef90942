/* The channel between the front and an HTTP worker: datagrams in order, each a fixed head and data.
 * Neither end waits for the other: messages that the socket does not accept are queued, without a
 * bound. The owner checks link_is_full() before it makes anything large, and always goes on
 * reading, so two full queues drain. Datagrams are checked against link.def; their meaning, by the
 * owner. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/error.h"
#include "base/loop.h"
#include "link/head.h"

enum {
	LINK_DATA_MAX = 128 << 10,
	LINK_WHOLE_MAX = 1 << 20, /* bytes of a body that comes with its request */
	LINK_FULL = 8 << 20,      /* bytes in the queue; a descriptor counts as 32 KiB */
	LINK_TURN_NS = 2000000,   /* for messages in a turn of the loop */
};

enum link_type {
#define LINK(symbol, flags, data) LINK_##symbol,
#include "link/link.def"
	LINK_TYPES
};

enum link_flag {
	LINK_HAS_FILE = 1 << 0,      /* a descriptor comes with it */
	LINK_IS_PROXY = 1 << 1,      /* GUEST: a trusted proxy */
	LINK_IS_LOOPBACK = 1 << 2,   /* HEAD: see struct head */
	LINK_IS_MONITORING = 1 << 3, /* the same */
	LINK_IS_FORM = 1 << 4,       /* the same */
	LINK_IS_IN_MEMORY = 1 << 5,  /* ROOM: see struct lent */
	LINK_IS_MOST = 1 << 6,       /* the same */
	LINK_IS_STREAM = 1 << 7,     /* ANSWER: its body comes in pieces */
	LINK_IS_LAST = 1 << 8,       /* there are no more: PIECE; DRAIN, PONG: requests */
	LINK_IS_COMPLETE = 1 << 9,   /* HEAD: the body ends with the bytes that came with it */
	LINK_IS_WANTED = 1 << 10,    /* ROOM: the body */
};

struct link_message {
	uint32_t type;  /* enum link_type */
	uint32_t flags; /* bits of enum link_flag that the type may have */
	uint64_t number;
	uint64_t guest; /* HEAD: its number */
	union {
		uint64_t announced; /* HEAD: bytes of the body, UINT64_MAX if that is not known */
		/* LEND: total bytes of the body; ROOM: bytes that the file may have */
		uint64_t room;
		uint64_t bytes;     /* FINISH: of the body; READ: of the answer */
		uint64_t file_size; /* ANSWER: see struct answer */
		uint64_t error;     /* FAIL: enum error */
	};
	/* The rest does not travel as it is. */
	const void *data;
	size_t data_size;
	int fd; /* counts with LINK_HAS_FILE */
};

/* The place for a body, as ROOM says. */
struct lent {
	int fd; /* -1: not known yet */
	bool in_memory;
	uint64_t limit; /* bytes that there is room for */
	bool most;      /* there will not be more */
};

struct link_owner {
	/* The data is followed by a NUL. The descriptor is -1 if none has come, or this process may
	 * have no more; it is closed afterwards unless the owner leaves -1. The link may be closed
	 * in this call. */
	void (*message)(void *context, struct link_message *message);
	/* No more will come: close the link. why: the other's fault; NULL: it has closed. */
	void (*broken)(void *context, const char *why);
};

struct link_packet;

struct link {
	struct loop_watch readable, writable;
	int again; /* a duplicate of the socket; it is `writable` while packets wait */
	STAILQ_HEAD(link_queue, link_packet) queue;
	size_t queued; /* bytes */
	const struct link_owner *owner;
	void *context;
};

/* Makes two sockets that are connected, non-blocking and close-on-exec. Fails, and says why, if the
 * system gives their buffers too little for the longest message. */
enum error link_pair(int fds[2]) MUST_CHECK;

/* Takes over a socket, also on failure. */
enum error link_open(struct link *link, int fd, const struct link_owner *owner,
                     void *context) MUST_CHECK;

/* Sends a message, which link.def must allow, with a duplicate of its descriptor. Returns false if
 * the other end is closed, or without memory or descriptors. */
bool link_send(struct link *link, const struct link_message *message);

/* Returns true while so much waits to be sent that nothing large should be added. */
static inline bool link_is_full(const struct link *link)
{
	return link->queued >= LINK_FULL;
}

/* Tries again to send waiting messages, in each turn of the loop: the system does not report when
 * there is room for descriptors again. */
void link_flush(struct link *link);

/* A closed one may be closed again. */
void link_close(struct link *link);

const char *link_name(uint32_t type);
