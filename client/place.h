/* Names of images: paths, objects of a store (s3://BUCKET/KEY), files of web servers (https://…).
 * Keys are taken as they are, as the AWS tools take them: % + ? and # in them mean themselves. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum place { PLACE_FILE, PLACE_OBJECT, PLACE_WEB, PLACE_UNKNOWN };

enum place place_kind(const char *name);

/* Returns the error in the name of an image to read; or NULL. */
const char *place_check(const char *name);

/* Tells whether a name, which is right as that of a directory, means all objects below a prefix. */
bool place_is_prefix(const char *name);

/* Checks a result's place, or a directory of results, in the same way: an object's key may then be
 * missing or end with a slash. */
const char *place_check_output(const char *name, bool directory);

/* The parts of the name of an object, which place_check() has passed. */
struct object {
	const char *bucket, *key;
	size_t bucket_size;
};

struct object place_object(const char *name);

/* Returns the name for messages and records: an address without user and password, without its
 * fragment, and without a query that may hold a signature, a token or the like. The caller frees
 * it. */
char *place_shown(const char *name);

/* Returns the path that a result keeps of its input's name: all of it, or the last part. It does
 * not lead out of a directory and has no empty parts; but for objects made from objects
 * (`to_object`) a key stays as it is. NULL if the name has no such path; else the caller frees
 * it. */
char *place_kept(const char *name, bool whole, bool to_object);
