/* Maps arenas, and cuts an image into tiles: all the arithmetic of slots, pitches and offsets. */
#include "wire/tile.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/param.h>

enum error arena_map(struct arena *arena, int in_fd, uint64_t in_size, int in_protection,
                     int out_fd, uint64_t out_size, int out_protection)
{
	*arena = (struct arena){.in_size = in_size, .out_size = out_size};
	arena->in = mmap(NULL, in_size, in_protection, MAP_SHARED, in_fd, 0);
	if (arena->in != MAP_FAILED) {
		arena->out = mmap(NULL, out_size, out_protection, MAP_SHARED, out_fd, 0);
		if (arena->out != MAP_FAILED)
			return ERR_OK;
		munmap(arena->in, in_size);
	}
	*arena = (struct arena){0};
	return ERR_IO;
}

void arena_unmap(struct arena *arena)
{
	munmap(arena->in, arena->in_size);
	munmap(arena->out, arena->out_size);
	*arena = (struct arena){0};
}

static uint64_t align_up(uint64_t n, uint64_t alignment)
{
	return (n + alignment - 1) / alignment * alignment;
}

_Static_assert(IMAGE_BANDS_MAX *SLOTS_MIN <= SLOTS_MAX, "a tile of each plane, SLOTS_MIN times");

/* The halo, above and below, is at most 1 / HALO_SHARE of a tile's result, if that fits. */
enum { TILES_WANTED = 16, SAMPLES_WANTED = 1 << 18, HALO_SHARE = 2 };

/* A strip of more than COLUMN_SHARE times samples_max is cut into columns. Their widths are
 * multiples of COLUMN_STEP pixels, so that all tiles begin aligned, and none is narrower: no kernel
 * needs so long a row (128 samples, which on a lattice are up to 8 pixels apart). */
enum { COLUMN_SHARE = 4, COLUMN_STEP = 1024 };

uint64_t row_pitch(uint64_t bytes)
{
	uint64_t pitch = align_up(bytes, ROW_ALIGNMENT);

	return pitch % SLOT_ALIGNMENT ? pitch : pitch + ROW_ALIGNMENT;
}

/* Sets the pitches of rows of the result's width. */
static void tiling_set_width(struct tiling *t)
{
	const uint64_t pixel = image_pixel_size(&t->image);
	const struct extent read = geometry_source(&t->geometry, 0, t->x0, t->width);
	const int64_t first = read.first, end = first + read.count, halo = t->halo_x;

	t->left = (uint32_t)MAX(halo - first, 0);
	t->right = (uint32_t)MAX(end + halo - t->image.width, 0);
	t->margin = (uint32_t)((t->left + first) * (int64_t)pixel);
	t->start = (uint32_t)align_up(t->margin, ROW_ALIGNMENT) - t->margin;
	t->in_pitch = (uint32_t)row_pitch((t->left + t->image.width + t->right) * pixel);
	t->out_pitch = (uint32_t)align_up(t->width * pixel, ROW_ALIGNMENT);
}

/* Returns the most rows, with halo, from which so many rows of the result are made. */
static uint64_t rows_read(const struct tiling *t, uint64_t rows)
{
	const struct geometry *g = &t->geometry;
	const uint64_t halo = 2 * (uint64_t)t->halo_y;
	uint64_t read, all;

	if (!g->resizes)
		return rows + halo;
	all = geometry_source(g, 1, 0, t->height).count;
	read = (uint64_t)ceil((double)(rows + 2 * (uint64_t)g->after[1] - 1) * g->scale[1].step) +
	       resizing_taps(&g->scale[1]) + 2;
	return MIN(read, all) + halo;
}

/* Returns the rows of the result that can be made from so many rows, with halo. */
static uint64_t rows_made(const struct tiling *t, uint64_t rows)
{
	const struct geometry *g = &t->geometry;
	const uint64_t least = rows_read(t, 1);
	double more;

	if (rows < least)
		return 0;
	if (!g->resizes)
		return rows - 2 * (uint64_t)t->halo_y;
	if (rows >= rows_read(t, t->height)) /* any number of strips */
		return (uint64_t)t->height * SLOTS_MAX;
	more = floor((double)(rows - least) / g->scale[1].step);
	while (more > 0 && rows_read(t, 1 + (uint64_t)more) > rows)
		more--;
	return 1 + (uint64_t)more;
}

