/* Rejects some decompression bombs before a decoder sees them: small files that refer to the same
 * data again and again, or inflate to gigabytes. The front ends runs that take too much processor
 * time (time_max() in front/workers/codecs.c), so only dangers for which that is too late are
 * handled here: memory that a few kilobytes fill within two seconds, recursion, and work that is
 * cheap to request beside many pixels, which allow much time (scans, frames, directories).
 *
 * The hard part is to find everything that the decoder will read. A walk reads the same structures
 * in the same order as the decoder, and stops only where the decoder stops too. It allocates hardly
 * any memory, and its work is bounded by the file's size plus the limits: data that can be visited
 * several times is counted on each visit, and the walk ends at the first exceeded limit. */
#include "codec/formats/bounds.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

#include "codec/metadata/containers.h"
#include "codec/formats/heif.h"
#include "codec/formats/jxl.h"

/* Limits on what a decoder keeps in memory. Real files use at most a tenth of them, except for
 * frames and pages. A TIFF decoder frees one page before the next, so its limits are per page; the
 * limit on all pages bounds the work to half a second. */
#define ALL_BOUNDS(BOUND)                                                                          \
	BOUND(SCANS, 100, "scans")                                                                 \
	BOUND(FRAMES, 10000, "frames")                                                             \
	BOUND(TEXTS, 1000, "text chunks")                                                          \
	BOUND(TEXT_BYTES, 16 << 20, "bytes of text")                                               \
	BOUND(PROFILE_BYTES, 16 << 20, "bytes of ICC profile")                                     \
	BOUND(EXIF_DIRECTORIES, 64, "EXIF directories")                                            \
	BOUND(EXIF_ENTRIES, 4096, "EXIF entries")                                                  \
	BOUND(PAGES, 20000, "pages")                                                               \
	BOUND(TIFF_TAGS, 1000000, "TIFF tags")                                                     \
	BOUND(METADATA_BYTES, 64 << 20, "bytes of metadata")                                       \
	BOUND(PAGES_BYTES, 512 << 20, "bytes of metadata in all pages")                            \
	BOUND(OVERLAPS, 3, "times its own size in items")                                          \
	BOUND(HEADER_BYTES, 4096, "bytes of header")                                               \
	BOUND(CODED_PROFILE_BYTES, 4 << 20, "bytes of coded ICC profile")

#define SYMBOL(symbol, ...)      symbol,
#define ROW(symbol, limit, what) {limit, what},
enum bound { ALL_BOUNDS(SYMBOL) BOUNDS };

static const struct {
	uint64_t limit;
	const char *what;
} bounds[BOUNDS] = {ALL_BOUNDS(ROW)};

struct walk {
	const uint8_t *body;
	size_t size;
	uint64_t count[BOUNDS];
	enum bound passed; /* BOUNDS: none exceeded */
	bool cut;          /* a part of the file is longer than the file */
	bool exif;         /* the directories are those of a block of EXIF */
};

/* Returns false when a limit is exceeded. */
static bool add(struct walk *w, enum bound bound, uint64_t amount)
{
	w->count[bound] += amount < UINT64_MAX / 2 ? amount : UINT64_MAX / 2;
	if (w->count[bound] > bounds[bound].limit && w->passed == BOUNDS)
		w->passed = bound;
	return w->passed == BOUNDS;
}

/* TIFF, and EXIF, which is one ----------------------------------------------------------------- */

static bool walk_directory(struct walk *w, const struct tiff_file *t, uint64_t offset,
                           uint64_t *next);

/* Decoders read a value at any position in the file, even where it overlaps others. They ignore a
 * value longer than the file, except for lists of strips and tiles, of which they read as much as
 * they need. */
