/* The messages between the front and its workers, by their descriptor WORKER_SOCKET: fixed structs
 * over SOCK_SEQPACKET, with file descriptors. Both ends are of one build (the first message reveals
 * a worker that is not), so structs are sent unchanged; the receiver still checks every field,
 * because a decoded image may have compromised a worker. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/error.h"
#include "filters/chain.h"
#include "filters/kernels.h"
#include "image/formats.h"
#include "image/image.h"
#include "image/jpeg.h"
#include "wire/network.h"
#include "wire/tile.h"

enum { WORKER_SOCKET = 3, MESSAGE_FDS_MAX = 3 };

enum message_type {
#define MESSAGE(symbol, member, fds) MSG_##symbol,
#include "wire/messages.def"
	MESSAGES
};

/* The kinds of objects that a device worker counts. */
enum object {
#define OBJECT(symbol, ...) OBJECT_##symbol,
#include "wire/objects.def"
	OBJECTS
};

/* Identifies the messages of a build: PACKAGE_VERSION, and a checksum of the sources that the
 * programs share. */
extern const char WIRE_VERSION[];

struct message_hello {
	char version[64]; /* WIRE_VERSION */
};

/* A sealed memfd with a struct start (process/start.h). */
struct message_start {
	uint64_t unused;
};

struct message_ready {
	char name[64];        /* device: its name; codec: empty */
	char driver[64];      /* device: platform and driver version */
	uint64_t memory;      /* device: bytes of global memory */
	uint32_t lanes;       /* device: maximum number of tiles in flight, one for each launch */
	uint32_t small_max;   /* device: small tiles that it takes together */
	uint32_t startup_ms;  /* from exec to here */
	uint32_t jpeg_pixels; /* device: largest image with a side that is a scan; 0: none may be */
	struct format_sets formats; /* codec: those that it reads and writes */
};

/* Sent before any message that names the arena. A device with its own memory gets both memfds
 * writable (as a pinned mapping must be); a CPU device gets the input read-only. */
struct message_arena {
	uint32_t arena;
	uint32_t unused;
	uint64_t in_size, out_size; /* bytes */
};

/* Its number may be given to a new arena afterwards. */
struct message_arena_drop {
	uint32_t arena;
};

/* A format that the client accepts, with its weight. */
enum { ACCEPT_MOST = 1000 };

/* Pages (or frames of an animation) of a body: the first, because the request names none; or all,
 * each filtered as an image for itself. */
enum { PAGE_FIRST = 0, PAGES_MAX = 100000, PAGES_ALL };

/* Body: a readable descriptor, at any offset. Chain: a sealed memfd with the chain_size() bytes of
 * a struct chain. */
struct message_job {
	uint64_t job;
	uint32_t arena;
	uint32_t format; /* enum format requested; FORMAT_NONE: the one with the greatest weight */
	uint16_t accept[FORMATS]; /* the client's weights, up to ACCEPT_MOST; 0: not accepted */
	struct coding coding;
	uint32_t strip; /* 1: drop the metadata */
	uint32_t raw;   /* 1: the body is bare pixels as raw_image says */
	struct image raw_image;
	struct area roi; /* the part to filter as if it were the image; width 0: the whole image */
	/* 1: the result is placed on the image, its first pixel at (target_x, target_y). */
	uint32_t has_target;
	uint32_t target_x, target_y;
	/* If not GATHER_NONE, the answer is these numbers of the result, as doubles, instead of an
	 * image. gather_channels: enum channels of the filter that needs them. */
	struct gathering gathering;
	uint32_t gather_channels, unused;
	/* an earlier run of the same job that gathered, whose rows are kept; else 0 */
	uint64_t follows;
	uint32_t verify;      /* 1: every tile is compared with the reference completely */
	uint32_t jpeg_pixels; /* limit for an image with a side that is a scan; 0: none may be */
	uint32_t page;        /* PAGE_FIRST, PAGES_ALL, or the number of a page, from 1 */
	uint32_t draft;       /* 1: the image may be decoded smaller, as chain_draft() says */
	uint64_t body_size;   /* bytes */
	uint64_t mask; /* bytes of the body before its mask, which is the rest; 0: it has none */
	uint64_t mask_invert;       /* 1: the result is written where the mask is 0 */
	uint64_t pixels_max;        /* limit for an image whose rows can be decoded in order */
	uint64_t buffered_size_max; /* limit in bytes for an image that must be decoded whole */
	uint64_t samples_max;       /* limit for a tile's result, see tiling_init() */
	double verify_share;  /* otherwise: the share of tiles compared in one window, 0 to 1 */
	uint64_t verify_taps; /* limits that window's reference_cost() */
};

