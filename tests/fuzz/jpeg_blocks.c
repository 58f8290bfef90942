/* JPEGs through the core of the kernels of jpeg/, compiled as C, an item after another, so that
 * many more inputs are tried than by jpeg_kernels.c with groups of items: nothing is read or
 * written beyond a buffer; a stream that is cut into subsequences gives the same blocks as a whole
 * one; an unflagged result is libjpeg-turbo's; and pictures become libjpeg-turbo's bytes.
 *
 * The first bytes say the kind of file, the rest its damage, as there; or the picture; or how
 * another process describes the scan. */
#include "codec/jpeg_header.h"
#include "device/jpeg.h"
#include "fuzz.h"
#include "jpegs.h"
#include "opencl_on_host.h"

enum { SIDE_MAX = 24, KIND = 6, CHANGE = 3, WORDS_A_BLOCK = 80 };

uint32_t item_destuff(const struct jpeg_image *image, const uint8_t *scan, uint32_t at,
                      uint8_t *kept, uint32_t *count, uint32_t *starts, uint32_t *interval);
uint32_t item_skim(const struct jpeg_image *image, const uint16_t *tables, const uint32_t *stream,
                   uint32_t begin, uint32_t end, uint32_t *state);
uint32_t item_write(const struct jpeg_image *image, const uint16_t *tables, const uint32_t *stream,
                    uint32_t begin, uint32_t end, uint32_t interval_end, uint32_t state,
                    uint32_t *words, uint16_t *coefficients, uint32_t end_block, uint32_t *block,
                    int32_t *left);
uint32_t item_code(const struct jpeg_image *image, const uint32_t *codes, const uint64_t *halves,
                   const int16_t *coefficients, const uint8_t *masks, uint32_t number,
                   uint32_t *string, uint32_t at);

/* The kernels that have a barrier at most. */
void idct(const void *, const void *, const void *, const void *, const void *, void *, void *);
void upsample_color(const void *, const void *, void *);
void downsample_color(const void *, const void *, void *);
void fdct(const void *, const void *, void *, void *, void *, void *);

/* Only the kernels count. */
#pragma clang attribute push(__attribute__((no_sanitize("coverage"))), apply_to = function)

static struct programs *programs; /* see opencl_on_host.c */
static struct jpeg_decoder decoder;
static struct jpeg_encoder encoder;
static cl_mem unused; /* for samples, which kernels get otherwise */

/* The kernels' buffers for one image, each as large as the host makes it. */
struct buffers {
	const struct jpeg_image *image;
	uint32_t *stream, *starts, *prefixes;
	uint16_t *coefficients, *dc;
	uint8_t *masks, *planes, *samples;
	uint32_t totals[4], parts_used;
	struct jpeg_result result;
};

static size_t samples_size(const struct jpeg_image *image)
{
	return image->samples_pitch * (image->height - 1) + image->width * image->components;
}

static void buffers_init(struct buffers *b, const struct jpeg_image *image)
{
	*b = (struct buffers){
	    .image = image,
	    .stream = calloc(image->stream.count + 1, sizeof *b->stream),
	    .starts = calloc(image->intervals.count + 1, sizeof *b->starts),
	    .prefixes = calloc(image->mcus.count, 4 * sizeof *b->prefixes),
	    .coefficients = aligned_alloc(16, image->blocks.count * 64 * sizeof *b->coefficients),
	    .dc = calloc(image->blocks.count, sizeof *b->dc),
	    .masks = calloc(image->blocks.count, 8),
	    .planes = calloc(image->planes.count, 1),
	    .samples = calloc(samples_size(image), 1),
	};
	memset(b->coefficients, 0xa7, image->blocks.count * 64 * sizeof *b->coefficients);
}

static void buffers_fini(struct buffers *b)
{
	free(b->stream);
	free(b->starts);
	free(b->prefixes);
	free(b->coefficients);
	free(b->dc);
	free(b->masks);
	free(b->planes);
	free(b->samples);
}

/* Decoding ------------------------------------------------------------------------------------- */

