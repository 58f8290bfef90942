/* Requests a second over persistent connections, from a service or from bare sockets.
 *
 * bench_http [-c CONNECTIONS] [-s SECONDS] [-b BODY] [--tls] HOST:PORT TARGET
 * bench_http [-c CONNECTIONS] [-s SECONDS] [-b BODY] [--answer BYTES] --bare write|mapping
 *
 * Each connection has a thread, which sends its next request once it has read the whole answer;
 * with a body, POST, else GET. The bare sockets are another process that knows how long a request
 * is, receives a body as a service may (128 KiB at a time, written to a memfd, or into the mapping
 * of one) and sends as many bytes back from it (sendfile): the most that a service on this machine
 * could carry to this client. --answer: that many bytes instead. Certificates are not verified.
 *
 * Prints one line of JSON: requests and bytes a second in both directions, milliseconds of an
 * answer, and how many cores the client and the bare sockets used. An answer other than 200 ends it
 * with an error. */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <gnutls/gnutls.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CONNECTIONS_MAX = 4096, PIECE = 128 << 10, HEAD_MAX = 16 << 10, TIMES_MAX = 1 << 20 };
enum receiving { BY_NONE, BY_WRITE, BY_MAPPING };

/* A request, and for the bare sockets the length of its answer. */
static struct {
	const char *host; /* NULL: the bare sockets */
	const char *target, *body_file;
	unsigned connections, seconds;
	bool tls;
	enum receiving bare;
	uint64_t answer;
} options = {.connections = 8, .seconds = 3, .answer = UINT64_MAX};

static struct sockaddr_in address;
static char head[HEAD_MAX];
static size_t head_size, body_size;
static uint8_t *body;

struct connection {
	pthread_t thread;
	int socket;
	gnutls_session_t session; /* with TLS */
	char *buffer;
	uint32_t count; /* answers */
	float *ms;      /* one time an answer, up to TIMES_MAX */
	uint64_t received;
};

static gnutls_certificate_credentials_t credentials;
static double deadline;

