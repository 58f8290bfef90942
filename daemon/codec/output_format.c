/* Chooses the answer's format and its encoding, from formats.def, before any pixel is decoded. */
#include "codec/formats/row.h"

#include <inttypes.h>
#include <stdio.h>

#include <vips/vips.h>

#include "base/text.h"
#include "codec/repertoire.h"
#include "process/sandbox.h"
#include "wire/wire.h"

/* From this quality on, JPEGs keep the full resolution of colour. */
enum { FULL_CHROMA_QUALITY = 90 };
enum { LOSSY = 1 << LOSS_SAMPLES };

static unsigned kind_of(const struct image *image, bool cmyk)
{
	const uint32_t colours = image->bands - image->alpha;

	if (colours == 1)
		return image->alpha ? KIND_GREY_ALPHA : KIND_GREY;
	if (colours == 3)
		return image->alpha ? KIND_RGB_ALPHA : KIND_RGB;
	return cmyk ? KIND_CMYK : KIND_OTHER;
}

static bool writes_pages(const struct format_row *r)
{
	return r->pages && vips_version(1) >= r->pages_since;
}

/* True if the format supports the result's pages, kind and size. */
static bool holds(const struct format_row *r, const struct output_format *output)
{
	const struct image *image = &output->result;

	return r->kinds & kind_of(image, output->cmyk) && image->width <= r->side_max &&
	       image->height <= r->side_max && (writes_pages(r) || output->pages == 1);
}

/* Returns the rank of a format among those that the client accepts; 0: not accepted. The criteria
 * in order: it can hold the image (if no format can, the best one appears in the error message);
 * the client's weight; it is the body's format; it keeps type and alpha. */
static uint32_t rank(const struct message_job *job, enum format format,
                     const struct decoded *decoded, const struct output_format *output)
{
	const struct format_row *r = &format_rows[format];
	const struct image *image = &output->result;
	bool keeps = r->types >> image->type & 1 && !(r->flattens && image->alpha) &&
	             !(r->fewer_bits && image->type == PIXEL_U16) &&
	             (kind_of(image, output->cmyk) != KIND_CMYK || r->inks);

	if (!job->accept[format] || !format_in(repertoire().written, format))
		return 0;
	return (holds(r, output) ? 1u << 20 : 0) + job->accept[format] * 4u +
	       (format == decoded->format ? 2 : keeps);
}

static enum error check_image(const struct format_row *r, const struct output_format *output,
                              struct problem *problem)
{
	/* Every format holds grey and RGB. */
	static const char *const kinds[] = {
	    [KIND_GREY_ALPHA] = "grey with alpha",
	    [KIND_RGB_ALPHA] = "RGB with alpha",
	    [KIND_CMYK] = "CMYK",
	    [KIND_OTHER] = "of several bands without colours",
	};
	const struct image *image = &output->result;
	const char *name = format_naming(output->format)->name;
	const unsigned kind = kind_of(image, output->cmyk);
	char others[128] = "";

	if (holds(r, output))
		return ERR_OK;
	for (enum format other = FORMAT_NONE + 1; other < FORMATS; other++)
		if (format_in(repertoire().written, other) && holds(&format_rows[other], output) &&
		    !(format_rows[other].flattens && image->alpha))
			list_add(others, sizeof others, format_naming(other)->name);
	if (!(r->kinds & kind))
		return problem_set_parameter(
		    problem, ERR_UNENCODABLE, "format", name,
		    "the result is %s, and this format holds only %s; it can be written as %s",
		    kinds[kind], r->kinds_text, others);
	if (output->pages > 1 && !writes_pages(r))
		return problem_set_parameter(
		    problem, ERR_UNENCODABLE, "format", name,
		    "the result has %u pages, and this format holds one; they can be written as %s",
		    output->pages, others);
	return problem_set_parameter(problem, ERR_UNENCODABLE, "format", name,
	                             "the result is %ux%u, and this format holds at most %u pixels "
	                             "a side; it can be written as %s",
	                             image->width, image->height, r->side_max, others);
}

/* Lists the formats with lossless samples, or (halved) those that can halve colour's resolution. */
static void list_coded(char *list, size_t size, bool halved)
{
	for (enum format f = FORMAT_NONE + 1; f < FORMATS; f++) {
		const struct format_row *r = &format_rows[f];

		if (format_in(repertoire().written, f) &&
		    (halved ? r->lossy & LOSSY && !r->never_subsampled : !r->lossy || r->lossless))
			list_add(list, size, format_naming(f)->name);
	}
}

static enum error check_coding(const struct format_row *r, const struct output_format *output,
                               struct problem *problem)
{
	const struct coding *c = &output->coding;
	const bool halves = r->lossy & LOSSY && !c->lossless && !r->never_subsampled;
	const char *name = format_naming(output->format)->name;
	char text[128] = "";

