/* Fetched keys. No message has a part of what was fetched. */
#include "client/keys.h"

#include <ctype.h>
#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/interrupt.h"
#include "client/report.h"
#include "client/server.h"
#include "client/smprint.h"

enum { ANSWER_MAX = 64 << 10, PROCESS_SECONDS = 60, ENDPOINT_SECONDS = 5, ATTEMPTS = 3 };

struct answer {
	char text[ANSWER_MAX];
	size_t size;
};

/* Reads a time such as 2026-11-28T07:30:00Z, with a fraction or another zone; 0 if it is none. */
static time_t time_of(const char *text)
{
	struct tm parts = {0};
	const char *rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &parts);

	if (rest && *rest == '.')
		rest += 1 + strspn(rest + 1, "0123456789");
	if (rest && strcmp(rest, "Z") != 0) {
		/* Sets tm_gmtoff, which timegm() ignores. */
		rest = strptime(rest, "%z", &parts);
		return rest && !*rest ? timegm(&parts) - parts.tm_gmtoff : 0;
	}
	return rest ? timegm(&parts) : 0;
}

/* Reads the JSON of both sources, which name the token differently. */
static char *read_answer(const struct answer *answer, const char *token, struct keys *keys)
{
	json_t *object = json_loadb(answer->text, answer->size, 0, NULL);
	const char *access = json_string_value(json_object_get(object, "AccessKeyId"));
	const char *secret = json_string_value(json_object_get(object, "SecretAccessKey"));
	const char *temporary = json_string_value(json_object_get(object, token));
	const char *expires = json_string_value(json_object_get(object, "Expiration"));
	char *wrong = NULL;

	*keys = (struct keys){.expires = expires ? time_of(expires) : 0};
	if (!access || !secret)
		wrong = smprint("expected JSON with AccessKeyId, SecretAccessKey and, for "
		                "temporary keys, %s and Expiration",
		                token);
	else if (expires && !keys->expires)
		wrong = smprint("Expiration: expected a time such as 2026-01-31T12:00:00Z");
	else if (!(keys->access = strdup(access)) || !(keys->secret = strdup(secret)) ||
	         (temporary && !(keys->token = strdup(temporary))))
		abort();
	json_decref(object);
	return wrong;
}

/* Programs
 * ---------------------------------------------------------------------------------------- */

/* Splits the command in place, as a shell would without its expansions. Returns the words, or NULL
 * if a quote has no end. */
static char **split(char *text)
{
	char **words = calloc(strlen(text) + 2, sizeof *words), *to = text;
	size_t count = 0;
	char quote = '\0';

	if (!words)
		abort();
	while (*(text += strspn(text, " \t\n"))) {
		words[count++] = to;
		for (; *text && (quote || !isspace((unsigned char)*text)); text++) {
			if (*text == quote)
				quote = '\0';
			else if (!quote && (*text == '"' || *text == '\''))
				quote = *text;
			else if (*text == '\\' && quote != '\'' && text[1])
				*to++ = *++text;
			else
				*to++ = *text;
		}
		text += *text != '\0'; /* the end of the word may take its place */
		*to++ = '\0';
	}
	if (!quote)
		return words;
	free(words);
	return NULL;
}

/* Reads until the end; false after a signal, in time, or if it is too much. */
static bool read_all(int fd, struct answer *answer, double until)
{
	for (;;) {
		struct pollfd waits[] = {{.fd = fd, .events = POLLIN},
		                         {.fd = interrupt_fd(), .events = POLLIN}};
		int left = (int)((until - report_now()) * 1000);
		ssize_t got;

		if (left <= 0 || poll(waits, 2, left) <= 0 || interrupt_number())
			return false;
		got = read(fd, answer->text + answer->size, sizeof answer->text - answer->size);
		if (!got)
			return true;
		answer->size += got > 0 ? (size_t)got : 0;
		if (answer->size == sizeof answer->text)
			return false;
	}
}

/* Waits for the end of the process, as long as it has time; else ends it. Returns its status, or
 * -1. */
static int await_end(pid_t child, bool in_time, double until)
{
	struct pollfd waits[] = {{.fd = pidfd_open(child, 0), .events = POLLIN},
	                         {.fd = interrupt_fd(), .events = POLLIN}};
	double left = until - report_now();
	int status = 0;

	in_time = in_time && left > 0 && poll(waits, 2, (int)(left * 1000)) > 0 && waits[0].revents;
	if (waits[0].fd >= 0)
		close(waits[0].fd);
	if (!in_time)
		kill(child, SIGKILL);
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	return in_time ? status : -1;
}

static int start(char **words, int output, pid_t *child)
{
	static char *const none[] = {NULL};
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t ignored;
	int error;

	/* The client ignores these. */
	sigemptyset(&ignored);
	sigaddset(&ignored, SIGPIPE);
	sigaddset(&ignored, SIGXFSZ);
	if (posix_spawn_file_actions_init(&actions) || posix_spawnattr_init(&attributes) ||
	    posix_spawnattr_setsigdefault(&attributes, &ignored) ||
	    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF))
		abort();
	if (posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0) ||
	    posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO))
		abort();
	error =
	    posix_spawnp(child, words[0], &actions, &attributes, words, environ ? environ : none);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attributes);
	return error;
}

