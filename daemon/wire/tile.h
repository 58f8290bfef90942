/* The arena, shared memory that carries pixels; the tile, a strip of rows with the halo that its
 * filters need in one slot of the arena; and the cutting of an image into tiles. If windows are so
 * tall that a strip is much work for a device, its columns are several tiles in its slot, which
 * share their halos.
 *
 * A slot is an area of the codec worker's input arena together with one of its output arena. The
 * input area has the rows y0 - halo_y to y0 + height + halo_y, each with halo_x pixels before x0
 * and after x0 + width; the border rule fills in pixels outside the image. (If the chain resizes,
 * geometry_source() tells the rows and pixels in place of y0, height and so on, and rows hold the
 * whole width of the image.) The output area has `height` rows of `width` pixels. Both are as small
 * as alignment allows, because on the way to a GPU every byte between rows costs time. If windows
 * are so tall that three such slots do not fit, or would be hardly more than halo, input areas
 * overlap: each begins below the one before by as many rows as in the image, so that every row
 * exists once.
 *
 * A tile may also be a whole image whose input the device decodes, or whose result it encodes, or
 * both: that side is the scan of a JPEG, described by a struct jpeg_work in the input area. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "filters/chain_size.h"
#include "image/image.h"
#include "image/jpeg.h"

enum {
	ROW_ALIGNMENT = 64, /* a line of a processor's cache, two sectors of a GPU's */
	SLOT_ALIGNMENT = 4096,
	SLOTS_MIN = 3, /* one read, one filtered, one written */
	SLOTS_MAX = 64,
	STACK_MAX = 32, /* tiles that share a launch */
};

/* One arena, mapped. */
struct arena {
	void *in, *out;
	uint64_t in_size, out_size; /* bytes; multiples of SLOT_ALIGNMENT */
};

/* Maps both parts; in_protection and out_protection as for mmap(). The caller keeps the descriptors
 * and may close them. On failure nothing is mapped. */
enum error arena_map(struct arena *arena, int in_fd, uint64_t in_size, int in_protection,
                     int out_fd, uint64_t out_size, int out_protection) MUST_CHECK;
void arena_unmap(struct arena *arena);

/* The sides that are scans: a bit for each enum jpeg_side. */
enum tile_form {
	TILE_PIXELS,
	TILE_DECODE = 1 << JPEG_DECODE,
	TILE_ENCODE = 1 << JPEG_ENCODE,
	TILE_JPEG = TILE_DECODE | TILE_ENCODE,
	TILE_FORMS
};

struct tile {
	uint64_t job;    /* the front's number of the job */
	uint32_t index;  /* its number in the image, from 0, left to right, top to bottom */
	uint32_t arena;  /* number of the arena, as MSG_ARENA gave it */
	uint32_t x0, y0; /* position of its result's first pixel in the filtered image, in pixels */
	uint32_t width, height; /* its result's size in pixels */
	uint64_t
	    in; /* bytes from the input arena's start to pixel (x0, y0) without the halo, or scan */
	uint64_t out; /* bytes from the output arena's start to the result's first pixel or byte */
	uint32_t in_pitch, out_pitch; /* bytes from row to row; 0 for scans */
	uint32_t form;                /* enum tile_form */
	uint32_t unused;
	uint64_t in_size;  /* TILE_DECODE: bytes of the scan, else 0 */
	uint64_t out_size; /* TILE_ENCODE: maximum size of the result's scan, else 0 */
	uint64_t work; /* not TILE_PIXELS: bytes from the input arena's start to the jpeg_work */
};

/* The cutting of one job's image. Strip i is target rows [i * rows, …); its tiles are the columns
 * of its first plane, those of the next, and so on; planes lie one below the other in its slot.
 * Each of several pages is an image by itself, and its strips follow those of the page before.
 * `slots` strips, SLOTS_MAX tiles at most, may be in work at a time; strip i lies in input area i %
 * in_places and output area i % out_places: as many as slots or, after tiling_spread(), strips. */