static void tiling_set_rows(struct tiling *t, uint32_t rows)
{
	t->rows = rows;
	t->in_plane =
	    align_up(t->start + (uint64_t)t->in_pitch * rows_read(t, rows), ROW_ALIGNMENT);
	t->out_plane = (uint64_t)t->out_pitch * rows;
	t->in_slot = t->in_plane * t->planes;
	t->out_slot = t->out_plane * t->planes;
}

/* Bytes of a plane's part of the input arena, in which all its strips share their halos. */
static uint64_t shared_plane(const struct tiling *t)
{
	return t->in_arena / t->planes / ROW_ALIGNMENT * ROW_ALIGNMENT;
}

static void tiling_share(struct tiling *t, uint32_t rows)
{
	tiling_set_rows(t, rows);
	t->shared = t->joined = true;
	t->in_plane = shared_plane(t);
	t->in_slot = (uint64_t)t->in_pitch * rows;
}

/* Rows of strips that share one halo, above and below all of them. */
static uint64_t shared_rows(const struct tiling *t)
{
	const uint64_t plane = shared_plane(t);

	return plane > t->start ? rows_made(t, (plane - t->start) / t->in_pitch) : 0;
}

static uint64_t slots_that_fit(const struct tiling *t)
{
	const uint64_t in = t->shared ? shared_rows(t) / t->rows : t->in_arena / t->in_slot;

	return MIN(in, t->out_arena / t->out_slot);
}

/* Sets the members that depend on the image and the chain; the arenas stay. */
static enum error tiling_set_image(struct tiling *t, const struct chain *chain,
                                   const struct image *image, struct problem *problem)
{
	enum error e;

	*t = (struct tiling){.in_arena = t->in_arena,
	                     .out_arena = t->out_arena,
	                     .image = image_plane(image),
	                     .planes = image_planes(image)};
	e = chain_geometry(chain, image, &t->geometry, problem);
	t->width = t->geometry.size[0];
	t->height = t->geometry.size[1];
	t->halo_x = t->geometry.halo[0];
	t->halo_y = t->geometry.halo[1];
	t->x0 = t->geometry.crop[0];
	t->y0 = t->geometry.crop[1];
	return e;
}

/* Returns the call whose lattice reaches farthest; any call if none has one. */
static uint32_t farthest_call(const struct chain *chain)
{
	uint32_t found = 0;

	for (uint32_t i = 1; i < chain->count; i++)
		if (filter_lattice(&chain->call[i]).reach >
		    filter_lattice(&chain->call[found]).reach)
			found = i;
	return found;
}

/* Returns the least number of rows of strips, if the result has as many: with fewer than half of
 * its reach, a Gaussian on a lattice would work on hardly anything but halo. */
static uint32_t least_rows(const struct tiling *t, const struct chain *chain)
{
	const uint32_t reach = filter_lattice(&chain->call[farthest_call(chain)]).reach;

	return (uint32_t)MIN(t->planes == 1 && reach ? (reach + 1) / 2 : 1, t->height);
}

/* Returns true if SLOTS_MIN strips of `rows` rows, with a common halo, fit. */
static bool strips_fit(struct tiling t, uint32_t rows)
{
	tiling_set_width(&t);
	tiling_share(&t, rows);
	return slots_that_fit(&t) >= SLOTS_MIN;
}

/* The widest result for which they fit. */
static uint32_t largest_width(struct tiling t, uint32_t rows)
{
	uint32_t fits = 0, least_unfit = t.width;

	while (least_unfit - fits > 1) {
		t.width = fits + (least_unfit - fits) / 2;
		t.image.width = t.width + 2 * t.x0;
		if (strips_fit(t, rows))
			fits = t.width;
		else
			least_unfit = t.width;
	}
	return fits;
}

_Static_assert((int)GAUSSIAN_SIGMA == (int)UNSHARP_SIGMA, "either may be on a lattice");

