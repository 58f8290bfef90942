/* The slots of a job's tiles, shared by its decoding and encoding sides, and the stages that fill,
 * check and count them. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "filters/chain.h"
#include "wire/tile.h"
#include "wire/wire.h"

/* State of the job as one tile with scans. */
enum whole {
	/* there is no whole tile, or the device gave no result: tiles of pixels follow */
	WHOLE_NONE,
	WHOLE_EXPECTED, /* the front has agreed */
	WHOLE_SENT,
	WHOLE_DONE,
	/* its result is there, but tiles of pixels follow, to be compared with it */
	WHOLE_COMPARED,
};

struct tiles {
	const struct message_job *job;
	int socket; /* socket to the front */
	const struct arena *arena;
	struct chain *job_chain;
	struct chain *chain; /* the job's; or an own chain for the page in work, if pages differ */
	double border_pixel[BANDS_MAX]; /* from chain_border_pixel() */
	/* For verify.c: processor time spent on comparing tiles (encoding side), and on filtering
	 * them here (decoding side). */
	uint64_t verify_ns, reference_ns;
	struct tiling tiling; /* fixed after tiles_start(), whose last call precedes all tiles */
	const struct message *header; /* to be sent before any tile; NULL: it has been */
	struct mask *mask;            /* NULL: none; used by the encoding side */
	/* If not NULL, one thread does everything, and calls this instead of waiting, to read the
	 * front's messages. */
	void (*hear)(void *context);
	void *context;

	/* The lock guards all below; `change` is signalled whenever any of it changes. */
	pthread_mutex_t lock;
	pthread_cond_t change;
	uint32_t cut;   /* tiles sent to the front: 0 to cut - 1 */
	uint32_t freed; /* tiles whose slots the encoder has freed: 0 to freed - 1 */
	uint32_t read;  /* tiles whose input has done its work: 0 to read - 1 */
	/* bit i % (slots * columns): tile i, of the tiles in between, has come back */
	uint64_t filtered;
	bool others; /* another device could run the tile again */
	enum whole whole;
	bool compare;        /* the whole's result with that of tiles of pixels */
	bool whole_coded;    /* the whole's result is a scan */
	uint64_t whole_size; /* bytes of it */
	/* Used by the encoding side: a result of pixels, to be compared with the tiles' result. */
	struct jpeg_compared *compared;
	bool stopped;
	enum error error; /* why it was stopped */
	struct problem problem;
};

/* Prepares for a job. The caller keeps job, chain and arena. No tile is cut before tiles_start. */
void tiles_init(struct tiles *tiles, const struct message_job *job, struct chain *chain, int socket,
                const struct arena *arena);
void tiles_start(struct tiles *tiles, const struct tiling *tiling);
void tiles_fini(struct tiles *tiles);

/* Stops the job: every wait returns false from now on. Keeps the first reason. */
void tiles_stop(struct tiles *tiles, enum error error, const struct problem *problem);
bool tiles_stopped(struct tiles *tiles);

/* Waits for a change of the members that the lock guards. The caller has the lock. */
void tiles_await_change(struct tiles *tiles);

/* Sends the header, unless that is done. */
enum error tiles_announce(struct tiles *tiles) MUST_CHECK;

/* Decoding side. Waits until a strip's slot is free; false if the job was stopped. */
bool tiles_await_slot(struct tiles *tiles, uint32_t strip) MUST_CHECK;
/* Sends tile i, complete in its slot, to the front. With VARIANT_REFERENCE, where the caller
 * filters the tile, only counts it. */
enum error tiles_send(struct tiles *tiles, uint32_t i) MUST_CHECK;

/* Sends the whole job as a tile with scans (WHOLE_EXPECTED once the front has agreed; the caller
 * has the lock). The decoding side sends the tile, whose job and arena are set here; both sides
 * wait. Returns true if the result is there or the job was stopped; a scan is then at the start of
 * the output arena, and all tiles of pixels count as filtered. Returns false if tiles of pixels
 * follow, because there is no result or (compare) in any case. */
void tiles_set_whole(struct tiles *tiles, enum whole whole);
bool tiles_send_whole(struct tiles *tiles, const struct tile *tile, bool compare) MUST_CHECK;
bool tiles_await_whole(struct tiles *tiles) MUST_CHECK;

/* Socket side. Records a tile that came back. */
void tiles_done(struct tiles *tiles, const struct message_tile_done *done);

/* Records that tile i is filtered; others: another device could run it again. */
void tiles_filtered(struct tiles *tiles, uint32_t i, bool others);

/* Encoding side. Waits until tile i is filtered; false if the job was stopped. */
bool tiles_await(struct tiles *tiles, uint32_t i) MUST_CHECK;
/* Sends MSG_VERIFIED, after which the front has tile i run again into its slot, and waits until the
 * tile is back; *others tells whether another device could run it as well. Returns false if the job
 * was stopped. */
bool tiles_run_again(struct tiles *tiles, uint32_t i, const struct message *verified,
                     bool *others) MUST_CHECK;
/* Frees the inputs of tile i and of all tiles before it. */
void tiles_set_read(struct tiles *tiles, uint32_t i);
/* Frees the slots of all strips whose last row lies above this row of all pages' results. */
void tiles_free_above(struct tiles *tiles, uint32_t row);

