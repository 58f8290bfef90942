/* Decoding: the first stage of a job. Runs in the job's decoding thread. Ordinary JPEGs are decoded
 * by jpeg_decode.c, small PNGs by png_decode.c, still WebP pictures by webp_decode.c, bitmaps by
 * bmp.c, netpbm's formats by pnm_decode.c, all other files by libvips.
 *
 * The hard part is memory. Most files can be decoded row by row, and then no buffer here exceeds a
 * few rows. Other files (see buffered_size()) have a limit of their own; both limits are checked
 * with the header alone. The body is mapped or copied, so that it can be decoded twice and decoders
 * do not share a file offset. */
#include "codec/decode.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <vips/vips.h>

#include "base/file.h"
#include "base/text.h"
#include "codec/apng_load.h"
#include "codec/bmp.h"
#include "codec/bounds.h"
#include "codec/file_metadata.h"
#include "codec/hdr.h"
#include "codec/heif.h"
#include "codec/heif_load.h"
#include "codec/jpeg_decode.h"
#include "codec/jpeg_header.h"
#include "codec/jxl.h"
#include "codec/library_error.h"
#include "codec/metadata.h"
#include "codec/pixels.h"
#include "codec/png_decode.h"
#include "codec/pnm_decode.h"
#include "codec/repertoire.h"
#include "codec/sniff.h"
#include "codec/tiff.h"
#include "codec/webp_decode.h"

enum { COPY_MAX = 256 << 10 }; /* bytes of a body */
enum { CANVAS_SIZE = 8 };      /* bytes a pixel for composing frames, as measured */

struct decoder {
	enum format format;
	struct image image; /* the area's size and type */
	struct area area;   /* of the file's image, after orientation */
	bool wraps;         /* rows are read at both ends */
	bool any_order;
	uint32_t width;  /* of the file's image */
	uint32_t height; /* of a page of the file's image */
	uint32_t top;    /* first row of the page that is read */
	uint32_t next;   /* next row of the file to read, unless any_order */
	int body;        /* raw pixels are read directly from here */
	void *map;       /* the whole body otherwise */
	size_t map_size;
	bool mapped;         /* else `map` is a copy */
	const uint8_t *file; /* what is decoded of it */
	size_t file_size;
	struct jpeg_decoder *jpeg; /* NULL: not by jpeg_decode.c */
	struct png_file *png;      /* of a PNG, which libvips decodes unless there are `pixels` */
	struct bmp *bmp;           /* NULL: not by bmp.c */
	struct pnm *pnm;           /* NULL: not by pnm_decode.c */
	bool still;                /* a WebP file of which webp_decode() is to be tried */
	uint8_t *pixels;           /* all, of a PNG or WebP file; NULL: libvips decodes */
	struct kept_rows *kept;    /* NULL: none are, or will be */
	VipsSource *source;
	VipsImage *vips;               /* with `jpeg`, `png` or `pixels`: only for metadata */
	VipsImage *described;          /* with `bmp`: no pixels, for metadata */
	struct file_metadata metadata; /* of a still WebP file or a bitmap, once asked for */
	VipsRegion *region;
	int page;        /* of the file, that is read */
	int pages;       /* 1, or -1 for all */
	uint32_t frames; /* of an animated PNG of which `page` and `pages` are read; else 0 */
	struct tiff_way tiff;
	uint64_t buffered_size_max;
	uint32_t lost; /* bit (1 << enum loss) for each, to what is decoded */
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

/* Reports an error of the format's decoder. */
static enum error complain(const struct decoder *d, struct problem *problem)
{
	char who[32];

