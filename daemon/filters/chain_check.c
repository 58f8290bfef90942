#include "filters/chain_check.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"

static enum error lower(const struct chain *chain, uint32_t i, struct operation *op,
                        struct problem *problem)
{
	return filter_lower(&chain->call[i], chain->coefficient, op)
	           ? no_memory(problem, "for a filter")
	           : ERR_OK;
}

/* Names the kernels that a call could use instead. known: the name is that of a kernel. */
static enum error other_variants(const struct chain *chain, uint32_t i, const char *name,
                                 bool known, struct problem *problem)
{
	struct operation op = {0};
	char list[320] = "";
	enum error e = lower(chain, i, &op, problem);

	for (enum kernel k = 0; !e && k < KERNELS; k++)
		if (kernel_row(k)->operations & operation_kernels(op.kind))
			list_add(list, sizeof list, kernel_name(k));
	operation_fini(&op);
	return e ? e
	         : bad_parameter(problem, "variant", name,
	                         "%s%s %s%s, expected general, reference, %s", known ? name : "",
	                         known ? " does not support" : "for",
	                         known_filters[chain->call[i].filter].name,
	                         known ? " with these values" : "", list);
}

static enum error check_radius(const struct kernel_row *row, const struct chain *chain, uint32_t i,
                               const struct operation *op, struct problem *problem)
{
	uint32_t radius = op->radius_x > op->radius_y ? op->radius_x : op->radius_y;

	if (op->kind == OPERATION_CANNY)
		radius = 2; /* the blur is a filter of its own */
	if (op->lattice.stride)
		radius = op->lattice.radius;
	if (op->kind == OPERATION_MORPHOLOGY)
		radius = operation_extreme(op, false).radius_x;
	if (radius <= row->radius)
		return ERR_OK;
	return bad_parameter(problem, "variant", row->name,
	                     "%s supports windows of radius up to %u; that of %s is %u", row->name,
	                     row->radius, known_filters[chain->call[i].filter].name, radius);
}

static enum error check_kernel(const struct chain *chain, enum kernel kernel,
                               struct problem *problem)
{
	const struct kernel_row *row = kernel_row(kernel);
	char list[160] = "";
	bool idle = true;
	enum error e = ERR_OK;

	for (uint32_t i = 0; !e && i < chain->count; i++) {
		struct operation op = {0};

		e = lower(chain, i, &op, problem);
		if (!e && row->operations & operation_kernels(op.kind)) {
			idle = false;
			e = check_radius(row, chain, i, &op, problem);
		}
		operation_fini(&op);
	}
	if (e || !idle)
		return e;
	/* The kernel supports no filter of the chain, or none with such values. */
	for (uint32_t i = 0; i < chain->count; i++)
		if (row->operations & filter_kernels(chain->call[i].filter))
			return other_variants(chain, i, row->name, true, problem);
	for (enum filter f = 0; f < FILTERS; f++)
		if (row->operations & filter_kernels(f))
			list_add(list, sizeof list, known_filters[f].name);
	return bad_parameter(problem, "variant", row->name,
	                     "%s supports none of these filters; it supports %s", row->name,
	                     *list ? list : "none by itself");
}

enum error chain_set_variant(struct chain *chain, const char *name, struct problem *problem)
{
	enum kernel kernel = kernel_parse(name);

	chain->variant = !strcmp(name, "reference") ? VARIANT_REFERENCE
	                 : !strcmp(name, "general") ? VARIANT_GENERAL
	                                            : VARIANT_ANY;
	if (chain->variant != VARIANT_ANY)
		return ERR_OK;
	chain->variant = kernel + 1;
	if (chain_has_shares(chain))
		return bad_parameter(problem, "variant", name,
		                     "a kernel is for windows of certain sizes: for it expected "
		                     "sigma in pixels, not in %%");
	if (kernel < KERNELS && kernel_row(kernel)->operations)
		return check_kernel(chain, kernel, problem);
	return other_variants(chain, 0, name, false, problem);
}

static bool channels_there(enum channels channels, const struct image *image, bool cmyk)
{
	const uint32_t colours = image->bands - image->alpha;

	if (image_planes(image) > 1)
		return channels == CHANNELS_ALL || channels == CHANNELS_COLOR;
	if (channels == CHANNELS_ALPHA)
		return image->alpha;
	if (channels == CHANNELS_LUMA || channels == CHANNELS_CHROMA)
		return colours == 3;
	if (channels == CHANNELS_GREEN || channels == CHANNELS_BLUE)
		return colours >= 3 && !cmyk;
	return channels != CHANNELS_RED || !cmyk;
}

