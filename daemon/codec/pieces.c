#include "codec/pieces.h"

#include <string.h>

enum error piece_compute(const struct piece_source *source, const struct window *window,
                         piece_user *use, void *user)
{
	const struct tile *tile = source->tile;
	size_t pixel = image_pixel_size(&source->tiling->image);
	uint64_t x = window->x0 - tile->x0, y = window->y0 - tile->y0;
	const uint8_t *in = (const uint8_t *)source->arena->in + tile->in + y * tile->in_pitch;
	uint8_t *out = (uint8_t *)source->arena->out + tile->out + y * tile->out_pitch;
	struct reference reference;
	enum error e = reference_window(source->chain, &source->tiling->image, window,
	                                in + x * pixel, tile->in_pitch, &reference);

	if (e)
		return e;
	use(user, &reference, out + x * pixel);
	reference_fini(&reference);
	return ERR_OK;
}

static uint32_t min_u32(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

enum error pieces_compute(const struct piece_source *source, bool (*stopped)(void *context),
                          void *context, piece_user *use, void *user)
{
	const struct tile *tile = source->tile;
	struct window piece;
	enum error e = ERR_OK;

	reference_piece(source->chain, &source->tiling->image, &piece);
	for (uint32_t y = 0; y < tile->height; y += piece.height)
		for (uint32_t x = 0; !e && x < tile->width && !stopped(context); x += piece.width) {
			struct window window = {tile->x0 + x, tile->y0 + y,
			                        min_u32(piece.width, tile->width - x),
			                        min_u32(piece.height, tile->height - y)};

			e = piece_compute(source, &window, use, user);
		}
	return e;
}

void piece_write(void *user, const struct reference *piece, uint8_t *out)
{
	const struct tile *tile = user;
	size_t row = (size_t)piece->window.width * piece->bands * pixel_type_size(piece->type);

	for (uint32_t y = 0; y < piece->window.height; y++)
		memcpy(out + (size_t)y * tile->out_pitch, (const uint8_t *)piece->pixels + y * row,
		       row);
}