	snprintf(who, sizeof who, "the %s decoder", format_title(d->format));
	return vips_error_take(problem, ERR_UNDECODABLE, who);
}

static bool has_number(VipsImage *vips, const char *name)
{
	int number;

	return vips_image_get_typeof(vips, name) && !vips_image_get_int(vips, name, &number) &&
	       number;
}

/* True if the orientation changes the order of the rows: all except 1 and 2. */
static bool turns_rows(VipsImage *vips)
{
	return vips_image_get_orientation(vips) > 2;
}

/* True if the format's decoder delivers rows while it reads. */
static bool streams(const struct decoder *d)
{
	return !format_row(d->format)->decoder_pixel_size && !d->frames &&
	       !has_number(d->vips, "jpeg-multiscan") && !has_number(d->vips, "interlaced");
}

static bool samples_chroma(VipsImage *vips, const char *how)
{
	const char *subsampling;

	return vips_image_get_typeof(vips, "jpeg-chroma-subsample") &&
	       !vips_image_get_string(vips, "jpeg-chroma-subsample", &subsampling) &&
	       !strcmp(subsampling, how);
}

/* Bytes a pixel of a JPEG's coefficients, of 16 bits. */
static uint64_t coefficients_size(const struct image *image, bool subsampled)
{
	return subsampled ? 3 : 2 * (uint64_t)image->bands;
}

/* Bytes of memory a pixel for an image that cannot be decoded row by row: the decoder's own, as
 * measured; the decoded image; and a copy if the orientation turns it. */
static uint64_t buffered_size(const struct decoder *d, const struct image *image, uint32_t pages)
{
	uint64_t size =
	    format_row(d->format)->decoder_pixel_size * (image->type == PIXEL_U8 ? 1 : 2);
	size_t kept = image_pixel_size(image);

	size += image->alpha ? format_row(d->format)->decoder_alpha_size : 0;
	if (has_number(d->vips, "jpeg-multiscan"))
		size += coefficients_size(image, samples_chroma(d->vips, "4:2:0"));
	else if (!streams(d))
		size += kept * (format_row(d->format)->keeps_pages ? pages : 1);
	if (format_row(d->format)->keeps_pages && (d->page || d->pages < 0))
		size += CANVAS_SIZE;
	if (d->format == FORMAT_JXL && d->pages < 0) /* a frame, and what it is made of */
		size += 2 * kept;
	if (turns_rows(d->vips))
		size += kept;
	if (d->frames) /* the canvas, what it keeps, and a frame */
		size += 2 * kept;
	return size;
}

/* The number of decoders that the body has at the same time: for its rows, those of the opposite
 * edge for border=wrap, unless any order is possible, and those around a target. */
static unsigned count_decoders(const struct decoder *d, const struct message_job *job)
{
	const bool ahead = d->wraps && !d->still && !(d->vips && turns_rows(d->vips));

	return 1u + ahead + (job->has_target != 0);
}

static enum error check_buffered(const struct decoder *d, uint64_t pixel_size,
                                 const struct message_job *job, const struct image *image,
                                 struct problem *problem)
{
	const unsigned decoders = count_decoders(d, job);
	const char *why = decoders == 1 ? ""
	                  : decoders > 2
	                      ? ", because for target and border=wrap it is decoded three times"
	                  : job->has_target ? ", because for target it is decoded twice"
	                                    : ", because for border=wrap it is decoded twice";
	uint64_t size = image->width * (uint64_t)image->height * pixel_size * decoders;

	if (size <= job->buffered_size_max)
		return ERR_OK;
	return problem_set(
	    problem, ERR_TOO_MANY_PIXELS,
	    "the image is %ux%u and cannot be decoded row by row, which takes %" PRIu64
	    " bytes of memory%s%s; the limit is %" PRIu64,
	    image->width, image->height, size, job->page == PAGES_ALL ? " for all its pages" : "",
	    why, job->buffered_size_max);
}

/* The pixels of all pages that are read, and of all frames that lie below the last. */
static enum error check_all_pixels(const struct message_job *job, const struct image *image,
                                   uint32_t pages, struct problem *problem)
{
	uint64_t pixels;

	if (__builtin_mul_overflow((uint64_t)image->width * image->height, pages, &pixels))
		pixels = UINT64_MAX;
	if (pixels <= job->pixels_max && (uint64_t)image->height * pages <= IMAGE_SIDE_MAX)
		return ERR_OK;
	return problem_set(problem, ERR_TOO_MANY_PIXELS,
	                   "%u pages of %ux%u are to be read, %" PRIu64
	                   " pixels; the limit is %" PRIu64 ", and %d rows",
	                   pages, image->width, image->height, pixels, job->pixels_max,
	                   IMAGE_SIDE_MAX);
}

static enum error check_pixels(const struct message_job *job, const struct image *image,
                               struct problem *problem)
{
	uint64_t pixels = (uint64_t)image->width * image->height;

	if (pixels > job->pixels_max)
		return problem_set(problem, ERR_TOO_MANY_PIXELS,
		                   "the image is %ux%u, %" PRIu64 " pixels; the limit is %" PRIu64,
		                   image->width, image->height, pixels, job->pixels_max);
	if (image->width > IMAGE_SIDE_MAX || image->height > IMAGE_SIDE_MAX)
		return problem_set(problem, ERR_TOO_MANY_PIXELS,
		                   "the image is %ux%u; the longest side allowed is %d",
		                   image->width, image->height, IMAGE_SIDE_MAX);
	return ERR_OK;
}

static enum error open_body(struct decoder *d, const struct message_job *job,
                            struct problem *problem)
{
	struct stat status;
	void *map;
	bool read;

