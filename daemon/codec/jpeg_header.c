/* Walks the marker segments up to the scan (T.81 B.2), then along the scan to its end. This is
 * strict on purpose: files where libjpeg would warn, guess or continue are left to libjpeg. */
#include "codec/jpeg_header.h"

#include <stdbool.h>
#include <string.h>

#include "codec/metadata/containers.h"

enum marker {
	SOF0 = 0xC0, /* baseline */
	SOF1 = 0xC1, /* extended sequential */
	SOF2 = 0xC2, /* progressive */
	DHT = 0xC4,
	SOF15 = 0xCF,
	RST0 = 0xD0,
	RST7 = 0xD7,
	SOI = 0xD8,
	EOI = 0xD9,
	SOS = 0xDA,
	DQT = 0xDB,
	DRI = 0xDD,
	APP0 = 0xE0,
	APP14 = 0xEE,
	APP15 = 0xEF,
	COM = 0xFE,
};

enum { TABLES = 4 };

/* The header as read so far. Tables are indexed by their number in the file, and zero if missing: a
 * scan without codes is not valid. */
struct header {
	struct jpeg_scan *scan; /* without components before the frame */
	uint16_t quantization[TABLES][JPEG_BLOCK];
	struct jpeg_huffman huffman[JPEG_CLASSES][TABLES];
	struct component {
		uint8_t id, h, v, quantization;
	} component[JPEG_COMPONENTS];
};

static enum jpeg_reason read_quantization(struct header *header, const uint8_t *at, size_t size)
{
	while (size) {
		unsigned wide = at[0] >> 4, number = at[0] & 15;
		size_t bytes = 1 + (wide + 1) * (size_t)JPEG_BLOCK;

		if (wide > 1 || number >= TABLES || size < bytes)
			return JPEG_REASON_TABLES;
		for (size_t i = 0; i < JPEG_BLOCK; i++)
			header->quantization[number][i] =
			    (uint16_t)bytes_number(at + 1 + i * (wide + 1), wide + 1, true);
		at += bytes;
		size -= bytes;
	}
	return JPEG_REASON_NONE;
}

static enum jpeg_reason read_huffman(struct header *header, const uint8_t *at, size_t size)
{
	while (size) {
		unsigned class = at[0] >> 4, number = at[0] & 15, count;
		struct jpeg_huffman *table;

		if (class >= JPEG_CLASSES || number >= TABLES || size < 1 + sizeof table->bits)
			return JPEG_REASON_TABLES;
		table = &header->huffman[class][number];
		*table = (struct jpeg_huffman){0};
		memcpy(table->bits, at + 1, sizeof table->bits);
		at += 1 + sizeof table->bits;
		size -= 1 + sizeof table->bits;
		count = jpeg_huffman_count(table);
		if (count > sizeof table->values || size < count)
			return JPEG_REASON_TABLES;
		memcpy(table->values, at, count);
		at += count;
		size -= count;
	}
	return JPEG_REASON_NONE;
}

static enum jpeg_reason read_frame(struct header *header, const uint8_t *at, size_t size)
{
	const struct component *c = header->component;
	struct jpeg_scan *scan = header->scan;

	if (scan->components || size < 6 || size != 6 + 3 * (size_t)at[5])
		return JPEG_REASON_HEADER;
	if (at[0] != 8)
		return JPEG_REASON_PRECISION;
	scan->height = (uint32_t)bytes_number(at + 1, 2, true);
	scan->width = (uint32_t)bytes_number(at + 3, 2, true);
	scan->components = at[5];
	if (scan->components != 1 && scan->components != JPEG_COMPONENTS)
		return JPEG_REASON_COLOURS;
	if (!scan->width || !scan->height)
		return JPEG_REASON_HEADER;
	at += 6;
	for (size_t i = 0; i < scan->components; i++, at += 3) {
		header->component[i] = (struct component){at[0], at[1] >> 4, at[1] & 15, at[2]};
		if (at[2] >= TABLES)
			return JPEG_REASON_HEADER;
	}
	if (scan->components == 1) {
		/* The blocks of a single component are ordered row by row, whatever its factors. */
		scan->h = scan->v = 1;
		return c[0].h >= 1 && c[0].h <= 4 && c[0].v >= 1 && c[0].v <= 4
		           ? JPEG_REASON_NONE
		           : JPEG_REASON_HEADER;
	}
	scan->h = c[0].h;
	scan->v = c[0].v;
	if (c[1].h != 1 || c[1].v != 1 || c[2].h != 1 || c[2].v != 1 || scan->h < 1 ||
	    scan->h > 2 || scan->v < 1 || scan->v > scan->h)
		return JPEG_REASON_SUBSAMPLING;
	if (c[0].id == c[1].id || c[0].id == c[2].id || c[1].id == c[2].id)
		return JPEG_REASON_HEADER;
	if (c[0].id == 'R' && c[1].id == 'G' && c[2].id == 'B')
		return JPEG_REASON_COLOURS;
	return JPEG_REASON_NONE;
}

