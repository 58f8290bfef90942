/* Image formats: see formats.def. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "image/image.h"

/* FORMAT_NONE stands for "as the input". */
enum format {
	FORMAT_NONE,
#define FORMAT(symbol, ...) FORMAT_##symbol,
#include "image/formats.def"
	FORMATS
};

/* Compression: the methods are TIFF's; PNG's levels, 0 to 9, follow them. */
enum compression {
	COMPRESSION_DEFAULT,
	COMPRESSION_NONE,
	COMPRESSION_LZW,
	COMPRESSION_DEFLATE,
	COMPRESSION_ZSTD,
	COMPRESSION_LEVEL,
	COMPRESSIONS = COMPRESSION_LEVEL + 10
};

/* JPEG's chroma subsampling. */
enum subsample { SUBSAMPLE_AUTO, SUBSAMPLE_ON, SUBSAMPLE_OFF, SUBSAMPLES };

struct coding {
	uint32_t quality;       /* 1 to 100; 0: the format's default */
	uint32_t lossless;      /* 0 or 1 */
	uint32_t compression;   /* enum compression */
	uint32_t subsample;     /* enum subsample */
	uint32_t backgrounds;   /* number of values below: 0 (black), 1 (grey) or 3 */
	uint32_t background[3]; /* each 0 to 255 */
};

/* True if every field is within its limits. */
bool coding_valid(const struct coding *coding);

/* The compression of a name ("lzw") or level ("9"), or COMPRESSIONS. */
enum compression compression_parse(const char *text);
extern const char *const compression_names[COMPRESSIONS];
/* Parses "G" or "R,G,B". Returns false on failure; the background is then undefined. */
bool background_parse(const char *text, struct coding *coding) MUST_CHECK;

enum loss {
#define LOSS(symbol, token, text) LOSS_##symbol,
#include "image/losses.def"
	LOSSES
};

/* The token that clients read, and its meaning. */
extern const struct loss_row {
	const char *token, *text;
} loss_rows[LOSSES];

/* Kinds of pixel by their bands. */
enum {
	KIND_GREY = 1,
	KIND_GREY_ALPHA = 2,
	KIND_RGB = 4,
	KIND_RGB_ALPHA = 8,
	KIND_CMYK = 16,
	KIND_OTHER = 32,
	KINDS_GREY = KIND_GREY | KIND_GREY_ALPHA,
	KINDS_COLOUR = KIND_OTHER - 1,
	KINDS_ALL = KINDS_COLOUR | KIND_OTHER
};

enum {
	TYPE_U8 = 1 << PIXEL_U8,
	TYPE_U16 = 1 << PIXEL_U16,
	TYPE_F32 = 1 << PIXEL_F32,
	TYPES_ALL = TYPE_U8 | TYPE_U16 | TYPE_F32
};

/* The properties of a format, and of its reader and writer. */
extern const struct format_row {
	const char *loader; /* libvips's operation; NULL: it is read here */
	const char *saver;  /* libvips's operation; NULL: it is written here */
	const char *module; /* libvips's module with its operations, where they are not built in */
	/* files hold several pages, or frames, of one size; all of them can be read */
	bool pages;
	/* libvips 8 writes several pages from this version on; 0: in every version */
	int pages_since;
	bool keeps_pages; /* its decoder holds all pages that are read, and a canvas for frames */
	uint32_t page_copies; /* copies that its decoder keeps of a page if all pages are read */
	/* Bytes per pixel of u8 that its decoder needs because it holds the whole image; 0: it
	 * decodes row by row. u16 takes twice as many. */
	uint32_t decoder_pixel_size;
	uint32_t decoder_alpha_size;  /* additional bytes with alpha, for either type */
	uint32_t encoder_pixel_size;  /* the encoder's total; 0: no more than its answer */
	uint32_t encoder_sample_size; /* the same for each band, of either type */
	unsigned kinds;
	const char *kinds_text;
	unsigned types;        /* others are converted to the widest of these */
	bool fewer_bits;       /* u16 samples lose some */
	bool inks;             /* CMYK is kept, and not written as sRGB */
	bool flattens;         /* alpha is blended onto the background */
	unsigned colours;      /* kinds of grey that are written as RGB */
	uint32_t side_max;     /* maximum that is written */
	uint32_t quality;      /* unless one is asked for */
	unsigned lossy;        /* bits (1 << enum loss): the losses of its coding */
	bool lossless;         /* unless it is asked to have none of them */
	bool clears_frames;    /* in animations colour is dropped where alpha is 0 */
	bool full_chroma;      /* it can keep the resolution of colour although it is lossy */
	bool never_subsampled; /* it keeps it always */
	enum compression compression_first; /* COMPRESSION_DEFAULT: there is no choice */
	enum compression compression_last;
	const char *compression_text;
} format_rows[FORMATS];

/* Formats that are read and written by any build: bit (1 << enum format) for each. */
struct format_sets {
	uint32_t read, written;
};

/* Those that formats.def has. */
struct format_sets format_sets_known(void);

/* Those that every service has: it tests itself with PNM, and bare pixels need no decoder. */
enum { FORMATS_ALWAYS = 1 << FORMAT_PNM | 1 << FORMAT_RAW };

/* True if the format is in the set. */
static inline bool format_in(uint32_t set, enum format format)
{
	return set >> format & 1;
}

/* Lists a set for a message: "jpeg, png". */
void format_list(uint32_t set, char *list, size_t size);

struct format_naming {
	enum format format;
	const char *name, *title; /* "jpeg", "JPEG"; "none" */
	const char *media_type;
};

const struct format_naming *format_naming(enum format format);
/* The format of a name ("jpeg", "jpg", "png", …, "ppm", "pgm", "pfm", "raw"), or FORMAT_NONE. */
enum format format_parse(const char *name);
/* The format of a media type ("image/png"), or FORMAT_NONE. Parameters must have been cut off. */
enum format format_parse_media_type(const char *media_type);

/* A name that clients are told of. */
struct format_offer {
	enum format format;
	const char *name, *title;
};

/* The i-th of them, or NULL. */
const struct format_offer *format_offer(size_t i);

/* Lists a set of formats' compressions: "a level from 0 to 9 for png, and none, … for tiff". */
void format_list_compressions(uint32_t set, char *list, size_t size);