	if (fstat(d->body, &status) || (uint64_t)status.st_size < job->body_size)
		return problem_set(problem, ERR_IO, "the body is shorter than announced");
	if (!job->body_size)
		return problem_set(problem, ERR_EMPTY_BODY,
		                   "the body is empty; send an image in it");
	d->map_size = job->body_size;
	if (d->map_size <= COPY_MAX) { /* to map it would take longer */
		d->map = malloc(d->map_size);
		read = d->map && file_read(d->body, d->map, d->map_size, 0);
	} else {
		map = mmap(NULL, d->map_size, PROT_READ, MAP_PRIVATE, d->body, 0);
		read = d->mapped = map != MAP_FAILED;
		d->map = d->mapped ? map : NULL;
	}
	if (!read)
		return problem_set(problem, ERR_MEMORY, "no memory to read the body");
	d->file = d->map;
	d->file_size = d->map_size;
	return ERR_OK;
}

static enum error recognise(struct decoder *d, struct problem *problem)
{
	const struct format_offer *offer;
	uint32_t read = repertoire().read;
	char formats[128] = "", words[48];

	d->format = sniff_format(d->file, d->file_size);
	if (format_in(read, d->format))
		return ERR_OK;
	for (size_t i = 0; (offer = format_offer(i)); i++)
		if (offer->format != FORMAT_RAW && format_in(read, offer->format))
			list_add(formats, sizeof formats, offer->title);
	snprintf(words, sizeof words, "%s, which this service does not read",
	         format_title(d->format));
	return problem_set(
	    problem, ERR_NOT_AN_IMAGE,
	    "the format is recognised by the first bytes, which look like %s; supported: %s (for "
	    "raw pixels give raw=WIDTHxHEIGHTxBANDS:TYPE)",
	    d->format ? words : sniff_describe(d->file, d->file_size), formats);
}

static enum error load_frames(struct decoder *d, struct problem *problem)
{
	const struct apng_part part = {.file = d->file,
	                               .size = d->file_size,
	                               .all = d->frames,
	                               .page = (uint32_t)d->page,
	                               .pages = d->pages < 0 ? d->frames : 1};
	enum error e = apng_load(&d->vips, &part, problem);

	if (!e && !metadata_read_frames(png_metadata(d->png), d->vips))
		e = problem_set(problem, ERR_MEMORY, "no memory for the frames");
	return e;
}

static bool is_heif(enum format format)
{
	return format == FORMAT_AVIF || format == FORMAT_HEIC;
}

/* Lets the body be changed, which is this decoder's own. */
static enum error make_writable(const struct decoder *d, struct problem *problem)
{
	if (d->mapped && mprotect(d->map, d->map_size, PROT_READ | PROT_WRITE))
		return problem_set(problem, ERR_MEMORY, "no memory to read the body");
	return ERR_OK;
}

static enum error load(struct decoder *d, VipsAccess access, struct problem *problem)
{
	enum error e;

	g_clear_object(&d->vips);
	g_clear_object(&d->source);
	if (is_heif(d->format)) {
		e = heif_load(&d->vips, d->file, d->file_size, problem);
		return e == ERR_UNDECODABLE ? complain(d, problem) : e;
	}
	if (d->format == FORMAT_TIFF) {
		const struct tiff_part part = {.file = d->map,
		                               .size = d->map_size,
		                               .page = (uint32_t)d->page,
		                               .all = d->pages < 0,
		                               .memory_max = d->buffered_size_max};

		e = make_writable(d, problem);
		if (!e)
			e = tiff_choose(&d->tiff, &part, problem);
		if (e || d->tiff.converts)
			return e ? e : tiff_load(&d->vips, &part, problem);
	}
	d->source = vips_source_new_from_memory(d->file, d->file_size);
	/* libvips's GIF loader has no level between accepting anything and rejecting any flaw. Not
	 * every loader has pages: the list ends early where only the first is read. */
	if (!d->source || vips_call(format_row(d->format)->loader, d->source, &d->vips, "access",
	                            access, "fail_on", VIPS_FAIL_ON_ERROR,
	                            !d->frames && (d->page || d->pages < 0) ? "page" : NULL,
	                            d->page, "n", d->pages, NULL))
		return complain(d, problem);
	if (d->png)
		metadata_tell(png_metadata(d->png), png_exif(d->png), d->vips);
	if (d->frames)
		return load_frames(d, problem);
	if (d->tiff.premultiplied && !tiff_divide(&d->vips, d->tiff.premultiplied))
		return complain(d, problem);
	return pixels_convert(&d->vips, &d->lost) ? ERR_OK : complain(d, problem);
}

static void describe(const VipsImage *vips, struct decoded *decoded)
{
	decoded->whole = (struct image){
	    .width = (uint32_t)vips->Xsize,
	    .height = (uint32_t)vips->Ysize / decoded->pages,
	    .bands = (uint32_t)vips->Bands,
	    .type = pixels_type(vips),
	    .alpha = vips->Bands % 2 == 0 && vips->Bands <= BANDS_MAX &&
	             vips_image_hasalpha((VipsImage *)(uintptr_t)vips),
	};
	decoded->cmyk = vips->Type == VIPS_INTERPRETATION_CMYK && vips->Bands == 4;
}

static enum error apply_orientation(struct decoder *d, struct problem *problem)
{
	VipsImage *out = NULL;
	enum error e = ERR_OK;