enum error chain_check_channels(enum channels channels, const struct image *image, bool cmyk,
                                struct problem *problem)
{
	char has[48];

	if (channels_there(channels, image, cmyk))
		return ERR_OK;
	snprintf(has, sizeof has, "has %u band%s%s", image->bands, image->bands > 1 ? "s" : "",
	         image->alpha ? ", one of them alpha" : "");
	return bad_parameter(problem, "channels", channel_names[channels],
	                     "%s needs an image %s; this one %s", channel_names[channels],
	                     channels == CHANNELS_ALPHA ? "with alpha"
	                     : channels == CHANNELS_RED ? "in RGB or grey"
	                                                : "in RGB",
	                     cmyk ? "is in CMYK" : has);
}

static enum error check_pixels(const struct chain *chain, uint32_t i, const struct image *image,
                               struct problem *problem)
{
	const struct kernel_row *row = kernel_row(chain_kernel(chain));
	const enum channels channels = chain->call[i].channels;
	const bool ycbcr = channels == CHANNELS_LUMA || channels == CHANNELS_CHROMA;
	const bool together = channels == CHANNELS_ALL || channels == CHANNELS_COLOR;
	struct operation op = {0};
	enum error e = lower(chain, i, &op, problem);
	bool blur = operation_compares(op.kind) && !(row->operations >> op.kind & 1);
	bool premultiplied = image->alpha && op.smoothing && together;
	enum pixel_type type = image->type;
	char types[32] = "";

	/* Kernels get floats in YCbCr (with alpha premultiplied, except for the bilateral filter,
	 * which does that itself), on a lattice, and for the mere blur of unsharp. */
	if (ycbcr || blur || op.lattice.stride || (premultiplied && op.kind != OPERATION_BILATERAL))
		type = PIXEL_F32;
	if (e || !(row->operations & operation_kernels(op.kind)) ||
	    (row->types >> type & 1 && row->bands >> image->bands & 1))
		goto out;
	for (enum pixel_type t = 0; t < PIXEL_TYPES; t++)
		if (row->types >> t & 1)
			list_add(types, sizeof types, pixel_type_rows[t].name);
	e = bad_parameter(problem, "variant", row->name,
	                  "%s supports %s of%s%s%s%s bands; %s needs %u bands of %s here",
	                  row->name, types, row->bands & 2 ? " 1" : "", row->bands & 4 ? " 2" : "",
	                  row->bands & 8 ? " 3" : "", row->bands & 16 ? " 4" : "",
	                  known_filters[chain->call[i].filter].name, image->bands,
	                  pixel_type_rows[type].name);
out:
	operation_fini(&op);
	return e;
}

/* Refuses an image without the colours that the filter mixes, or for which it has numbers. */
static enum error check_colours(const struct filter_call *call, const struct image *image,
                                bool cmyk, struct problem *problem)
{
	const uint32_t colours = image->bands - image->alpha, numbers = filter_by_colour(call);
	const struct filter_row *row = known_filters[call->filter].row;
	const char *name = "filters";
	char text[32];

	if (row->mixes && (cmyk || (colours != 3 && !(row->takes_grey && colours == 1))))
		return bad_parameter(problem, "filters", known_filters[call->filter].name,
		                     "%s needs an image in RGB%s; this one %s",
		                     known_filters[call->filter].name,
		                     row->takes_grey ? " or grey" : "",
		                     cmyk           ? "is in CMYK"
		                     : colours == 1 ? "is grey"
		                                    : "has other colours");
	if (numbers <= 1 || numbers == colours)
		return ERR_OK;
	if (row->by_colour)
		name = filter_parameter(call->filter, (size_t)__builtin_ctz(row->by_colour))->name;
	snprintf(text, sizeof text, "%u for each colour", numbers);
	return bad_parameter(problem, name, text,
	                     "the image has %u colour%s, and %s numbers for %u: expected one for "
	                     "all, or one for each",
	                     colours, colours > 1 ? "s" : "", known_filters[call->filter].name,
	                     numbers);
}

enum error chain_check_image(const struct chain *chain, const struct image *image, bool cmyk,
                             struct problem *problem)
{
	const struct image plane = image_plane(image);
	bool kernel = chain_kernel(chain) < KERNELS;
	enum error e = regions_check(&chain->regions, chain_shapes(chain), image, problem);

	for (uint32_t i = 0; !e && i < chain->count; i++) {
		e = chain_check_channels(chain->call[i].channels, image, cmyk, problem);
		if (!e)
			e = check_colours(&chain->call[i], image, cmyk, problem);
		if (!e && kernel)
			e = check_pixels(chain, i, &plane, problem);
	}
	return e;
}
