#include "codec/metadata/containers.h"

bool bytes_begin(const uint8_t *at, size_t size, const char *text)
{
	return size >= strlen(text) && !memcmp(at, text, strlen(text));
}

const uint8_t *bytes_text_end(const uint8_t *at, const uint8_t *end)
{
	const uint8_t *zero = at ? memchr(at, 0, (size_t)(end - at)) : NULL;

	return zero ? zero + 1 : NULL;
}

bool next_box(const uint8_t **at, const uint8_t *end, struct box *box)
{
	size_t room = (size_t)(end - *at), head = 8;
	uint64_t size;

	if (room < 8)
		return false;
	size = bytes_number(*at, 4, true);
	if (size == 1 && room >= 16) {
		head = 16;
		size = bytes_number(*at + 8, 8, true);
	}
	box->cut = size > room;
	if (!size || box->cut)
		size = room;
	if (size < head)
		return false;
	box->type = *at + 4;
	box->at = *at + head;
	box->size = (size_t)size - head;
	*at += size;
	return true;
}

bool box_is(const struct box *box, const char *type)
{
	return !memcmp(box->type, type, 4);
}

const uint8_t png_signature[PNG_SIGNATURE] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};

bool png_chunk_next(const uint8_t **at, const uint8_t *end, struct png_chunk *c)
{
	uint64_t room = (uint64_t)(end - *at), size;

	if (room < PNG_CHUNK_HEAD)
		return false;
	size = bytes_number(*at, 4, true);
	c->name = *at + 4;
	c->data = *at + PNG_CHUNK_HEAD;
	c->cut = size + PNG_CHUNK_FRAME > room;
	c->size = (uint32_t)(size + PNG_CHUNK_HEAD > room ? room - PNG_CHUNK_HEAD : size);
	*at += c->cut ? room : size + PNG_CHUNK_FRAME;
	return true;
}

bool png_chunk_is(const struct png_chunk *c, const char *name)
{
	return !memcmp(c->name, name, 4);
}

bool jpeg_segment_next(const uint8_t **at, const uint8_t *end, struct jpeg_segment *s)
{
	enum { TEM = 1, RST0 = 0xD0, SOI = 0xD8, EOI };
	const uint8_t *p = *at;

	while ((p = memchr(p, 0xFF, (size_t)(end - p)))) {
		uint64_t length;

		while (p < end && *p == 0xFF)
			p++;
		if (p == end || *p == EOI)
			return false;
		s->start = p - 1;
		s->marker = *p++;
		if (s->marker <= TEM || (s->marker >= RST0 && s->marker <= SOI))
			continue;
		if (end - p < 2)
			return false;
		length = bytes_number(p, 2, true);
		s->cut = length < 2 || length > (uint64_t)(end - p);
		*at = s->cut ? end : p + length;
		s->data = p + 2;
		s->size = (size_t)(*at - s->data);
		return true;
	}
	return false;
}

bool tiff_open(struct tiff_file *t, const uint8_t *at, size_t size, uint64_t *first)
{
	bool big_endian = size && *at == 'M';
	bool big = size >= 16 && bytes_number(at + 2, 2, big_endian) == 43;

	if (size < 8 || (memcmp(at, "II", 2) && memcmp(at, "MM", 2)))
		return false;
	*t = (struct tiff_file){at, size, big_endian, big ? 8 : 4};
	*first = bytes_number(at + t->number, t->number, big_endian);
	return true;
}

bool tiff_directory_open(struct tiff_directory *d, const struct tiff_file *t, uint64_t offset)
{
	const size_t head = t->number == 8 ? 8 : 2;

	if (offset > t->size || t->size - offset < head)
		return false;
	*d = (struct tiff_directory){.tiff = t, .at = t->at + offset + head};
	d->left = bytes_number(d->at - head, head, t->big_endian);
	return true;
}

bool tiff_entry_next(struct tiff_directory *d, struct tiff_entry *e)
{
	const struct tiff_file *t = d->tiff;
	const size_t size = 4 + 2 * t->number;

	if (!d->left || (size_t)(t->at + t->size - d->at) < size)
		return false;
	e->tag = bytes_number(d->at, 2, t->big_endian);
	e->type = bytes_number(d->at + 2, 2, t->big_endian);
	e->count = bytes_number(d->at + 4, t->number, t->big_endian);
	e->field = d->at + 4 + t->number;
	e->value = bytes_number(e->field, t->number, t->big_endian);
	d->at += size;
	d->left--;
	return true;
}

uint64_t tiff_directory_end(const struct tiff_directory *d)
{
	const struct tiff_file *t = d->tiff;

	return d->left || (size_t)(t->at + t->size - d->at) < t->number
	           ? 0
	           : bytes_number(d->at, t->number, t->big_endian);
}
