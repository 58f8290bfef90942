/* Any bytes as a JPEG, through the worker's way without libvips: the header, the rows, and an
 * answer with its metadata. Nothing is written beside the rows, and no error is without words. The
 * first byte says whether the rest is a file, a segment of one, or what to change in one. */
#include <fcntl.h>

#include "codec/formats/bounds.h"
#include "jpegs.h"
#include "reader.h"

enum { PIXELS_MAX = 1 << 18, GUARD = 7, GUARD_BYTE = 0xa5, BASES = 3, FILE_MAX = 1 << 16 };

struct bytes {
	uint8_t at[FILE_MAX];
	size_t size;
};

/* Small files: baseline with restarts, progressive, CMYK. */
static struct bytes bases[BASES];

static void make_base(int kind)
{
	const struct jpegs_wish wish = {.width = 40,
	                                .height = 40,
	                                .sampling = kind == 2 ? JPEGS_444 : JPEGS_420,
	                                .quality = 75,
	                                .restart_interval = kind == 0 ? 2 : 0,
	                                .progressive = kind == 1};
	struct jpegs_picture picture = jpegs_draw(40, 40, kind == 2 ? 4 : 3, JPEGS_SMOOTH, 1);
	uint8_t *file = jpegs_encode(&picture, &wish, &bases[kind].size);

	memcpy(bases[kind].at, file, bases[kind].size);
	free(file);
	free(picture.samples);
}

/* The base with the data as a segment after its start. */
static void insert(struct bytes *file, const struct bytes *base, uint8_t marker, const char *title,
                   size_t title_size, const uint8_t *data, size_t size)
{
	size_t length = 2 + title_size + size;
	uint8_t *at = file->at;

	if (length > 0xffff || length + base->size + 2 > FILE_MAX)
		return;
	*at++ = 0xff, *at++ = 0xd8, *at++ = 0xff, *at++ = marker;
	*at++ = (uint8_t)(length >> 8), *at++ = (uint8_t)length;
	memcpy(at, title, title_size);
	memcpy(at + title_size, data, size);
	memcpy(at + title_size + size, base->at + 2, base->size - 2);
	file->size = 2 + 2 + length + base->size - 2;
}

static void make_file(struct bytes *file, unsigned kind, const uint8_t *data, size_t size)
{
	file->size = 0;
	switch (kind % 8) {
	case 0:
		file->size = size < FILE_MAX ? size : FILE_MAX;
		memcpy(file->at, data, file->size);
		break;
	case 1:
		insert(file, &bases[0], 0xe1, "Exif\0", 6, data, size);
		break;
	case 2:
		insert(file, &bases[0], 0xe2, "ICC_PROFILE\0\1\1", 14, data, size);
		break;
	case 3:
		insert(file, &bases[0], 0xed, "Photoshop 3.0", 14, data, size);
		break;
	case 4:
		insert(file, &bases[1], 0xe1, "http", 5, data, size);
		break;
	default:
		*file = bases[kind % 8 - 5];
		change(file->at, file->size, data, size);
		break;
	}
}

static void encode(void *state, const struct decoded *decoded, struct rows *rows, bool strip)
{
	static int file = -1;
	struct output_format output = {.format = FORMAT_JPEG,
	                               .result = decoded->whole,
	                               .image = decoded->whole,
	                               .cmyk = decoded->cmyk,
	                               .coding.quality = 75,
	                               .full_chroma = decoded->full_chroma,
	                               .strip = strip};
	struct file_metadata metadata;
	struct answer answer = {
	    .output = &output, .metadata = &metadata, .row = give_row, .context = rows};
	struct problem problem = {0};

	if (file < 0)
		file = open("/dev/null", O_WRONLY | O_CLOEXEC);
	must(jpeg_writer.writes(&output));
	must(file_metadata_answer(&metadata, reader_metadata(&jpeg_reader, state), output.format,
	                          &output.image, strip));
	answer.file = file;
	must(!jpeg_writer.write(&answer, &problem));
	file_metadata_free(&metadata);
}

/* Reads rows in two parts: some, keeping only a few columns, then the others. */
static void decode(void *state, const struct decoded *decoded, bool strip)
{
	const uint32_t width = decoded->whole.width, height = decoded->whole.height,
	               first = height / 3;
	const struct area upper = {width / 2, 0, width - width / 2, first},
	                  lower = {0, first, width, height - first};
	size_t row = image_row_size(&decoded->whole);
	struct rows rows = {malloc(height * (row + GUARD)), row + GUARD};
	struct problem problem = {0};
	enum error e;

	memset(rows.at, GUARD_BYTE, height * rows.pitch);
	e = jpeg_reader.rows(state, &upper, rows.at, rows.pitch, &problem);
	if (!e)
		e = jpeg_reader.rows(state, &lower, rows.at + first * rows.pitch, rows.pitch,
		                     &problem);
	must(!e || *problem.detail);
	for (uint32_t y = 0; y < height; y++)
		for (size_t i = row; i < rows.pitch; i++)
			must(rows.at[y * rows.pitch + i] == GUARD_BYTE);
	if (!e)
		encode(state, decoded, &rows, strip);
	free(rows.at);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct bytes file;
	struct problem problem = {0};
	struct decoded decoded = {0};
	struct body body = {0};
	void *state = NULL;

	for (int i = 0; i < BASES && !bases[i].size; i++)
		make_base(i);
	if (!size)
		return 0;
	make_file(&file, data[0], data + 1, size - 1);
	if (bounds_check(FORMAT_JPEG, file.at, file.size, &problem))
		return 0;
	body = (struct body){copy_of(file.at, file.size), file.size, false};
	if (reader_open(&jpeg_reader, &state, &decoded, &body, &problem))
		must(!state && *problem.detail);
	else if (decoded.plain &&
	         (uint64_t)decoded.whole.width * decoded.whole.height <= PIXELS_MAX)
		decode(state, &decoded, data[0] & 8);
	reader_close(&jpeg_reader, &state);
	free(body.at);
	return 0;
}