static void destuff(struct buffers *b, const uint8_t *scan)
{
	const struct jpeg_image *image = b->image;
	uint8_t *kept = calloc(image->stream.count, 4);
	uint32_t count = 0, interval = 0;

	for (uint32_t at = 0; at < image->scan.count; at += 16)
		b->result.flags |=
		    item_destuff(image, scan, at, kept, &count, b->starts, &interval);
	if (interval != image->intervals.count - 1)
		b->result.flags |= JPEG_FLAG_MARKER;
	b->starts[image->intervals.count] = count;
	for (uint32_t i = 0; i < count; i++)
		b->stream[i / 4] |= (uint32_t)kept[i] << (24 - i % 4 * 8);
	free(kept);
}

/* Writes an interval's blocks, in subsequences of this many bytes. Returns flags. */
static uint32_t write_interval(const struct buffers *b, uint32_t interval, uint32_t length)
{
	const struct jpeg_image *image = b->image;
	const uint32_t begin = b->starts[interval], interval_end = b->starts[interval + 1];
	const uint32_t first = interval * image->restart_interval * image->mcu_blocks;
	uint32_t end_block = first + image->restart_interval * image->mcu_blocks, state = 0,
	         before = first, block = first, flags = 0;
	int32_t left = 0;

	end_block = end_block < image->blocks.count ? end_block : image->blocks.count;
	for (uint32_t at = begin;; at += length) {
		const uint32_t to = interval_end - at < length ? interval_end : at + length;
		uint32_t words[32 * JPEG_SYNC_GROUP] = {0};

		block = before;
		flags |= item_write(image, decoder.tables, b->stream, at, to, interval_end, state,
		                    words, b->coefficients, end_block, &block, &left);
		if (to == interval_end)
			break;
		before += item_skim(image, decoder.tables, b->stream, at, to, &state);
	}
	return flags | (block < end_block || left < 0 ? JPEG_FLAG_LENGTH : 0);
}

/* Copies the blocks as far as they were written: up to the last column that is not 0. */
static void fill_blocks(const struct jpeg_image *image, uint16_t *coefficients)
{
	for (uint32_t i = 0; i < image->blocks.count; i++) {
		uint16_t *block = coefficients + i * 64;

		for (uint32_t at = ((block[0] & 7u) + 1) * 8; at < 64; at++)
			block[at] = 0;
	}
}

/* Bits behind an interval's last block are read only if it is cut, and may be flagged. */
static void write_all(struct buffers *b, uint32_t length, bool damaged)
{
	const struct jpeg_image *image = b->image;
	const size_t size = image->blocks.count * 64 * sizeof *b->coefficients;
	uint16_t *whole = b->coefficients;
	uint32_t flags = 0, flags_cut = 0;

	for (uint32_t i = 0; i < image->intervals.count; i++)
		flags |= write_interval(b, i, UINT32_MAX / 16);
	b->coefficients = aligned_alloc(16, size);
	memset(b->coefficients, 0xa7, size);
	for (uint32_t i = 0; i < image->intervals.count; i++)
		flags_cut |= write_interval(b, i, length);
	must(damaged ? flags_cut || !flags : !flags_cut);
	if (!flags_cut) {
		fill_blocks(image, whole);
		fill_blocks(image, b->coefficients);
		must(!memcmp(whole, b->coefficients, size));
	}
	free(b->coefficients);
	b->coefficients = whole;
	b->result.flags |= flags;
}

/* Sums the differences of each component in each interval, as dc.cl does. */
static void sum_dc(struct buffers *b)
{
	const struct jpeg_image *image = b->image;
	uint16_t sums[JPEG_COMPONENTS] = {0};

	for (uint32_t i = 0; i < image->blocks.count; i++) {
		const uint32_t in_mcu = i % image->mcu_blocks;
		const uint32_t c =
		    in_mcu < image->luma_blocks ? 0 : 1 + in_mcu - image->luma_blocks;

		if (i % (image->restart_interval * image->mcu_blocks) == 0)
			memset(sums, 0, sizeof sums);
		sums[c] = (uint16_t)(sums[c] + ((int16_t)b->coefficients[i * 64] >> 4));
		b->dc[i] = sums[c];
	}
}

static void run_idct(const void *data)
{
	const struct buffers *b = data;

	idct(b->image, b->coefficients, b->dc, b->prefixes, b->totals, b->planes,
	     (void *)(uintptr_t)&b->result);
}

