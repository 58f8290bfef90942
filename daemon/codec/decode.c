/* Runs in the job's decoding thread. A format's own reader delivers the rows of files that it can
 * read; libvips reads all others.
 *
 * The hard part is memory. Most files can be decoded row by row; then no buffer here exceeds a few
 * rows. The others have a limit of their own. Both limits are checked with the header alone. */
#include "codec/decode.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <vips/vips.h>

#include "base/file.h"
#include "base/text.h"
#include "codec/formats/bounds.h"
#include "codec/jpeg_header.h"
#include "codec/repertoire.h"
#include "codec/formats/vips_reader.h"

enum {
	COPY_MAX = 256 << 10, /* bytes of an image's body; a mask's is always copied */
	DECODE_STEP = 64      /* rows that are decoded at a time */
};

struct decoder {
	const struct message_job *job; /* only while it is opened */
	const struct chain *chain;     /* NULL: rows are not filtered */
	bool wraps;                    /* rows are read at both ends */
	struct decoded decoded;
	const struct reader *reader; /* the format's */
	void *state;                 /* the reader's, or NULL */
	struct vips_reader vips;
	struct file_metadata metadata; /* unless the reader has it */
	struct area area;              /* in the file's image, after orientation */
	uint32_t top;                  /* first row of the page that is read */
	uint32_t next;                 /* next row of the file to read, unless in any order */
	int file;                      /* raw pixels are read directly from here */
	struct body body;
	struct kept_rows *kept; /* NULL: none are, or will be */
};

bool kept_rows_complete(const struct kept_rows *kept)
{
	return kept->rows && kept->there == kept->all;
}

void kept_rows_free(struct kept_rows *kept)
{
	free(kept->rows);
	*kept = (struct kept_rows){0};
}

/* True if the decoder has nothing to decode. */
static bool replays(const struct decoder *d)
{
	return d->kept && kept_rows_complete(d->kept);
}

/* An image that cannot be decoded row by row is held by each decoder that its body has at the same
 * time: the decoder of its rows; one for the opposite edge with border=wrap, unless rows can be
 * read in any order; and one for the rows around a target. */
static enum error check_held(const struct decoder *d, struct problem *problem)
{
	static const char *const why[2][2] = {
	    {"", ", because for target it is decoded twice"},
	    {", because for border=wrap it is decoded twice",
	     ", because for target and border=wrap it is decoded three times"}};
	const bool ahead = d->wraps && !d->decoded.any_order, target = d->job->has_target;
	const struct image *image = &d->decoded.whole;
	const uint64_t size =
	    image->width * (uint64_t)image->height * d->decoded.held * (1u + ahead + target);

	if (size <= d->job->buffered_size_max)
		return ERR_OK;
	return problem_set(
	    problem, ERR_TOO_MANY_PIXELS,
	    "the image is %ux%u and cannot be decoded row by row, which takes %" PRIu64
	    " bytes of memory%s%s; the limit is %" PRIu64,
	    image->width, image->height, size,
	    d->job->page == PAGES_ALL ? " for all its pages" : "", why[ahead][target],
	    d->job->buffered_size_max);
}

static enum error check_pixels(const struct decoder *d, struct problem *problem)
{
	const struct image *image = &d->decoded.whole;
	uint64_t pixels = (uint64_t)image->width * image->height;

	if (pixels > d->job->pixels_max)
		return problem_set(problem, ERR_TOO_MANY_PIXELS,
		                   "the image is %ux%u, %" PRIu64 " pixels; the limit is %" PRIu64,
		                   image->width, image->height, pixels, d->job->pixels_max);
	if (image->width > IMAGE_SIDE_MAX || image->height > IMAGE_SIDE_MAX)
		return problem_set(problem, ERR_TOO_MANY_PIXELS,
		                   "the image is %ux%u; the longest side allowed is %d",
		                   image->width, image->height, IMAGE_SIDE_MAX);
	return ERR_OK;
}

static enum error open_body(struct decoder *d, struct problem *problem)
{
	struct body *body = &d->body;
	struct stat status;
	void *map;
	bool read;