static bool walk_entry(struct walk *w, const struct tiff_file *t, const struct tiff_entry *e)
{
	static const uint8_t sizes[] = {1, 1, 1, 2, 4, 8, 1, 1, 2, 4, 8, 4, 8, 4, 1, 1, 8, 8, 8};
	uint64_t bytes, next;

	if (e->type >= sizeof sizes ||
	    __builtin_mul_overflow(e->count, (uint64_t)sizes[e->type], &bytes))
		bytes = 0; /* no decoder accepts it */
	if (!add(w, w->exif ? EXIF_ENTRIES : TIFF_TAGS, 1))
		return false;
	if (w->exif && (e->tag == 0x8769 || e->tag == 0x8825 || e->tag == 0xa005)) /* a directory */
		return walk_directory(w, t, e->value, &next);
	if ((e->tag == 0x111 || e->tag == 0x117 || e->tag == 0x144 || e->tag == 0x145) &&
	    bytes > t->size)
		bytes = e->value < t->size ? t->size - e->value : 0;
	if (bytes <= t->number || bytes > t->size)
		return true;
	return add(w, e->tag == 0x8773 ? PROFILE_BYTES : METADATA_BYTES, bytes) &&
	       (w->exif || add(w, PAGES_BYTES, bytes));
}

/* Sets *next to the offset of the directory that follows, 0 if none does. The limit on directories
 * bounds the recursion. */
static bool walk_directory(struct walk *w, const struct tiff_file *t, uint64_t offset,
                           uint64_t *next)
{
	struct tiff_directory directory;
	struct tiff_entry entry;

	*next = 0;
	if (!add(w, w->exif ? EXIF_DIRECTORIES : PAGES, 1))
		return false;
	if (!tiff_directory_open(&directory, t, offset))
		return true;
	while (tiff_entry_next(&directory, &entry))
		if (!walk_entry(w, t, &entry))
			return false;
	*next = tiff_directory_end(&directory);
	return true;
}

/* Decoders stop at a repeated directory, and so does this (R. P. Brent, 1980). */
static bool walk_pages(struct walk *w)
{
	uint64_t page, mark = 0;
	struct tiff_file t;

	if (!tiff_open(&t, w->body, w->size, &page))
		return true;
	for (uint64_t i = 1; page && page != mark; i++) {
		if (!(i & (i - 1)))
			mark = page;
		w->count[PROFILE_BYTES] = w->count[METADATA_BYTES] = 0;
		if (!walk_directory(w, &t, page, &page))
			return false;
	}
	return true;
}

/* Walks the directories of image and thumbnail. The header is behind a title, or at the start. */
static bool walk_exif(struct walk *w, const uint8_t *at, size_t size)
{
	enum { TITLE = 6 };
	const size_t skip = size >= TITLE && !memcmp(at, "Exif", 4) ? TITLE : 0;
	struct tiff_file t;
	uint64_t next;

	if (!add(w, METADATA_BYTES, size))
		return false;
	if (!tiff_open(&t, at + skip, size - skip, &next))
		return true;
	w->exif = true;
	return walk_directory(w, &t, next, &next) && (!next || walk_directory(w, &t, next, &next));
}

/* JPEG ----------------------------------------------------------------------------------------- */

/* Decoders read nothing behind a scan with all components of a sequential frame. This stops before
 * that scan, which is most of the file. */
static bool walk_jpeg(struct walk *w)
{
	const uint8_t *at = w->body, *end = w->body + w->size;
	uint8_t components = 0; /* a sequential frame's */
	struct jpeg_segment s;
	bool fits = true;

	while (fits && jpeg_segment_next(&at, end, &s))
		if (s.marker == 0xda && s.size && *s.data == components)
			break;
		else if (s.marker == 0xda)
			fits = add(w, SCANS, 1);
		else if ((s.marker == 0xc0 || s.marker == 0xc1) && s.size > 5)
			components = s.data[5];
		else if (s.marker == 0xe1 && bytes_begin(s.data, s.size, "Exif"))
			fits = walk_exif(w, s.data, s.size);
		else if (s.marker == 0xe2 && s.size >= 12 && !memcmp(s.data, "ICC_PROFILE", 12))
			fits = add(w, PROFILE_BYTES, s.size);
		else if ((s.marker & 0xf0) == 0xe0 || s.marker == 0xfe)
			fits = add(w, METADATA_BYTES, s.size);
	return fits;
}