/* Returns the largest sigma, to a tenth, with which strips fit, for the farthest reach; 0: none. */
static double largest_sigma(struct tiling t, const struct chain *chain, const struct image *image)
{
	const struct filter_call *call = &chain->call[farthest_call(chain)];
	struct chain *less = filter_lattice(call).stride ? chain_copy(chain, 0) : NULL;
	uint32_t fits = 0, least_unfit;

	if (!less)
		return 0;
	least_unfit = (uint32_t)ceil(10 * call->value[GAUSSIAN_SIGMA]);
	while (least_unfit - fits > 1) {
		const uint32_t middle = fits + (least_unfit - fits) / 2;

		less->call[call - chain->call].value[GAUSSIAN_SIGMA] = middle / 10.0;
		if (!tiling_set_image(&t, less, image, NULL) && strips_fit(t, least_rows(&t, less)))
			fits = middle;
		else
			least_unfit = middle;
	}
	free(less);
	return fits / 10.0;
}

/* Cuts the result into strips of at least 1 row: about a sixteenth of the image, so that stages
 * overlap; at least enough to be worth a launch and to keep the halo below half of the work; at
 * most samples_max; and at most the height of which SLOTS_MIN fit. One row may still exceed
 * samples_max. Strips share a halo if they do not fit with one each, or would be little else. */
static void tiling_set_strips(struct tiling *t, uint64_t samples_max)
{
	const double shrinks = t->geometry.resizes ? fmax(1, t->geometry.scale[1].step) : 1;
	const uint64_t halo = (uint64_t)ceil(t->halo_y / shrinks); /* rows of the result */
	const uint64_t wanted = MIN(t->height, 2 * halo);
	const uint64_t row = (uint64_t)t->width * t->image.bands;
	uint64_t shared =
	    MIN(shared_rows(t) / SLOTS_MIN, t->out_arena / t->planes / SLOTS_MIN / t->out_pitch);
	uint64_t rows = MAX(t->height / TILES_WANTED, SAMPLES_WANTED / row);

	rows = align_up(MAX(MIN(rows, samples_max / row), 1), 8);
	rows = MAX(rows, halo * 2 * HALO_SHARE);
	tiling_set_rows(t, (uint32_t)MIN(rows, t->height));
	while (t->rows > 1 && slots_that_fit(t) < SLOTS_MIN)
		tiling_set_rows(t, t->rows > 8 ? (t->rows - 1) / 8 * 8 : t->rows - 1);
	shared = MIN(shared, MAX(wanted, t->rows));
	shared -= shared > 8 ? shared % 8 : 0; /* so that kernels' blocks are the same */
	if (shared && (slots_that_fit(t) < SLOTS_MIN || t->rows < wanted))
		tiling_share(t, (uint32_t)shared);
	t->page_strips = (t->height + t->rows - 1) / t->rows;
}

/* Cuts strips with a large halo above and below into columns, keeping their own halos small. */
static void set_columns(struct tiling *t, uint64_t samples_max)
{
	uint64_t across = t->width + 2 * (uint64_t)t->halo_x;
	uint64_t strip = across * (t->rows + 2 * (uint64_t)t->halo_y) * t->image.bands;
	uint64_t wanted = strip / MAX(samples_max, SAMPLES_WANTED) / COLUMN_SHARE;
	uint64_t width;

	wanted = t->geometry.resizes ? 1 : MAX(MIN(wanted, SLOTS_MAX / SLOTS_MIN / t->planes), 1);
	width = MAX(t->width / wanted, (uint64_t)t->halo_x * 2 * HALO_SHARE);
	t->column_width = (uint32_t)MIN(align_up(MAX(width, 1), COLUMN_STEP), t->width);
	t->columns = t->width / t->column_width;
	t->strip_tiles = t->columns * t->planes;
}

void tiling_set_pages(struct tiling *t, uint32_t pages)
{
	t->pages = pages;
	t->strips = pages * t->page_strips;
	t->count = t->strips * t->strip_tiles;
	t->slots = (uint32_t)MIN(MIN(slots_that_fit(t), SLOTS_MAX / t->strip_tiles), t->strips);
	t->in_places = t->out_places = t->slots;
}

uint32_t tiling_strip(const struct tiling *t, uint32_t row)
{
	return row / t->height * t->page_strips + row % t->height / t->rows;
}

bool tiling_begins_anew(const struct tiling *t, uint32_t strip)
{
	const bool begins_page = strip % t->page_strips == 0;

	return (t->apart && begins_page) ||
	       (t->shared && (begins_page || strip % t->in_places == 0));
}

