/* A server that does nothing with requests but carry them: the most that a service on this machine
 * could carry to the same client.
 *
 * bare_sockets BYTES
 * Prints its port. Each connection has a thread, whose requests are all as long as the first. Their
 * bodies are received as a service may (128 KiB at a time, written to a memfd; into the mapping of
 * one is slower); so many BYTES of that are the answer (sendfile). */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench.h"

enum { PIECE = 128 << 10, WAITING = 4096 };

static uint64_t answer_size;

/* Looks at the first request until its headers are there. False if the connection ends before. */
static bool measure_request(int socket, char *buffer, size_t *head, size_t *body)
{
	const char *end = NULL, *length;

	while (!end) {
		ssize_t n = recv(socket, buffer, PIECE - 1, MSG_PEEK);

		if (n <= 0)
			return false;
		buffer[n] = '\0';
		end = strstr(buffer, "\r\n\r\n");
	}
	length = strcasestr(buffer, "\r\nContent-Length:");
	*head = (size_t)(end + 4 - buffer);
	*body = length ? strtoull(length + strlen("\r\nContent-Length:"), NULL, 10) : 0;
	return true;
}

static bool receive_exactly(int socket, void *data, size_t size)
{
	return recv(socket, data, size, MSG_WAITALL) == (ssize_t)size;
}

static bool receive_written(int socket, int file, size_t size, char *buffer)
{
	while (size) {
		ssize_t n = recv(socket, buffer, size < PIECE ? size : PIECE, 0);

		if (n <= 0 || write(file, buffer, (size_t)n) != n)
			return false;
		size -= (size_t)n;
	}
	return true;
}

static bool send_answer(int socket, int file)
{
	char head[64];
	int size = snprintf(head, sizeof head, "HTTP/1.1 200 OK\r\nContent-Length: %ju\r\n\r\n",
	                    (uintmax_t)answer_size);
	off_t at = 0;

	if (send(socket, head, (size_t)size, MSG_NOSIGNAL | MSG_MORE) != size)
		return false;
	while ((uint64_t)at < answer_size)
		if (sendfile(socket, file, &at, answer_size - (uint64_t)at) <= 0)
			return false;
	return true;
}

static void *serve(void *data)
{
	const int socket = (int)(intptr_t)data;
	char *buffer = must_have(malloc(PIECE));
	size_t head = 0, body = 0;
	bool open = measure_request(socket, buffer, &head, &body);

	while (open && receive_exactly(socket, buffer, head)) {
		int file = memfd_create("body", MFD_CLOEXEC);

		if (file < 0 || ftruncate(file, (off_t)(body > answer_size ? body : answer_size)))
			die("no memfd: %s", strerror(errno));
		open = receive_written(socket, file, body, buffer) && send_answer(socket, file);
		close(file);
	}
	close(socket);
	free(buffer);
	return NULL;
}

int main(int argc, char **argv)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
	                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof address;
	const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

	if (argc != 2)
		die("expected the size of an answer");
	answer_size = strtoull(argv[1], NULL, 10);
	signal(SIGPIPE, SIG_IGN);
	if (listener < 0 || bind(listener, (struct sockaddr *)&address, size) ||
	    listen(listener, WAITING) || getsockname(listener, (struct sockaddr *)&address, &size))
		die("cannot listen: %s", strerror(errno));
	printf("%u\n", ntohs(address.sin_port));
	fflush(stdout);
	for (;;) {
		const int socket = accept(listener, NULL, NULL);
		pthread_t thread;

		if (socket < 0)
			die("cannot accept: %s", strerror(errno));
		setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
		if (pthread_create(&thread, NULL, serve, (void *)(intptr_t)socket))
			die("no thread");
		pthread_detach(thread);
	}
}