/* PNG ------------------------------------------------------------------------------------------ */

/* Counts the inflated bytes, up to the limit; keeps none. */
static bool add_inflated(struct walk *w, enum bound bound, const uint8_t *at, size_t size)
{
	uint8_t out[16384];
	z_stream stream = {.next_in = (Bytef *)(uintptr_t)at, .avail_in = (uInt)size};
	bool fits = true;
	int status;

	if (inflateInit(&stream) != Z_OK)
		return true;
	do {
		stream.next_out = out;
		stream.avail_out = sizeof out;
		status = inflate(&stream, Z_SYNC_FLUSH);
		fits = add(w, bound, sizeof out - stream.avail_out);
	} while (fits && status == Z_OK && stream.avail_out < sizeof out);
	inflateEnd(&stream);
	return fits;
}

static bool walk_text(struct walk *w, const struct png_chunk *c)
{
	const uint8_t *end = c->data + c->size, *text = bytes_text_end(c->data, end);
	bool deflated = *c->name == 'z';

	if (!add(w, TEXTS, 1))
		return false;
	if (*c->name == 'i' && text && end - text > 2) {
		deflated = *text;
		text = bytes_text_end(bytes_text_end(text + 2, end), end);
	} else if (deflated && text && text < end) {
		text++;
	}
	return deflated && text ? add_inflated(w, TEXT_BYTES, text, (size_t)(end - text))
	                        : add(w, TEXT_BYTES, c->size);
}

/* A decoder allocates and clears memory for a chunk's declared length before it reads the chunk.
 * Nobody reads chunks that are cut off behind the pixels. */
static bool walk_png(struct walk *w)
{
	const uint8_t *at = w->body + PNG_SIGNATURE, *end = w->body + w->size, *deflated;
	bool pixels = false, fits = true;
	struct png_chunk c;

	while (fits && png_chunk_next(&at, end, &c)) {
		pixels |= png_chunk_is(&c, "IDAT");
		w->cut = c.cut && !pixels;
		if (w->cut) {
			fits = false;
		} else if (png_chunk_is(&c, "eXIf")) {
			fits = walk_exif(w, c.data, c.size);
		} else if (png_chunk_is(&c, "iCCP")) {
			deflated = bytes_text_end(c.data, c.data + c.size);
			fits = add(w, TEXTS, 1) &&
			       (!deflated || deflated == c.data + c.size ||
			        add_inflated(w, PROFILE_BYTES, deflated + 1,
			                     (size_t)(c.data + c.size - deflated - 1)));
		} else if (png_chunk_is(&c, "tEXt") || png_chunk_is(&c, "zTXt") ||
		           png_chunk_is(&c, "iTXt")) {
			fits = walk_text(w, &c);
		} else if (png_chunk_is(&c, "fcTL")) {
			fits = add(w, FRAMES, 1);
		}
	}
	return fits;
}

/* WebP ----------------------------------------------------------------------------------------- */

static bool walk_webp(struct walk *w)
{
	const uint8_t *at = w->body + 12, *end = w->body + w->size;
	bool fits = true;

	while (fits && end - at >= 8) {
		const uint64_t size = bytes_number(at + 4, 4, false),
		               room = (uint64_t)(end - at) - 8;
		const uint64_t there = size < room ? size : room;

		if (!memcmp(at, "EXIF", 4))
			fits = walk_exif(w, at + 8, there);
		else if (!memcmp(at, "ICCP", 4))
			fits = add(w, PROFILE_BYTES, there);
		else if (!memcmp(at, "XMP ", 4))
			fits = add(w, METADATA_BYTES, there);
		else if (!memcmp(at, "ANMF", 4))
			fits = add(w, FRAMES, 1);
		if (room < size + (size & 1))
			break;
		at += 8 + size + (size & 1);
	}
	return fits;
}

