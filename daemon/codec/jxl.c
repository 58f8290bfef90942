/* The headers are bits, least significant first, of which most stand for defaults: each bundle of
 * fields that has only these is a single bit (ISO/IEC 18181-1, annexes B to E). Bundles are read
 * here as the decoder does, up to the size of the coded profile, which follows them. */
#include "codec/jxl.h"

#include <stdlib.h>
#include <string.h>

#include <brotli/decode.h>
#include <vips/vips.h>

#include "codec/boxes.h"
#include "codec/icc_profile.h"
#include "codec/row.h"

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
		size_t head = memcmp(box.type, "jxlp", 4) ? 0 : 4, part;

		if ((!head && memcmp(box.type, "jxlc", 4)) || box.size <= head)
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

/* One of four: so many bits, to which a number is added. */
struct choice {
	struct {
		unsigned bits;
		uint32_t add;
	} of[4];
};

static uint64_t choose(struct bits *b, const struct choice *choice)
{
	size_t i = bits(b, 2);

	return bits(b, choice->of[i].bits) + choice->of[i].add;
}

static uint64_t read_enum(struct bits *b)
{
	static const struct choice choice = {{{0, 0}, {0, 1}, {4, 2}, {6, 18}}};

	return choose(b, &choice);
}

/* U64() */
static uint64_t read_number(struct bits *b)
{
	uint64_t value;

	switch (bits(b, 2)) {
	case 0:
		return 0;
	case 1:
		return 1 + bits(b, 4);
	case 2:
		return 17 + bits(b, 8);
	default:
		break;
	}
	value = bits(b, 12);
	for (unsigned shift = 12; shift < 64 && flag(b); shift += 8)
		value |= bits(b, shift < 60 ? 8 : 4) << shift;
	return value;
}

/* Bundles, by their names in the standard -------------------------------------------------------
 */

/* SizeHeader */
static void skip_size(struct bits *b)
{
	static const struct choice side = {{{9, 1}, {13, 1}, {18, 1}, {30, 1}}};
	bool small = flag(b);

	for (int sides = 2; sides; sides--) {
		if (small)
			bits(b, 5);
		else
			choose(b, &side);
		if (sides == 2 && bits(b, 3)) /* the other one by a ratio */
			return;
	}
}

/* PreviewHeader */
static void skip_preview(struct bits *b)
{
	static const struct choice eighths = {{{0, 16}, {0, 32}, {5, 1}, {9, 33}}};
	static const struct choice side = {{{6, 1}, {8, 65}, {10, 321}, {12, 1345}}};
	const struct choice *choice = flag(b) ? &eighths : &side;

	choose(b, choice);
	if (!bits(b, 3))
		choose(b, choice);
}

/* AnimationHeader */
static void skip_animation(struct bits *b)
{
	static const struct choice numerator = {{{0, 100}, {0, 1000}, {10, 1}, {30, 1}}};
	static const struct choice denominator = {{{0, 1}, {0, 1001}, {8, 1}, {10, 1}}};
	static const struct choice loops = {{{0, 0}, {3, 0}, {16, 0}, {32, 0}}};

	choose(b, &numerator);
	choose(b, &denominator);
	choose(b, &loops);
	flag(b);
}

/* BitDepth */
static void skip_depth(struct bits *b)
{
	static const struct choice choice = {{{0, 0}, {0, 0}, {0, 0}, {6, 0}}};
	bool floats = flag(b);

	choose(b, &choice);
	if (floats)
		bits(b, 4);
}

enum { ALPHA = 0, SPOT = 2, BLACK = 4, FILTER_ARRAY = 5 };

/* ExtraChannelInfo */
static void read_channel(struct bits *b, struct jxl_header *h)
{
	static const struct choice shift = {{{0, 0}, {0, 3}, {0, 4}, {3, 1}}};
	static const struct choice length = {{{0, 0}, {4, 0}, {5, 16}, {10, 48}}};
	static const struct choice array = {{{0, 1}, {2, 0}, {4, 3}, {8, 19}}};

	h->type = ALPHA;
	if (flag(b))
		return;
	h->type = (uint32_t)read_enum(b);
	skip_depth(b);
	choose(b, &shift);
	skip(b, 8 * choose(b, &length));
	if (h->type == ALPHA)
		h->premultiplied = flag(b);
	else if (h->type == SPOT)
		skip(b, UINT64_C(4) * 16);
	else if (h->type == FILTER_ARRAY)
		choose(b, &array);
}

/* Customxy */
static void skip_points(struct bits *b, int points)
{
	static const struct choice number = {{{19, 0}, {19, 0}, {20, 0}, {21, 0}}};

	for (int i = 0; i < 2 * points; i++)
		choose(b, &number);
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
	if (space != XYB && read_enum(b) == CUSTOM)
		skip_points(b, 1);
	if (space != XYB && space != GREY && read_enum(b) == CUSTOM)
		skip_points(b, 3);
	if (space != XYB) {
		if (flag(b))
			bits(b, 24);
		else
			read_enum(b);
	}
	read_enum(b);
	return false;
}

