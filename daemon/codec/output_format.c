/* What each file format can hold, and so how an image is written in it. All of it is decided on the
 * header, before a pixel is decoded. */
#include "codec/output_format.h"

#include <stdio.h>

/* Kinds of pixel by their bands. */
enum { GREY = 1, GREY_ALPHA = 2, RGB = 4, RGB_ALPHA = 8, CMYK = 16, OTHER = 32, ALL = 63 };
/* From this quality on the colours of a JPEG have full resolution. */
enum { FULL_CHROMA_QUALITY = 90 };
enum { LOSSY = 1 << LOSS_SAMPLES, PALETTE = 1 << LOSS_COLOURS };
enum { U8 = 1 << PIXEL_U8, U16 = 1 << PIXEL_U16, F32 = 1 << PIXEL_F32 };

static const struct rule {
	unsigned kinds;
	unsigned types; /* others are converted to the widest of these */
	bool inks;      /* CMYK is kept, and not written as sRGB */
	uint32_t side_max;
	uint32_t quality;             /* unless one is asked for */
	bool flattens;                /* alpha is blended onto the background */
	bool colours;                 /* grey is written as RGB */
	unsigned lossy;               /* bit (1 << enum loss) for each that its coding has */
	bool lossless;                /* unless it is asked to have none of them */
	bool full_chroma;             /* it can keep the resolution of colour, though it be lossy */
	enum compression first, last; /* COMPRESSION_DEFAULT: there is no choice */
	const char *kinds_text;
} rules[FORMATS] = {
    [FORMAT_JPEG] = {.kinds = GREY | GREY_ALPHA | RGB | RGB_ALPHA | CMYK,
                     .types = U8,
                     .inks = true,
                     .side_max = 65535,
                     .quality = 85,
                     .flattens = true,
                     .lossy = LOSSY,
                     .full_chroma = true,
                     .kinds_text = "grey, RGB and CMYK"},
    [FORMAT_PNG] = {.kinds = GREY | GREY_ALPHA | RGB | RGB_ALPHA | CMYK,
                    .types = U8 | U16,
                    .side_max = IMAGE_SIDE_MAX,
                    .first = COMPRESSION_LEVEL,
                    .last = COMPRESSION_LEVEL + 9,
                    .kinds_text = "grey and RGB, with or without alpha"},
    [FORMAT_WEBP] = {.kinds = GREY | GREY_ALPHA | RGB | RGB_ALPHA | CMYK,
                     .types = U8,
                     .side_max = 16383,
                     .quality = 80,
                     .colours = true,
                     .lossy = LOSSY,
                     .lossless = true,
                     .kinds_text = "grey and RGB, with or without alpha"},
    [FORMAT_TIFF] = {.kinds = ALL,
                     .types = U8 | U16 | F32,
                     .inks = true,
                     .side_max = IMAGE_SIDE_MAX,
                     .first = COMPRESSION_NONE,
                     .last = COMPRESSION_ZSTD,
                     .kinds_text = "all"},
    [FORMAT_GIF] = {.kinds = GREY | GREY_ALPHA | RGB | RGB_ALPHA | CMYK,
                    .types = U8,
                    .side_max = 65535,
                    .colours = true,
                    .lossy = PALETTE,
                    .kinds_text = "grey and RGB, with or without alpha"},
    [FORMAT_PNM] = {.kinds = GREY | RGB | CMYK,
                    .types = U8 | U16 | F32,
                    .side_max = IMAGE_SIDE_MAX,
                    .kinds_text = "grey and RGB without alpha"},
    [FORMAT_RAW] = {.kinds = ALL,
                    .types = U8 | U16 | F32,
                    .inks = true,
                    .side_max = IMAGE_SIDE_MAX,
                    .kinds_text = "all"},
};

static unsigned kind_of(const struct image *image, bool cmyk)
{
	switch (image->bands - image->alpha) {
	case 1:
		return image->alpha ? GREY_ALPHA : GREY;
	case 3:
		return image->alpha ? RGB_ALPHA : RGB;
	default:
		return cmyk ? CMYK : OTHER;
	}
}

static const char *kind_text(unsigned kind)
{
	switch (kind) {
	case GREY_ALPHA:
		return "grey with alpha";
	case RGB_ALPHA:
		return "RGB with alpha";
	case CMYK:
		return "CMYK";
	default:
		return "of several bands without colours";
	}
}

/* True if a format can hold an image at all. */
static bool holds(const struct rule *r, const struct image *image, unsigned kind)
{
	return r->kinds & kind && image->width <= r->side_max && image->height <= r->side_max;
}