struct message_image {
	uint64_t job;
	/* the decoded image, after orientation; if there are several pages, one of them */
	struct image whole;
	struct image image;    /* filtered: the ROI, if there is one, or a draft */
	struct image answer;   /* the result, before conversion to its format */
	uint32_t pages;        /* in the body; with PAGES_ALL all of them follow */
	uint32_t input_format; /* enum format */
	uint32_t tiles;        /* number of tiles that will follow */
	uint32_t late;         /* 1: its only tile is ready, too; ANSWER may come with TILE_DONE */
	uint32_t jpeg[JPEG_SIDES]; /* enum jpeg_reason: the reason why this side is no scan */
};

/* The job runs first as one tile of a form (enum tile_form) that is not TILE_PIXELS, and as tiles
 * of pixels if that fails. If a device encodes the answer, ANSWER comes with TILE_DONE. */
struct message_whole {
	uint64_t job;
	uint32_t form;
	uint32_t unused;
};

/* An empty file, sent only now because the answer's size decides if memory can keep it. */
struct message_answer {
	uint64_t job;
};

/* The filters of tiles; jobs with the same request share them. Chain: as for MSG_JOB. */
struct message_plan {
	uint64_t plan; /* the front's number of it */
	struct image image;
	uint32_t client; /* number of its first client, whose share of compilation it uses */
};

struct message_plan_drop {
	uint64_t plan;
};

struct message_tile {
	struct tile tile;
	uint64_t plan; /* for a device: the number of a plan that it holds */
};

enum { LAUNCHES_MAX = 85 };

/* Times are the device's, from OpenCL events. */
struct message_tile_done {
	uint64_t job;
	uint32_t index;        /* the tile's */
	uint32_t error;        /* enum error */
	int32_t cl_error;      /* OpenCL's code where error is ERR_DEVICE, else 0 */
	uint32_t stack, place; /* tiles that shared the launches, and this one's index among them */
	uint32_t launches;     /* filled entries of `launch` */
	uint32_t others;       /* F → C: 1: another device can run the tile again */
	uint64_t upload_ns, download_ns;       /* 0 where the device works on the arena directly */
	uint64_t upload_bytes, download_bytes; /* 0 there, too */
	uint64_t size;                         /* TILE_ENCODE: bytes of the result's scan */
	uint32_t jpeg_flags;                   /* not 0: a scan is not for devices; no result */
	uint32_t unused;
	struct {
		uint32_t kernel; /* enum kernel */
		uint32_t ns;
		uint64_t bytes; /* read once and written once, over all tiles */
	} launch[LAUNCHES_MAX];
	char reason[256]; /* if error is not ERR_OK: the reason in words; may be empty */
};

/* Time that a tile may wait for a program, in addition to its own: for a program that the request
 * names, and for a general one, which has no substitute. */
enum { PROGRAM_WAIT_MS = 10000, GENERAL_WAIT_MS = 120000 };

struct message_tile_waits {
	uint64_t job;
	uint32_t index;  /* the tile's */
	uint32_t max_ms; /* the longest wait; 0: no longer waiting */
};

/* After a mismatch the codec worker waits until the tile has run again: on the same device and
 * then, if it still differs, on another, if TILE_DONE reported one. */
struct message_verified {
	uint64_t job;
	uint32_t index; /* the tile's */
	uint32_t run;   /* this tile's: 0, 1, 2 */
	uint32_t same;  /* 1: identical to the first run, bit for bit */
	/* The first mismatch, if any: its place in the filtered image. */
	uint32_t band, x, y;
	double got, wanted, slack;
	uint64_t samples, mismatches;
	double largest; /* difference */
};

struct message_cancel {
	uint64_t job;
};

/* Sometimes a device's result is compared with that of tiles of pixels, which is then sent. */
enum jpeg_check { JPEG_NOT_CHECKED, JPEG_SAME, JPEG_DIFFERS, JPEG_CHECKS };

struct message_job_done {
	uint64_t job;
	uint32_t error;        /* enum error */
	uint32_t format;       /* enum format of the answer */
	struct image image;    /* the answer's */
	uint32_t input_format; /* enum format of the body, FORMAT_NONE if unknown */
	uint32_t lost;         /* bit (1 << enum loss) for each of the answer */
	uint32_t jpeg;         /* enum jpeg_check of the result of its tile with scans */
	uint32_t kept;         /* 1: the body's rows are kept for a run that follows at once */
	uint32_t unused;
	uint64_t answer_size;          /* bytes */
	uint64_t decode_ns, encode_ns; /* busy time, without waiting for tiles */
	uint64_t verify_ns;            /* the same for verification */
	uint64_t reference_ns;         /* the same, in VARIANT_REFERENCE */
	struct problem problem;        /* if error is not ERR_OK */
};

enum { CANDIDATES_MAX = 24 };

/* The kernel that the tuner chose for a kind of work, and its measurements. The text does not
 * contain everything that decides which kernels apply: with other candidates it is another kind. */