static char *run(char **words, struct answer *answer)
{
	double until = report_now() + PROCESS_SECONDS;
	int ends[2], error, status;
	bool read;
	pid_t child;

	if (pipe2(ends, O_CLOEXEC))
		return smprint("%s", strerror(errno));
	error = start(words, ends[1], &child);
	close(ends[1]);
	read = !error && read_all(ends[0], answer, until);
	close(ends[0]);
	if (error)
		return smprint("%s: %s", words[0], strerror(error));
	status = await_end(child, read, until);
	if (status < 0)
		return smprint("%s: no answer of at most 64 KiB within %d s", words[0],
		               PROCESS_SECONDS);
	if (WIFEXITED(status) && !WEXITSTATUS(status))
		return NULL;
	return smprint("%s: it ended with %s %d", words[0], WIFEXITED(status) ? "status" : "signal",
	               WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
}

char *keys_from_process(const char *command, struct keys *keys)
{
	struct answer answer = {.size = 0};
	char *copy = strdup(command), **words, *wrong;

	if (!copy)
		abort();
	words = split(copy);
	if (!words || !words[0])
		wrong = smprint("expected a command, with quotes in pairs");
	else if (!(wrong = run(words, &answer)))
		wrong = read_answer(&answer, "SessionToken", keys);
	free(words);
	free(copy);
	return wrong;
}

/* Containers
 * -------------------------------------------------------------------------------------- */

static size_t keep(char *data, size_t size, size_t count, void *context)
{
	struct answer *answer = context;

	size *= count;
	if (size > sizeof answer->text - answer->size)
		return 0;
	memcpy(answer->text + answer->size, data, size);
	answer->size += size;
	return size;
}

/* Tells whether keys may travel from this address: nobody else hears them. */
static bool is_safe(const char *address)
{
	/* Addresses of containers and pods on AWS */
	static const char *const local[] = {"169.254.170.2", "169.254.170.23", "[fd00:ec2::23]"};
	CURLU *url = curl_url();
	char *scheme = NULL, *host = NULL;
	bool safe = false;

	if (!url)
		abort();
	if (!curl_url_set(url, CURLUPART_URL, address, 0) &&
	    !curl_url_get(url, CURLUPART_SCHEME, &scheme, 0) &&
	    !curl_url_get(url, CURLUPART_HOST, &host, 0))
		safe = !strcmp(scheme, "https") ||
		       (!strcmp(scheme, "http") && server_is_loopback(host));
	for (size_t i = 0; host && scheme && i < sizeof local / sizeof *local; i++)
		safe |= !strcmp(scheme, "http") && !strcmp(host, local[i]);
	curl_free(scheme);
	curl_free(host);
	curl_url_cleanup(url);
	return safe;
}

/* Sends the request. Returns what went wrong in libcurl, or 0 and HTTP's status. */
static CURLcode get(CURL *easy, const char *address, struct curl_slist *heads,
                    struct answer *answer, long *status)
{
	CURLcode code;

	answer->size = 0;
	server_prepare_any(easy);
	curl_easy_setopt(easy, CURLOPT_URL, address);
	curl_easy_setopt(easy, CURLOPT_PROXY, ""); /* a proxy is not for this host */
	curl_easy_setopt(easy, CURLOPT_HTTPHEADER, heads);
	curl_easy_setopt(easy, CURLOPT_TIMEOUT, (long)ENDPOINT_SECONDS);
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, keep);
	curl_easy_setopt(easy, CURLOPT_WRITEDATA, answer);
	code = curl_easy_perform(easy);
	curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, status);
	return code;
}

char *keys_from_endpoint(const char *address, const char *authorization, struct keys *keys)
{
	struct answer answer = {.size = 0};
	char *head = NULL, *wrong = NULL;
	struct curl_slist *heads = NULL;
	CURLcode code = CURLE_OK;
	long status = 0;
	CURL *easy;

	if (!is_safe(address))
		return smprint("expected https://, or http:// of this host or of a link-local "
		               "address of AWS (169.254.170.2)");
	if (authorization) {
		head = smprint("Authorization: %s", authorization);
		if (!(heads = curl_slist_append(NULL, head)))
			abort();
	}
	for (unsigned i = 0; i < ATTEMPTS && !interrupt_number(); i++) {
		if (!(easy = curl_easy_init()))
			abort();
		code = get(easy, address, heads, &answer, &status);
		curl_easy_cleanup(easy);
		if (!code && status < 500)
			break;
	}
	if (code)
		wrong = smprint("%s", curl_easy_strerror(code));
	else if (status != 200)
		wrong = smprint("status %ld", status);
	else
		wrong = read_answer(&answer, "Token", keys);
	curl_slist_free_all(heads);
	free(head);
	return wrong;
}
