/* Tokens: reads their file, and finds the client of a token. */
#include "front/api/tokens.h"

#include <glib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/log.h"
#include "base/value.h"
#include "front/config/keyfile.h"
#include "front/config/textfile.h"

enum { DIGEST = 32, LEAST_LENGTH = 20, MOST_LENGTH = 1024 };

struct token {
	char name[FAIR_CLIENT_SIZE];
	uint8_t digest[DIGEST];
	bool hashed; /* there is a digest */
	enum priority best;
	double share;
};

struct set {
	struct token *token;
	unsigned count;
};

static struct set next, current;

static void set_clear(struct set *set)
{
	free(set->token);
	*set = (struct set){0};
}

static void digest_of(const char *text, size_t length, uint8_t digest[DIGEST])
{
	GChecksum *sum = g_checksum_new(G_CHECKSUM_SHA256);
	gsize size = DIGEST;

	g_checksum_update(sum, (const guchar *)text, (gssize)length);
	g_checksum_get_digest(sum, digest, &size);
	g_checksum_free(sum);
}

/* Compares with every token, each in constant time. */
static const struct token *find(const struct set *set, const uint8_t digest[DIGEST])
{
	const struct token *found = NULL;

	for (unsigned i = 0; i < set->count; i++) {
		volatile uint8_t differs = 0;

		for (int b = 0; b < DIGEST; b++)
			differs = (uint8_t)(differs | (set->token[i].digest[b] ^ digest[b]));
		if (!differs)
			found = &set->token[i];
	}
	return found;
}

static bool parse_digest(struct token *t, const char *text)
{
	t->hashed = strlen(text) == (size_t)2 * DIGEST;
	for (int i = 0; i < DIGEST && t->hashed; i++) {
		int high = g_ascii_xdigit_value(text[2 * i]);
		int low = g_ascii_xdigit_value(text[2 * i + 1]);

		t->hashed = high >= 0 && low >= 0;
		t->digest[i] = (uint8_t)(high << 4 | low);
	}
	return t->hashed && !find(&(struct set){next.token, next.count - 1}, t->digest);
}

static bool add_token(const struct keyfile_entry *entry)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	                              "0123456789._-";
	const char *name = entry->section;
	struct token *longer = realloc(next.token, (next.count + 1) * sizeof *longer);

	if (!longer) {
		log_error("%s: no memory", entry->where);
		return false;
	}
	next.token = longer;
	longer[next.count] = (struct token){.share = 1};
	snprintf(longer[next.count++].name, FAIR_CLIENT_SIZE, "%s", name);
	if (strlen(name) < FAIR_CLIENT_SIZE && !name[strspn(name, letters)])
		return true;
	log_error(
	    "%s: [%s]: expected a name of up to %d letters, digits, dots, dashes and underscores",
	    entry->where, name, FAIR_CLIENT_SIZE - 1);
	return false;
}

/* Messages do not repeat values: one may be a token, by mistake. */
static bool see_entry(void *context, const struct keyfile_entry *entry)
{
	static const struct value_kind classes = {VALUE_WORD, .unit = "interactive|batch"};
	static const struct value_kind shares = {VALUE_NUMBER, 0.01, 100, NULL};
	struct token *t;
	char expected[160] = "64 hexadecimal digits, the SHA-256 of a token that no other section "
	                     "has (see convolved --hash-token)";
	double class;
	bool valid;

	(void)context;
	if (!entry->key)
		return add_token(entry);
	t = &next.token[next.count - 1];
	if (!strcmp(entry->key, "token-sha256")) {
		valid = parse_digest(t, entry->value);
	} else if (!strcmp(entry->key, "class")) {
		valid = value_read(&classes, entry->value, &class);
		t->best = (enum priority) class;
		value_describe(&classes, expected, sizeof expected);
	} else if (!strcmp(entry->key, "share")) {
		valid = value_read(&shares, entry->value, &t->share);
		value_describe(&shares, expected, sizeof expected);
	} else {
		log_error("%s: unknown key %s; expected token-sha256, class or share", entry->where,
		          entry->key);
		return false;
	}
	if (!valid)
		log_error("%s: %s of [%s]: expected %s", entry->where, entry->key, entry->section,
		          expected);
	return valid;
}

static bool complete(const char *path)
{
	bool valid = true;

	if (!next.count)
		log_error("%s: no token in the file; each is a section, [NAME]", path);
	for (unsigned i = 0; i < next.count; i++) {
		if (next.token[i].hashed)
			continue;
		log_error("%s: [%s] has no valid token-sha256; convolved --hash-token prints one",
		          path, next.token[i].name);
		valid = false;
	}
	return valid && next.count;
}

bool tokens_read(const struct config *config)
{
	char *path = secret_path(config->tokens, "tokens"), *text;
	bool valid;
	size_t size = 0;

	set_clear(&next);
	if (!path)
		return true;
	text = textfile_read("tokens", path, true, &size);
	valid = text && keyfile_read(path, text, see_entry, NULL);
	if (text)
		valid &= complete(path);
	textfile_free(text, size);
	free(path);
	if (!valid)
		set_clear(&next);
	return valid;
}

bool tokens_wanted(void)
{
	return next.count;
}

void tokens_commit(void)
{
	set_clear(&current);
	current = next;
	next = (struct set){0};
	if (current.count)
		log_info("%u tokens", current.count);
}

void tokens_fini(void)
{
	set_clear(&current);
	set_clear(&next);
}

enum error tokens_admit(const char *authorization, struct job_terms *terms, struct problem *problem)
{
	static const char scheme[] = "Bearer ";
	const struct token *t;
	uint8_t digest[DIGEST];

	if (!current.count)
		return ERR_OK;
	if (!authorization || strncasecmp(authorization, scheme, sizeof scheme - 1))
		return problem_set(problem, ERR_TOKEN_MISSING,
		                   "send the header `Authorization: Bearer TOKEN`; the operator "
		                   "of this service issues tokens");
	authorization += sizeof scheme - 1;
	authorization += strspn(authorization, " ");
	digest_of(authorization, strcspn(authorization, " \t"), digest);
	t = find(&current, digest);
	if (!t)
		return problem_set(
		    problem, ERR_TOKEN_UNKNOWN,
		    "the service does not know the token in the header Authorization");
	memcpy(terms->client, t->name, sizeof terms->client);
	terms->named = true;
	terms->best = t->best;
	terms->share = t->share;
	return ERR_OK;
}

bool tokens_print_hash(void)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	                              "0123456789-._~+/";
	char text[MOST_LENGTH + 2] = "";
	uint8_t digest[DIGEST];
	size_t length;
	bool fit;

	if (isatty(STDIN_FILENO))
		fputs("Token: ", stderr);
	if (!fgets(text, sizeof text, stdin))
		*text = '\0';
	text[strcspn(text, "\r\n")] = '\0';
	length = strspn(text, letters); /* RFC 6750, b64token */
	fit = strlen(text) <= MOST_LENGTH && length >= LEAST_LENGTH &&
	      !text[length + strspn(text + length, "=")];
	if (fit) {
		digest_of(text, strlen(text), digest);
		printf("token-sha256=");
		for (int i = 0; i < DIGEST; i++)
			printf("%02x", digest[i]);
		puts("");
	} else {
		log_error("--hash-token: expected a line of %d to %d random letters, digits and "
		          "-._~+/ (openssl rand -hex 32 makes one)",
		          LEAST_LENGTH, MOST_LENGTH);
	}
	explicit_bzero(text, sizeof text);
	return fit;
}