/* How a format ranks among those that the client accepts; 0: it does not accept it. First comes
 * that it can hold the image (of those that cannot, the best is there to say so), then the client's
 * weight, then that it is the body's own, then that it keeps type and alpha. */
static uint32_t rank(const struct message_job *job, enum format format, enum format own,
                     const struct image *image, unsigned kind)
{
	const struct rule *r = &rules[format];
	bool keeps = r->types >> image->type & 1 && !(r->flattens && image->alpha) &&
	             (kind != CMYK || r->inks);

	if (!job->accept[format])
		return 0;
	return (holds(r, image, kind) ? 1u << 20 : 0) + job->accept[format] * 4u +
	       (format == own ? 2 : keeps);
}

/* FORMAT_NONE: the client accepts none. */
static enum format choose_format(const struct message_job *job, const struct decoded *decoded,
                                 const struct image *image)
{
	enum format own = job->raw ? FORMAT_RAW : decoded->format, best = FORMAT_NONE;
	unsigned kind = kind_of(image, decoded->cmyk);

	if (job->format)
		return job->format;
	for (enum format f = FORMAT_NONE + 1; f < FORMATS; f++)
		if (rank(job, f, own, image, kind) > rank(job, best, own, image, kind))
			best = f;
	return best;
}

/* Lists the other formats that could take this image: "png, tiff". */
static void list_others(char *list, size_t size, const struct image *image, unsigned kind)
{
	size_t used = 0;

	*list = '\0';
	for (enum format f = FORMAT_JPEG; f < FORMATS; f++) {
		const struct rule *r = &rules[f];

		if (holds(r, image, kind) && !(r->flattens && image->alpha) && used < size)
			used += (size_t)snprintf(list + used, size - used, "%s%s", used ? ", " : "",
			                         format_name(f));
	}
}

static enum error check_rule(const struct rule *r, enum format format, const struct image *image,
                             unsigned kind, struct problem *problem)
{
	char others[64];

	list_others(others, sizeof others, image, kind);
	if (!(r->kinds & kind))
		return problem_set_parameter(
		    problem, ERR_UNENCODABLE, "format", format_name(format),
		    "the result is %s, and this format holds only %s; it can be "
		    "written as %s",
		    kind_text(kind), r->kinds_text, others);
	if (image->width > r->side_max || image->height > r->side_max)
		return problem_set_parameter(
		    problem, ERR_UNENCODABLE, "format", format_name(format),
		    "the result is %ux%u, and this format holds at most %u pixels "
		    "a side; it can be written as %s",
		    image->width, image->height, r->side_max, others);
	return ERR_OK;
}

/* Profiles are of integers. */
static uint32_t choose_type(const struct rule *r, uint32_t type, bool to_srgb)
{
	unsigned types = to_srgb ? r->types & (U8 | U16) : r->types;

	while (!(types >> type & 1))
		type--; /* every format takes u8, which is 0 */
	return type;
}

/* Lists the formats that lose no sample by their coding. */
static void list_lossless(char *list, size_t size)
{
	size_t used = 0;

	for (enum format f = FORMAT_JPEG; f < FORMATS; f++)
		if ((!rules[f].lossy || rules[f].lossless) && used < size)
			used += (size_t)snprintf(list + used, size - used, "%s%s", used ? ", " : "",
			                         format_name(f));
}

static enum error check_lossless(const struct rule *r, const struct answer *answer,
                                 struct problem *problem)
{
	char others[64] = "";

	if (!answer->coding.lossless || !r->lossy || r->lossless)
		return ERR_OK;
	list_lossless(others, sizeof others);
	return problem_set_parameter(problem, ERR_BAD_PARAMETER, "lossless", "1",
	                             "%s has no lossless form; %s have one",
	                             format_name(answer->format), others);
}

static enum error check_compression(const struct rule *r, const struct answer *answer,
                                    struct problem *problem)
{
	enum compression c = answer->coding.compression;

	if (c == COMPRESSION_DEFAULT || (c >= r->first && c <= r->last))
		return ERR_OK;
	return problem_set_parameter(problem, ERR_BAD_PARAMETER, "compression", compression_name(c),
	                             "the answer is %s; compression is a level from 0 to 9 for "
	                             "png, and none, lzw, deflate or zstd for tiff",
	                             format_name(answer->format));
}

