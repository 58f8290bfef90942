/* A format's reader and writer of pixel rows. decode.c and encode.c use them without knowing any
 * format's name; formats.def has a row for each format. Members that it does not need are NULL. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/error.h"
#include "codec/metadata/file_metadata.h"
#include "image/formats.h"
#include "image/image.h"

struct jpeg_bytes;
struct jpeg_target;
struct message_job;
struct _VipsImage;
struct _VipsTarget;

/* Reading -------------------------------------------------------------------------------------- */

/* A file in memory. */
struct body {
	uint8_t *at;
	size_t size;
	bool mapped; /* read-only, else a copy */
};

/* Makes a body writable, which its decoder must own. */
static inline enum error body_make_writable(const struct body *body, struct problem *problem)
{
	if (body->mapped && mprotect(body->at, body->size, PROT_READ | PROT_WRITE))
		return no_memory(problem, "to read the body");
	return ERR_OK;
}

/* The facts that the header tells. */
struct decoded {
	enum format format;  /* the body's; FORMAT_RAW for bare pixels */
	struct image whole;  /* after orientation */
	struct image image;  /* rows of this are read: the job's ROI, a draft, or `whole` */
	bool plain;          /* libvips has no part in reading the pixels */
	bool cmyk;           /* four bands of ink */
	bool full_chroma;    /* a JPEG whose colours have full resolution */
	uint32_t file_pages; /* pages of the body, or frames, at least 1 */
	uint32_t pages;      /* those that are read; each is as `whole` says */
	bool left_out;       /* there are further pages, and the request does not select any */
	bool any_order;      /* rows can be read in any order, repeatedly */
	bool colours;        /* a PNG that describes them, not only by a profile */
	uint32_t lost;       /* bits (1 << enum loss): the losses of reading */
	uint64_t held;       /* bytes per pixel that a plain reader holds at once; 0: a few rows */
};

/* The part of a body that libvips is to load. */
struct part {
	const struct body *body;
	void *state;   /* the reader's, or NULL */
	uint32_t page; /* the first that is read */
	bool all;      /* and the pages after it */
	uint32_t by;   /* a JPEG is loaded so many times smaller; 0: it is not */
	/* the number of pages, where libvips's loader knows of none; otherwise 0 */
	uint32_t frames;
	uint64_t memory_max; /* bytes for decoding */
	const char *who;     /* "the PNG decoder" */
};

/* The body outlives everything made from it. A function that fails gives the reason in the problem.
 * A decoder that repeats or expands data of a small file needs a walk in bounds.c, too. */
struct reader {
	/* False if a library lacks the format's codec. Called before the sandbox is entered. */
	bool (*works)(enum format format);

	/* Refuses a file that must not be decoded, or changes it so that libvips can decode it. */
	enum error (*check)(const struct body *body, struct problem *problem);

	size_t size; /* bytes of its state */
	/* the place in it of a block's address, which is freed with it; 0: there is none */
	size_t block;
	/* the place in it of the file's metadata, which another thread may read while rows are
	 * decoded; 0: there is none */
	size_t metadata;

	/* Reads the header: fills in `plain` and, if it is true, those facts from `whole` on that
	 * differ from the values that decode_open() has set. Otherwise libvips reads the pixels.
	 * The state is zeroed before. */
	enum error (*open)(void *state, struct decoded *decoded, const struct body *body,
	                   struct problem *problem);
	/* Frees the state's memory except for block and metadata, also after open() has failed. */
	void (*close)(void *state);

	/* Makes the image a draft, of which rows are then read; NULL: it has none. */
	enum error (*shrink)(void *state, uint32_t by, struct image *image,
	                     struct problem *problem);

	/* Locates the rows, once their number has been allowed. */
	enum error (*find)(void *state, struct problem *problem);
	bool tries; /* if that fails, libvips decodes the file, or says why not */

	/* Does the work before the first row; rows() does it if this was not called. */
	enum error (*begin)(void *state, struct problem *problem);

	/* Decodes the area's columns of rows, pitch bytes apart. Rows must not go back, unless they
	 * can be read in any order; rows in between are decoded and dropped, even if the area has
	 * no rows. After a failure the state can only be closed. */
	enum error (*rows)(void *state, const struct area *area, uint8_t *to, size_t pitch,
	                   struct problem *problem);

