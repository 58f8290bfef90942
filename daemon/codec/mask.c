/* The mask: a second image, behind the image in its body. It is stretched to the filtered image,
 * bilinearly, by the places of pixels' centres. Runs in the encoding thread, on results that have
 * been verified, so every device's are mixed alike. */
#include "codec/tiles.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#include "codec/decode.h"
#include "reference/apply.h"
#include "reference/reference.h"

/* A mask may have so many times the image's pixels, or this sum in all pages: decoding it must not
 * take much longer than the image. */
enum { PIXELS_TIMES = 4, PIXELS_LEAST = 1 << 24 };

struct mask {
	struct message_job job;
	int body;
	struct decoder *decoder;
	struct image image;
	uint32_t next;        /* the first row that has not been decoded */
	double *weights;      /* for a row of the image; owned, with what follows */
	double *stretched[2]; /* the last even and odd row of the mask, as long as the image's */
	double *grey;         /* the last row, as shares of the result */
	uint8_t *row;         /* the same as decoded */
};

static enum error name_mask(enum error e, struct problem *problem)
{
	const struct problem found = *problem;

	return e ? problem_set_parameter(problem, e, "mask", "", "mask: %.380s", found.detail)
	         : ERR_OK;
}

/* Opens the mask, or opens it again: rows do not go back. */
static enum error open_file(struct mask *m, struct problem *problem)
{
	struct decoded decoded;
	enum error e;

	decode_close(&m->decoder);
	e = decode_open(&m->decoder, &decoded, &m->job, NULL, m->body, NULL, problem);
	m->image = decoded.image;
	m->next = 0;
	if (e || ((m->image.bands == 1 || m->image.bands == 3) && !decoded.cmyk))
		return e;
	return problem_set(problem, ERR_UNSUPPORTED_PIXELS,
	                   "it has %u bands%s; expected grey or RGB without alpha", m->image.bands,
	                   m->image.alpha ? ", the last one alpha" : "");
}

enum error mask_open(struct mask **mask, const struct message_job *job, const struct tiling *t,
                     const struct image *whole, int body, struct problem *problem)
{
	const uint64_t least = PIXELS_LEAST / t->pages, most = PIXELS_TIMES * image_pixels(whole);
	struct mask *m = *mask = calloc(1, sizeof *m);
	size_t doubles;
	enum error e;

	if (!m)
		return no_memory(problem, "for the mask");
	m->job = (struct message_job){.body_size = job->body_size,
	                              .mask = job->mask,
	                              .pixels_max = MIN(job->pixels_max, MAX(least, most)),
	                              .mask_invert = job->mask_invert,
	                              .buffered_size_max = job->buffered_size_max};
	m->body = body;
	e = t->geometry.resizes
	        ? problem_set(problem, ERR_BAD_PARAMETER, "expected a request without resize")
	        : open_file(m, problem);
	doubles = 3ul * t->image.width + (size_t)m->image.width * m->image.bands;
	if (!e)
		m->weights = calloc(1, doubles * sizeof *m->weights + image_row_size(&m->image));
	if (!e && !m->weights)
		e = no_memory(problem, "to read it");
	if (e)
		return name_mask(e, problem);
	m->stretched[0] = m->weights + t->image.width;
	m->stretched[1] = m->stretched[0] + t->image.width;
	m->grey = m->stretched[1] + t->image.width;
	m->row = (uint8_t *)(m->weights + doubles);
	return ERR_OK;
}

void mask_close(struct mask **mask)
{
	if (!*mask)
		return;
	decode_close(&(*mask)->decoder);
	free((*mask)->weights);
	free(*mask);
	*mask = NULL;
}

/* Returns where the centre of pixel i of `count` lies among so many pixels of the mask. */
static double place(uint32_t i, uint32_t count, uint32_t pixels)
{
	return fmin(fmax((i + 0.5) * pixels / count - 0.5, 0), pixels - 1);
}