	if (vips_image_get_orientation(d->vips) <= 1)
		return ERR_OK;
	if (turns_rows(d->vips) && d->pages < 0)
		return problem_set_parameter(
		    problem, ERR_BAD_PARAMETER, "pages", "all",
		    "the pages are to be turned by their orientation (%d), which is done for a "
		    "single page only: page=N names it",
		    vips_image_get_orientation(d->vips));
	if (turns_rows(d->vips))
		e = load(d, VIPS_ACCESS_RANDOM, problem);
	if (e)
		return e;
	if (vips_autorot(d->vips, &out, NULL))
		return complain(d, problem);
	g_object_unref(d->vips);
	d->vips = out;
	return ERR_OK;
}

static uint32_t count_pages(const struct decoder *d)
{
	int pages;

	if (d->vips && vips_image_get_typeof(d->vips, VIPS_META_N_PAGES) &&
	    !vips_image_get_int(d->vips, VIPS_META_N_PAGES, &pages) && pages > 1)
		return (uint32_t)pages;
	return sniff_png_frames(d->file, d->file_size);
}

/* Only some formats have pages that can be read one by one. */
static enum error check_page(const struct decoded *decoded, const struct message_job *job,
                             struct problem *problem)
{
	const bool all = job->page == PAGES_ALL;
	char number[16];

	if (job->page == PAGE_FIRST || (all && decoded->file_pages == 1))
		return ERR_OK;
	snprintf(number, sizeof number, "%u", job->page - 1);
	if (!all && job->page > decoded->file_pages)
		return problem_set_parameter(problem, ERR_BAD_PARAMETER, "page", number,
		                             "the image has %u page%s: page: expected an integer "
		                             "from 0 to %u",
		                             decoded->file_pages,
		                             decoded->file_pages > 1 ? "s" : "",
		                             decoded->file_pages - 1);
	if (format_row(decoded->format)->pages || (!all && job->page == 1))
		return ERR_OK;
	return problem_set_parameter(problem, ERR_BAD_PARAMETER, all ? "pages" : "page",
	                             all ? "all" : number,
	                             "of %s a single picture is read, the one that is meant to be "
	                             "seen first",
	                             format_title(decoded->format));
}

/* Chooses what is read of a body with pages. */
static enum error choose_pages(struct decoder *d, struct decoded *decoded,
                               const struct message_job *job, struct problem *problem)
{
	enum error e = check_page(decoded, job, problem);

	if (!e && job->page == PAGES_ALL) {
		decoded->pages = decoded->file_pages;
		d->pages = decoded->pages > 1 ? -1 : 1;
	} else if (!e && job->page > 1) {
		d->page = (int)job->page - 1;
	}
	if (decoded->format == FORMAT_PNG && decoded->file_pages > 1 && job->page != PAGE_FIRST)
		d->frames = decoded->file_pages;
	decoded->left_out = job->page == PAGE_FIRST && decoded->file_pages > 1;
	return e;
}

/* Loads the pages that are to be read, if these are others than the first. A frame is made of all
 * that are before it. */
static enum error load_pages(struct decoder *d, struct decoded *decoded,
                             const struct message_job *job, struct problem *problem)
{
	struct problem why;
	struct image first;
	enum error e;

	describe(d->vips, decoded);
	first = decoded->whole;
	e = choose_pages(d, decoded, job, problem);
	if (e || (d->pages == 1 && !d->frames && (!d->page || job->page <= 1)))
		return e;
	if (d->pages < 0 || d->frames || format_row(d->format)->decoder_pixel_size)
		e = check_all_pixels(job, &first, d->pages < 0 ? decoded->pages : job->page,
		                     problem);
	if (e)
		return e;
	e = load(d, VIPS_ACCESS_SEQUENTIAL, problem);
	if (e && d->pages < 0 && !d->frames) { /* the first page could be loaded */
		why = *problem;
		e = problem_set(problem, e,
		                "%s; pages=all takes pages of one size and kind: page=N names a "
		                "single one",
		                why.detail);
	}
	return e;
}

/* Opens a JPEG without libvips, if that is possible: d->jpeg is NULL if not. */
static enum error open_jpeg(struct decoder *d, struct decoded *decoded,
                            const struct message_job *job, struct problem *problem)
{
	struct image *whole = &decoded->whole;
	struct jpeg_header header;
	enum error e = jpeg_decode_open(&d->jpeg, &header, d->file, d->file_size, problem);

	if (e || !d->jpeg)
		return e;
	*whole = (struct image){.width = header.width,
	                        .height = header.height,
	                        .bands = header.bands,
	                        .type = PIXEL_U8};
	decoded->cmyk = header.bands == 4;
	decoded->full_chroma = header.full_chroma && !decoded->cmyk;
	e = check_pixels(job, whole, problem);
	if (!e && header.multiscan)
		e = check_buffered(d,
		                   coefficients_size(whole, !header.full_chroma && !decoded->cmyk),
		                   job, whole, problem);
	return e;
}

/* Reads what a PNG has beside its pixels, and decodes these without libvips, if that is possible
 * (*plain). */
static enum error open_png(struct decoder *d, struct decoded *decoded,
                           const struct message_job *job, bool *plain, struct problem *problem)
{
	enum error e;

	d->png = png_open(d->file, d->file_size);
	if (!d->png)
		return problem_set(problem, ERR_MEMORY, "no memory to decode");
	d->lost |= decoded->lost = png_lost(d->png);
	decoded->colours = file_metadata_colours(png_metadata(d->png));
	if (!png_is_plain(d->png, &decoded->whole))
		return ERR_OK;
	e = check_pixels(job, &decoded->whole, problem);
	*plain = !e && (replays(d) || (d->pixels = png_decode(d->png)));
	return e;
}

static enum error open_bmp(struct decoder *d, struct decoded *decoded,
                           const struct message_job *job, struct problem *problem)
{
	enum error e = bmp_open(&d->bmp, d->file, d->file_size, problem);

	if (e)
		return e;
	decoded->whole = bmp_image(d->bmp);
	e = check_pixels(job, &decoded->whole, problem);
	return e ? e : bmp_begin(d->bmp, problem);
}

static enum error open_pnm(struct decoder *d, struct decoded *decoded,
                           const struct message_job *job, struct problem *problem)
{
	enum error e =
	    pnm_open(&d->pnm, &decoded->whole, &decoded->cmyk, d->file, d->file_size, problem);

	if (!e)
		e = check_pixels(job, &decoded->whole, problem);
	if (!e)
		e = pnm_begin(d->pnm, problem);
	if (e)
		return e;
	decoded->file_pages = pnm_count(d->pnm);
	decoded->any_order = true;
	return ERR_OK;
}

static enum error check_boxes(const struct decoder *d, struct problem *problem)
{
	enum error e;