static void run_upsample(const void *data)
{
	const struct buffers *b = data;

	upsample_color(b->image, b->planes, b->samples);
}

static void transform(host_item *item, const struct buffers *b)
{
	uint32_t groups[2];

	jpeg_groups_transform(b->image, groups);
	host_run(item, b, (size_t[]){groups[0], groups[1], 1},
	         (size_t[]){JPEG_IDCT_BLOCKS * 8, 1, 1});
}

static void color(host_item *item, const struct buffers *b, size_t rows)
{
	host_run(item, b, (size_t[]){1, rows, 1}, (size_t[]){JPEG_COLOR_GROUP, 1, 1});
}

static void compare(const struct buffers *b, const uint8_t *file, size_t size)
{
	const size_t row = b->image->width * b->image->components;
	struct jpegs_picture expected;

	must(jpegs_decode_any(file, size, &expected));
	for (uint32_t y = 0; y < b->image->height; y++)
		must(!memcmp(b->samples + y * b->image->samples_pitch, expected.samples + y * row,
		             row));
	free(expected.samples);
}

/* size 0: the scan is not that of the file. */
static void decode(const uint8_t *file, size_t size, const struct jpeg_scan *scan, bool damaged,
                   uint32_t length)
{
	uint8_t *bytes = copy_of(file + scan->offset, scan->size);
	const struct jpeg_decode_job job = {scan, bytes, 0,
	                                    (scan->width * scan->components + 7) / 8 * 8};
	struct buffers b;

	must(!jpeg_decoder_enqueue(&decoder, NULL, &job, 1, unused, NULL));
	buffers_init(&b, &decoder.pipeline.image[0]);
	destuff(&b, bytes);
	if (!b.result.flags)
		write_all(&b, length, damaged);
	if (!b.result.flags) {
		sum_dc(&b);
		transform(run_idct, &b);
		color(run_upsample, &b, b.image->chroma_height);
	}
	must(damaged || !b.result.flags);
	if (!b.result.flags && size)
		compare(&b, file, size);
	buffers_fini(&b);
	free(bytes);
}

/* Encoding ------------------------------------------------------------------------------------- */

static void run_downsample(const void *data)
{
	const struct buffers *b = data;

	downsample_color(b->image, b->samples, b->planes);
}

static void run_fdct(const void *data)
{
	const struct buffers *b = data;

	fdct(b->image, b->planes, b->coefficients, b->masks, (void *)(uintptr_t)&b->parts_used,
	     (void *)(uintptr_t)&b->result);
}

/* Compares the bits, in words of which the last is filled with 1 bits, with a scan, which has zeros
 * behind its bytes FF. */
static void compare_scan(const uint32_t *string, uint32_t bits, const uint8_t *scan, size_t size)
{
	size_t at = 0;

	for (uint32_t i = 0; i < (bits + 7) / 8; i++) {
		uint8_t byte = (uint8_t)(string[i / 4] >> (24 - i % 4 * 8));

		if (i == bits / 8)
			byte |= (uint8_t)(0xff >> bits % 8);
		must(at < size && scan[at++] == byte);
		must(byte != 0xff || (at < size && scan[at++] == 0));
	}
	must(at == size);
}

static void encode(const struct jpegs_picture *p, const struct jpeg_scan *scan, const uint8_t *file)
{
	const size_t row = (size_t)p->width * p->bands;
	struct jpeg_encode_job job = {p->width, p->height, p->bands, scan->h,
	                              scan->v,  {{0}},     0,        (uint32_t)(row + 7) / 8 * 8};
	uint32_t bits = 0, *string;
	struct buffers b;

	for (int plane = 0; plane < JPEG_PLANES; plane++)
		memcpy(job.quantization[plane], scan->quantization[plane],
		       sizeof job.quantization[plane]);
	must(jpeg_encode_job_valid(&job) &&
	     !jpeg_encoder_enqueue(&encoder, NULL, &job, 1, unused, NULL));
	buffers_init(&b, &encoder.pipeline.image[0]);
	for (uint32_t y = 0; y < p->height; y++)
		memcpy(b.samples + y * job.pitch, p->samples + y * row, row);
	color(run_downsample, &b, b.image->mcus_y * 8);
	transform(run_fdct, &b);
	string = calloc(b.image->blocks.count * WORDS_A_BLOCK, sizeof *string);
	for (uint32_t i = 0; i < b.image->blocks.count; i++)
		bits += item_code(b.image, encoder.codes[0], encoder.halves[0],
		                  (int16_t *)b.coefficients, b.masks, i, string, bits);
	compare_scan(string, bits, file + scan->offset, scan->size);
	free(string);
	buffers_fini(&b);
}