/* The rows of the image, without halo, for a strip. */
static struct extent strip_source(const struct tiling *t, uint32_t strip)
{
	const uint32_t first = strip % t->page_strips * t->rows;

	return geometry_source(&t->geometry, 1, t->y0 + first, MIN(t->height - first, t->rows));
}

int64_t tiling_top(const struct tiling *t, uint32_t strip)
{
	return strip_source(t, strip).first - (int64_t)t->halo_y;
}

int64_t tiling_end(const struct tiling *t, uint32_t strip)
{
	const struct extent read = strip_source(t, strip);

	return (int64_t)read.first + read.count + t->halo_y;
}

uint64_t tiling_in_place(const struct tiling *t, uint32_t strip)
{
	const uint32_t place = strip % t->in_places, in_page = strip % t->page_strips;

	if (!t->joined)
		return place * t->in_slot;
	return (uint64_t)(tiling_top(t, strip) - tiling_top(t, strip - MIN(place, in_page))) *
	       t->in_pitch;
}

uint32_t tiling_row_in_strip(const struct tiling *t, uint32_t row)
{
	return row % t->height % t->rows;
}

enum error tiling_init(struct tiling *t, const struct chain *chain, const struct image *image,
                       uint64_t in_arena, uint64_t out_arena, uint64_t samples_max,
                       struct problem *problem)
{
	char sigma[64] = "";
	uint32_t least;
	enum error e;

	t->in_arena = in_arena;
	t->out_arena = out_arena;
	e = tiling_set_image(t, chain, image, problem);
	if (e)
		return e;
	least = least_rows(t, chain);
	if (t->geometry.resizes && !strips_fit(*t, least)) {
		tiling_set_width(t);
		return problem_set(
		    problem, ERR_DOES_NOT_FIT,
		    "%" PRIu64 " rows of the image, of %u pixels (%u x %s) each, make %u of the "
		    "result, and such rows must fit arena-size three times: expected a smaller "
		    "image, or a result that is less smaller",
		    rows_read(t, least), image->width, image->bands,
		    pixel_type_rows[image->type].name, least);
	}
	if (!strips_fit(*t, least)) {
		const double largest = largest_sigma(*t, chain, image);

		if (largest > 0)
			snprintf(sigma, sizeof sigma,
			         ", and for this image the largest sigma is %g", largest);
		return problem_set(
		    problem, ERR_DOES_NOT_FIT,
		    "the result is %u pixels wide, and the rows of a window must fit arena-size; "
		    "with a window %u rows high and these pixels (%u x %s) the largest width is "
		    "%u%s",
		    t->width, 2 * t->halo_y + 1, image->bands, pixel_type_rows[image->type].name,
		    largest_width(*t, least), sigma);
	}
	tiling_set_width(t);
	tiling_set_strips(t, samples_max);
	set_columns(t, samples_max);
	tiling_set_pages(t, 1);
	return ERR_OK;
}

uint32_t tiling_plane(const struct tiling *t, uint32_t i)
{
	return i % t->strip_tiles / t->columns;
}

void tiling_tile(const struct tiling *t, uint32_t i, struct tile *tile)
{
	uint32_t strip = i / t->strip_tiles, first = strip % t->page_strips * t->rows;
	uint32_t plane = tiling_plane(t, i), x = i % t->columns * t->column_width;
	uint64_t before = x * image_pixel_size(&t->image);

	*tile = (struct tile){
	    .index = i,
	    .x0 = t->x0 + x,
	    .y0 = t->y0 + first,
	    .width = (i + 1) % t->columns ? t->column_width : t->width - x,
	    .height = t->height - first < t->rows ? t->height - first : t->rows,
	    .in = tiling_in_place(t, strip) + plane * t->in_plane + t->start +
	          (uint64_t)t->halo_y * t->in_pitch + t->margin + before,
	    .out = strip % t->out_places * t->out_slot + plane * t->out_plane + before,
	    .in_pitch = t->in_pitch,
	    .out_pitch = t->out_pitch,
	};
}

/* True if rows [-above, height + above) of `span` bytes, starting `before` bytes ahead of `origin`,
 * are aligned and lie within an arena. No sum overflows: offsets are below 2^62 and rows below
 * 2^21. */