	/* Loads the part in place of libvips's loader; or leaves *image NULL after doing everything
	 * that the loader needs. */
	enum error (*load)(struct _VipsImage **image, const struct part *part,
	                   struct problem *problem);
	/* Amends what has been loaded. */
	enum error (*amend)(struct _VipsImage **image, const struct part *part,
	                    struct problem *problem);
};

/* Returns the file's metadata, or NULL. */
static inline struct file_metadata *reader_metadata(const struct reader *r, void *state)
{
	return state && r->metadata ? (void *)((uint8_t *)state + r->metadata) : NULL;
}

static inline void reader_close(const struct reader *r, void **state)
{
	void *block = NULL;

	if (*state && r->close)
		r->close(*state);
	if (*state && r->block)
		memcpy(&block, (uint8_t *)*state + r->block, sizeof block);
	free(block);
	file_metadata_free(reader_metadata(r, *state));
	free(*state);
	*state = NULL;
}

/* Opens a file. *state becomes NULL on failure, and for files that libvips reads without help. */
static inline enum error reader_open(const struct reader *r, void **state, struct decoded *decoded,
                                     const struct body *body, struct problem *problem)
{
	enum error e = ERR_OK;

	*state = r->size ? calloc(1, r->size) : NULL;
	if (r->size && !*state)
		return no_memory(problem, "to decode");
	if (r->open)
		e = r->open(*state, decoded, body, problem);
	if (e || !(decoded->plain || r->load || r->amend))
		reader_close(r, state);
	return e;
}

/* Writing -------------------------------------------------------------------------------------- */

struct output_format {
	enum format format;
	struct image result; /* as composed */
	struct image image;  /* as written: type and bands may differ */
	uint32_t pages;      /* each of this size */
	bool cmyk;
	bool to_srgb;         /* the result is CMYK, which the format cannot hold */
	struct coding coding; /* the quality is set, by default to the format's */
	bool full_chroma;     /* for JPEG */
	bool strip;
	uint32_t lost; /* bit (1 << enum loss) for each */
};

/* Chooses the format and its settings for a result: the requested one, or the one with the greatest
 * weight, and among equals the body's. ERR_UNENCODABLE lists the formats that would do;
 * ERR_BAD_PARAMETER says what the format supports. */
enum error output_format_choose(struct output_format *output, const struct message_job *job,
                                const struct decoded *decoded, const struct image *result,
                                struct problem *problem) MUST_CHECK;

/* Rows of all pages, one below the other. */
static inline uint32_t output_rows(const struct output_format *output)
{
	return output->pages * output->image.height;
}

/* Returns a row, valid until the next call; NULL if there are no more, and the part of the answer
 * written so far is useless. */
typedef const uint8_t *answer_row(void *context, uint32_t y);

/* The source of an answer's rows, which must not go back. */
struct row_source {
	answer_row *row; /* waits for the row; NULL: the job was stopped, as any failure does */
	void (*free_above)(void *context, uint32_t y); /* those above y are no longer needed */
	void *context;
};

/* An answer, to be written to an empty file. Its rows come in order, in output->image's sample
 * type, with the bands of output->result or, after the conversion to sRGB, of output->image. */
struct answer {
	const struct output_format *output;
	const struct file_metadata *metadata;
	answer_row *row;
	void *context;
	const struct jpeg_bytes *scan; /* a JPEG's, in place of rows; NULL: none */
	int file;
};

struct writer {
	/* False if a library lacks the format's codec. Called before the sandbox is entered. */
	bool (*works)(void);

	/* Writes the whole answer. Its result counts if every row arrived. NULL: libvips writes. */
	enum error (*write)(const struct answer *answer, struct problem *problem);
	/* True if write() writes such an answer; NULL: any. */
	bool (*writes)(const struct output_format *output);

	/* Describes the scan that a device must make, if write() accepts one for such an answer. */
	bool (*target)(const struct output_format *output, struct jpeg_target *target);

	/* Writes an image by libvips, whose message explains a failure. */
	int (*save)(const struct output_format *output, struct _VipsImage *image,
	            struct _VipsTarget *target);
	/* Checks the saved file for failures that save() does not report. */
	bool (*saved)(const struct output_format *output, const void *file, size_t size);
};

#define READER(format, row) extern const struct reader row;
#define WRITER(format, row) extern const struct writer row;
#include "image/formats.def"
