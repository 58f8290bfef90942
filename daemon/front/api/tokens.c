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
#include "front/config/textfile.h"

enum { DIGITS = 64, MOST_LENGTH = 1024 };

struct token {
	char name[FAIR_CLIENT_SIZE];
	char digest[DIGITS + 1]; /* in lower case; "": none yet */
	enum priority best;
	double share;
	bool presets_only;
};

struct set {
	struct token *token;
	unsigned count;
};

static struct set next, current;

static void set_clear(struct set *set)
{
	g_free(set->token);
	*set = (struct set){0};
}

/* Compares with every token, each in constant time. */
static const struct token *find(const struct set *set, const char *digest)
{
	const struct token *found = NULL;

	for (unsigned i = 0; i < set->count; i++) {
		volatile uint8_t differs = 0;

		for (int b = 0; b < DIGITS; b++)
			differs = (uint8_t)(differs | (set->token[i].digest[b] ^ digest[b]));
		if (!differs)
			found = &set->token[i];
	}
	return found;
}

/* Messages do not repeat values: one may be a token, by mistake. */
static bool see_entry(void *, const struct textfile_entry *entry)
{
	static const struct value_kind classes = {VALUE_WORD, .unit = "interactive|batch"};
	static const struct value_kind shares = {VALUE_NUMBER, 0.01, 100, NULL};
	static const struct value_kind switches = {VALUE_WORD, .unit = "no|yes"};
	struct token *t;
	char expected[160] = "64 hexadecimal digits, the SHA-256 of a token that no other section "
	                     "has (see convolved --hash-token)";
	double class = PRIORITY_INTERACTIVE, only = 0;
	char *digest;
	bool valid;

	if (!entry->key) {
		next.token = g_renew(struct token, next.token, next.count + 1);
		next.token[next.count] = (struct token){.share = 1};
		snprintf(next.token[next.count++].name, FAIR_CLIENT_SIZE, "%s", entry->section);
		valid = strlen(entry->section) < FAIR_CLIENT_SIZE &&
		        g_regex_match_simple("^[A-Za-z0-9._-]*$", entry->section, G_REGEX_RAW, 0);
		if (!valid)
			log_error("%s: [%s]: expected a name of up to %d letters, digits, dots, "
			          "dashes and underscores",
			          entry->where, entry->section, FAIR_CLIENT_SIZE - 1);
		return valid;
	}
	t = &next.token[next.count - 1];
	if (!strcmp(entry->key, "token-sha256")) {
		digest = g_ascii_strdown(entry->value, -1);
		valid = strlen(digest) == DIGITS && !digest[strspn(digest, "0123456789abcdef")] &&
		        !find(&next, digest);
		if (valid)
			memcpy(t->digest, digest, sizeof t->digest);
		g_free(digest);
	} else if (!strcmp(entry->key, "class")) {
		valid = value_read(&classes, entry->value, &class);
		t->best = (enum priority) class;
		value_describe(&classes, expected, sizeof expected);
	} else if (!strcmp(entry->key, "share")) {
		valid = value_read(&shares, entry->value, &t->share);
		value_describe(&shares, expected, sizeof expected);
	} else if (!strcmp(entry->key, "presets-only")) {
		valid = value_read(&switches, entry->value, &only);
		t->presets_only = only > 0;
		value_describe(&switches, expected, sizeof expected);
	} else {
		log_error("%s: unknown key %s; expected token-sha256, class, share or presets-only",
		          entry->where, entry->key);
		return false;
	}
	if (!valid)
		log_error("%s: %s of [%s]: expected %s", entry->where, entry->key, entry->section,
		          expected);
	return valid;
}

bool tokens_read(const struct config *c)
{
	char *path = textfile_secret(c->tokens, "tokens");
	bool valid, parsed;

	set_clear(&next);
	if (!path)
		return true;
	parsed = textfile_read_keys("tokens", path, true, see_entry, NULL);
	valid = parsed && next.count;
	if (parsed && !next.count)
		log_error("%s: no token in the file; each is a section, [NAME]", path);
	for (unsigned i = 0; parsed && i < next.count; i++) {
		if (*next.token[i].digest)
			continue;
		log_error("%s: [%s] has no valid token-sha256; convolved --hash-token prints one",
		          path, next.token[i].name);
		valid = false;
	}
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
	char *digest;

	if (!current.count)
		return ERR_OK;
	if (!authorization || strncasecmp(authorization, scheme, sizeof scheme - 1))
		return problem_set(problem, ERR_TOKEN_MISSING,
		                   "send the header `Authorization: Bearer TOKEN`; the operator "
		                   "of this service issues tokens");
	authorization += sizeof scheme - 1;
	authorization += strspn(authorization, " ");
	digest = g_compute_checksum_for_string(G_CHECKSUM_SHA256, authorization,
	                                       (gssize)strcspn(authorization, " \t"));
	t = find(&current, digest);
	g_free(digest);
	if (!t)
		return problem_set(
		    problem, ERR_TOKEN_UNKNOWN,
		    "the service does not know the token in the header Authorization");
	memcpy(terms->client, t->name, sizeof terms->client);
	terms->named = true;
	terms->best = t->best;
	terms->share = t->share;
	terms->presets_only = t->presets_only;
	return ERR_OK;
}

bool tokens_print_hash(void)
{
	static const char form[] = "^[A-Za-z0-9._~+/-]{20,}=*$"; /* RFC 6750, b64token */
	char text[MOST_LENGTH + 2] = "";
	char *digest;
	bool fit;

	if (isatty(STDIN_FILENO))
		fputs("Token: ", stderr);
	if (!fgets(text, sizeof text, stdin))
		*text = '\0';
	text[strcspn(text, "\r\n")] = '\0';
	fit = strlen(text) <= MOST_LENGTH && g_regex_match_simple(form, text, G_REGEX_RAW, 0);
	if (fit) {
		digest = g_compute_checksum_for_string(G_CHECKSUM_SHA256, text, -1);
		printf("token-sha256=%s\n", digest);
		g_free(digest);
	} else {
		log_error("--hash-token: expected a line of 20 to %d random letters, digits and "
		          "-._~+/ (openssl rand -hex 32 makes one)",
		          MOST_LENGTH);
	}
	explicit_bzero(text, sizeof text);
	return fit;
}