	if (heif_is_cut(d->file, d->file_size))
		return problem_set(problem, ERR_UNDECODABLE,
		                   "the file is truncated: its last box is longer");
	if (!heif_order(d->map, d->map_size, false))
		return ERR_OK;
	e = make_writable(d, problem);
	if (!e)
		heif_order(d->map, d->map_size, true);
	return e;
}

/* True if the format's loader can be asked for a page. */
static bool takes_page(enum format format)
{
	GObjectClass *class =
	    g_type_class_ref(vips_type_find("VipsOperation", format_row(format)->loader));
	bool takes = g_object_class_find_property(class, "page");

	g_type_class_unref(class);
	return takes;
}

/* Metadata that is compressed would be expanded before anyone knew how much it is: only what is
 * known to be little stays. A loader that does not know of frames gives the last. */
static enum error check_jxl(const struct decoder *d, struct problem *problem)
{
	struct jxl_header header;
	const bool packed = jxl_has_packed(d->file, d->file_size);
	enum error e = packed ? make_writable(d, problem) : ERR_OK;

	if (!e && packed)
		jxl_hide_packed(d->map, d->map_size);
	if (e || !jxl_header_read(&header, d->file, d->file_size))
		return e;
	e = jxl_check(&header, problem);
	if (!e && header.animated && !takes_page(d->format))
		e = problem_set(problem, ERR_UNSUPPORTED_PIXELS,
		                "the image is animated; of JPEG XL the installed libvips reads "
		                "still images only");
	return e;
}

/* Opens a file with libvips. */
static enum error open_other(struct decoder *d, struct decoded *decoded,
                             const struct message_job *job, struct problem *problem)
{
	enum error e = is_heif(d->format) ? check_boxes(d, problem) : ERR_OK;

	if (!e && d->format == FORMAT_HDR)
		e = hdr_check(d->file, d->file_size, problem);
	if (!e && d->format == FORMAT_JXL)
		e = check_jxl(d, problem);
	if (!e)
		e = load(d, VIPS_ACCESS_SEQUENTIAL, problem);
	if (e)
		return e;
	if (count_pages(d) > decoded->file_pages)
		decoded->file_pages = count_pages(d);
	e = load_pages(d, decoded, job, problem);
	if (e)
		return e;
	decoded->any_order = turns_rows(d->vips);
	d->still = d->format == FORMAT_WEBP && decoded->file_pages == 1 &&
	           vips_image_get_orientation(d->vips) <= 1;
	decoded->full_chroma = samples_chroma(d->vips, "4:4:4");
	describe(d->vips, decoded);
	e = check_pixels(job, &decoded->whole, problem);
	if (!e)
		e = pixels_check(d->vips, problem);
	if (!e && (turns_rows(d->vips) || !streams(d)))
		e = check_buffered(d, buffered_size(d, &decoded->whole, decoded->pages), job,
		                   &decoded->whole, problem);
	if (!e)
		e = apply_orientation(d, problem);
	if (e)
		return e;
	describe(d->vips, decoded);
	decoded->lost = d->lost;
	return ERR_OK;
}

static enum error open_file(struct decoder *d, struct decoded *decoded,
                            const struct message_job *job, struct problem *problem)
{
	enum error e = open_body(d, job, problem);
	bool plain = false;

	if (!e)
		e = recognise(d, problem);
	decoded->format = d->format;
	if (!e)
		e = bounds_check(d->format, d->file, d->file_size, problem);
	if (!e && d->format == FORMAT_BMP)
		e = open_bmp(d, decoded, job, problem);
	if (!e && d->format == FORMAT_PNM)
		e = open_pnm(d, decoded, job, problem);
	if (!e && d->format == FORMAT_JPEG)
		e = open_jpeg(d, decoded, job, problem);
	if (!e && d->format == FORMAT_PNG)
		e = open_png(d, decoded, job, &plain, problem);
	if (e || !(d->jpeg || plain || d->bmp || d->pnm))
		return e ? e : open_other(d, decoded, job, problem);
	return choose_pages(d, decoded, job, problem);
}

static enum error open_raw(struct decoder *d, struct decoded *decoded,
                           const struct message_job *job, struct problem *problem)
{
	const struct image *image = &job->raw_image;
	const uint64_t size = image_size(image);
	char value[64];
	enum error e;

	decoded->format = FORMAT_RAW;
	decoded->whole = *image;
	decoded->any_order = true;
	if (size != job->body_size) {
		snprintf(value, sizeof value, "%ux%ux%u:%s", image->width, image->height,
		         image->bands, pixel_type_name(image->type));
		return problem_set_parameter(problem, ERR_BAD_PARAMETER, "raw", value,
		                             "pixels of this size are %" PRIu64
		                             " bytes; the body has %" PRIu64,
		                             size, job->body_size);
	}
	e = choose_pages(d, decoded, job, problem);
	return e ? e : check_pixels(job, image, problem);
}

/* Narrows the image to the job's ROI. Rows below it are never decoded: damage there goes
 * unnoticed. */
static enum error choose_area(struct decoder *d, struct decoded *decoded,
                              const struct message_job *job, struct problem *problem)
{
	const struct image *whole = &decoded->whole;
	const struct area *roi = &job->roi;
	char value[64];

	d->area = (struct area){.width = whole->width, .height = whole->height};
	if (roi->width)
		d->area = *roi;
	decoded->image = *whole;
	decoded->image.width = d->area.width;
	decoded->image.height = d->area.height;
	if (area_inside(&d->area, whole))
		return ERR_OK;
	snprintf(value, sizeof value, "%u,%u,%u,%u", roi->x, roi->y, roi->width, roi->height);
	return problem_set_parameter(problem, ERR_BAD_PARAMETER, "roi", value,
	                             "roi: expected x,y,width,height inside the image, which is "
	                             "%ux%u",
	                             whole->width, whole->height);
}

/* Prepares to keep rows, or to read those that are kept. Bare pixels are read as fast. */
static enum error keep_rows(struct decoder *d, const struct decoded *decoded,
                            struct problem *problem)
{
	const uint64_t all = (uint64_t)decoded->pages * d->image.height;
	struct kept_rows *kept = d->kept;
	uint64_t size;