static enum error check_subsample(const struct rule *r, const struct answer *answer,
                                  struct problem *problem)
{
	enum subsample subsample = answer->coding.subsample;
	bool halves = r->lossy & LOSSY && !answer->coding.lossless;

	if (subsample == SUBSAMPLE_ON && !halves)
		return problem_set_parameter(problem, ERR_BAD_PARAMETER, "subsample", "on",
		                             "the answer is %s, which keeps the resolution of "
		                             "colour; jpeg and webp halve it",
		                             format_name(answer->format));
	if (subsample == SUBSAMPLE_OFF && halves && !r->full_chroma)
		return problem_set_parameter(
		    problem, ERR_BAD_PARAMETER, "subsample", "off",
		    "%s halves the resolution of colour, unless lossless=1",
		    format_name(answer->format));
	return ERR_OK;
}

static enum error check_background(const struct answer *answer, struct problem *problem)
{
	const struct coding *c = &answer->coding;
	char value[32];

	if (c->backgrounds != 3 || answer->image.alpha == answer->result.alpha ||
	    answer->image.bands == 3)
		return ERR_OK;
	snprintf(value, sizeof value, "%u,%u,%u", c->background[0], c->background[1],
	         c->background[2]);
	return problem_set_parameter(problem, ERR_BAD_PARAMETER, "background", value,
	                             "the result is grey: background is one value, 0 to 255");
}

/* Checks that the format can be coded as it is asked for. */
static enum error check_coding(const struct rule *r, const struct answer *answer,
                               struct problem *problem)
{
	enum error e = check_lossless(r, answer, problem);

	if (!e)
		e = check_compression(r, answer, problem);
	if (!e)
		e = check_subsample(r, answer, problem);
	return e ? e : check_background(answer, problem);
}

/* JPEGs of full resolution keep it, and all of a quality where it would be seen. */
static bool keeps_chroma(const struct rule *r, const struct answer *answer,
                         const struct decoded *decoded)
{
	enum subsample subsample = answer->coding.subsample;

	return r->full_chroma &&
	       (subsample == SUBSAMPLE_OFF ||
	        (subsample == SUBSAMPLE_AUTO &&
	         (decoded->full_chroma || answer->coding.quality >= FULL_CHROMA_QUALITY)));
}

static uint32_t losses(const struct rule *r, const struct answer *answer,
                       const struct decoded *decoded)
{
	const struct image *from = &answer->result, *to = &answer->image;
	bool colours = from->bands - from->alpha == 3 || answer->to_srgb;
	unsigned lossy = answer->coding.lossless ? 0 : r->lossy;

	return lossy | (decoded->more_frames ? 1u << LOSS_FRAMES : 0) |
	       (from->alpha && !to->alpha ? 1u << LOSS_ALPHA : 0) |
	       (answer->to_srgb ? 1u << LOSS_INKS : 0) |
	       (from->type != to->type ? 1u << LOSS_BITS : 0) |
	       (lossy & LOSSY && colours && !answer->full_chroma ? 1u << LOSS_CHROMA : 0);
}

enum error output_format_choose(struct answer *answer, const struct message_job *job,
                                const struct decoded *decoded, uint32_t width, uint32_t height,
                                struct problem *problem)
{
	enum format format;
	const struct rule *r;
	enum error e;

	*answer = (struct answer){.result = decoded->image, .cmyk = decoded->cmyk};
	answer->result.width = width;
	answer->result.height = height;
	format = answer->format = choose_format(job, decoded, &answer->result);
	if (format == FORMAT_NONE || format >= FORMATS)
		return problem_set(problem, ERR_NOT_ACCEPTABLE,
		                   "none of the formats that can be written is accepted");
	r = &rules[format];
	answer->image = answer->result;
	e = check_rule(r, format, &answer->result, kind_of(&answer->result, decoded->cmyk),
	               problem);
	answer->coding = job->coding;
	if (!answer->coding.quality)
		answer->coding.quality = r->quality;
	answer->strip = job->strip != 0;
	answer->to_srgb = decoded->cmyk && !r->inks;
	answer->image.type = choose_type(r, answer->image.type, answer->to_srgb);
	if (answer->to_srgb)
		answer->image.bands = 3;
	if (r->flattens && answer->image.alpha) {
		answer->image.bands--;
		answer->image.alpha = 0;
	}
	if (r->colours && answer->image.bands < 3)
		answer->image.bands += 2;
	answer->full_chroma = keeps_chroma(r, answer, decoded);
	answer->lost = losses(r, answer, decoded);
	return e ? e : check_coding(r, answer, problem);
}