	if (fstat(d->file, &status) || (uint64_t)status.st_size < d->job->mask + d->job->body_size)
		return problem_set(problem, ERR_IO, "the body is shorter than announced");
	if (!d->job->body_size)
		return problem_set(problem, ERR_EMPTY_BODY, "the %s is empty; send an image in it",
		                   d->job->mask ? "part" : "body");
	body->size = d->job->body_size;
	if (body->size <= COPY_MAX || d->job->mask) { /* to map it would take longer */
		body->at = malloc(body->size);
		read = body->at && file_read(d->file, body->at, body->size, d->job->mask);
	} else {
		map = mmap(NULL, body->size, PROT_READ, MAP_PRIVATE, d->file, 0);
		read = body->mapped = map != MAP_FAILED;
		body->at = read ? map : NULL;
	}
	return read ? ERR_OK : no_memory(problem, "to read the body");
}

static enum error recognise(struct decoder *d, struct problem *problem)
{
	const struct format_offer *offer;
	uint32_t read = repertoire().read;
	char formats[128] = "", known[48];
	const char *words;

	d->decoded.format = repertoire_recognise(d->body.at, d->body.size, &words);
	if (format_in(read, d->decoded.format))
		return ERR_OK;
	for (size_t i = 0; (offer = format_offer(i)); i++)
		if (offer->format != FORMAT_RAW && format_in(read, offer->format))
			list_add(formats, sizeof formats, offer->title);
	snprintf(known, sizeof known, "%s, which this service does not read",
	         format_naming(d->decoded.format)->title);
	return problem_set(
	    problem, ERR_NOT_AN_IMAGE,
	    "the format is recognised by the first bytes, which look like %s; supported: %s (for "
	    "raw pixels give raw=WIDTHxHEIGHTxBANDS:TYPE)",
	    d->decoded.format ? known : words, formats);
}

/* Only some formats have pages that can be read one by one. */
static enum error check_page(const struct decoder *d, struct problem *problem)
{
	const bool all = d->job->page == PAGES_ALL;
	char number[16];

	if (d->job->page == PAGE_FIRST || (all && d->decoded.file_pages == 1))
		return ERR_OK;
	snprintf(number, sizeof number, "%u", d->job->page - 1);
	if (!all && d->job->page > d->decoded.file_pages)
		return bad_parameter(
		    problem, "page", number,
		    "the image has %u page%s: page: expected an integer from 0 to %u",
		    d->decoded.file_pages, d->decoded.file_pages > 1 ? "s" : "",
		    d->decoded.file_pages - 1);
	if (format_rows[d->decoded.format].pages || (!all && d->job->page == 1))
		return ERR_OK;
	return bad_parameter(
	    problem, all ? "pages" : "page", all ? "all" : number,
	    "of %s a single picture is read, the one that is meant to be seen first",
	    format_naming(d->decoded.format)->title);
}

/* Chooses what is read of a body with pages. */
static enum error choose_pages(struct decoder *d, struct problem *problem)
{
	enum error e = check_page(d, problem);

	if (e)
		return e;
	if (d->job->page == PAGES_ALL) {
		d->decoded.pages = d->decoded.file_pages;
		d->vips.part.all = d->decoded.pages > 1;
	} else if (d->job->page > 1) {
		d->vips.part.page = d->job->page - 1;
	}
	d->decoded.left_out = d->job->page == PAGE_FIRST && d->decoded.file_pages > 1;
	return ERR_OK;
}

/* Loads the pages to be read, unless only the first page is to be read. A frame is made from all
 * frames before it. own_pages: the number of pages that the format's reader knows. */
static enum error load_pages(struct decoder *d, uint32_t own_pages, struct problem *problem)
{
	const struct image *image = &d->decoded.whole;
	struct part *part = &d->vips.part;
	uint64_t pixels;
	uint32_t pages;
	struct problem why;
	enum error e;

	e = choose_pages(d, problem);
	if (d->job->page != PAGE_FIRST && own_pages > 1)
		part->frames = own_pages;
	if (e || !(part->all || part->frames || part->page))
		return e;
	/* The pixels of all pages that are read, and of all frames below the last of them. */
	pages = part->all ? d->decoded.pages : d->job->page;
	if (__builtin_mul_overflow((uint64_t)image->width * image->height, pages, &pixels))
		pixels = UINT64_MAX;
	if ((part->all || part->frames || format_rows[d->decoded.format].decoder_pixel_size) &&
	    (pixels > d->job->pixels_max || (uint64_t)image->height * pages > IMAGE_SIDE_MAX))
		return problem_set(problem, ERR_TOO_MANY_PIXELS,
		                   "%u pages of %ux%u are to be read, %" PRIu64
		                   " pixels; the limit is %" PRIu64 ", and %d rows",
		                   pages, image->width, image->height, pixels, d->job->pixels_max,
		                   IMAGE_SIDE_MAX);
	e = vips_reader_load(&d->vips, false, &d->decoded, problem);
	if (e && part->all && !part->frames) { /* the first page could be loaded */
		why = *problem;
		e = problem_set(problem, e,
		                "%s; pages=all takes pages of one size and kind: page=N names a "
		                "single one",
		                why.detail);
	}
	return e;
}