struct message_choice {
	char work[64];    /* as "separable 5x5 u8 x3" */
	uint32_t chosen;  /* index of the candidate */
	uint32_t count;   /* number of candidates, 1 to CANDIDATES_MAX */
	uint64_t samples; /* made by each launch; 0 if not measured */
	struct {
		uint32_t kernel; /* enum kernel */
		struct shape shape;
		uint32_t unused;
		uint64_t ns; /* median; 0: it or its program failed */
	} candidate[CANDIDATES_MAX];
};

/* Programs built so far; requested ones that are not yet compiled, those of them that may block
 * launches, and those being compiled. Sent before anything that may delay a tile. */
struct message_programs {
	uint32_t compiled, cached, failed;
	uint32_t pending, blocking, compiling;
	uint32_t jpeg; /* 1: all that scans need beside a tile's plan */
	uint32_t unused;
};

struct message_objects {
	uint32_t live[OBJECTS];
};

struct message_device {
	uint32_t platform, device; /* indices, as OpenCL lists them */
	uint32_t type;             /* enum device_type */
	char name[64];
	char platform_name[64];
};

struct message_link {
	uint64_t unused;
};

struct message_limits {
	struct limits limits;
};

/* Its memfd has the chain of certificates, then the first one's key, as PEM. */
struct message_certificate {
	uint64_t chain_size, key_size;
};

struct message_listen {
	uint32_t tls;     /* 1: by TLS */
	uint32_t metrics; /* 1: see struct http_socket */
};

/* A span: a part of a request with its times, as tracing systems know it (OpenTelemetry). */
enum span_text {
#define SPAN_TEXT(symbol, name) SPAN_##symbol,
#define SPAN_NUMBER(symbol, name)
#include "wire/spans.def"
	SPAN_TEXTS
};

enum span_number {
#define SPAN_TEXT(symbol, name)
#define SPAN_NUMBER(symbol, name) SPAN_##symbol,
#include "wire/spans.def"
	SPAN_NUMBERS
};

enum { SPAN_TEXT_SIZE = 96, TRACE_ID_SIZE = 33, SPAN_ID_SIZE = 17 };

struct span {
	/* Ids in lower-case hexadecimal; parent "": none. */
	char trace[TRACE_ID_SIZE], id[SPAN_ID_SIZE], parent[SPAN_ID_SIZE];
	char name[21];
	uint32_t server;                       /* 1: of a request, as its client sees it */
	uint32_t failed;                       /* 1: by a fault of the service */
	uint64_t start, end;                   /* nanoseconds since 1970 */
	char text[SPAN_TEXTS][SPAN_TEXT_SIZE]; /* "": none */
	uint64_t number[SPAN_NUMBERS];         /* 0: none */
};

struct message_span {
	struct span span;
};

struct message_spans_lost {
	uint64_t count;
};

enum device_type { DEVICE_NONE, DEVICE_CPU, DEVICE_GPU, DEVICE_ACCELERATOR };

struct message {
	uint32_t type; /* enum message_type */
	uint32_t unused;
	union {
#define MESSAGE(symbol, member, fds) struct message_##member member;
#include "wire/messages.def"
	};
};

/* Sends a message with its type's descriptors (NULL for none), which the caller keeps. ERR_IO with
 * errno set: EAGAIN on a non-blocking socket means that the peer does not read. */
enum error wire_send(int socket, const struct message *message, const int *fds) MUST_CHECK;

enum wire_result { WIRE_MESSAGE, WIRE_NOTHING, WIRE_CLOSED, WIRE_BROKEN };

/* Receives a message. WIRE_MESSAGE: it has its type's size and descriptors, which the caller owns
 * (close-on-exec); unused bytes are 0. WIRE_NOTHING: a non-blocking socket has none. WIRE_CLOSED:
 * the peer has gone. WIRE_BROKEN: it sent something invalid; nothing has to be closed. */
enum wire_result wire_receive(int socket, struct message *message,
                              int fds[MESSAGE_FDS_MAX]) MUST_CHECK;

/* Sends a datagram of these parts with descriptors, which the caller keeps. False with errno. */
bool datagram_send(int socket, struct iovec *parts, size_t count, const int *fds,
                   size_t fd_count) MUST_CHECK;

/* Receives a datagram. Returns its size, or -1 with errno. *fd_count: the number of descriptors
 * that came (close-on-exec), which the caller owns; descriptors beyond MESSAGE_FDS_MAX are closed.
 * *flags: recvmsg()'s. */
ssize_t datagram_receive(int socket, struct iovec *parts, size_t count, int fds[MESSAGE_FDS_MAX],
                         size_t *fd_count, int *flags) MUST_CHECK;

/* Makes a text from a message safe: terminates it, and replaces what is not printable ASCII. */
void wire_text(char *text, size_t size);

/* Returns true if all numbers of a choice are possible. */
bool choice_valid(const struct message_choice *choice);
/* Returns true if both are for the same kind of work: the same text and candidates. */
bool choice_is_for(const struct message_choice *choice, const struct message_choice *kind);

const char *message_name(enum message_type type);
/* The number of descriptors that travel with it. */
unsigned message_fds(enum message_type type);
