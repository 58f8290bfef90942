/* The headers are bits, least significant first. Most fields have defaults, and a bundle of fields
 * that all have theirs is a single bit (ISO/IEC 18181-1, annexes B to E). This reads bundles as the
 * decoder does, up to the size of the encoded profile, which follows them. */
#include "codec/formats/jxl.h"

#include <stdlib.h>
#include <string.h>

#include <brotli/decode.h>
#include <vips/vips.h>

#include "codec/metadata/containers.h"
#include "codec/formats/row.h"

/* Headers with one extra channel, names and weights included, are below 2 KiB. */
enum { HEADER_MAX = 4096 };

static bool begins_codestream(const uint8_t *at, size_t size)
{
	return size >= 2 && !memcmp(at, "\xff\x0a", 2);
}

/* Copies the beginning of the codestream, which may be in parts; returns its size. */
static size_t gather(uint8_t to[HEADER_MAX], const uint8_t *file, size_t size)
{
	const uint8_t *at = file, *end = file + size;
	size_t count = 0;
	struct box box;

	if (begins_codestream(file, size)) {
		count = size < HEADER_MAX ? size : HEADER_MAX;
		memcpy(to, file, count);
		return count;
	}
	while (count < HEADER_MAX && next_box(&at, end, &box)) {
		size_t head = box_is(&box, "jxlp") ? 4 : 0, part;

		if ((!head && !box_is(&box, "jxlc")) || box.size <= head)
			continue;
		part = box.size - head;
		part = part < HEADER_MAX - count ? part : HEADER_MAX - count;
		memcpy(to + count, box.at + head, part);
		count += part;
	}
	return count;
}

/* Fields --------------------------------------------------------------------------------------- */

struct bits {
	const uint8_t *at;
	uint64_t size, next; /* in bits */
};

/* Zeros follow the end. */
static uint64_t bits(struct bits *b, unsigned count)
{
	uint64_t value = 0;

	for (unsigned i = 0; i < count; i++, b->next++)
		if (b->next < b->size)
			value |= (uint64_t)(b->at[b->next / 8] >> b->next % 8 & 1u) << i;
	return value;
}

static bool flag(struct bits *b)
{
	return bits(b, 1);
}

static void skip(struct bits *b, uint64_t count)
{
	b->next = count < b->size ? b->next + count : b->size + 1;
}

/* U32(): the number of bits, one of four, then a number of that size, to be added to an offset. */
static uint64_t choose(struct bits *b, const uint8_t count[4], const uint8_t add[4])
{
	size_t i = bits(b, 2);

	return bits(b, count[i]) + add[i];
}

/* U32(), when its value does not matter. */
static void skip_choice(struct bits *b, unsigned one, unsigned two, unsigned three, unsigned four)
{
	const unsigned count[] = {one, two, three, four};

	skip(b, count[bits(b, 2)]);
}

static uint64_t read_enum(struct bits *b)
{
	static const uint8_t count[] = {0, 0, 4, 6}, add[] = {0, 1, 2, 18};

	return choose(b, count, add);
}

/* U64() */
static uint64_t read_number(struct bits *b)
{
	static const uint8_t count[] = {0, 4, 8, 12}, add[] = {0, 1, 17, 0};
	const size_t kind = bits(b, 2);
	uint64_t value = bits(b, count[kind]) + add[kind];

	if (kind < 3)
		return value;
	for (unsigned shift = 12; shift < 64 && flag(b); shift += 8)
		value |= bits(b, shift < 60 ? 8 : 4) << shift;
	return value;
}

/* Bundles, by their names in the standard ------------------------------------------------------ */

/* A height, and a width unless a ratio gives it. */
static void skip_sides(struct bits *b, unsigned one, unsigned two, unsigned three, unsigned four)
{
	skip_choice(b, one, two, three, four);
	if (!bits(b, 3))
		skip_choice(b, one, two, three, four);
}

/* SizeHeader; if it is a small one, sides have 5 bits. */
static void skip_size(struct bits *b)
{
	if (!flag(b)) {
		skip_sides(b, 9, 13, 18, 30);
		return;
	}
	skip(b, 5);
	if (!bits(b, 3))
		skip(b, 5);
}

/* BitDepth */
static void skip_depth(struct bits *b)
{
	const bool floats = flag(b);

	skip_choice(b, 0, 0, 0, 6);
	if (floats)
		skip(b, 4);
}

enum { ALPHA = 0, SPOT = 2, BLACK = 4, FILTER_ARRAY = 5 };