struct tiling {
	uint64_t in_arena, out_arena; /* bytes of the arenas */
	struct geometry geometry;
	struct image image; /* one plane, if there are several */
	uint32_t planes;
	uint32_t halo_x, halo_y;
	uint32_t x0, y0;        /* first pixel of the result in the image: geometry.crop */
	uint32_t width, height; /* the whole result, or that of a page */
	uint32_t rows;          /* rows of the result in each strip but the last */
	uint32_t pages;
	uint32_t page_strips;  /* strips in a page */
	uint32_t strips;       /* strips in all */
	uint32_t columns;      /* tiles of a plane of a strip */
	uint32_t strip_tiles;  /* tiles of a strip */
	uint32_t column_width; /* pixels of each tile but the last, which also has the rest */
	uint32_t count;        /* number of tiles */
	uint32_t slots;
	uint32_t in_places, out_places;
	uint32_t left, right; /* pixels of an input row outside the image, at either end */
	uint32_t margin;      /* bytes from a row's start to the first pixel that is no halo */
	uint32_t start; /* bytes from a slot's start to its first row: pixels x0 are aligned */
	uint32_t in_pitch, out_pitch;
	uint64_t in_plane, out_plane; /* bytes of a plane of a slot, in each arena */
	uint64_t in_slot, out_slot;   /* bytes from a slot to the next, of each arena */
	/* input areas overlap; each plane has a part of the arena with all its areas */
	bool shared;
	bool joined; /* input areas lie as in the image: they overlap, or are those of a whole image
	              */
	bool apart;  /* tiles of one page at a time are in work; set after tiling_set_pages() */
};

/* Cuts an image for a chain. samples_max bounds the samples of a tile's result, above a few rows.
 * ERR_DOES_NOT_FIT when three strips of a row do not fit into the arenas, or would be hardly more
 * than halo: the message names the largest width and, if that helps, the largest sigma of the
 * Gaussian on a lattice that reaches farthest. ERR_IMAGE_TOO_SMALL when crop leaves nothing. */
enum error tiling_init(struct tiling *tiling, const struct chain *chain, const struct image *image,
                       uint64_t in_arena, uint64_t out_arena, uint64_t samples_max,
                       struct problem *problem) MUST_CHECK;

/* Cuts as many pages as one was. */
void tiling_set_pages(struct tiling *tiling, uint32_t pages);

/* Return the strip with a row of all pages' results, one below the other, and its number in it. */
uint32_t tiling_strip(const struct tiling *tiling, uint32_t row);
uint32_t tiling_row_in_strip(const struct tiling *tiling, uint32_t row);

/* Return a strip's first row in the image, the halo above the result's, and the end of its rows. */
int64_t tiling_top(const struct tiling *tiling, uint32_t strip);
int64_t tiling_end(const struct tiling *tiling, uint32_t strip);
/* Bytes from the input arena's start to the area of a strip. */
uint64_t tiling_in_place(const struct tiling *tiling, uint32_t strip);

/* Returns true if all strips before this one must have been read when it is cut, because it begins
 * a page while pages are apart, or because input areas overlap and its own does not continue the
 * last one's. */
bool tiling_begins_anew(const struct tiling *tiling, uint32_t strip);

/* Bytes from row to row for rows of `bytes` bytes: aligned, and not a multiple of a page, because
 * then the samples of a column would compete for the same few cache sets. */
uint64_t row_pitch(uint64_t bytes);

/* Returns the number of the image's plane from which the i-th tile is cut. */
uint32_t tiling_plane(const struct tiling *tiling, uint32_t i);

/* Makes the i-th tile (i < count). The caller sets job and arena. */
void tiling_tile(const struct tiling *tiling, uint32_t i, struct tile *tile);

/* Lays the strips one below the other, as rows of the whole image, on the sides that are pixels in
 * a tile of this form. False, with nothing changed, if they do not fit beside a jpeg_work. */
bool tiling_spread(struct tiling *tiling, enum tile_form form) MUST_CHECK;

/* Makes the tile of the whole image, not TILE_PIXELS, after tiling_spread(). Scans begin their
 * arenas: `scan` bytes are the input's, and the result's may fill the output arena. The jpeg_work
 * ends the input arena. */
void tiling_whole_tile(const struct tiling *tiling, enum tile_form form, uint64_t scan,
                       struct tile *tile);

/* True if all that a tile from another process reads and writes lies within arenas of these sizes,
 * and the tile within the image; and if a side that is a scan is the whole image's. */
bool tile_valid(const struct tile *tile, const struct image *image, const struct chain *chain,
                uint64_t in_arena, uint64_t out_arena);