	if (!kept || d->format == FORMAT_RAW)
		return ERR_OK;
	if (replays(d))
		return kept->all == all && !memcmp(&kept->image, &d->image, sizeof kept->image)
		           ? ERR_OK
		           : problem_set(problem, ERR_INTERNAL,
		                         "the kept rows are another image's");
	kept->image = d->image;
	kept->all = all;
	if (!__builtin_mul_overflow(all, image_row_size(&d->image), &size) &&
	    size <= kept->size_max)
		kept->rows = malloc(size); /* without memory they are decoded again */
	return ERR_OK;
}

enum error decode_open(struct decoder **decoder, struct decoded *decoded,
                       const struct message_job *job, bool wraps, int body, struct kept_rows *kept,
                       struct problem *problem)
{
	struct decoder *d = calloc(1, sizeof *d);
	enum error e;

	*decoder = NULL;
	*decoded = (struct decoded){.format = FORMAT_NONE, .file_pages = 1, .pages = 1};
	if (!d)
		return problem_set(problem, ERR_MEMORY, "no memory to decode");
	d->body = body;
	d->pages = 1;
	d->wraps = wraps;
	d->kept = kept;
	d->buffered_size_max = job->buffered_size_max / count_decoders(d, job);
	e = job->raw ? open_raw(d, decoded, job, problem) : open_file(d, decoded, job, problem);
	if (!e)
		e = choose_area(d, decoded, job, problem);
	d->format = d->format ? d->format : decoded->format;
	decoded->any_order |= d->still || d->pixels || d->bmp || replays(d);
	d->any_order = decoded->any_order;
	d->width = decoded->whole.width;
	d->height = decoded->whole.height;
	d->image = decoded->image;
	if (!e)
		e = keep_rows(d, decoded, problem);
	*decoder = d;
	if (e)
		decode_close(decoder);
	return e;
}

void decode_close(struct decoder **decoder)
{
	struct decoder *d = *decoder;

	if (!d)
		return;
	jpeg_decode_close(&d->jpeg);
	png_close(&d->png);
	bmp_close(&d->bmp);
	pnm_close(&d->pnm);
	file_metadata_free(&d->metadata);
	free(d->pixels);
	g_clear_object(&d->region);
	g_clear_object(&d->vips);
	g_clear_object(&d->described);
	g_clear_object(&d->source);
	if (d->mapped)
		munmap(d->map, d->map_size);
	else
		free(d->map);
	free(d);
	*decoder = NULL;
}

static enum error raw_rows(const struct decoder *d, uint32_t y, uint32_t count, uint8_t *to,
                           size_t pitch, struct problem *problem)
{
	size_t size = image_row_size(&d->image), pixel = image_pixel_size(&d->image);
	uint64_t at = (d->area.y + (uint64_t)y) * d->width * pixel + d->area.x * (uint64_t)pixel;

	for (uint32_t i = 0; i < count; i++, at += (uint64_t)d->width * pixel)
		if (!file_read(d->body, to + i * pitch, size, at))
			return problem_set(problem, ERR_IO, "cannot read the body");
	return ERR_OK;
}

/* Makes libvips compute a part of the file's image. */
static enum error prepare_part(struct decoder *d, const VipsRect *part, struct problem *problem)
{
	if (!d->region)
		d->region = vips_region_new(d->vips);
	if (!d->region || vips_region_prepare(d->region, part))
		return complain(d, problem);
	d->next = (uint32_t)(part->top + part->height);
	return ERR_OK;
}

static enum error file_rows(struct decoder *d, uint32_t y, uint32_t count, uint8_t *to,
                            size_t pitch, struct problem *problem)
{
	VipsRect rows = {(int)d->area.x, (int)(d->top + d->area.y + y), (int)d->area.width,
	                 (int)count};
	size_t size = image_row_size(&d->image);
	enum error e = prepare_part(d, &rows, problem);
	const uint8_t *from;

	if (e)
		return e;
	/* The region may be larger than requested. */
	from = VIPS_REGION_ADDR_TOPLEFT(d->region) +
	       (size_t)(rows.top - d->region->valid.top) * (size_t)VIPS_REGION_LSKIP(d->region) +
	       (size_t)(rows.left - d->region->valid.left) * image_pixel_size(&d->image);
	for (uint32_t i = 0; i < count; i++)
		memcpy(to + i * pitch, from + i * (size_t)VIPS_REGION_LSKIP(d->region), size);
	return ERR_OK;
}

/* Decodes a still WebP file. If that fails, libvips tries too, and says what is wrong. */
static bool decode_still(struct decoder *d)
{
	if (d->still)
		d->pixels = webp_decode(d->file, d->file_size, (uint32_t)d->vips->Xsize,
		                        (uint32_t)d->vips->Ysize, d->image.bands);
	d->still = false;
	return d->pixels;
}

enum error decode_begin(struct decoder *d, struct problem *problem)
{
	const VipsRect corner = {0, 0, 1, 1};

