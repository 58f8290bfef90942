/* Datagrams of any size and type, with any number of descriptors, as messages between processes and
 * as messages of the link: each is received whole, or refused; and no descriptor stays open. */
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "descriptors.h"
#include "fuzz.h"
#include "link/answer.h"
#include "link/link.h"
#include "watches.h"
#include "wire/wire.h"

static const struct {
	uint32_t flags;
	size_t data;
} link_types[LINK_TYPES] = {
#define LINK(symbol, flags, data) {flags, data},
#include "link/link.def"
};

static const size_t sizes[MESSAGES] = {
#define MESSAGE(symbol, member, fds)                                                               \
	offsetof(struct message, member) + sizeof(struct message_##member),
#include "wire/messages.def"
};

/* The loop, for the link ----------------------------------------------------------------------- */

uint64_t loop_now(void)
{
	return 0;
}

/* Datagrams ------------------------------------------------------------------------------------ */

static int ours, theirs;
static uint8_t datagram[LINK_DATA_MAX + 4096];
static size_t sent;
static unsigned fds_sent;

/* The next free number: the same as before, if all is closed. */
static int next_fd(void)
{
	const int fd = fcntl(0, F_DUPFD, 0);

	close(fd);
	return fd;
}

/* Makes and sends a datagram from at most so many bytes of the input: of the right size, or one
 * that is off; with data of the input at its beginning and behind the type's head. Returns the
 * bytes that it took. */
static size_t send_one(const uint8_t *input, size_t left, bool link)
{
	enum { FIXED = 4, MOST = 60 };
	const uint32_t type = input[0] % ((link ? LINK_TYPES : MESSAGES) + 1);
	const unsigned how = input[1];
	const size_t some = left - FIXED < MOST ? left - FIXED : MOST;
	const unsigned known = link ? 1 : type < MESSAGES ? message_fds(type) : 0;

	sent = input[2] | (size_t)input[3] << 8;
	if (!link && type < MESSAGES && how & 1)
		sent = sizes[type] + (how & 2 ? how / 64 - 1u : 0);
	else if (link && type < LINK_TYPES && how & 1)
		sent = offsetof(struct link_message, data) +
		       (how & 2 ? link_types[type].data + how / 64 - 1u : sent % 100);
	sent = sent < sizeof datagram ? sent : sizeof datagram;
	memset(datagram, 0, sent);
	memcpy(datagram + 8, input + FIXED, some < sent ? some : sent);
	memcpy(datagram, &type, sizeof type);
	if (link) {
		const uint32_t flags = how & 4 ? input[2] : 0;

		memcpy(datagram + 4, &flags, sizeof flags);
	}
	fds_sent = how & 8 ? how >> 4 : known && (!link || how & 16) ? known : 0;
	if (fds_sent ? send_with_descriptors(theirs, datagram, sent, fds_sent) < 0
	             : send(theirs, datagram, sent, MSG_NOSIGNAL) < 0)
		sent = SIZE_MAX;
	return FIXED + some;
}

static void receive_one(void)
{
	static struct message message;
	static const uint8_t zeros[sizeof message];
	int fds[MESSAGE_FDS_MAX];
	const enum wire_result result = wire_receive(ours, &message, fds);

	must((sent == SIZE_MAX) == (result == WIRE_NOTHING));
	must((sent == 0 && !fds_sent) == (result == WIRE_CLOSED));
	if (result != WIRE_MESSAGE)
		return;
	must(message.type < MESSAGES && sent == sizes[message.type] &&
	     fds_sent == message_fds(message.type));
	must(!memcmp(&message, datagram, sent) &&
	     !memcmp((uint8_t *)&message + sent, zeros, sizeof message - sent));
	for (unsigned i = 0; i < fds_sent; i++) {
		must(fcntl(fds[i], F_GETFD) & FD_CLOEXEC);
		close(fds[i]);
	}
	if (message.type == MSG_READY)
		wire_text(message.ready.name, sizeof message.ready.name);
}

static bool broken, heard;

static void receive_message(void *context, struct link_message *m)
{
	(void)context;
	must(m->type < LINK_TYPES && !(m->flags & ~link_types[m->type].flags) &&
	     m->fd >= 0 == fds_sent);
	must(fds_sent == (m->flags & LINK_HAS_FILE) && m->data_size <= link_types[m->type].data);
	must(!((const char *)m->data)[m->data_size]);
	must(m->data_size + offsetof(struct link_message, data) == sent);
	if (m->fd >= 0 && m->data_size % 2) { /* it is the owner's */
		close(m->fd);
		m->fd = -1;
	}
	heard = true;
}

static void note_broken(void *context, const char *why)
{
	(void)context;
	must(!broken && (why || !sent));
	broken = true;
}

/* Messages of which each is on its way alone. */
int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	static const struct link_owner owner = {receive_message, note_broken};
	const int before = next_fd();
	struct link link;
	int pair[2];

	must(!link_pair(pair));
	ours = pair[0];
	theirs = pair[1];
	broken = false;
	if (size && input[0] & 1) {
		must(!link_open(&link, ours, &owner, NULL));
		for (input++, size--; size >= 4 && !broken;) {
			const size_t taken = send_one(input, size, true);

			heard = false;
			link.readable.callback(&link);
			must(heard + broken == (sent != SIZE_MAX));
			input += taken;
			size -= taken;
		}
		link_close(&link);
	} else {
		while (size >= 5) {
			const size_t taken = send_one(input + 1, size - 1, false);

			receive_one();
			input += taken;
			size -= taken;
		}
		close(ours);
	}
	close(theirs);
	must(next_fd() == before);
	return 0;
}
