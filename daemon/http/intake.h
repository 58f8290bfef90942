/* The layer below libmicrohttpd. That library's calls of recv(), sendfile() and GnuTLS come here,
 * so it sees no request that the grammar refuses. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/error.h"
#include "http/grammar.h"
#include "wire/network.h"

/* The state of a connection, which has its own deadline (see struct limits). */
enum intake_state {
	INTAKE_HANDSHAKE, /* the TLS handshake: header-timeout */
	INTAKE_IDLE,      /* no request: keepalive-timeout */
	INTAKE_HEAD,      /* a request line or headers are arriving: header-timeout */
	INTAKE_BODY,      /* body-timeout, body-rate */
	INTAKE_BUSY,      /* the request is complete, and the service has not finished with it */
	INTAKE_FAULTY,    /* to be refused once the requests before the fault are answered */
	INTAKE_HELD,      /* the last answer will be sent: drops what arrives, for 2 s */
	INTAKE_LAST,      /* it has been sent: the same */
};

struct intake_calls {
	/* Refuses the client: sends the refusal by intake_end(), now or within 2 s. */
	void (*refuse)(void *context, enum error error, const struct problem *problem);
	/* Called twice a second while the connection is open. */
	void (*look)(void *context);
	/* The handshake of TLS waits for the client, or (done) has ended. */
	void (*handshake)(void *context, bool done);
	/* A proxy has named its client. */
	void (*proxied)(void *context, const struct sockaddr_storage *source);
};

/* The incoming bytes of a connection; embedded in the struct of its owner. */
struct intake {
	int fd;
	bool tls;
	/* it may begin with a header of the PROXY protocol, which has not arrived yet */
	bool proxied;
	void *session; /* GnuTLS's, once its handshake is done */
	struct grammar grammar;
	enum intake_state state;
	uint64_t since;         /* loop_now() when the state, or its current measurement, began */
	uint64_t began;         /* loop_now() when the state began */
	uint64_t bytes;         /* that have arrived since `since` */
	uint64_t heard;         /* loop_now() of the last of them */
	uint64_t request;       /* requests that were complete when the state began */
	uint64_t answered;      /* requests that the library has done with */
	uint64_t sent;          /* bytes of files, and by TLS of all */
	enum error fault;       /* in INTAKE_FAULTY, and */
	struct problem problem; /* its problem */
	void *context;          /* for the calls */
};

extern struct limits limits; /* those in force */

enum error intakes_init(const struct intake_calls *calls) MUST_CHECK;

/* Makes room for a connection accepted here. False without memory: it must not be served. */
bool intake_expect(int fd, const struct http_socket *origin) MUST_CHECK;
const struct http_socket *intake_origin(int fd);

/* Begins a connection whose fd, tls, proxied and context are set. */
void intake_open(struct intake *intake);
void intake_close(struct intake *intake);

/* Records that the library has sent a request's answer. last: the connection ends with it. */
void intake_answered(struct intake *intake, bool last);

/* Starts the measurement of the body anew, because the service has not read for a while. */
void intake_excuse(struct intake *intake);

/* Returns the number of bytes that have arrived at a socket and have not been received. */
int intake_unread(int fd);

/* Returns the bytes of files that the client (by TCP its system) has accepted. */
uint64_t intake_read(const struct intake *intake);

/* Writes past the library, which must not be sending. Returns false if the socket did not accept
 * everything at once, as during a handshake. */
bool intake_send(const struct intake *intake, const char *data, size_t size);

/* Announces the last answer, which comes by intake_end() within two seconds. The end of the
 * client's data is hidden from the library, which would close the connection. */
void intake_hold(struct intake *intake);

/* Writes the last answer, as much as the socket accepts, and ends the connection when the client
 * has closed its side, or after two seconds: data that it still sends could destroy the answer. */
void intake_end(struct intake *intake, const char *data, size_t size);