static enum error open_vips(struct decoder *d, struct problem *problem)
{
	const uint32_t own_pages = d->decoded.file_pages;
	enum error e = vips_reader_load(&d->vips, false, &d->decoded, problem);

	if (!e)
		e = load_pages(d, own_pages, problem);
	if (e)
		return e;
	d->decoded.any_order = vips_reader_turns(&d->vips);
	e = check_pixels(d, problem);
	if (!e)
		e = vips_reader_check(&d->vips, problem);
	if (e)
		return e;
	d->decoded.held = vips_reader_held(&d->vips, &d->decoded);
	e = check_held(d, problem);
	return e ? e : vips_reader_turn(&d->vips, &d->decoded, problem);
}

static enum error open_file(struct decoder *d, struct problem *problem)
{
	enum error e = open_body(d, problem);

	if (!e)
		e = recognise(d, problem);
	if (!e)
		e = bounds_check(d->decoded.format, d->body.at, d->body.size, problem);
	if (e)
		return e;
	d->reader = repertoire_reader(d->decoded.format);
	if (d->reader->check)
		e = d->reader->check(&d->body, problem);
	if (!e)
		e = reader_open(d->reader, &d->state, &d->decoded, &d->body, problem);
	d->vips.helper = d->reader;
	d->vips.part.body = &d->body;
	d->vips.part.state = d->state;
	if (!e && d->decoded.plain)
		e = check_pixels(d, problem);
	if (!e && d->decoded.plain)
		e = check_held(d, problem);
	/* If the reader fails, libvips may be tried. */
	if (!e && d->decoded.plain && d->reader->find && !replays(d)) {
		e = d->reader->find(d->state, problem);
		d->decoded.plain = !e;
		if (d->reader->tries)
			e = ERR_OK;
	}
	if (e)
		return e;
	return d->decoded.plain ? choose_pages(d, problem) : open_vips(d, problem);
}

/* Bare pixels. */
struct raw {
	int file;
	uint32_t width;
	size_t pixel; /* bytes */
};

static enum error raw_rows(void *state, const struct area *area, uint8_t *to, size_t pitch,
                           struct problem *problem)
{
	const struct raw *raw = state;

	for (uint32_t i = 0; i < area->height; i++) {
		const uint64_t first = (area->y + (uint64_t)i) * raw->width + area->x;

		if (!file_read(raw->file, to + i * pitch, area->width * raw->pixel,
		               first * raw->pixel))
			return problem_set(problem, ERR_IO, "cannot read the body");
	}
	return ERR_OK;
}

static enum error open_raw(struct decoder *d, struct problem *problem)
{
	static const struct reader reader = {.rows = raw_rows};
	const struct image *image = &d->job->raw_image;
	const uint64_t size = image_size(image);
	struct raw *raw;
	char value[64];
	enum error e;

	d->decoded.format = FORMAT_RAW;
	d->reader = &reader;
	raw = d->state = calloc(1, sizeof *raw);
	if (!raw)
		return no_memory(problem, "to decode");
	*raw = (struct raw){d->file, image->width, image_pixel_size(image)};
	d->decoded.whole = *image;
	d->decoded.plain = d->decoded.any_order = true;
	if (size != d->job->body_size) {
		snprintf(value, sizeof value, "%ux%ux%u:%s", image->width, image->height,
		         image->bands, pixel_type_rows[image->type].name);
		return bad_parameter(problem, "raw", value,
		                     "pixels of this size are %" PRIu64
		                     " bytes; the body has %" PRIu64,
		                     size, d->job->body_size);
	}
	e = choose_pages(d, problem);
	return e ? e : check_pixels(d, problem);
}

/* Narrows the image to the job's ROI. Damage below it goes unnoticed: it is never decoded. */
static enum error choose_area(struct decoder *d, struct problem *problem)
{
	const struct image *whole = &d->decoded.whole;
	const struct area *roi = &d->job->roi;
	char value[64];