/* Returns the start of a row of a strip's input area; row 0 is the topmost halo row. This is the
 * first plane's row; each further plane follows in_plane bytes later. */
uint8_t *tiles_in_row(const struct tiles *tiles, uint32_t strip, uint32_t row);
/* Returns a row of all pages' results in the output area of its strip; each further plane follows
 * out_plane bytes later. */
const uint8_t *tiles_out_row(const struct tiles *tiles, uint32_t row);

/* ---- cut.c: from rows of pixels to padded tiles in slots ---- */

struct decoder;

/* Decodes the whole image into tiles and sends them to the front, in order; waits for slots. With
 * !sends it only fills the strips, each in a place of its own (tiling_spread()); cut_send() then
 * sends them as tiles. Returns ERR_OK also when another thread stopped the job. */
enum error cut_run(struct tiles *tiles, struct decoder *decoder, bool sends,
                   struct problem *problem) MUST_CHECK;
enum error cut_send(struct tiles *tiles, struct problem *problem) MUST_CHECK;

/* ---- verify.c: computes the reference of tiles, as their result or to compare a device's with it,
 * here, where no driver has influence: of all if the request asks for it, else of some windows ----
 */

/* Returns true for a random share of tiles, those to be compared. */
bool verify_chosen(const struct tiles *tiles);

/* Decoding side. Filters tile i, which has been counted as sent, in place of a device. */
enum error verify_filter(struct tiles *tiles, uint32_t i) MUST_CHECK;

/* Encoding side. Waits until a strip's tiles are filtered, and compares the chosen ones, which
 * sends MSG_VERIFIED. A tile with mismatches runs again, or the reference's result replaces it in
 * the slot. Failures to compare are only logged. Returns false if the job was stopped. */
bool verify_await(struct tiles *tiles, uint32_t strip) MUST_CHECK;

/* ---- mask.c: mixes results with their originals, by a second image in the body ---- */

/* Opens the job's mask, and checks its header. whole: the image. The caller keeps the body, and
 * closes the mask also on failure. */
enum error mask_open(struct mask **mask, const struct message_job *job, const struct tiling *tiling,
                     const struct image *whole, int body, struct problem *problem) MUST_CHECK;
void mask_close(struct mask **mask);

/* Encoding side. Mixes the results of a strip, while its slot still has their originals. Strips
 * come in order. A failure stops the job. */
void mask_apply(struct mask *mask, struct tiles *tiles, uint32_t strip);

/* Mixes a row. A weight is the result's share, 0 to 1; at either end every bit is kept. */
void mask_mix(uint8_t *result, const uint8_t *original, const double *weight, uint32_t pixels,
              const struct image *image);

/* ---- gather.c: from the result's rows to what a filter must know of all of them ---- */

/* Checks that the data to be kept of such a result are within the limits. ERR_TOO_MANY_PIXELS. */
enum error gather_check(const struct message_job *job, const struct tiling *tiling,
                        struct problem *problem) MUST_CHECK;

/* Counts the values of the result's rows, or finds its edges, and writes the numbers that the job
 * gathers to an empty file, page after page. Waits for tiles and frees their slots. Returns ERR_OK
 * also when another thread stopped the job. */
enum error gather_run(struct tiles *tiles, int file, struct problem *problem) MUST_CHECK;

/* ---- compose.c: from the result's rows to the answer's ---- */

struct composer;
struct row_source;

/* Sets the size of the answer for a result of this tiling: the result's, or with a target the whole
 * image's. ERR_BAD_PARAMETER if the result would exceed the image. */
enum error compose_size(const struct message_job *job, const struct image *whole,
                        const struct tiling *tiling, struct image *answer,
                        struct problem *problem) MUST_CHECK;

/* Prepares the answer's rows from those of `tiles`; with a target, opens the body a second time.
 * The caller keeps body and tiles, which must outlive the composer. */
enum error compose_open(struct composer **composer, struct tiles *tiles, int body,
                        struct problem *problem) MUST_CHECK;
void compose_close(struct composer **composer);

/* The answer's rows, in the devices' sample type. A failure here stops the job. */
struct row_source compose_rows(struct composer *composer);

/* ---- jpeg_check.c: compares a device's scan or pixels of a job with the answer made here ---- */

/* Tells whether the scan equals that of the answer in this file: in the same bytes, or except for
 * rounding, because another device or other kernels may have filtered the answer's tiles. Failures
 * are logged and mean JPEG_NOT_CHECKED. */
enum jpeg_check jpeg_check(const struct jpeg_bytes *scan, int file) MUST_CHECK;

/* Keeps the result of a tile whose input was a scan: rows out_pitch bytes apart. Each row of the
 * tiles of pixels is compared with it, in parts; ending the comparison tells whether they were
 * equal, and frees it. NULL without memory, logged. */
struct jpeg_compared *jpeg_compare_new(const struct tiling *tiling, const void *rows);
void jpeg_compare_row(struct jpeg_compared *compared, uint32_t y, uint32_t x, const uint8_t *pixels,
                      uint32_t width);
enum jpeg_check jpeg_compare_end(struct jpeg_compared **compared);