/* ExtraChannelInfo */
static void read_channel(struct bits *b, struct jxl_header *h)
{
	static const uint8_t count[] = {0, 4, 5, 10}, add[] = {0, 0, 16, 48};

	h->type = ALPHA;
	if (flag(b))
		return;
	h->type = (uint32_t)read_enum(b);
	skip_depth(b);
	skip_choice(b, 0, 0, 0, 3);
	skip(b, 8 * choose(b, count, add)); /* the name */
	if (h->type == ALPHA)
		h->premultiplied = flag(b);
	else if (h->type == SPOT)
		skip(b, UINT64_C(4) * 16);
	else if (h->type == FILTER_ARRAY)
		skip_choice(b, 0, 2, 4, 8);
}

/* Customxy */
static void skip_points(struct bits *b, int points)
{
	for (int i = 0; i < 2 * points; i++)
		skip_choice(b, 19, 19, 20, 21);
}

/* ColorEncoding: true if a profile takes its place. */
static bool read_colours(struct bits *b)
{
	enum { RGB, GREY, XYB, CUSTOM = 2 };
	bool profile;
	uint64_t space;

	if (flag(b))
		return false;
	profile = flag(b);
	space = read_enum(b);
	if (profile)
		return true;
	if (space != XYB) {
		if (read_enum(b) == CUSTOM)
			skip_points(b, 1);
		if (space != GREY && read_enum(b) == CUSTOM)
			skip_points(b, 3);
		if (flag(b))
			skip(b, 24);
		else
			read_enum(b);
	}
	read_enum(b);
	return false;
}

/* Extensions: the lengths of all of them come before the first one. */
static void skip_extensions(struct bits *b)
{
	uint64_t lengths = 0;

	for (uint64_t left = read_number(b); left; left &= left - 1) {
		uint64_t length = read_number(b);

		lengths = length > UINT64_MAX - lengths ? UINT64_MAX : lengths + length;
	}
	skip(b, lengths);
}

/* CustomTransformData */
static void skip_transforms(struct bits *b, bool xyb)
{
	static const unsigned weights[] = {15, 55, 210};
	uint64_t mask;

	if (flag(b))
		return;
	if (xyb)
		skip(b, flag(b) ? 0 : UINT64_C(16) * (9 + 3 + 4)); /* floats of 16 bits */
	mask = bits(b, 3);
	for (size_t i = 0; i < sizeof weights / sizeof *weights; i++)
		if (mask >> i & 1)
			skip(b, UINT64_C(16) * weights[i]);
}

/* ImageMetadata, and what follows it. */
static void read_metadata(struct bits *b, struct jxl_header *h)
{
	static const uint8_t count[] = {0, 0, 4, 12}, add[] = {0, 1, 2, 1};
	bool more, xyb = true, profile = false;

	if (!flag(b)) {
		more = flag(b);
		if (more) {
			bits(b, 3); /* orientation: the decoder turns the image */
			if (flag(b))
				skip_size(b);
			if (flag(b)) { /* PreviewHeader, perhaps in eighths */
				if (flag(b))
					skip_sides(b, 0, 0, 5, 9);
				else
					skip_sides(b, 6, 8, 10, 12);
			}
			h->animated = flag(b);
			/* AnimationHeader: ticks per second as a fraction, the number of loops, and
			 * whether there are time codes. */
			if (h->animated) {
				skip_choice(b, 0, 0, 10, 30);
				skip_choice(b, 0, 0, 8, 10);
				skip_choice(b, 0, 3, 16, 32);
				skip(b, 1);
			}
		}
		skip_depth(b);
		flag(b);
		h->extra = (uint32_t)choose(b, count, add);
		if (h->extra)
			read_channel(b, h);
		if (h->extra > 1)
			return;
		xyb = flag(b);
		profile = read_colours(b);
		if (more && !flag(b)) /* ToneMapping */
			bits(b, 16 + 16 + 1 + 16);
		skip_extensions(b);
	}
	skip_transforms(b, xyb);
	if (profile)
		h->profile = read_number(b);
}

bool jxl_header_read(struct jxl_header *header, const uint8_t *file, size_t size)
{
	uint8_t begin[HEADER_MAX];
	size_t count = gather(begin, file, size);
	struct bits b = {begin, 8 * (uint64_t)count, 16};

	*header = (struct jxl_header){.long_one = false};
	if (!begins_codestream(begin, count))
		return false;
	skip_size(&b);
	read_metadata(&b, header);
	header->long_one = b.next > b.size && count == HEADER_MAX;
	return true;
}