	d->area = (struct area){.width = whole->width, .height = whole->height};
	if (roi->width)
		d->area = *roi;
	d->decoded.image = *whole;
	d->decoded.image.width = d->area.width;
	d->decoded.image.height = d->area.height;
	if (area_inside(&d->area, whole))
		return ERR_OK;
	snprintf(value, sizeof value, "%u,%u,%u,%u", roi->x, roi->y, roi->width, roi->height);
	return bad_parameter(problem, "roi", value,
	                     "roi: expected x,y,width,height inside the image, which is %ux%u",
	                     whole->width, whole->height);
}

/* Decodes a smaller version of the image if that does for the job. */
static enum error choose_draft(struct decoder *d, struct problem *problem)
{
	const struct message_job *job = d->job;
	struct decoded *decoded = &d->decoded;
	struct image *image = &decoded->image;
	enum error e = ERR_OK;
	uint32_t by = 1;

	if (job->draft && d->chain && !job->roi.width && !job->has_target && decoded->pages == 1)
		by = chain_draft(d->chain, image);
	if (by > 1 && decoded->plain && d->reader->shrink)
		e = d->reader->shrink(d->state, by, image, problem);
	else if (by > 1 && !decoded->plain && decoded->format == FORMAT_JPEG)
		e = vips_reader_shrink(&d->vips, by, decoded, problem);
	d->area.width = image->width;
	d->area.height = image->height;
	if (image->draft.width)
		decoded->lost |= 1u << LOSS_DRAFT;
	return e;
}

/* Prepares to keep rows, or to read kept ones; never of bare pixels, whose reading is as fast. */
static enum error keep_rows(struct decoder *d, struct problem *problem)
{
	const struct image *image = &d->decoded.image;
	const uint64_t all = (uint64_t)d->decoded.pages * image->height;
	struct kept_rows *kept = d->kept;
	uint64_t size;

	if (!kept || d->decoded.format == FORMAT_RAW)
		return ERR_OK;
	if (replays(d))
		return kept->all == all && !memcmp(&kept->image, image, sizeof *image)
		           ? ERR_OK
		           : problem_set(problem, ERR_INTERNAL,
		                         "the kept rows are another image's");
	kept->image = *image;
	kept->all = all;
	if (!__builtin_mul_overflow(all, image_row_size(image), &size) && size <= kept->size_max)
		kept->rows = malloc(size); /* without memory they are decoded again */
	return ERR_OK;
}

static bool wraps(const struct chain *chain)
{
	uint32_t halo_x, halo_y;

	if (!chain || chain->border != BORDER_WRAP)
		return false;
	chain_halo(chain, &halo_x, &halo_y);
	return halo_y || chain_resizing(chain) < chain->count;
}

enum error decode_open(struct decoder **decoder, struct decoded *decoded,
                       const struct message_job *job, const struct chain *chain, int body,
                       struct kept_rows *kept, struct problem *problem)
{
	struct decoder *d = calloc(1, sizeof *d);
	enum error e;

	*decoder = NULL;
	*decoded = (struct decoded){.format = FORMAT_NONE, .file_pages = 1, .pages = 1};
	if (!d)
		return no_memory(problem, "to decode");
	*d = (struct decoder){.job = job,
	                      .chain = chain,
	                      .wraps = wraps(chain),
	                      .decoded = *decoded,
	                      .file = body,
	                      .kept = kept};
	d->vips.part.memory_max = job->buffered_size_max / (1u + d->wraps + (job->has_target != 0));
	e = job->raw ? open_raw(d, problem) : open_file(d, problem);
	if (!e)
		e = choose_area(d, problem);
	if (!e)
		e = choose_draft(d, problem);
	d->decoded.any_order |= replays(d);
	if (!e)
		e = keep_rows(d, problem);
	*decoded = d->decoded;
	*decoder = d;
	if (e)
		decode_close(decoder);
	return e;
}

enum error decode_open_ahead(struct decoder **ahead, const struct decoder *d,
                             const struct message_job *job, struct problem *problem)
{
	struct decoded decoded;

	*ahead = NULL;
	return d->decoded.any_order
	           ? ERR_OK
	           : decode_open(ahead, &decoded, job, d->chain, d->file, NULL, problem);
}

