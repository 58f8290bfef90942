/* Libraries' errors in our messages. Functions of libjpeg leave by a jump when they fail. */
#pragma once

#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>

#include <jpeglib.h>

#include "base/error.h"

/* Fills in the problem with libvips's error, "the JPEG decoder says: ...", as one sentence without
 * paths, and empties libvips's error buffer. Returns e; if the cause is another, ERR_DECODER_DIED
 * (the memory limit was reached) or ERR_IO. */
enum error vips_error_take(struct problem *problem, enum error e, const char *who);

struct jpeg_error {
	struct jpeg_error_mgr manager; /* the first member: libjpeg has its address */
	jmp_buf leave;
	char lines[2 * JMSG_LENGTH_MAX]; /* the first warning, and what ended the work */
};

/* Returns what libjpeg takes as its error manager. */
struct jpeg_error_mgr *jpeg_error_init(struct jpeg_error *error);

/* Calls step(context), which may call libjpeg. Returns false if libjpeg left it by a jump: then
 * nothing in it may be assumed to be finished, and its libjpeg object can only be destroyed. */
bool jpeg_error_catch(struct jpeg_error *error, void (*step)(void *context),
                      void *context) MUST_CHECK;

/* Describes the failure of a step likewise. */
enum error jpeg_error_take(const struct jpeg_error *error, struct problem *problem, enum error e,
                           const char *who) MUST_CHECK;