/* Refuses channels other than grey, RGB and alpha: libvips would take any of them for alpha, and
 * CMYK for RGB, and it would not divide colours. */
static enum error check_channels(const struct jxl_header *h, struct problem *problem)
{
	if (!h->extra || (h->extra == 1 && h->type == ALPHA && !h->premultiplied))
		return ERR_OK;
	if (h->extra == 1 && h->type == ALPHA)
		return problem_set(problem, ERR_UNSUPPORTED_PIXELS,
		                   "the image's colours are multiplied by its alpha; expected "
		                   "colours as they are without it");
	if (h->extra > 1)
		return problem_set(problem, ERR_UNSUPPORTED_PIXELS,
		                   "the image has %u channels beside grey or RGB; alpha is "
		                   "supported, and no other",
		                   h->extra);
	return problem_set(problem, ERR_UNSUPPORTED_PIXELS,
	                   "the image has a channel %s; alpha is supported, and no other",
	                   h->type == BLACK  ? "of black ink (CMYK)"
	                   : h->type == SPOT ? "of a spot colour"
	                                     : "that is neither colour nor alpha");
}

/* Metadata that is compressed ------------------------------------------------------------------ */

bool jxl_has_packed(const uint8_t *file, size_t size)
{
	const uint8_t *at = file;
	struct box box;

	while (!begins_codestream(file, size) && next_box(&at, file + size, &box))
		if (box_is(&box, "brob"))
			return true;
	return false;
}

uint8_t *jxl_unpack(const uint8_t *file, size_t size, const char type[4], const uint8_t **box,
                    size_t *unpacked)
{
	const uint8_t *at = file;
	struct box next, found = {.type = NULL};
	unsigned count = 0;
	uint8_t *to;

	*unpacked = JXL_METADATA_MAX;
	/* One alone: libvips would join several. */
	while (!begins_codestream(file, size) && next_box(&at, file + size, &next)) {
		const bool packed =
		    box_is(&next, "brob") && next.size > 4 && !memcmp(next.at, type, 4);

		if (packed)
			found = next;
		count += packed || box_is(&next, type);
	}
	*box = found.type;
	to = found.type && count == 1 ? malloc(JXL_METADATA_MAX) : NULL;
	if (to && BrotliDecoderDecompress(found.size - 4, found.at + 4, unpacked, to) ==
	              BROTLI_DECODER_RESULT_SUCCESS)
		return to;
	free(to);
	*box = NULL;
	return NULL;
}

void jxl_hide_packed(uint8_t *file, size_t size)
{
	const uint8_t *at = file, *exif, *xmp;
	struct box box;
	size_t unpacked;

	free(jxl_unpack(file, size, "Exif", &exif, &unpacked));
	free(jxl_unpack(file, size, "xml ", &xmp, &unpacked));
	while (!begins_codestream(file, size) && next_box(&at, file + size, &box))
		if (box_is(&box, "brob") && box.type != exif && box.type != xmp)
			memcpy(file + (box.type - file), "skip", 4);
}

/* The reader and the writer -------------------------------------------------------------------- */

/* Compressed metadata would be expanded before its size is known: only known small ones stay. */
static enum error check(const struct body *body, struct problem *problem)
{
	const bool packed = jxl_has_packed(body->at, body->size);
	enum error e = packed ? body_make_writable(body, problem) : ERR_OK;
	struct jxl_header header;
	GObjectClass *class;

	if (!e && packed)
		jxl_hide_packed(body->at, body->size);
	if (e || !jxl_header_read(&header, body->at, body->size))
		return e;
	e = check_channels(&header, problem);
	if (e || !header.animated)
		return e;
	/* A loader without the option `page` does not know frames, and returns the last one. */
	class = g_type_class_ref(vips_type_find("VipsOperation", format_rows[FORMAT_JXL].loader));
	if (!g_object_class_find_property(class, "page"))
		e = problem_set(problem, ERR_UNSUPPORTED_PIXELS,
		                "the image is animated; of JPEG XL the installed libvips reads "
		                "still images only");
	g_type_class_unref(class);
	return e;
}

const struct reader jxl_reader = {.check = check};

/* With libvips's default effort an answer takes 5 to 9 times as long and is a third smaller. */
static int save(const struct output_format *output, VipsImage *image, VipsTarget *target)
{
	return vips_jxlsave_target(image, target, "effort", 3, "Q", (int)output->coding.quality,
	                           "lossless", output->coding.lossless != 0, NULL);
}

const struct writer jxl_writer = {.save = save};
