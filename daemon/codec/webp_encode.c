/* libwebp codes the picture, and libwebpmux puts it into a file with what is beside it. Runs in the
 * job's encoding thread. */
#include "codec/webp_encode.h"

#include <stdlib.h>

#include <glib.h>
#include <webp/encode.h>
#include <webp/mux.h>

#include "base/file.h"
#include "codec/file_metadata.h"
#include "codec/icc_profile.h"
#include "codec/previews.h"
#include "codec/samples.h"

static enum error no_memory(struct problem *problem)
{
	return problem_set(problem, ERR_MEMORY, "no memory to encode");
}

/* Takes the rows into memory, and gives them to the picture. Sets *ended if there are too few. A
 * lossy picture becomes luma and chroma at once; as numbers of its colours it would cost libwebp
 * more. */
static enum error import(WebPPicture *picture, const struct output_format *output, answer_row *next,
                         void *context, bool *ended, struct problem *problem)
{
	const struct image *image = &output->image;
	const uint32_t bands = image->alpha ? 4 : 3;
	const size_t size = (size_t)image->width * bands;
	uint8_t *pixels = malloc(size * image->height);
	bool done = pixels != NULL;

	for (uint32_t y = 0; done && !*ended && y < image->height; y++) {
		const uint8_t *row = next(context, y);

		*ended = !row;
		if (row)
			samples_to_bgr(pixels + y * size, bands, output, row);
	}
	if (done && !*ended)
		done = (bands == 4 ? WebPPictureImportBGRA : WebPPictureImportBGR)(picture, pixels,
		                                                                   (int)size);
	free(pixels);
	return done ? ERR_OK : no_memory(problem);
}

static enum error encode(const struct output_format *output, answer_row *row, void *context,
                         WebPMemoryWriter *coded, bool *ended, struct problem *problem)
{
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
	e = import(&picture, output, row, context, ended, problem);
	if (!e && !*ended && !WebPEncode(&config, &picture))
		e = picture.error_code == VP8_ENC_ERROR_OUT_OF_MEMORY ||
		            picture.error_code == VP8_ENC_ERROR_BITSTREAM_OUT_OF_MEMORY
		        ? no_memory(problem)
		        : problem_set(problem, ERR_UNENCODABLE, "the webp encoder fails (%d)",
		                      (int)picture.error_code);
	WebPPictureFree(&picture);
	return e;
}

/* Returns false without memory. */
static bool add(WebPMux *mux, const char *name, const uint8_t *at, size_t size)
{
	const WebPData chunk = {at, size};

	return WebPMuxSetChunk(mux, name, &chunk, 1) == WEBP_MUX_OK;
}

static bool add_exif(WebPMux *mux, const struct file_metadata *m,
                     const struct output_format *output)
{
	const struct exif_facts facts = {output->image.width, output->image.height, m->resolution};
	size_t size;
	uint8_t *block = exif_block_write(output->strip ? NULL : m->exif, &facts, &size);
	bool added = block && add(mux, "EXIF", block, size);

	free(block);
	return added;
}

static bool add_profile(WebPMux *mux, const struct file_metadata *m,
                        const struct output_format *output)
{
	size_t size;
	uint8_t *profile = file_metadata_profile(m, &size);
	bool added = !size || profile;

	if (profile && icc_profile_fits(profile, size, output->image.bands - output->image.alpha))
		added = add(mux, "ICCP", profile, size);
	free(profile);
	return added;
}

static bool add_xmp(WebPMux *mux, const struct file_metadata *m, const struct output_format *output)
{
	GByteArray *kept =
	    !output->strip && m->xmp.at ? previews_drop_from_xmp(m->xmp.at, m->xmp.size) : NULL;
	bool added = !kept || add(mux, "XMP ", kept->data, kept->len);

	if (kept)
		g_byte_array_unref(kept);
	return added;
}

static enum error write_file(const struct output_format *output, const struct file_metadata *m,
                             const WebPMemoryWriter *coded, int file, struct problem *problem)
{
	static const struct file_metadata none = {.resolution = {1, 1, PER_INCH}};
	const WebPData picture = {coded->mem, coded->size};
	WebPMux *mux = WebPMuxCreate(&picture, 0);
	WebPData whole = {NULL, 0};
	enum error e = ERR_OK;

	m = m ? m : &none;
	if (!mux || !add_exif(mux, m, output) || !add_profile(mux, m, output) ||
	    !add_xmp(mux, m, output) || WebPMuxAssemble(mux, &whole) != WEBP_MUX_OK)
		e = no_memory(problem);
	else if (!file_write(file, whole.bytes, whole.size, 0))
		e = problem_set(problem, ERR_IO, "cannot write the answer");
	WebPDataClear(&whole);
	WebPMuxDelete(mux);
	return e;
}

enum error webp_encode(const struct output_format *output, const struct file_metadata *metadata,
                       answer_row *row, void *context, int file, struct problem *problem)
{
	WebPMemoryWriter coded;
	bool ended = false;
	enum error e;

	WebPMemoryWriterInit(&coded);
	e = encode(output, row, context, &coded, &ended, problem);
	if (!e && !ended)
		e = write_file(output, metadata, &coded, file, problem);
	WebPMemoryWriterClear(&coded);
	return e;
}
