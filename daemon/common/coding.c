/* Coding: names and limits. */
#include "common/coding.h"

#include <stdio.h>
#include <string.h>

static const char *const compressions[COMPRESSIONS] = {
    [COMPRESSION_DEFAULT] = "default",
    [COMPRESSION_NONE] = "none",
    [COMPRESSION_LZW] = "lzw",
    [COMPRESSION_DEFLATE] = "deflate",
    [COMPRESSION_ZSTD] = "zstd",
    [COMPRESSION_LEVEL] = "0",
    "1",
    "2",
    "3",
    "4",
    "5",
    "6",
    "7",
    "8",
    "9",
};

bool coding_valid(const struct coding *c)
{
	return c->quality <= 100 && c->lossless <= 1 && c->compression < COMPRESSIONS &&
	       c->subsample < SUBSAMPLES && c->backgrounds <= 3 && c->backgrounds != 2 &&
	       c->background[0] <= 255 && c->background[1] <= 255 && c->background[2] <= 255;
}

enum compression compression_parse(const char *text)
{
	enum compression c = COMPRESSION_NONE;

	while (c < COMPRESSIONS && strcmp(text, compressions[c]))
		c++;
	return c;
}

const char *compression_name(enum compression compression)
{
	return compressions[compression];
}

enum subsample subsample_parse(const char *text)
{
	static const char *const names[SUBSAMPLES] = {
	    [SUBSAMPLE_AUTO] = "auto", [SUBSAMPLE_ON] = "on", [SUBSAMPLE_OFF] = "off"};
	enum subsample s = 0;

	while (s < SUBSAMPLES && strcmp(text, names[s]))
		s++;
	return s;
}

bool background_parse(const char *text, struct coding *c)
{
	uint32_t *value = c->background;
	char rest;

	if (strspn(text, "0123456789,") != strlen(text))
		return false;
	c->backgrounds = 3;
	if (sscanf(text, "%4u,%4u,%4u%c", &value[0], &value[1], &value[2], &rest) == 3)
		return coding_valid(c);
	c->backgrounds = 1;
	value[1] = value[2] = 0;
	return sscanf(text, "%4u%c", &value[0], &rest) == 1 && coding_valid(c);
}
