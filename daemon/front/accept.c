/* The Accept header (RFC 9110, 12.5.1), of which formats without wildcards and weights matter. */
#include "front/accept.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/image.h"

/* Writes the media type of one element of an Accept header, without parameters and spaces, and its
 * weight. Returns what follows the element, beyond which it has not looked: a header may be long.
 */
static const char *next_media_range(const char *at, char type[64], double *weight)
{
	size_t length = strcspn(at, ",; \t");

	snprintf(type, 64, "%.*s", (int)(length < 63 ? length : 63), at);
	*weight = 1;
	for (at += length; *at && *at != ','; at++) {
		const char *name = at + 1 + strspn(at + 1, " \t");

		if (*at == ';' && (*name == 'q' || *name == 'Q') && name[1] == '=')
			*weight = strtod(name + 2, NULL);
	}
	return at + strspn(at, ", \t");
}

enum error accept_parse(const char *accept, uint32_t *formats, uint32_t *best,
                        struct problem *problem)
{
	const uint32_t all = (1u << FORMATS) - 2;
	double best_weight = 0, weight;
	char type[64];

	*formats = 0;
	*best = FORMAT_NONE;
	if (!accept || !*accept) {
		*formats = all;
		return ERR_OK;
	}
	for (const char *at = accept + strspn(accept, ", \t"); *at;) {
		enum format format;

		at = next_media_range(at, type, &weight);
		if (weight <= 0)
			continue;
		if (!strcmp(type, "*/*") || !strcmp(type, "image/*"))
			*formats |= all;
		format = format_parse_media_type(type);
		*formats |= format ? 1u << format : 0;
		if (format && weight > best_weight) {
			best_weight = weight;
			*best = format;
		}
	}
	if (*formats)
		return ERR_OK;
	return problem_set_parameter(problem, ERR_NOT_ACCEPTABLE, "Accept", accept,
	                             "answers are image/jpeg, image/png, image/webp, image/tiff, "
	                             "image/gif, image/x-portable-anymap or "
	                             "application/octet-stream (raw pixels)");
}