__attribute__((noreturn, format(printf, 1, 2))) static void die(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	fputs("bench_http: ", stderr);
	vfprintf(stderr, format, arguments);
	fputc('\n', stderr);
	_exit(1);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double processor_seconds(const struct rusage *usage)
{
	return (double)(usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) +
	       (double)(usage->ru_utime.tv_usec + usage->ru_stime.tv_usec) * 1e-6;
}

/* The client
 * --------------------------------------------------------------------------------------- */

static void connect_to(struct connection *c)
{
	const int on = 1;

	c->socket = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (c->socket < 0 || connect(c->socket, (struct sockaddr *)&address, sizeof address))
		die("cannot connect: %s", strerror(errno));
	setsockopt(c->socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	if (!options.tls)
		return;
	if (gnutls_init(&c->session, GNUTLS_CLIENT) || gnutls_set_default_priority(c->session) ||
	    gnutls_credentials_set(c->session, GNUTLS_CRD_CERTIFICATE, credentials))
		die("cannot set up TLS");
	gnutls_transport_set_int(c->session, c->socket);
	if (gnutls_handshake(c->session))
		die("the TLS handshake fails");
}

static void send_all(struct connection *c, const void *data, size_t size)
{
	const char *at = data;

	while (size) {
		ssize_t n = options.tls ? gnutls_record_send(c->session, at, size)
		                        : send(c->socket, at, size, MSG_NOSIGNAL);

		if (n <= 0)
			die("a request cannot be sent");
		at += n;
		size -= (size_t)n;
	}
}

static size_t receive(struct connection *c, void *data, size_t size)
{
	ssize_t n = options.tls ? gnutls_record_recv(c->session, data, size)
	                        : recv(c->socket, data, size, 0);

	if (n <= 0)
		die("an answer ends before its end");
	return (size_t)n;
}

/* Returns the length of an answer's body, from its head. */
static uint64_t announced(const char *answer)
{
	const char *length = strcasestr(answer, "\r\nContent-Length:");

	if (strncmp(answer, "HTTP/1.1 200 ", 13) != 0)
		die("not 200: %.*s", (int)strcspn(answer, "\r\n"), answer);
	if (!length)
		die("an answer without Content-Length");
	return strtoull(length + strlen("\r\nContent-Length:"), NULL, 10);
}

static void read_answer(struct connection *c)
{
	size_t have = 0;
	const char *end = NULL;
	uint64_t left;

	while (!end) {
		if (have == HEAD_MAX - 1)
			die("an answer's head is too long");
		have += receive(c, c->buffer + have, HEAD_MAX - 1 - have);
		c->buffer[have] = '\0';
		end = strstr(c->buffer, "\r\n\r\n");
	}
	left = announced(c->buffer);
	c->received += (uint64_t)(end + 4 - c->buffer) + left;
	for (left -= have - (size_t)(end + 4 - c->buffer); left;)
		left -= receive(c, c->buffer, left < PIECE ? left : PIECE);
}

static void *ask(void *data)
{
	struct connection *c = data;

	while (now() < deadline) {
		const double begun = now();

		send_all(c, head, head_size);
		send_all(c, body, body_size);
		read_answer(c);
		if (c->count < TIMES_MAX)
			c->ms[c->count] = (float)((now() - begun) * 1e3);
		c->count++;
	}
	return NULL;
}

/* The bare sockets
 * --------------------------------------------------------------------------------- */

static bool receive_exactly(int socket, void *data, size_t size)
{
	return recv(socket, data, size, MSG_WAITALL) == (ssize_t)size;
}

static bool receive_body(int socket, int file, char *buffer)
{
	void *mapping;
	bool received = true;

	if (options.bare == BY_MAPPING && body_size) {
		mapping = mmap(NULL, body_size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
		if (mapping == MAP_FAILED)
			die("no mapping");
		received = receive_exactly(socket, mapping, body_size);
		munmap(mapping, body_size);
		return received;
	}
	for (size_t left = body_size; left && received;) {
		ssize_t n = recv(socket, buffer, left < PIECE ? left : PIECE, 0);

		received = n > 0 && write(file, buffer, (size_t)n) == n;
		left -= received ? (size_t)n : 0;
	}
	return received;
}

static bool send_answer(int socket, int file)
{
	char text[64];
	int size = snprintf(text, sizeof text, "HTTP/1.1 200 OK\r\nContent-Length: %ju\r\n\r\n",
	                    (uintmax_t)options.answer);
	off_t at = 0;

	if (send(socket, text, (size_t)size, MSG_NOSIGNAL | (options.answer ? MSG_MORE : 0)) !=
	    size)
		return false;
	while ((uint64_t)at < options.answer)
		if (sendfile(socket, file, &at, options.answer - (uint64_t)at) <= 0)
			return false;
	return true;
}

static void *serve(void *data)
{
	const int socket = *(int *)data;
	const uint64_t size = body_size > options.answer ? body_size : options.answer;
	char *buffer = malloc(PIECE);
	bool open = buffer != NULL;

	while (open && receive_exactly(socket, buffer, head_size)) {
		int file = memfd_create("body", MFD_CLOEXEC);

		if (file < 0 || ftruncate(file, (off_t)size))
			die("no memfd");
		open = receive_body(socket, file, buffer) && send_answer(socket, file);
		close(file);
	}
	free(buffer);
	return NULL;
}

/* Starts the process; `address` is its own then. */
static pid_t start_bare(void)
{
	static int sockets[CONNECTIONS_MAX];
	static pthread_t threads[CONNECTIONS_MAX];
	const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
	socklen_t size = sizeof address;
	pid_t pid;

	address =
	    (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	if (listener < 0 || bind(listener, (struct sockaddr *)&address, size) ||
	    listen(listener, CONNECTIONS_MAX) ||
	    getsockname(listener, (struct sockaddr *)&address, &size))
		die("cannot listen: %s", strerror(errno));
	pid = fork();
	if (pid < 0)
		die("cannot fork: %s", strerror(errno));
	if (pid) {
		close(listener);
		return pid;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (unsigned i = 0; i < options.connections; i++) {
		sockets[i] = accept(listener, NULL, NULL);
		if (sockets[i] < 0)
			die("cannot accept: %s", strerror(errno));
		setsockopt(sockets[i], IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
		if (pthread_create(&threads[i], NULL, serve, &sockets[i]))
			die("no thread");
	}
	for (unsigned i = 0; i < options.connections; i++)
		pthread_join(threads[i], NULL);
	_exit(0);
}

/* Both
 * --------------------------------------------------------------------------------------------- */

static int ascending(const void *a, const void *b)
{
	const float x = *(const float *)a, y = *(const float *)b;

	return (x > y) - (x < y);
}

static void report(const struct connection *connections, double seconds, double client,
                   double server)
{
	uint64_t count = 0, received = 0;
	size_t kept = 0;
	float *ms;

	for (unsigned i = 0; i < options.connections; i++) {
		count += connections[i].count;
		received += connections[i].received;
		kept += connections[i].count < TIMES_MAX ? connections[i].count : TIMES_MAX;
	}
	ms = malloc((kept ? kept : 1) * sizeof *ms);
	if (!ms || !kept)
		die("no answer in time");
	kept = 0;
	for (unsigned i = 0; i < options.connections; i++)
		for (uint32_t k = 0; k < connections[i].count && k < TIMES_MAX; k++)
			ms[kept++] = connections[i].ms[k];
	qsort(ms, kept, sizeof *ms, ascending);
	printf("{\"requests\": %ju, \"per_second\": %.1f, \"sent_per_second\": %.0f, "
	       "\"received_per_second\": %.0f, \"p50_ms\": %.3f, \"p99_ms\": %.3f, "
	       "\"client_cores\": %.3f",
	       (uintmax_t)count, (double)count / seconds,
	       (double)count * (double)(head_size + body_size) / seconds,
	       (double)received / seconds, (double)ms[kept / 2], (double)ms[kept * 99 / 100],
	       client / seconds);
	if (options.bare)
		printf(", \"server_cores\": %.3f", server / seconds);
	puts("}");
	free(ms);
}

static void open_connection(struct connection *c)
{
	connect_to(c);
	c->buffer = malloc(PIECE > HEAD_MAX ? PIECE : HEAD_MAX);
	c->ms =
	    malloc(TIMES_MAX * sizeof *c->ms); /* its pages are touched only as they are needed */
	if (!c->buffer || !c->ms)
		die("no memory");
}

static void close_connection(struct connection *c)
{
	if (c->session)
		gnutls_deinit(c->session);
	close(c->socket);
	free(c->buffer);
	free(c->ms);
}

static void measure(void)
{
	static struct connection connections[CONNECTIONS_MAX];
	struct rusage before, after, server = {0};
	const pid_t bare = options.bare ? start_bare() : 0;
	double begun, took;

	if (options.tls && (gnutls_certificate_allocate_credentials(&credentials)))
		die("no TLS");
	for (unsigned i = 0; i < options.connections; i++)
		open_connection(&connections[i]);
	getrusage(RUSAGE_SELF, &before);
	begun = now();
	deadline = begun + options.seconds;
	for (unsigned i = 0; i < options.connections; i++)
		if (pthread_create(&connections[i].thread, NULL, ask, &connections[i]))
			die("no thread");
	for (unsigned i = 0; i < options.connections; i++)
		pthread_join(connections[i].thread, NULL);
	took = now() - begun;
	getrusage(RUSAGE_SELF, &after);
	for (unsigned i = 0; i < options.connections; i++)
		shutdown(connections[i].socket, SHUT_RDWR);
	if (bare && wait4(bare, NULL, 0, &server) != bare)
		die("cannot wait for the bare sockets");
	report(connections, took, processor_seconds(&after) - processor_seconds(&before),
	       processor_seconds(&server));
	for (unsigned i = 0; i < options.connections; i++)
		close_connection(&connections[i]);
}

static void read_body(void)
{
	FILE *file = fopen(options.body_file, "rb");
	struct stat status;

	if (!file || fstat(fileno(file), &status))
		die("%s: %s", options.body_file, strerror(errno));
	body_size = (size_t)status.st_size;
	body = malloc(body_size ? body_size : 1);
	if (!body || fread(body, 1, body_size, file) != body_size)
		die("%s cannot be read", options.body_file);
	fclose(file);
}

static void parse_address(const char *text)
{
	char host[64];
	const char *colon = strrchr(text, ':');

	address = (struct sockaddr_in){.sin_family = AF_INET};
	if (colon && (size_t)(colon - text) < sizeof host) {
		memcpy(host, text, (size_t)(colon - text));
		host[colon - text] = '\0';
		address.sin_port = htons((uint16_t)strtoul(colon + 1, NULL, 10));
	}
	if (!address.sin_port || inet_pton(AF_INET, host, &address.sin_addr) != 1)
		die("%s: expected an IPv4 address and a port, as 127.0.0.1:8700", text);
}

static unsigned number(const char *name, const char *text, unsigned max)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	if (*end || !value || value > max)
		die("%s %s: expected 1 to %u", name, text, max);
	return (unsigned)value;
}

static void parse_option(int c)
{
	switch (c) {
	case 'c':
		options.connections = number("-c", optarg, CONNECTIONS_MAX);
		break;
	case 's':
		options.seconds = number("-s", optarg, 3600);
		break;
	case 'b':
		options.body_file = optarg;
		break;
	case 't':
		options.tls = true;
		break;
	case 'a':
		options.answer = number("--answer", optarg, UINT32_MAX);
		break;
	case 'r':
		options.bare = !strcmp(optarg, "write")     ? BY_WRITE
		               : !strcmp(optarg, "mapping") ? BY_MAPPING
		                                            : BY_NONE;
		if (!options.bare)
			die("--bare %s: expected write or mapping", optarg);
		break;
	default:
		exit(2);
	}
}

int main(int argc, char **argv)
{
	static const struct option long_options[] = {{"tls", no_argument, NULL, 't'},
	                                             {"answer", required_argument, NULL, 'a'},
	                                             {"bare", required_argument, NULL, 'r'},
	                                             {0}};
	int c, size;

	while ((c = getopt_long(argc, argv, "c:s:b:", long_options, NULL)) != -1)
		parse_option(c);
	if (argc - optind != (options.bare ? 0 : 2) || (options.bare && options.tls))
		die("expected HOST:PORT TARGET, or --bare write|mapping alone and without --tls");
	signal(SIGPIPE, SIG_IGN);
	if (options.body_file)
		read_body();
	if (options.answer == UINT64_MAX)
		options.answer = body_size;
	options.host = options.bare ? "bare" : argv[optind];
	options.target = options.bare ? "/" : argv[optind + 1];
	if (!options.bare)
		parse_address(options.host);
	size =
	    snprintf(head, sizeof head, "%s %s HTTP/1.1\r\nHost: %s\r\nContent-Length: %zu\r\n\r\n",
	             body ? "POST" : "GET", options.target, options.host, body_size);
	if (size < 0 || (size_t)size >= sizeof head)
		die("a target that is too long");
	head_size = (size_t)size;
	measure();
	free(body);
	return 0;
}
