/* Any bytes as a body, through the codec worker's whole way: the signature, the checks before a
 * decoder, the format's reader with libvips and its libraries, all rows, the metadata. A refusal
 * says why, and nothing is written beside the rows. It is slow; the targets of formats try their
 * parts.
 *
 * The first bytes say which pages, and whether the rest is a file or what to change in one. */
#include <vips/vips.h>

#include "codec/decode.h"
#include "codec/repertoire.h"
#include "file.h"

enum { SIDE = 20, BASES = 11, HEAD = 2, GUARD = 16, POISON = 0xa5, PIXELS_MAX = 1 << 16 };

static struct {
	void *at;
	size_t size;
} bases[BASES];

/* Drops what libraries say. */
static void drop(const char *domain, GLogLevelFlags level, const char *text, void *context)
{
	(void)domain, (void)level, (void)text, (void)context;
}

static VipsImage *draw(int bands)
{
	static uint8_t pixels[SIDE * SIDE * 4];

	for (size_t i = 0; i < sizeof pixels; i++)
		pixels[i] = (uint8_t)(i * 7 + i / 160 * (i / 160));
	return vips_image_new_from_memory(pixels, sizeof pixels, SIDE, SIDE * 4 / bands, bands,
	                                  VIPS_FORMAT_UCHAR);
}

/* Makes small files of the formats that libvips reads, in several codings. */
static void make_bases(void)
{
	VipsImage *rgb = draw(4), *grey = draw(1), *pages;
	int b = 0;

	must(!vips_copy(rgb, &pages, NULL));
	vips_image_set_int(pages, VIPS_META_PAGE_HEIGHT, SIDE / 2);
#define BASE(format, image, ...)                                                                   \
	(void)!vips_##format##save_buffer(image, &bases[b].at, &bases[b].size, __VA_ARGS__), b++
	BASE(tiff, rgb, "compression", VIPS_FOREIGN_TIFF_COMPRESSION_NONE, NULL);
	BASE(tiff, rgb, "compression", VIPS_FOREIGN_TIFF_COMPRESSION_LZW, "predictor", 2, NULL);
	BASE(tiff, grey, "compression", VIPS_FOREIGN_TIFF_COMPRESSION_JPEG, "tile", TRUE,
	     "tile_width", 16, "tile_height", 16, NULL);
	BASE(tiff, pages, "compression", VIPS_FOREIGN_TIFF_COMPRESSION_DEFLATE, "bigtiff", TRUE,
	     NULL);
	BASE(tiff, grey, "compression", VIPS_FOREIGN_TIFF_COMPRESSION_CCITTFAX4, "bitdepth", 1,
	     NULL);
	BASE(gif, pages, NULL);
	BASE(webp, pages, NULL);
	BASE(png, rgb, "interlace", TRUE, NULL);
	BASE(heif, rgb, "compression", VIPS_FOREIGN_HEIF_COMPRESSION_AV1, "effort", 0, NULL);
	BASE(jxl, rgb, "effort", 3, NULL);
	BASE(jxl, grey, "lossless", TRUE, "effort", 3, NULL);
	vips_error_clear();
	g_object_unref(rgb);
	g_object_unref(grey);
	g_object_unref(pages);
}

/* Reads all rows of all pages. */
static void read_rows(struct decoder *decoder, const struct decoded *decoded)
{
	const struct image *image = &decoded->image;
	const size_t pitch = image_row_size(image) + GUARD;
	uint8_t *rows = malloc(image->height * pitch);
	struct problem problem = {0};
	enum error e = decode_begin(decoder, &problem);

	memset(rows, POISON, image->height * pitch);
	for (uint32_t page = 0; !e && page < decoded->pages; page++) {
		decode_page(decoder, page);
		e = decode_rows(decoder, 0, image->height, rows, pitch, &problem);
		for (uint32_t y = 0; y < image->height; y++)
			for (size_t i = pitch - GUARD; i < pitch; i++)
				must(rows[y * pitch + i] == POISON);
	}
	must(!e == !*problem.detail);
	free(rows);
}

static void read_body(int body, size_t size, unsigned how)
{
	static struct chain chain;
	const struct message_job job = {.job = 1,
	                                .body_size = size,
	                                .pixels_max = PIXELS_MAX,
	                                .buffered_size_max = PIXELS_MAX * 16,
	                                .page = how % 4 == 3 ? PAGES_ALL : how % 4,
	                                .draft = how >> 4 & 1,
	                                .roi =
	                                    how & 4 ? (struct area){3, 3, 5, 5} : (struct area){0}};
	const struct file_metadata *metadata;
	struct problem problem = {0};
	struct decoded decoded = {0};
	struct decoder *decoder = NULL;
	enum error e;

	chain_init(&chain);
	chain_append(&chain, FILTER_RESIZE, CHANNELS_ALL)->value[RESIZE_WIDTH] = 2;
	chain.border = how & 8 ? BORDER_WRAP : BORDER_REPLICATE;
	e = decode_open(&decoder, &decoded, &job, &chain, body, NULL, &problem);
	must(!e == !*problem.detail && !e == !!decoder);
	must(strlen(problem.detail) < sizeof problem.detail);
	if (e)
		return;
	must(image_valid(&decoded.image) && decoded.pages &&
	     image_pixels(&decoded.whole) <= PIXELS_MAX);
	e = decode_metadata(decoder, &metadata, &problem);
	must(!e == !*problem.detail);
	if (!e)
		read_rows(decoder, &decoded);
	decode_close(&decoder);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct memory_file file;
	const size_t base = size ? data[0] / 2 % BASES : 0;
	uint8_t *changed;

	if (size < HEAD)
		return 0;
	if (data[0] & 1 && bases[base].size) {
		changed = copy_of(bases[base].at, bases[base].size);
		change(changed, bases[base].size, data + HEAD, size - HEAD);
		fill_file(&file, changed, bases[base].size);
		free(changed);
		size = bases[base].size;
	} else {
		size -= HEAD;
		fill_file(&file, data + HEAD, size);
	}
	read_body(file.fd, size, data[1]);
	return 0;
}

int LLVMFuzzerInitialize(int *argc, char ***argv);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	setenv("VIPS_WARNING", "0", 1);
	setenv("VIPSHOME", "/nonexistent", 1);
	must(!VIPS_INIT((*argv)[0]));
	vips_concurrency_set(1);
	vips_cache_set_max(0);
	g_log_set_default_handler(drop, NULL);
	make_bases();
	repertoire_init(UINT32_MAX);
	return 0;
}