void decode_close(struct decoder **decoder)
{
	struct decoder *d = *decoder;

	if (!d)
		return;
	file_metadata_free(&d->metadata);
	vips_reader_close(&d->vips);
	if (d->reader)
		reader_close(d->reader, &d->state);
	if (d->body.mapped)
		munmap(d->body.at, d->body.size);
	else
		free(d->body.at);
	free(d);
	*decoder = NULL;
}

static enum error read_area(struct decoder *d, const struct area *area, uint8_t *to, size_t pitch,
                            struct problem *problem)
{
	d->next = area->y + area->height;
	return d->decoded.plain ? d->reader->rows(d->state, area, to, pitch, problem)
	                        : vips_reader_rows(&d->vips, area, to, pitch, problem);
}

enum error decode_begin(struct decoder *d, struct problem *problem)
{
	static const struct area corner = {0, 0, 1, 1};

	if (replays(d))
		return ERR_OK;
	if (!d->decoded.plain)
		return read_area(d, &corner, NULL, 0, problem);
	return d->reader->begin ? d->reader->begin(d->state, problem) : ERR_OK;
}

void decode_page(struct decoder *d, uint32_t page)
{
	d->top = page * d->decoded.whole.height;
}

/* Reads and drops rows in small parts; libvips itself would skip them in one block of memory. */
enum error decode_skip(struct decoder *d, uint32_t y, bool *more, struct problem *problem)
{
	const uint32_t row = d->top + d->area.y + y;
	struct area area = {.y = d->next};

	*more = row > d->next && !d->decoded.any_order;
	if (!*more)
		return ERR_OK;
	area.height = MIN(row - d->next, DECODE_STEP);
	if (d->decoded.plain) /* drops those that are above an area */
		area = (struct area){.y = area.y + area.height};
	else
		area.width = 1;
	return read_area(d, &area, NULL, 0, problem);
}

/* The number of row y among those of all pages. */
static uint64_t row_number(const struct decoder *d, uint32_t y)
{
	return (uint64_t)(d->top / d->decoded.whole.height) * d->decoded.image.height + y;
}

enum error decode_rows(struct decoder *d, uint32_t y, uint32_t count, uint8_t *to, size_t pitch,
                       struct problem *problem)
{
	const size_t size = image_row_size(&d->decoded.image);
	struct kept_rows *kept = d->kept;
	enum error e = ERR_OK;
	uint64_t first;

	if (replays(d)) {
		for (uint32_t i = 0; i < count; i++)
			memcpy(to + i * pitch, kept->rows + (row_number(d, y) + i) * size, size);
		return ERR_OK;
	}
	while (!e && count) {
		const uint32_t step = MIN(count, DECODE_STEP);
		const struct area area = {d->area.x, d->top + d->area.y + y, d->area.width, step};

		e = read_area(d, &area, to, pitch, problem);
		/* Keeps those of the rows that are next. */
		for (first = row_number(d, y);
		     !e && kept && kept->rows && first <= kept->there && kept->there < first + step;
		     kept->there++)
			memcpy(kept->rows + kept->there * size, to + (kept->there - first) * pitch,
			       size);
		y += step;
		count -= step;
		to += step * pitch;
	}
	return e;
}

void decode_leave(struct decoder *d)
{
	g_clear_object(&d->vips.region);
}

enum jpeg_reason decode_jpeg_scan(const struct decoder *d, struct jpeg_scan *scan,
                                  const uint8_t **bytes)
{
	enum jpeg_reason reason;

	if (d->decoded.format != FORMAT_JPEG || !d->decoded.plain)
		return JPEG_REASON_BODY;
	reason = jpeg_header_read(d->body.at, d->body.size, scan);
	if (reason)
		return reason;
	*bytes = d->body.at + scan->offset;
	scan->offset = 0;
	return d->area.width == scan->width && d->area.height == scan->height ? JPEG_REASON_NONE
	                                                                      : JPEG_REASON_PIXELS;
}

enum error decode_metadata(struct decoder *d, const struct file_metadata **metadata,
                           struct problem *problem)
{
	*metadata = reader_metadata(d->reader, d->state);
	if (*metadata || !d->vips.image)
		return ERR_OK;
	*metadata = &d->metadata;
	return file_metadata_read(&d->metadata, d->vips.image)
	           ? ERR_OK
	           : no_memory(problem, "for the metadata");
}