	if (replays(d))
		return ERR_OK;
	if (d->jpeg)
		return jpeg_decode_begin(d->jpeg, problem);
	if (decode_still(d))
		return ERR_OK;
	return d->vips ? prepare_part(d, &corner, problem) : ERR_OK;
}

void decode_page(struct decoder *d, uint32_t page)
{
	d->top = page * d->height;
}

/* Reads and drops rows in small parts; libvips itself would skip them all at once, in one block of
 * memory. */
enum error decode_skip(struct decoder *d, uint32_t y, bool *more, struct problem *problem)
{
	uint32_t row = d->top + d->area.y + y, ahead = row > d->next ? row - d->next : 0;
	VipsRect part;

	*more = ahead > 0 && !d->any_order;
	ahead = ahead < DECODE_STEP ? ahead : DECODE_STEP;
	part = (VipsRect){0, (int)d->next, 1, (int)ahead};
	if (!*more)
		return ERR_OK;
	if (!d->jpeg)
		return prepare_part(d, &part, problem);
	d->next += ahead;
	return jpeg_decode_rows(d->jpeg, d->next, 0, 0, 0, NULL, 0, problem);
}

static enum error some_rows(struct decoder *d, uint32_t y, uint32_t count, uint8_t *to,
                            size_t pitch, struct problem *problem)
{
	const struct area *a = &d->area;
	const size_t pixel = image_pixel_size(&d->image), whole = d->width * pixel;
	const uint8_t *from;

	if (d->jpeg) {
		d->next = a->y + y + count;
		return jpeg_decode_rows(d->jpeg, a->y + y, count, a->x, a->width, to, pitch,
		                        problem);
	}
	if (decode_still(d)) {
		from = d->pixels + (a->y + y) * whole + a->x * pixel;
		for (uint32_t i = 0; i < count; i++)
			memcpy(to + i * pitch, from + i * whole, a->width * pixel);
		return ERR_OK;
	}
	if (!d->bmp && !d->pnm)
		return d->vips ? file_rows(d, y, count, to, pitch, problem)
		               : raw_rows(d, y, count, to, pitch, problem);
	if (d->bmp)
		bmp_rows(d->bmp, a->y + y, count, a->x, a->width, to, pitch);
	else
		pnm_rows(d->pnm, a->y + y, count, a->x, a->width, to, pitch);
	return ERR_OK;
}

/* The number of row y among those of all pages. */
static uint64_t row_number(const struct decoder *d, uint32_t y)
{
	return (uint64_t)(d->top / d->height) * d->image.height + y;
}

enum error decode_rows(struct decoder *d, uint32_t y, uint32_t count, uint8_t *to, size_t pitch,
                       struct problem *problem)
{
	const size_t size = image_row_size(&d->image);
	struct kept_rows *kept = d->kept;
	enum error e = ERR_OK;
	uint64_t first;