/* AVIF ----------------------------------------------------------------------------------------- */

/* An item may consist of many pieces, each of which may be the whole file, and libheif copies them.
 * Its EXIF is checked once it is assembled (bounds_check_exif()). */
static bool walk_heif(struct walk *w)
{
	struct heif_items items;
	struct heif_item item;
	uint64_t sizes = 0;

	if (!add(w, PROFILE_BYTES, heif_profile_size(w->body, w->size)))
		return false;
	if (!heif_items_open(&items, w->body, w->size))
		return true;
	while (heif_items_next(&items, &item)) {
		sizes += item.size;
		w->count[OVERLAPS] = sizes / w->size;
		if (!add(w, OVERLAPS, 0) || (item.metadata && !add(w, METADATA_BYTES, item.size)))
			return false;
	}
	return true;
}

/* JPEG XL -------------------------------------------------------------------------------------- */

static bool walk_exif_box(struct walk *w, const uint8_t *at, size_t size)
{
	return walk_exif(w, at, size) && (size <= 4 || walk_exif(w, at + 4, size - 4));
}

/* A byte of an encoded profile becomes at most 36. Some versions of libvips read these boxes. */
static bool walk_jxl(struct walk *w)
{
	const uint8_t *at = w->body, *end = w->body + w->size;
	struct jxl_header header;
	struct box box;
	const uint8_t *packed;
	uint8_t *exif;
	size_t size;
	bool fits;

	if (!jxl_header_read(&header, w->body, w->size))
		return true;
	if (header.long_one && !add(w, HEADER_BYTES, bounds[HEADER_BYTES].limit + 1))
		return false;
	if (!add(w, CODED_PROFILE_BYTES, header.profile))
		return false;
	while (*w->body == 0 && next_box(&at, end, &box)) {
		if (box_is(&box, "Exif") && !walk_exif_box(w, box.at, box.size))
			return false;
		if (box_is(&box, "xml ") && !add(w, METADATA_BYTES, box.size))
			return false;
	}
	exif = jxl_unpack(w->body, w->size, "Exif", &packed, &size);
	fits = !exif || walk_exif_box(w, exif, size); /* small enough for decoders to see it */
	free(exif);
	return fits;
}

/* The formats whose decoders repeat or expand data of a small file. GIF's decoder reads the file
 * once and keeps no comments. */
static bool (*const walks[FORMATS])(struct walk *w) = {
    [FORMAT_JPEG] = walk_jpeg,  [FORMAT_PNG] = walk_png,   [FORMAT_WEBP] = walk_webp,
    [FORMAT_TIFF] = walk_pages, [FORMAT_AVIF] = walk_heif, [FORMAT_HEIC] = walk_heif,
    [FORMAT_JXL] = walk_jxl,
};

static enum error judge(const struct walk *w, bool fits, struct problem *problem)
{
	if (fits)
		return ERR_OK;
	if (w->cut)
		return problem_set(
		    problem, ERR_UNDECODABLE,
		    "the file is truncated: a part of it is longer than what is there");
	return problem_set(problem, ERR_TOO_COMPLEX,
	                   "the file has %" PRIu64 " %s or more; the limit is %" PRIu64,
	                   w->count[w->passed], bounds[w->passed].what, bounds[w->passed].limit);
}

enum error bounds_check(enum format format, const uint8_t *body, size_t size,
                        struct problem *problem)
{
	struct walk w = {.body = body, .size = size, .passed = BOUNDS};

	return judge(&w, size < 12 || !walks[format] || walks[format](&w), problem);
}

enum error bounds_check_exif(const uint8_t *block, size_t size, struct problem *problem)
{
	struct walk w = {.body = block, .size = size, .passed = BOUNDS};

	return judge(&w, walk_exif(&w, block, size), problem);
}
