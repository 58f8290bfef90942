/* The messages between the front and its workers: fixed structs over SOCK_SEQPACKET, with file
 * descriptors beside them. Pixels never travel here; they lie in the arenas.
 *
 * A worker finds its socket at descriptor WORKER_SOCKET. Both ends are of one build (a
 * worker that is not is found out by its first message) and one machine, so structs travel as they
 * are; the receiver still checks every field, since a worker may have been taken over by what it
 * decodes. */
#ifndef COMMON_WIRE_H
#define COMMON_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/chain.h"
#include "common/coding.h"
#include "common/error.h"
#include "common/formats.h"
#include "common/image.h"
#include "common/kernels.h"
#include "common/losses.h"
#include "common/objects.h"
#include "common/tile.h"

enum { WORKER_SOCKET = 3, MESSAGE_FDS_MAX = 3 };

enum message_type {
#define MESSAGE(symbol, member, fds) MSG_##symbol,
#include "common/messages.def"
#undef MESSAGE
	MESSAGES
};

/* What all these messages are, and what is sent in them: PACKAGE_VERSION, and a checksum of what
 * the programs share. */
extern const char WIRE_VERSION[];

struct message_hello {
	char version[64]; /* WIRE_VERSION */
};

struct message_ready {
	char name[64];       /* device: its name; codec: empty */
	char driver[64];     /* device: platform and driver version */
	uint64_t memory;     /* device: bytes of global memory */
	uint32_t lanes;      /* device: tiles that it can work on at once, one a launch */
	uint32_t stack_most; /* device: tiles of a kind that may share a launch */
	uint32_t startup_ms; /* from exec to here */
	uint32_t unused;
};

/* Sent once for each arena, before anything that names it. A device with memory of its own gets
 * both memfds writable (a pinned mapping must be); a CPU device gets the input read-only. */
struct message_arena {
	uint32_t arena;
	uint32_t unused;
	uint64_t in_size, out_size; /* bytes */
};

/* Its number may be given to a new arena afterwards. */
struct message_arena_drop {
	uint32_t arena;
};

/* Of a format that the client likes as well as any. */
enum { ACCEPT_MOST = 1000 };

/* Body: readable, its offset 0. Chain: a sealed memfd with the chain_size() bytes of a struct
 * chain. */
struct message_job {
	uint64_t job;
	uint32_t arena;
	uint32_t format; /* enum format asked for; FORMAT_NONE: that with the greatest weight */
	uint16_t accept[FORMATS]; /* the client's weights, up to ACCEPT_MOST; 0: not accepted */
	struct coding coding;
	uint32_t strip; /* 1: drop the metadata */
	uint32_t raw;   /* 1: the body is bare pixels as raw_image says */
	struct image raw_image;
	struct area roi; /* filtered as if it were the image; width 0: all is */
	/* 1: the result is placed on the image, its first pixel at (target_x, target_y). */
	uint32_t has_target;
	uint32_t target_x, target_y;
	uint32_t verify;            /* 1: every tile is compared with the reference, whole */
	uint64_t body_size;         /* bytes */
	uint64_t pixels_max;        /* of an image whose rows can be decoded in order */
	uint64_t buffered_size_max; /* bytes for one that must be decoded whole */
	uint64_t samples_max;       /* of a tile's result, see tiling_init() */
	double verify_share;        /* else: of how many of the tiles a window is, from 0 to 1 */
	uint64_t verify_taps;       /* and how large: see reference_cost() */
};

struct message_image {
	uint64_t job;
	struct image whole;    /* that is decoded, after orientation */
	struct image image;    /* that is filtered: the ROI, if there is one */
	struct image answer;   /* before what its format makes of it */
	uint32_t input_format; /* enum format */
	uint32_t tiles;        /* how many will come */
};

/* An empty file, to be written from 0. It comes only now, for only the size of the image says
 * whether the answer can lie in memory. */
struct message_answer {
	uint64_t job;
};

/* What tiles are to go through; jobs that ask for the same share it. Chain: as for MSG_JOB. */
struct message_plan {
	uint64_t plan; /* the front's number of it */
	struct image image;
	uint32_t
	    client; /* a number of the first that asked for it: whose share of compiling it is */
};

struct message_plan_drop {
	uint64_t plan;
};

struct message_tile {
	struct tile tile;
	uint64_t plan; /* for a device: the number of a plan that it has */
};

enum { LAUNCHES_MAX = 81 };

/* Times are of the device's clock, from OpenCL events. */
struct message_tile_done {
	uint64_t job;
	uint32_t index;        /* of the tile */
	uint32_t error;        /* enum error */
	int32_t cl_error;      /* OpenCL's code where error is ERR_DEVICE, else 0 */
	uint32_t stack, place; /* tiles that shared the launches; which it was */
	uint32_t launches;     /* how many of `launch` are filled */
	uint32_t others;       /* F → C: 1: another device could run the tile once more */
	uint64_t upload_ns, download_ns;       /* 0 where the device works in place */
	uint64_t upload_bytes, download_bytes; /* likewise */
	struct {
		uint32_t kernel; /* enum kernel */
		uint32_t ns;
		uint64_t bytes; /* read once and written once, of all tiles */
	} launch[LAUNCHES_MAX];
	char reason[256]; /* where error is not ERR_OK: why, in words; may be empty */
};

