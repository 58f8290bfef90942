/* Still WebP pictures without libvips, which composes each of them as a frame of an animation: that
 * takes longer than the decoding itself. libvips also cannot keep the colour of transparent pixels,
 * which lossless answers have. libwebp codes pictures; its demux and mux handle the rest. */
#include <stdlib.h>
#include <string.h>

#include <glib.h>
#include <vips/vips.h>
#include <webp/decode.h>
#include <webp/demux.h>
#include <webp/encode.h>
#include <webp/mux.h>

#include "base/file.h"
#include "codec/formats/row.h"
#include "codec/formats/samples.h"

/* Reading -------------------------------------------------------------------------------------- */

/* Up to this size a thread of libwebp costs more than it saves. */
static const uint64_t ALONE_PIXELS = 1 << 18;

struct still {
	WebPDemuxer *demuxer;
	WebPIterator frame;
	int width, height; /* the pixels'; smaller than the frame's in a draft */
	int bands;
	uint8_t *pixels; /* all; NULL until needed */
	struct file_metadata metadata;
};

static void close_still(void *state)
{
	struct still *s = state;

	WebPDemuxReleaseIterator(&s->frame);
	WebPDemuxDelete(s->demuxer);
	free(s->pixels);
}

/* Returns a part of the file, if its header says that the part exists. */
static struct file_part find_chunk(const WebPDemuxer *demuxer, const char *name, uint32_t flag)
{
	struct file_part part = {NULL, 0};
	WebPChunkIterator chunk;

	if (WebPDemuxGetI(demuxer, WEBP_FF_FORMAT_FLAGS) & flag &&
	    WebPDemuxGetChunk(demuxer, name, 1, &chunk)) {
		if (chunk.chunk.size)
			part = (struct file_part){chunk.chunk.bytes, chunk.chunk.size};
		WebPDemuxReleaseChunkIterator(&chunk);
	}
	return part;
}

/* Leaves to libvips what is truncated, or no single upright picture as large as the image. */
static enum error open_still(void *state, struct decoded *decoded, const struct body *body,
                             struct problem *problem)
{
	const WebPData whole = {body->at, body->size};
	struct still *s = state;
	struct file_metadata *m = &s->metadata;
	uint32_t flags, width, height;
	struct file_part exif;

	s->demuxer = WebPDemux(&whole);
	flags = s->demuxer ? WebPDemuxGetI(s->demuxer, WEBP_FF_FORMAT_FLAGS) : 0;
	if (!s->demuxer || flags & ANIMATION_FLAG || !WebPDemuxGetFrame(s->demuxer, 1, &s->frame))
		return ERR_OK;
	m->resolution = (struct resolution){1, 1, PER_INCH};
	m->profile = find_chunk(s->demuxer, "ICCP", ICCP_FLAG);
	m->xmp = find_chunk(s->demuxer, "XMP ", XMP_FLAG);
	exif = find_chunk(s->demuxer, "EXIF", EXIF_FLAG);
	if (exif.at)
		m->exif = exif_block_read(exif.at, exif.size, &m->resolution);
	if (exif.at && !m->exif)
		return no_memory(problem, "for the metadata");
	width = WebPDemuxGetI(s->demuxer, WEBP_FF_CANVAS_WIDTH);
	height = WebPDemuxGetI(s->demuxer, WEBP_FF_CANVAS_HEIGHT);
	s->width = s->frame.width;
	s->height = s->frame.height;
	s->bands = flags & ALPHA_FLAG ? 4 : 3;
	decoded->plain = s->frame.complete && (uint32_t)s->frame.width == width &&
	                 (uint32_t)s->frame.height == height && file_metadata_upright(m);
	decoded->whole = (struct image){.width = width,
	                                .height = height,
	                                .bands = (uint32_t)s->bands,
	                                .type = PIXEL_U8,
	                                .alpha = s->bands == 4};
	decoded->any_order = true;
	decoded->held = format_rows[FORMAT_WEBP].decoder_pixel_size + (uint32_t)s->bands;
	return ERR_OK;
}

/* libwebp makes means of what each pixel covers, up to the edges. Those of lossy colours would not
 * be weighed by alpha. */
static enum error shrink(void *state, uint32_t by, struct image *image, struct problem *)
{
	struct still *s = state;

	if (image->alpha)
		return ERR_OK;
	image_shrink(image, (image->width + by - 1) / by, (image->height + by - 1) / by, 0);
	s->width = (int)image->width;
	s->height = (int)image->height;
	return ERR_OK;
}

/* Passes the picture alone; a damaged one could otherwise read bytes from the file's rest. */
static enum error decode(void *state, struct problem *problem)
{
	struct still *s = state;
	const WebPIterator *frame = &s->frame;
	const size_t row = (size_t)s->width * (size_t)s->bands, size = row * (size_t)s->height;
	WebPDecoderConfig config;

	if (s->pixels)
		return ERR_OK;
	s->pixels = malloc(size);
	if (!s->pixels)
		return problem_set(problem, ERR_DECODER_DIED,
		                   "the WebP decoder says: out of memory");
	if (!WebPInitDecoderConfig(&config))
		return problem_set(problem, ERR_INTERNAL, "libwebp is another than at build time");
	config.options.use_threads =
	    (uint64_t)frame->width * (uint64_t)frame->height > ALONE_PIXELS;
	config.options.use_scaling = s->width < frame->width || s->height < frame->height;
	config.options.scaled_width = s->width;
	config.options.scaled_height = s->height;
	config.output.colorspace = s->bands == 4 ? MODE_RGBA : MODE_RGB;
	config.output.is_external_memory = 1;
	config.output.u.RGBA =
	    (WebPRGBABuffer){.rgba = s->pixels, .stride = (int)row, .size = size};
	if (WebPDecode(frame->fragment.bytes, frame->fragment.size, &config) == VP8_STATUS_OK)
		return ERR_OK;
	g_clear_pointer(&s->pixels, free);
	return problem_set(problem, ERR_UNDECODABLE,
	                   "the WebP decoder says: unable to read pixels");
}