/* Extensions: the lengths of all come before the first. */
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
	static const struct choice channels = {{{0, 0}, {0, 1}, {4, 2}, {12, 1}}};
	bool more, xyb = true, profile = false;

	if (!flag(b)) {
		more = flag(b);
		if (more) {
			bits(b, 3); /* orientation: the decoder turns the image */
			if (flag(b))
				skip_size(b);
			if (flag(b))
				skip_preview(b);
			h->animated = flag(b);
			if (h->animated)
				skip_animation(b);
		}
		skip_depth(b);
		flag(b);
		h->extra = (uint32_t)choose(b, &channels);
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

/* Refuses channels beside grey, RGB and alpha: libvips would take any for alpha, and CMYK for RGB;
 * and it would not divide colours. */
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

/* Metadata that is compressed -------------------------------------------------------------------
 */

static bool next_packed(const uint8_t **at, const uint8_t *end, struct box *box)
{
	while (next_box(at, end, box))
		if (!memcmp(box->type, "brob", 4))
			return true;
	return false;
}

bool jxl_has_packed(const uint8_t *file, size_t size)
{
	const uint8_t *at = file;
	struct box box;

	return !begins_codestream(file, size) && next_packed(&at, file + size, &box);
}

/* Finds the box that has metadata of this type, if there is one alone (libvips would join several),
 * and that is packed. */
static bool find_packed(const uint8_t *file, size_t size, const char type[4], struct box *found)
{
	const uint8_t *at = file;
	unsigned count = 0;
	bool any = false;
	struct box box;

	while (!begins_codestream(file, size) && next_box(&at, file + size, &box)) {
		const bool packed =
		    !memcmp(box.type, "brob", 4) && box.size > 4 && !memcmp(box.at, type, 4);

		if (packed)
			*found = box;
		any |= packed;
		count += packed || !memcmp(box.type, type, 4);
	}
	return any && count == 1;
}

uint8_t *jxl_unpack(const uint8_t *file, size_t size, const char type[4], const uint8_t **box,
                    size_t *unpacked)
{
	struct box found = {0};
	uint8_t *to;

	*box = NULL;
	*unpacked = JXL_METADATA_MAX;
	if (!find_packed(file, size, type, &found))
		return NULL;
	to = malloc(JXL_METADATA_MAX);
	*box = found.type;
	if (to && BrotliDecoderDecompress(found.size - 4, found.at + 4, unpacked, to) ==
	              BROTLI_DECODER_RESULT_SUCCESS)
		return to;
	free(to);
	return NULL;
}

/* The type field of the box that may stay, or NULL. */
static const uint8_t *kept_box(const uint8_t *file, size_t size, const char type[4])
{
	const uint8_t *box;
	size_t unpacked;
	uint8_t *metadata = jxl_unpack(file, size, type, &box, &unpacked);

	free(metadata);
	return metadata ? box : NULL;
}

void jxl_hide_packed(uint8_t *file, size_t size)
{
	const uint8_t *exif = kept_box(file, size, "Exif"), *xmp = kept_box(file, size, "xml ");
	const uint8_t *at = file;
	struct box box;

	if (begins_codestream(file, size))
		return;
	while (next_packed(&at, file + size, &box))
		if (box.type != exif && box.type != xmp)
			memcpy(file + (box.type - file), "skip", 4);
}

/* The reader and the writer -------------------------------------------------------------------- */

/* True if libvips's loader can be asked for a page. One that does not know of frames gives the
 * last. */
static bool loads_pages(void)
{
	GObjectClass *class =
	    g_type_class_ref(vips_type_find("VipsOperation", format_row(FORMAT_JXL)->loader));
	bool loads = g_object_class_find_property(class, "page");

	g_type_class_unref(class);
	return loads;
}

/* Metadata that is compressed would be expanded before anyone knew how much it is: only what is
 * known to be little stays. */
static enum error check(const struct body *body, struct problem *problem)
{
	const bool packed = jxl_has_packed(body->at, body->size);
	enum error e = packed ? body_make_writable(body, problem) : ERR_OK;
	struct jxl_header header;

	if (!e && packed)
		jxl_hide_packed(body->at, body->size);
	if (e || !jxl_header_read(&header, body->at, body->size))
		return e;
	e = check_channels(&header, problem);
	if (!e && header.animated && !loads_pages())
		e = problem_set(problem, ERR_UNSUPPORTED_PIXELS,
		                "the image is animated; of JPEG XL the installed libvips reads "
		                "still images only");
	return e;
}

const struct reader jxl_reader = {.check = check};

/* At the effort of libvips's default an answer takes five to nine times as long, and is a third
 * smaller. Newer encoders refuse a profile that is not of the image's colours. */
static int save(const struct output_format *output, VipsImage *image, VipsTarget *target)
{
	const void *profile;
	size_t size;

	if (vips_image_get_typeof(image, VIPS_META_ICC_NAME) &&
	    !vips_image_get_blob(image, VIPS_META_ICC_NAME, &profile, &size) &&
	    !icc_profile_is_of(profile, size, image->Bands > 2))
		vips_image_remove(image, VIPS_META_ICC_NAME);
	return vips_jxlsave_target(image, target, "effort", 3, "Q", (int)output->coding.quality,
	                           "lossless", output->coding.lossless != 0, NULL);
}

const struct writer jxl_writer = {.save = save};