/* The segment before the entropy-coded bytes. Tables now have their final contents. */
static enum jpeg_reason read_scan(struct header *header, const uint8_t *at, size_t size)
{
	struct jpeg_scan *scan = header->scan;
	uint8_t selected[JPEG_PLANES] = {0};

	if (!scan->components || size < 1 || size != 4 + 2 * (size_t)at[0])
		return JPEG_REASON_HEADER;
	if (at[0] != scan->components)
		return JPEG_REASON_SCANS;
	for (size_t i = 0; i < scan->components; i++) {
		uint8_t tables = at[2 + 2 * i], number = header->component[i].quantization;

		if (at[1 + 2 * i] != header->component[i].id || tables >> 4 >= TABLES ||
		    (tables & 15) >= TABLES)
			return JPEG_REASON_HEADER;
		if (!header->quantization[number][0])
			return JPEG_REASON_TABLES;
		memcpy(scan->quantization[i], header->quantization[number],
		       sizeof scan->quantization[i]);
		if (i == 2 && tables != selected[JPEG_CHROMA])
			return JPEG_REASON_TABLES;
		selected[i ? JPEG_CHROMA : JPEG_LUMA] = tables;
	}
	at += 1 + 2 * (size_t)scan->components;
	if (at[0] != 0 || at[1] != JPEG_BLOCK - 1 || at[2] != 0)
		return JPEG_REASON_HEADER;
	for (int plane = 0; plane < (scan->components == 1 ? 1 : JPEG_PLANES); plane++)
		for (int class = 0; class < JPEG_CLASSES; class ++) {
			unsigned number =
			    class == JPEG_DC ? selected[plane] >> 4 : selected[plane] & 15;

			scan->huffman[plane][class] = header->huffman[class][number];
		}
	return JPEG_REASON_NONE;
}

static enum jpeg_reason read_segment(struct header *header, const struct jpeg_segment *segment)
{
	const uint8_t *at = segment->data, marker = segment->marker;
	const size_t size = segment->size;

	switch (marker) {
	case DQT:
		return read_quantization(header, at, size);
	case DHT:
		return read_huffman(header, at, size);
	case DRI:
		if (size != 2)
			return JPEG_REASON_HEADER;
		header->scan->restart_interval = (uint32_t)bytes_number(at, 2, true);
		return JPEG_REASON_NONE;
	case SOF0:
	case SOF1:
		return read_frame(header, at, size);
	case APP14: /* Adobe's says how components are coded; 1: YCbCr */
		return size >= 12 && !memcmp(at, "Adobe", 5) && at[11] != 1 ? JPEG_REASON_COLOURS
		                                                            : JPEG_REASON_NONE;
	case SOS:
		return read_scan(header, at, size);
	case SOF2:
		return JPEG_REASON_PROGRESSIVE;
	default:
		if ((marker >= APP0 && marker <= APP15) || marker == COM)
			return JPEG_REASON_NONE;
		return marker > SOF2 && marker <= SOF15 ? JPEG_REASON_CODING : JPEG_REASON_HEADER;
	}
}

/* The entropy-coded bytes end at the first marker that is no RSTn; that must be EOI. */
static enum jpeg_reason measure_scan(struct jpeg_scan *scan, const uint8_t *file, size_t size)
{
	const uint8_t *start = file + scan->offset, *end = file + size, *at = start;

	while ((at = memchr(at, 0xFF, (size_t)(end - at)))) {
		if (end - at < 2)
			break;
		if (at[1] == EOI) {
			scan->size = (uint64_t)(at - start);
			return JPEG_REASON_NONE;
		}
		if (at[1] && (at[1] < RST0 || at[1] > RST7))
			return JPEG_REASON_SCANS;
		at += 2;
	}
	return JPEG_REASON_END;
}

enum jpeg_reason jpeg_header_read(const uint8_t *file, size_t size, struct jpeg_scan *scan)
{
	struct header header = {.scan = scan};
	const uint8_t *at = file, *end = file + size;
	struct jpeg_segment segment = {.marker = SOI};
	enum jpeg_reason odd = JPEG_REASON_NONE;

	*scan = (struct jpeg_scan){0};
	if (size < 4 || file[0] != 0xFF || file[1] != SOI)
		return JPEG_REASON_HEADER;
	at += 2;
	while (!odd && segment.marker != SOS) {
		const uint8_t *start = at;

		if (!jpeg_segment_next(&at, end, &segment) || segment.start != start || segment.cut)
			return JPEG_REASON_HEADER;
		odd = read_segment(&header, &segment);
	}
	scan->offset = (uint64_t)(at - file);
	if (!odd)
		odd = measure_scan(scan, file, size);
	return odd || jpeg_scan_valid(scan) ? odd : JPEG_REASON_TABLES;
}