static bool rows_inside(uint64_t origin, uint64_t above, uint64_t height, uint64_t before,
                        uint64_t span, uint32_t pitch, uint64_t arena)
{
	uint64_t ahead = above * pitch + before;

	return origin % ROW_ALIGNMENT == 0 && pitch % ROW_ALIGNMENT == 0 &&
	       origin < UINT64_C(1) << 62 && pitch >= span && origin >= ahead &&
	       origin - before + (height + above - 1) * pitch + span <= arena;
}

/* The place of the jpeg_work of a whole image. */
static uint64_t work_place(const struct tiling *t)
{
	return (t->in_arena - JPEG_WORK_SIZE) / ROW_ALIGNMENT * ROW_ALIGNMENT;
}

bool tiling_spread(struct tiling *t, enum tile_form form)
{
	const uint64_t in_rows = rows_read(t, t->height);
	const bool pixels_in = !(form & TILE_DECODE), pixels_out = !(form & TILE_ENCODE);

	if ((pixels_in &&
	     align_up(t->start + t->in_pitch * in_rows, ROW_ALIGNMENT) > work_place(t)) ||
	    (pixels_out && (uint64_t)t->out_pitch * t->height > t->out_arena))
		return false;
	if (pixels_in) {
		t->in_places = t->strips;
		t->joined = true;
	}
	if (pixels_out)
		t->out_places = t->strips;
	return true;
}

void tiling_whole_tile(const struct tiling *t, enum tile_form form, uint64_t scan,
                       struct tile *tile)
{
	tiling_tile(t, 0, tile);
	tile->width = t->width;
	tile->height = t->height;
	tile->form = form;
	tile->work = work_place(t);
	if (form & TILE_DECODE) {
		tile->in = tile->in_pitch = 0;
		tile->in_size = scan;
	}
	if (form & TILE_ENCODE) {
		tile->out = tile->out_pitch = 0;
		tile->out_size = t->out_arena;
	}
}

/* True if `size` bytes from `at` on lie within an arena. */
static bool bytes_inside(uint64_t at, uint64_t size, uint64_t arena)
{
	return at % ROW_ALIGNMENT == 0 && size <= arena && at <= arena - size;
}

bool tile_valid(const struct tile *tile, const struct image *image, const struct chain *chain,
                uint64_t in_arena, uint64_t out_arena)
{
	const uint64_t pixel = image_pixel_size(image), row = tile->width * pixel;
	struct geometry g;
	struct extent x, y;
	uint64_t side;

	if (chain_geometry(chain, image, &g, NULL) || tile->form >= TILE_FORMS || tile->width < 1 ||
	    tile->height < 1 || tile->width > g.size[0] || tile->height > g.size[1] ||
	    tile->x0 < g.crop[0] || tile->y0 < g.crop[1] ||
	    tile->x0 - g.crop[0] > g.size[0] - tile->width ||
	    tile->y0 - g.crop[1] > g.size[1] - tile->height)
		return false;
	/* A tile in another form than pixels is the whole of an image that a scan can have. */
	if (tile->form != TILE_PIXELS &&
	    (image->type != PIXEL_U8 || (image->bands != 1 && image->bands != 3) || image->alpha ||
	     tile->index != 0 || tile->width != g.size[0] || tile->height != g.size[1] ||
	     !bytes_inside(tile->work, JPEG_WORK_SIZE, in_arena)))
		return false;
	x = geometry_source(&g, 0, tile->x0, tile->width);
	y = geometry_source(&g, 1, tile->y0, tile->height);
	side = g.halo[0] * pixel;
	if (!tile->in_size != !(tile->form & TILE_DECODE) ||
	    !tile->out_size != !(tile->form & TILE_ENCODE))
		return false;
	return (tile->form & TILE_DECODE
	            ? bytes_inside(tile->in, tile->in_size, in_arena)
	            : rows_inside(tile->in, g.halo[1], y.count, side, side + x.count * pixel + side,
	                          tile->in_pitch, in_arena)) &&
	       (tile->form & TILE_ENCODE
	            ? bytes_inside(tile->out, tile->out_size, out_arena)
	            : rows_inside(tile->out, 0, tile->height, 0, row, tile->out_pitch, out_arena));
}
