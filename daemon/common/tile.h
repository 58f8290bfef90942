/* The tile: a strip of rows with the halo its filters need, self-contained in one slot of shared
 * memory; and how an image is cut into tiles. Where windows are so tall that a strip is much work
 * for a device, the columns of a strip are several tiles that lie side by side in its slot and
 * share their halos.
 *
 * A slot is an area of the codec worker's input arena together with one of its output arena. In the
 * input area lie the rows y0 - halo_y to y0 + height + halo_y, in_pitch bytes apart, each with
 * halo_x pixels before x0 and after x0 + width; pixels outside the image are filled in by the
 * border rule. In the output area lie `height` rows of `width` pixels, out_pitch bytes apart. Both
 * are as small as alignment allows: on the way to a GPU every byte between rows costs time.
 *
 * A tile may also be a whole image as a JPEG: its slot holds a struct jpeg_work with the scan, and
 * gets the scan of the result. The device decodes, filters and encodes it. */
#ifndef COMMON_TILE_H
#define COMMON_TILE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/chain.h"
#include "common/error.h"
#include "common/image.h"

enum {
	ROW_ALIGNMENT = 64, /* a line of a processor's cache, two sectors of a GPU's */
	SLOT_ALIGNMENT = 4096,
	SLOTS_MIN = 3, /* one read, one filtered, one written */
	SLOTS_MAX = 64,
	STACK_MAX = 32, /* tiles that share a launch */
};

enum tile_form { TILE_PIXELS, TILE_JPEG, TILE_FORMS };

struct tile {
	uint64_t job;    /* the front's number of the job */
	uint32_t index;  /* of the tile in the image, from 0, left to right, top to bottom */
	uint32_t arena;  /* number of the arena, as MSG_ARENA gave it */
	uint32_t x0, y0; /* place of its result's first pixel in the filtered image, in pixels */
	uint32_t width, height; /* of the result, in pixels */
	uint64_t in;  /* bytes from the input arena's start to pixel (x0, y0), or to a jpeg_work */
	uint64_t out; /* bytes from the output arena's start to the result's first pixel or byte */
	uint32_t in_pitch, out_pitch; /* bytes from row to row; TILE_JPEG: 0 */
	uint32_t form;                /* enum tile_form */
	uint32_t unused;
	uint64_t in_size;  /* TILE_JPEG: bytes of the jpeg_work with its scan */
	uint64_t out_size; /* TILE_JPEG: bytes that there are for the scan of the result */
};

/* How one job's image is cut. Strip i is target rows [i * rows, …) and lives in slot i % slots; its
 * tiles are i * columns to i * columns + columns - 1. At most SLOTS_MAX tiles have slots. */
struct tiling {
	struct image image;
	uint32_t halo_x, halo_y;
	uint32_t x0, y0; /* first pixel of the result in the image: the halo with crop, else 0 */
	uint32_t width, height; /* of the whole result */
	uint32_t rows;          /* of the result in each strip but the last */
	uint32_t strips;
	uint32_t columns;      /* tiles of a strip */
	uint32_t column_width; /* pixels of each but the last, which has the rest too */
	uint32_t count;        /* of tiles */
	uint32_t slots;
	uint32_t margin; /* bytes of halo at either side of a row; rows begin with one */
	uint32_t start;  /* bytes from a slot's start to its first row: pixels x0 are aligned */
	uint32_t in_pitch, out_pitch;
	uint64_t in_slot, out_slot; /* bytes a slot takes of each arena */
};

/* Cuts an image for a chain. samples_max bounds the samples of a tile's result (by predicted device
 * time), and is itself kept above a few rows. ERR_DOES_NOT_FIT names the largest width when three
 * slots do not fit into the arenas; ERR_IMAGE_TOO_SMALL when crop leaves nothing. */
enum error tiling_init(struct tiling *tiling, const struct chain *chain, const struct image *image,
                       uint64_t in_arena, uint64_t out_arena, uint64_t samples_max,
                       struct problem *problem) MUST_CHECK;

/* Bytes from row to row for rows of so many bytes: aligned, and not a multiple of a page, because
 * then the samples of a column would compete for the same few cache sets. */
uint64_t row_pitch(uint64_t bytes);

/* The i-th tile (i < count) of a job in an arena. */
void tiling_tile(const struct tiling *tiling, uint32_t i, uint64_t job, uint32_t arena,
                 struct tile *tile);

/* The tile of the whole image as a JPEG, whose jpeg_work and then `scan` bytes begin the input
 * arena; its result may fill the output arena. The caller sets job and arena. */
void tiling_jpeg_tile(const struct tiling *tiling, uint64_t scan, uint64_t out_arena,
                      struct tile *tile);

/* True if everything that the tile's filters read and write lies within arenas of these sizes, and
 * the tile within the image; of a JPEG, that it is the whole image's. Nothing is said of what lies
 * there. For tiles from another process. */
bool tile_valid(const struct tile *tile, const struct image *image, const struct chain *chain,
                uint64_t in_arena, uint64_t out_arena);

#endif