/* Decodes the mask's next row. The luma of grey is that grey to the bit; NaN is 0. */
static enum error read_row(struct mask *m, struct problem *problem)
{
	const enum pixel_type type = (enum pixel_type)m->image.type;
	const uint32_t width = m->image.width, bands = m->image.bands;
	enum error e = m->next ? ERR_OK : decode_begin(m->decoder, problem);

	if (!e)
		e = decode_rows(m->decoder, m->next++, 1, m->row, image_row_size(&m->image),
		                problem);
	if (e)
		return e;
	rows_load(m->grey, m->row, type, (size_t)width * bands);
	for (uint32_t x = 0; x < width; x++) {
		const double *p = m->grey + (size_t)x * bands;
		const double luma = bands == 1 ? *p : (299 * p[0] + 587 * p[1] + 114 * p[2]) / 1000;

		m->grey[x] = fmin(fmax(luma / pixel_type_rows[type].full_scale, 0), 1);
	}
	return ERR_OK;
}

/* Computes the weights of row y of the image. The mask's rows around it are stretched along the row
 * once each. */
static enum error weigh(struct mask *m, const struct tiles *tiles, uint32_t y,
                        struct problem *problem)
{
	const uint32_t width = tiles->tiling.image.width;
	const double at = place(y, tiles->tiling.image.height, m->image.height);
	const uint32_t above = (uint32_t)at, below = above + (at > above);
	const double *a = m->stretched[above % 2], *b = m->stretched[below % 2];
	enum error e = ERR_OK;

	while (!e && m->next <= below) {
		double *to = m->stretched[m->next % 2];
		const bool used = m->next >= above;

		e = read_row(m, problem);
		for (uint32_t x = 0; !e && used && x < width; x++) {
			const double where = place(x, width, m->image.width);
			const uint32_t left = (uint32_t)where, right = left + (where > left);

			to[x] = m->grey[left] + (m->grey[right] - m->grey[left]) * (where - left);
		}
	}
	for (uint32_t x = 0; !e && x < width; x++) {
		const double weight = a[x] + (b[x] - a[x]) * (at - above);

		m->weights[x] = m->job.mask_invert ? 1 - weight : weight;
	}
	return e;
}

void mask_apply(struct mask *m, struct tiles *tiles, uint32_t strip)
{
	const struct tiling *t = &tiles->tiling;
	struct problem problem;
	struct tile tile;
	enum error e = ERR_OK;

	if (strip && strip % t->page_strips == 0)
		e = open_file(m, &problem);
	tiling_tile(t, strip * t->strip_tiles, &tile);
	for (uint32_t y = 0; !e && y < tile.height; y++) {
		e = weigh(m, tiles, tile.y0 + y, &problem);
		for (uint32_t i = 0; !e && i < t->strip_tiles; i++) {
			tiling_tile(t, strip * t->strip_tiles + i, &tile);
			mask_mix((uint8_t *)tiles->arena->out + tile.out +
			             (size_t)y * tile.out_pitch,
			         (uint8_t *)tiles->arena->in + tile.in + (size_t)y * tile.in_pitch,
			         m->weights + tile.x0, tile.width, &t->image);
		}
	}
	if (m->decoder)
		decode_leave(m->decoder); /* closed by another thread */
	if (e)
		tiles_stop(tiles, name_mask(e, &problem), &problem);
}

void mask_mix(uint8_t *result, const uint8_t *original, const double *weight, uint32_t pixels,
              const struct image *image)
{
	const enum pixel_type type = (enum pixel_type)image->type;
	const size_t size = image_pixel_size(image);
	double before[BANDS_MAX], after[BANDS_MAX], slack[BANDS_MAX] = {0}; /* not used */

	for (uint32_t i = 0; i < pixels; i++, result += size, original += size) {
		if (weight[i] <= 0)
			memcpy(result, original, size);
		if (weight[i] <= 0 || weight[i] >= 1)
			continue;
		rows_load(before, original, type, image->bands);
		rows_load(after, result, type, image->bands);
		reference_mix(image, 0, weight[i], before, after, slack);
		rows_store(result, after, type, image->bands);
	}
}