/* After a mismatch the codec worker waits for the tile to be run again: once by the device that ran
 * it first, then, still with a mismatch, by another, if TILE_DONE has said that there is one. */
/* How long a device lets a tile wait for a program, beyond what the tile takes: for one that the
 * request insists on, and for a general one, which there is no way around. */
enum { PROGRAM_WAIT_MS = 10000, GENERAL_WAIT_MS = 120000 };

struct message_tile_waits {
	uint64_t job;
	uint32_t index;   /* of the tile */
	uint32_t most_ms; /* that it waits; 0: no more */
};

struct message_verified {
	uint64_t job;
	uint32_t index; /* of the tile */
	uint32_t run;   /* of this tile: 0, 1, 2 */
	uint32_t same;  /* 1: bit for bit what the first run gave */
	/* The first mismatch, where there is one: a place in the filtered image. */
	uint32_t band, x, y;
	double got, wanted, slack;
	uint64_t samples, mismatches;
	double largest; /* difference */
};

struct message_cancel {
	uint64_t job;
};

struct message_job_done {
	uint64_t job;
	uint32_t error;                /* enum error */
	uint32_t format;               /* enum format of the answer */
	struct image image;            /* of the answer */
	uint32_t input_format;         /* enum format of the body, FORMAT_NONE if unknown */
	uint32_t lost;                 /* bit (1 << enum loss) for each of the answer */
	uint64_t answer_size;          /* bytes */
	uint64_t decode_ns, encode_ns; /* busy time, waits for tiles not counted */
	uint64_t verify_ns;            /* likewise */
	uint64_t reference_ns;         /* likewise, of filtering by VARIANT_REFERENCE */
	struct problem problem;        /* where error is not ERR_OK */
};

enum { CANDIDATES_MAX = 24 };

/* The kernel that the tuner chose for a kind of work, and what it measured. */
struct message_choice {
	char work[64];    /* as "separable 5x5 u8 x3" */
	uint32_t chosen;  /* index of the candidate */
	uint32_t count;   /* of candidates, 1 to CANDIDATES_MAX */
	uint64_t samples; /* that each launch made; 0 if nothing was measured */
	struct {
		uint32_t kernel;                 /* enum kernel */
		uint16_t x, y, group_x, group_y; /* of work-items and groups, see struct shape */
		uint32_t unused;
		uint64_t ns; /* median; 0: it failed, or its program did */
	} candidate[CANDIDATES_MAX];
};

/* Programs built so far; and now: asked for but not there, of these such as a driver makes that may
 * block launches meanwhile, and being compiled. What is told of in time is all that may hold up a
 * tile. */
struct message_programs {
	uint32_t compiled, cached, failed;
	uint32_t pending, blocking, compiling;
};

struct message_objects {
	uint32_t live[OBJECTS];
};

struct message_device {
	uint32_t platform, device; /* indices, as OpenCL lists them */
	uint32_t last;             /* 1 in the last message, which may be of no device */
	uint32_t type;             /* enum device_type */
	char name[64];
	char platform_name[64];
};

enum device_type { DEVICE_NONE, DEVICE_CPU, DEVICE_GPU, DEVICE_ACCELERATOR };

struct message {
	uint32_t type; /* enum message_type */
	uint32_t unused;
	union {
#define MESSAGE(symbol, member, fds) struct message_##member member;
#include "common/messages.def"
#undef MESSAGE
	};
};

/* Sends a message with the descriptors that its type has (fds may be NULL for none); they stay the
 * caller's. Returns ERR_IO with errno set: EAGAIN from a non-blocking socket means that the peer
 * does not read. */
enum error wire_send(int socket, const struct message *message, const int *fds) MUST_CHECK;

enum wire_result { WIRE_MESSAGE, WIRE_NOTHING, WIRE_CLOSED, WIRE_BROKEN };

/* Receives a message. WIRE_MESSAGE: it has the size and number of descriptors of its type, and the
 * descriptors (close-on-exec) are the caller's; unused bytes are 0. WIRE_NOTHING: a non-blocking
 * socket has none. WIRE_CLOSED: the peer is gone. WIRE_BROKEN: the peer sent something else;
 * nothing is to close. */
enum wire_result wire_receive(int socket, struct message *message,
                              int fds[MESSAGE_FDS_MAX]) MUST_CHECK;

/* Makes a text of a message one: ends it, and replaces every byte that is not printable ASCII. */
void wire_text(char *text, size_t size);

const char *message_name(enum message_type type);
/* How many descriptors travel with it. */
unsigned message_fds(enum message_type type);

#endif
