/* Test images: made, encoded and decoded with libvips, apart from the worker. */
#pragma once

#include <vips/vips.h>

#include "peer.h"

/* A picture of random pixels (f32: in 0 to 1), smooth enough for lossy formats. */
void picture_make(struct picture *picture, uint32_t width, uint32_t height, uint32_t bands,
                  enum pixel_type type, bool alpha);
void picture_fini(struct picture *picture);

/* Returns a libvips image that copies the picture; with metadata if the caller sets some. */
VipsImage *picture_to_vips(const struct picture *picture);

/* Encodes by libvips's suffix with options, ".jpg[Q=90]". Exits on failure. */
struct file file_save(VipsImage *image, const char *suffix);
struct file file_of_picture(const struct picture *picture, const char *suffix);
/* The same of a new picture of bytes, without alpha. */
struct file file_make(uint32_t width, uint32_t height, uint32_t bands, const char *suffix);
void file_fini(struct file *file);

/* Returns an ICC profile of libvips's. Exits on failure. */
struct file file_of_profile(const char *name);

/* Decodes a file, upright. Exits on failure. */
void picture_load(struct picture *picture, const void *bytes, size_t size);