	if (c->lossless && r->lossy && !r->lossless) {
		list_coded(text, sizeof text, false);
		return bad_parameter(problem, "lossless", "1",
		                     "%s has no lossless form; %s have one", name, text);
	}
	if (c->compression != COMPRESSION_DEFAULT &&
	    (c->compression < r->compression_first || c->compression > r->compression_last)) {
		format_list_compressions(repertoire().written, text, sizeof text);
		return bad_parameter(problem, "compression", compression_names[c->compression],
		                     "the answer is %s; compression: expected %s", name, text);
	}
	if (c->subsample == SUBSAMPLE_ON && !halves) {
		list_coded(text, sizeof text, true);
		return bad_parameter(problem, "subsample", "on",
		                     "the answer is %s, which keeps the resolution of colour; "
		                     "these can halve it: %s",
		                     name, text);
	}
	if (c->subsample == SUBSAMPLE_OFF && halves && !r->full_chroma)
		return bad_parameter(problem, "subsample", "off",
		                     "%s halves the resolution of colour, unless lossless=1", name);
	if (c->backgrounds == 3 && output->image.alpha != output->result.alpha &&
	    output->image.bands != 3) {
		snprintf(text, sizeof text, "%u,%u,%u", c->background[0], c->background[1],
		         c->background[2]);
		return bad_parameter(
		    problem, "background", text,
		    "the result is grey: background: expected one value from 0 to 255");
	}
	return ERR_OK;
}

/* Memory that a worker has in any case: stacks of threads, tables of libraries. */
static const uint64_t own_memory = 64 << 20;

/* An encoder that holds the whole image may use the process's private memory for it. */
static enum error check_memory(const struct format_row *r, const struct output_format *output,
                               struct problem *problem)
{
	const struct image *image = &output->image;
	uint64_t pixel_size = r->encoder_pixel_size * (image->type == PIXEL_U8 ? 1 : 2) +
	                      r->encoder_sample_size * image->bands;
	uint64_t size = own_memory + (uint64_t)image->width * image->height * pixel_size;

	if (!pixel_size || size <= sandbox_memory())
		return ERR_OK;
	return problem_set_parameter(
	    problem, ERR_UNENCODABLE, "format", format_naming(output->format)->name,
	    "the result is %ux%u, for which the encoder of this format takes %" PRIu64
	    " bytes of memory; the limit is %" PRIu64,
	    image->width, image->height, size, sandbox_memory());
}

static uint32_t losses(const struct format_row *r, const struct output_format *output,
                       const struct decoded *decoded)
{
	const struct image *from = &output->result, *to = &output->image;
	bool colours = from->bands - from->alpha == 3 || output->to_srgb;
	unsigned lossy = output->coding.lossless ? 0 : r->lossy;

	return decoded->lost | lossy |
	       (decoded->colours && output->format != FORMAT_PNG ? 1u << LOSS_COLOUR_SPACE : 0) |
	       (decoded->left_out ? 1u << LOSS_FRAMES : 0) |
	       (from->alpha && !to->alpha ? 1u << LOSS_ALPHA : 0) |
	       (output->to_srgb ? 1u << LOSS_INKS : 0) |
	       (r->clears_frames && output->pages > 1 && to->alpha && !lossy ? 1u << LOSS_HIDDEN
	                                                                     : 0) |
	       (from->type != to->type || (r->fewer_bits && to->type == PIXEL_U16) ? 1u << LOSS_BITS
	                                                                           : 0) |
	       (lossy & LOSSY && colours && !output->full_chroma ? 1u << LOSS_CHROMA : 0);
}

/* The image after conversion to a kind that the format can hold. */
static struct image fit_image(const struct format_row *r, const struct output_format *output)
{
	struct image image = output->result;
	unsigned types = r->types;

	/* The sRGB profile requires integers. Every format takes u8, which is 0. */
	if (output->to_srgb)
		types &= TYPE_U8 | TYPE_U16;
	while (!(types >> image.type & 1))
		image.type--;
	if (output->to_srgb)
		image.bands = 3;
	if (r->flattens && image.alpha) {
		image.bands--;
		image.alpha = 0;
	}
	if (r->colours & kind_of(&image, false))
		image.bands += 2;
	return image;
}

enum error output_format_choose(struct output_format *output, const struct message_job *job,
                                const struct decoded *decoded, const struct image *result,
                                struct problem *problem)
{
	const enum subsample subsample = job->coding.subsample;
	const struct format_row *r;
	char names[128];
	enum error e;

	*output = (struct output_format){
	    .result = *result, .pages = decoded->pages, .cmyk = decoded->cmyk};
	output->format = job->format;
	for (enum format f = FORMAT_NONE + 1; !job->format && f < FORMATS; f++)
		if (rank(job, f, decoded, output) > rank(job, output->format, decoded, output))
			output->format = f;
	if (output->format == FORMAT_NONE) /* the client accepts none */
		return problem_set(problem, ERR_NOT_ACCEPTABLE,
		                   "none of the formats that can be written is accepted");
	if (!format_in(repertoire().written, output->format)) { /* the front did not know that */
		format_list(repertoire().written, names, sizeof names);
		return bad_parameter(problem, "format", format_naming(output->format)->name,
		                     "format: expected one of %s", names);
	}
	r = &format_rows[output->format];
	e = check_image(r, output, problem);
	output->coding = job->coding;
	if (!output->coding.quality)
		output->coding.quality = r->quality;
	output->strip = job->strip != 0;
	output->to_srgb = decoded->cmyk && !r->inks;
	output->image = fit_image(r, output);
	/* Full resolution of colour: on request, if the body has it, or at a quality where the
	 * difference is visible. */
	output->full_chroma =
	    r->full_chroma &&
	    (r->never_subsampled || subsample == SUBSAMPLE_OFF ||
	     (subsample == SUBSAMPLE_AUTO &&
	      (decoded->full_chroma || output->coding.quality >= FULL_CHROMA_QUALITY)));
	output->lost = losses(r, output, decoded);
	if (!e)
		e = check_memory(r, output, problem);
	return e ? e : check_coding(r, output, problem);
}