static enum error read_rows(void *state, const struct area *area, uint8_t *to, size_t pitch,
                            struct problem *problem)
{
	const struct still *s = state;
	const size_t pixel = (size_t)s->bands, row = (size_t)s->width * pixel;
	enum error e = decode(state, problem);

	for (uint32_t i = 0; !e && i < area->height; i++)
		memcpy(to + i * pitch, s->pixels + (area->y + i) * row + area->x * pixel,
		       area->width * pixel);
	return e;
}

const struct reader webp_reader = {
    .size = sizeof(struct still),
    .metadata = offsetof(struct still, metadata),
    .open = open_still,
    .close = close_still,
    .shrink = shrink,
    .begin = decode,
    .rows = read_rows,
};

/* Writing -------------------------------------------------------------------------------------- */

/* Collects the rows in memory and gives them to the picture. A lossy picture becomes luma and
 * chroma at once, because colours would cost libwebp more. */
static enum error import(WebPPicture *picture, const struct answer *answer, struct problem *problem)
{
	const struct image *image = &answer->output->image;
	const uint32_t bands = image->alpha ? 4 : 3;
	const size_t size = (size_t)image->width * bands;
	uint8_t *pixels = malloc(size * image->height);
	bool done = pixels != NULL;

	for (uint32_t y = 0; done && y < image->height; y++) {
		const uint8_t *row = answer->row(answer->context, y);

		done = row;
		if (row)
			samples_to_bgr(pixels + y * size, bands, answer->output, row);
	}
	if (done)
		done = (bands == 4 ? WebPPictureImportBGRA : WebPPictureImportBGR)(picture, pixels,
		                                                                   (int)size);
	free(pixels);
	return done ? ERR_OK : no_memory(problem, "to encode");
}

static enum error encode(const struct answer *answer, WebPMemoryWriter *coded,
                         struct problem *problem)
{
	const struct output_format *output = answer->output;
	WebPPicture picture;
	WebPConfig config;
	enum error e;

	if (!WebPConfigPreset(&config, WEBP_PRESET_DEFAULT, (float)output->coding.quality) ||
	    !WebPPictureInit(&picture))
		return problem_set(problem, ERR_INTERNAL, "libwebp is another than at build time");
	config.lossless = config.exact = picture.use_argb = output->coding.lossless != 0;
	picture.width = (int)output->image.width;
	picture.height = (int)output->image.height;
	picture.writer = WebPMemoryWrite;
	picture.custom_ptr = coded;
	e = import(&picture, answer, problem);
	if (!e && !WebPEncode(&config, &picture))
		e = picture.error_code == VP8_ENC_ERROR_OUT_OF_MEMORY ||
		            picture.error_code == VP8_ENC_ERROR_BITSTREAM_OUT_OF_MEMORY
		        ? no_memory(problem, "to encode")
		        : problem_set(problem, ERR_UNENCODABLE, "the webp encoder fails (%d)",
		                      (int)picture.error_code);
	WebPPictureFree(&picture);
	return e;
}

/* Returns false without memory. */
static bool add(WebPMux *mux, const char *name, const struct file_part *part)
{
	const WebPData chunk = {part->at, part->size};

	return !part->at || WebPMuxSetChunk(mux, name, &chunk, 1) == WEBP_MUX_OK;
}

/* The whole image is held: 4 bytes per pixel, and libwebp's own memory. */
static enum error write_webp(const struct answer *answer, struct problem *problem)
{
	const struct file_metadata *m = answer->metadata;
	WebPData picture, whole = {NULL, 0};
	WebPMemoryWriter coded;
	WebPMux *mux = NULL;
	enum error e;

	WebPMemoryWriterInit(&coded);
	e = encode(answer, &coded, problem);
	if (!e) {
		picture = (WebPData){coded.mem, coded.size};
		mux = WebPMuxCreate(&picture, 0);
		if (!mux || !add(mux, "EXIF", &m->block) || !add(mux, "ICCP", &m->profile) ||
		    !add(mux, "XMP ", &m->xmp) || WebPMuxAssemble(mux, &whole) != WEBP_MUX_OK)
			e = no_memory(problem, "to encode");
		else if (!file_write(answer->file, whole.bytes, whole.size, 0))
			e = problem_set(problem, ERR_IO, "cannot write the answer");
	}
	WebPDataClear(&whole);
	WebPMuxDelete(mux);
	WebPMemoryWriterClear(&coded);
	return e;
}

static bool is_still(const struct output_format *output)
{
	return output->pages <= 1;
}

/* Animations. */
static int save_frames(const struct output_format *output, VipsImage *image, VipsTarget *target)
{
	return vips_webpsave_target(image, target, "Q", (int)output->coding.quality, "lossless",
	                            output->coding.lossless != 0, NULL);
}

const struct writer webp_writer = {
    .write = write_webp,
    .writes = is_still,
    .save = save_frames,
};