/* Inputs --------------------------------------------------------------------------------------- */

/* A picture whose samples are the input's. */
static void try_picture(const uint8_t kind[KIND], const uint8_t *data, size_t size)
{
	const struct jpegs_wish wish = {1 + kind[0] % SIDE_MAX, 1 + kind[1] % SIDE_MAX,
	                                (enum jpegs_sampling)(kind[2] % (JPEGS_420 + 1)),
	                                1 + kind[3] % 100, .restart_interval = 0};
	struct jpegs_picture p = {wish.width, wish.height, wish.sampling == JPEGS_GRAY ? 1 : 3,
	                          NULL};
	const size_t samples = (size_t)p.width * p.height * p.bands;
	struct jpeg_scan scan;
	size_t bytes;
	uint8_t *file;

	p.samples = malloc(samples);
	for (size_t i = 0; i < samples; i++)
		p.samples[i] = size ? data[i % size] : 0;
	file = jpegs_encode(&p, &wish, &bytes);
	must(!jpeg_header_read(file, bytes, &scan));
	encode(&p, &scan, file);
	free(file);
	free(p.samples);
}

/* Files are the same for the same kind, of which there are few. */
static void try_file(const uint8_t kind[KIND], const uint8_t *data, size_t size)
{
	enum { FILES = 512 };
	static struct {
		uint8_t *file;
		size_t size;
	} files[FILES];
	const unsigned number = (kind[0] | (unsigned)kind[1] << 8) % FILES;
	const struct jpegs_wish wish = {1 + number * 7 % SIDE_MAX,
	                                1 + number * 11 % SIDE_MAX,
	                                (enum jpegs_sampling)(number % (JPEGS_420 + 1)),
	                                1 + number * 13 % 100,
	                                number / 4 % 4,
	                                .optimize = number / 16 % 2};
	struct jpegs_picture p;
	struct jpeg_scan scan;
	uint8_t *file;

	if (!files[number].file) {
		p = jpegs_draw(wish.width, wish.height, wish.sampling == JPEGS_GRAY ? 1 : 3,
		               (enum jpegs_content)(number % JPEGS_CONTENTS), number);
		files[number].file = jpegs_encode(&p, &wish, &files[number].size);
		free(p.samples);
	}
	file = copy_of(files[number].file, files[number].size);
	must(!jpeg_header_read(file, files[number].size, &scan));
	if (kind[3] & 1) {
		change((uint8_t *)&scan, offsetof(struct jpeg_scan, offset), data, size);
		if (jpeg_scan_valid(&scan) && scan.width <= SIDE_MAX && scan.height <= SIDE_MAX)
			decode(file, 0, &scan, true, 4u * (1 + kind[2] % 32));
		free(file);
		return;
	}
	change(file + scan.offset, scan.size, data, size);
	if (!jpeg_header_read(file, files[number].size, &scan))
		decode(file, files[number].size, &scan, size >= CHANGE, 4u * (1 + kind[2] % 32));
	free(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < KIND)
		return 0;
	if (data[KIND - 1] & 1)
		try_picture(data, data + KIND, size - KIND);
	else
		try_file(data, data + KIND, size - KIND);
	return 0;
}

/* The host's part is as always; only nothing is launched. */
int LLVMFuzzerInitialize(int *argc, char ***argv);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	cl_int code;

	(void)argc, (void)argv;
	host_launches = false;
	unused = clCreateBuffer(NULL, CL_MEM_READ_WRITE, 1, NULL, &code);
	must(!jpeg_decoder_init(&decoder, programs) && !jpeg_encoder_init(&encoder, programs));
	return 0;
}

#pragma clang attribute pop