	if (replays(d)) {
		for (uint32_t i = 0; i < count; i++)
			memcpy(to + i * pitch, kept->rows + (row_number(d, y) + i) * size, size);
		return ERR_OK;
	}
	while (!e && count) {
		uint32_t step = count < DECODE_STEP ? count : DECODE_STEP;

		e = some_rows(d, y, step, to, pitch, problem);
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
	g_clear_object(&d->region);
}

bool decode_is_plain(const struct decoder *d)
{
	return !d->vips || d->still;
}

enum jpeg_reason decode_jpeg_scan(const struct decoder *d, struct jpeg_scan *scan,
                                  const uint8_t **bytes)
{
	enum jpeg_reason reason;

	if (!d->jpeg)
		return JPEG_REASON_BODY;
	reason = jpeg_header_read(d->file, d->file_size, scan);
	if (reason)
		return reason;
	*bytes = d->file + scan->offset;
	scan->offset = 0;
	return d->area.width == scan->width && d->area.height == scan->height ? JPEG_REASON_NONE
	                                                                      : JPEG_REASON_PIXELS;
}

bool decode_file_metadata(struct decoder *d, const struct file_metadata **metadata)
{
	*metadata = NULL;
	if (d->jpeg)
		*metadata = jpeg_decode_metadata(d->jpeg);
	else if (d->png)
		*metadata = png_metadata(d->png);
	else if (d->bmp) {
		d->metadata = bmp_metadata(d->bmp);
		*metadata = &d->metadata;
	} else if (d->still && metadata_read(&d->metadata, d->vips))
		*metadata = &d->metadata;
	return *metadata || d->pnm || d->format == FORMAT_RAW;
}

/* Tells libvips what a bitmap has beside its pixels. */
static VipsImage *describe_bmp(struct decoder *d)
{
	const struct file_metadata m = bmp_metadata(d->bmp);

	if (!d->described) {
		d->described = vips_image_new();
		d->described->Xres = m.resolution.x;
		d->described->Yres = m.resolution.y;
		if (m.profile[0].at)
			vips_image_set_blob_copy(d->described, VIPS_META_ICC_NAME, m.profile[0].at,
			                         m.profile[0].size);
	}
	return d->described;
}

enum error decode_metadata(struct decoder *d, VipsImage **image, struct problem *problem)
{
	enum error e =
	    (d->jpeg || d->png) && !d->vips ? load(d, VIPS_ACCESS_SEQUENTIAL, problem) : ERR_OK;

	*image = d->bmp ? describe_bmp(d) : d->vips;
	return e;
}
