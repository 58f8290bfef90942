/* An HTTP worker that has been taken over: it does what CONVOLVED_HOSTILE says, a word a process.
 * The tests put it in the place of convolved-http. One at a time is hostile, whoever has the lock
 * of the file CONVOLVED_LOCK, as long as there are words; the others are honest, and accept all
 * connections. */
#include "hostile.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>

#include "base/memfd.h"
#include "link/link.h"
#include "process/start.h"

/* A message; or another act: the wait for a message whose type is `size`, with these flags; the
 * same for an answer, whose status is told; or to write `size` bytes of a body into its room. */
enum { AWAIT = LINK_TYPES + 100, TELL, FILL };
enum { STEPS_MAX = 7 }; /* with the end */

struct step {
	uint32_t type, flags;
	uint64_t number, size, guest;
	const char *data;
	size_t data_size;
	enum {
		NO_FILE,
		SEALED,
		UNSEALED,
		SMALLER,
		NO_MEMFD
	} file; /* that it comes with, of `size` bytes */
};

#define DATA(text)    .data = (text), .data_size = sizeof(text)
#define TEXT(text)    .data = (text), .data_size = sizeof(text) - 1
#define EIGHT(text)   text text text text text text text text
#define RAW           "\2/v1/filters/box\0\4size\0\0053\0\4raw\0\00510x10x1:u8\0\4format\0\5raw"
#define GUEST         LINK_GUEST, .number = 1
#define HEAD(n, text) LINK_HEAD, .number = (n), .guest = 1, DATA(text)
#define GET(n)        HEAD(n, "\1GET\0\2/livez")
#define POST          HEAD(2, "\1POST\0" RAW), .size = 100
#define FORM          HEAD(2, "\1POST\0\2/v1/filters/box"), .size = 1000, .flags = LINK_IS_FORM
#define WHOLE(n)      HEAD(n, "\1POST\0" RAW), .flags = LINK_IS_COMPLETE | LINK_HAS_FILE
#define SAY(what)     LINK_##what, .number = 2
#define UNTIL(what)   AWAIT, .size = LINK_##what

/* The beginnings of modes, each ended by zeros. */
static const struct step guest[] = {{GUEST}, {0}}, asked[] = {{GUEST}, {POST}, {0}};
static const struct step room_for_body[] = {
    {GUEST}, {POST}, {UNTIL(ROOM), .flags = LINK_HAS_FILE}, {0}};
static const struct step room_for_form[] = {
    {GUEST}, {FORM}, {UNTIL(ROOM), .flags = LINK_HAS_FILE}, {0}};
/* A job that takes seconds, when there is a device. */
static const struct step slow_job[] = {
    {GUEST},
    {WHOLE(2), .size = 100, .file = SEALED},
    {UNTIL(ANSWER), .flags = LINK_HAS_FILE},
    {HEAD(3, "\1POST\0\2/v1/filters/bilateral\0\4radius\0\00516\0\4variant\0\5general\0"
             "\4raw\0\0051000x1000x1:u8"),
     .flags = LINK_IS_COMPLETE | LINK_HAS_FILE, .size = 1000000, .file = SEALED},
    {0}};

static const struct problem no_problem;

/* The error is the last step, or the step after it is never reached. */
static const struct mode {
	const char *name;
	const struct step *before;
	struct step step[STEPS_MAX];
} modes[] = {
    {"guest-unknown", NULL, {{LINK_GUEST_END, .number = 7}}},
    {"guest-name", NULL, {{GUEST, TEXT("123456789012345678901234567890123456789012345678")}}},
    {"guest-ended", guest, {{LINK_GUEST_END, .number = 1}, {LINK_GUEST_END, .number = 1}}},
    {"guest-busy", asked, {{LINK_GUEST_END, .number = 1}}},
    {"head-alone", NULL, {{GET(2)}}},
    {"head-number",
     asked,
     {{LINK_GUEST, .number = 3}, {LINK_HEAD, .number = 2, .guest = 3, DATA("\1GET\0\2/livez")}}},
    {"head-second", asked, {{GET(3)}}},
    {"head-empty", guest, {{LINK_HEAD, .number = 2, .guest = 1}}},
    {"head-cut", guest, {{LINK_HEAD, .number = 2, .guest = 1, TEXT("\1GET\0\2/livez")}}},
    {"head-path", guest, {{HEAD(2, "\1GET")}}},
    {"head-complete", guest, {{GET(2), .size = 1, .flags = LINK_IS_COMPLETE}}},
    {"whole-alone", guest, {{WHOLE(2), .size = 100}}},
    {"whole-empty", guest, {{WHOLE(2), .size = 0, .file = SEALED}}},
    {"whole-large", guest, {{WHOLE(2), .size = 2 << 20, .file = SEALED}}},
    {"whole-finish", guest, {{WHOLE(2), .size = 100, .file = SEALED}, {SAY(FINISH), .size = 100}}},
    {"lend-twice", room_for_body, {{SAY(LEND), .size = 200}}},
    {"lend-nothing", room_for_body, {{SAY(LEND), .size = 0}}},
    {"finish-more", room_for_body, {{SAY(FINISH), .size = 101}}},
    {"finish-twice", room_for_body, {{SAY(FINISH)}, {SAY(FINISH)}}},
    {"form-of-none", room_for_body, {{SAY(FORM), DATA("\4size\0\0053")}}},
    {"form-cut", room_for_form, {{SAY(FORM), TEXT("\4size\0\0053")}, {SAY(FINISH)}}},
    {"form-unnamed", room_for_form, {{SAY(FORM), DATA("\0053")}, {SAY(FINISH)}}},
    {"form-path", room_for_form, {{SAY(FORM), DATA("\2/livez")}, {SAY(FINISH)}}},
    {"form-many",
     room_for_form,
     {{SAY(FORM), DATA(EIGHT(EIGHT("\4n\0\5\0")) "\4n\0\5")}, {SAY(FINISH)}}},
    {"form-mask", room_for_form, {{SAY(FORM), DATA("\006101")}, {SAY(FINISH), .size = 100}}},
    {"head-mask", guest, {{HEAD(2, "\1POST\0\0069\0" RAW), .size = 100}}},
    {"form-late", room_for_form, {{SAY(FINISH)}, {SAY(FORM), DATA("\4n\0\5")}}},
    {"next-none", guest, {{GET(2)}, {UNTIL(ANSWER)}, {SAY(NEXT)}}},
    {"read-early", asked, {{SAY(READ), .size = 1}}},
    {"fail-not", asked, {{SAY(FAIL), .size = 0}}},
    {"fail-what", asked, {{SAY(FAIL), .size = ERR_COUNT}}},
    {"refusal", NULL, {{SAY(FAIL), .size = UINT64_MAX}}},
    {"request-unknown", NULL, {{SAY(END)}}},
    {"fronts-word", asked, {{SAY(CUT)}}},
    {"fronts-answer", asked, {{SAY(ANSWER), TEXT("200")}}},
    {"flags", NULL, {{LINK_PONG, .flags = LINK_IS_PROXY}}},
    {"data", NULL, {{LINK_PONG, TEXT("x")}}},
    {"type", NULL, {{.type = LINK_TYPES}}},
    /* A body that is not there, that can be changed, or that is changed later. */
    {"lies", room_for_body, {{FILL, .size = 99}, {SAY(FINISH), .size = 100}, {.type = TELL}}},
    {"maps", room_for_body, {{FILL, .size = 100}, {SAY(FINISH), .size = 100}, {.type = TELL}}},
    {"later", room_for_body, {{FILL, .size = 100}, {SAY(FINISH), .size = 100}, {.type = TELL}}},
    {"lies-whole",
     guest,
     {{WHOLE(2), .size = 100, .file = SMALLER},
      {.type = TELL},
      {WHOLE(3), .size = 100, .file = UNSEALED},
      {.type = TELL},
      {WHOLE(4), .size = 100, .file = NO_MEMFD},
      {.type = TELL}}},
    {"reads",
     guest,
     {{WHOLE(2), .size = 100, .file = SEALED}, {.type = TELL, .flags = LINK_HAS_FILE}}},
    /* Last words that do not say that nobody waits for the job. */
    {"leaves-ended", slow_job, {{LINK_END, .number = 3}}},
    {"leaves-failed",
     slow_job,
     {{LINK_FAIL, .number = 3, .size = ERR_BAD_REQUEST, .data = (const char *)&no_problem,
       .data_size = sizeof no_problem}}},
};

static int front = -1, room = -1, lock;

/* Returns how many words have been taken, which are then more. */
static uint8_t taken(int more)
{
	uint8_t before = 0, words;

	if (pread(lock, &before, 1, 0) < 0)
		die("lock");
	words = (uint8_t)(before + more);
	if (pwrite(lock, &words, 1, 0) != 1)
		die("lock");
	return before;
}

/* Without a device every answer is 503: the word is for the next process. */
static void try_later(void)
{
	taken(-1);
	_exit(1);
}

static int make_file(const struct step *s)
{
	int fd = s->file == NO_MEMFD ? open("/dev/zero", O_RDWR)
	                             : memfd_create("body", MFD_ALLOW_SEALING);
	const off_t size = s->file == SMALLER ? 99 : (off_t)s->size;

	if (s->file != NO_MEMFD && size && fallocate(fd, 0, 0, size))
		die("file");
	if (s->file != NO_MEMFD && s->file != UNSEALED && fcntl(fd, F_ADD_SEALS, SEALS_FINAL))
		die("seals");
	return fd;
}

static void say_step(const struct step *s)
{
	int file = s->file ? make_file(s) : -1;
	struct link_message message = {.type = s->type,
	                               .flags = s->flags,
	                               .number = s->number,
	                               .guest = s->guest,
	                               .announced = s->size};
	struct iovec parts[] = {{&message, offsetof(struct link_message, data)},
	                        {(void *)(uintptr_t)s->data, s->data_size}};

	if (!datagram_send(front, parts, 2, &file, file >= 0))
		die("link");
	if (file >= 0)
		close(file);
}

/* Takes the next message of the front; the descriptor of ROOM is kept, answers' are tried and
 * closed. */
static struct link_message hear(char text[4])
{
	static char data[LINK_DATA_MAX];
	struct link_message message = {0};
	struct iovec parts[] = {{&message, offsetof(struct link_message, data)},
	                        {data, sizeof data}};
	int fds[MESSAGE_FDS_MAX], flags;
	size_t count;

	memset(data, 0, 4);
	if (datagram_receive(front, parts, 2, fds, &count, &flags) <= 0)
		die("link");
	memcpy(text, data, 3);
	text[3] = '\0';
	if (count && message.type == LINK_ROOM) {
		room = fds[0];
	} else if (count) {
		if (can_change(fds[0]))
			fprintf(stderr, "<4>hostile: THE ANSWER CAN BE CHANGED\n");
		close(fds[0]);
	}
	return message;
}

/* Waits for a message; an answer to what should not have one yet means that there is no device
 * yet. */
static void hear_until(uint64_t type, uint32_t flags, char text[4])
{
	struct link_message message;

	do {
		message = hear(text);
		if (message.type == LINK_ANSWER && (type != LINK_ANSWER || flags & ~message.flags))
			try_later();
	} while (message.type != type || flags & ~message.flags);
}

static void tell_answer(uint32_t flags)
{
	char text[4];

	hear_until(LINK_ANSWER, flags, text);
	if (!strcmp(text, "503"))
		try_later();
	if (is("later") && can_change(room))
		fprintf(stderr, "<4>hostile: THE BODY CAN BE CHANGED\n");
	fprintf(stderr, "<4>hostile: the answer is %s\n", text);
}

static void fill_room(size_t size)
{
	static const char body[100];

	if (pwrite(room, "x", 1, (off_t)30 << 30) > 0)
		fprintf(stderr, "<4>hostile: A BODY CAN BE OF ANY SIZE\n");
	if (pwrite(room, body, size, 0) != (ssize_t)size)
		die("body");
	if (is("maps") && !can_map(room))
		die("mmap");
	if (memfd_seal(room) == is("maps"))
		die("seal");
}

/* Up to zeros; NULL: none. */
static void take_steps(const struct step *s)
{
	char text[4];

	for (; s && (s->type || s->number); s++)
		if (s->type == AWAIT)
			hear_until(s->size, s->flags, text);
		else if (s->type == TELL)
			tell_answer(s->flags);
		else if (s->type == FILL)
			fill_room(s->size);
		else
			say_step(s);
}

/* Opens connections of one client without end, and does not read that they are too many. */
static void be_crowded(void)
{
	struct step one = {GUEST, TEXT("a")};

	for (;; one.number += one.number < 5000)
		say_step(&one);
}

/* Many requests, each with as large a head as there may be, until one is refused for that. */
static void hold_heads(void)
{
	static char head[LINK_DATA_MAX - 1] = "\1POST\0\2/v1/filters/box\0\4x\0\5";
	struct step one = {GUEST}, post = {POST};
	char text[4] = "";

	memset(head + 27, 'x', sizeof head - 28);
	post.data = head;
	post.data_size = sizeof head;
	for (uint64_t n = 1; n < 10000 && strcmp(text, "429"); n += 2) {
		one.number = post.guest = n;
		post.number = n + 1;
		say_step(&one);
		say_step(&post);
		hear_until(LINK_ANSWER, 0, text);
	}
	fprintf(stderr, "<4>hostile: the answer is %s\n", text);
	pause();
}

/* A form without end. */
static void be_endless(void)
{
	static char names[LINK_DATA_MAX];
	static const struct step form = {FORM}, more = {SAY(FORM), DATA(names)};

	take_steps(guest);
	say_step(&form);
	for (;;)
		say_step(&more);
}

/* Requests without end, whose answers it does not read. */
static void be_greedy(void)
{
	struct step one = {GUEST}, get = {GET(0)};

	for (uint64_t n = 1;; n += 2) {
		one.number = get.guest = n;
		get.number = n + 1;
		say_step(&one);
		say_step(&get);
	}
}

static void say_anything(void)
{
	static const uint64_t numbers[] = {0, 1, 2, 10, 99, 100, UINT32_MAX, UINT64_MAX};
	static const struct step known[] = {{GUEST},
	                                    {GET(2)},
	                                    {POST},
	                                    {FORM},
	                                    {LINK_GUEST_END, .number = 1},
	                                    {WHOLE(2), .size = 100, .file = SEALED},
	                                    {SAY(LEND), .size = 100},
	                                    {SAY(FORM), DATA("\4size\0\0053")},
	                                    {SAY(FINISH), .size = 100},
	                                    {SAY(NEXT)},
	                                    {SAY(READ), .size = 10},
	                                    {SAY(END)},
	                                    {SAY(FAIL), .size = ERR_BAD_REQUEST},
	                                    {GUEST, TEXT("x")},
	                                    {.type = LINK_PONG}};
	struct step s = known[random_number(sizeof known / sizeof *known)];

	if (!random_number(16))
		s.size = numbers[random_number(8)];
	if (!random_number(64))
		s.number = random_number(5);
	if (!random_number(64))
		s.flags = 1u << random_number(12);
	if (!random_number(64))
		s.type = (uint32_t)random_number(LINK_TYPES + 2);
	if (s.data && !random_number(64))
		s.data_size -= random_number(s.data_size);
	say_step(&s);
}

static void be_random(void)
{
	char text[4];

	for (;;) {
		struct pollfd look = {.fd = front, .events = POLLIN};

		say_anything();
		while (poll(&look, 1, 0) > 0) {
			hear(text);
			if (room >= 0)
				close(room);
			room = -1;
		}
	}
}

static void misbehave(void)
{
	struct message message = {.type = MSG_TILE_WAITS};

	for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
		if (is(modes[i].name)) {
			take_steps(modes[i].before);
			take_steps(modes[i].step);
		}
	if (is("descriptors")) {
		say_with_descriptors(WORKER_SOCKET, &message, 8, 4);
	} else if (is("other-socket")) {
		say(&message, MSG_TILE_WAITS);
	} else if (is("closes")) {
		close(front);
	} else if (is("spins")) {
		for (;;)
			;
	} else if (is("empty")) {
		say_with_descriptors(WORKER_SOCKET, NULL, 0, 3);
	} else if (is("empty-link")) {
		say_with_descriptors(front, NULL, 0, 1);
	} else if (is("crowded")) {
		be_crowded();
	} else if (is("heads")) {
		hold_heads();
	} else if (is("endless")) {
		be_endless();
	} else if (is("greedy")) {
		be_greedy();
	} else if (is("random")) {
		be_random();
	}
	pause(); /* sleeps */
}

int main(int argc, char **argv)
{
	struct message message = {0};
	int fds[MESSAGE_FDS_MAX];

	(void)argc;
	lock = open(getenv("CONVOLVED_LOCK"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (lock < 0)
		die("lock");
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGXFSZ, SIG_IGN);
	if (flock(lock, LOCK_EX | LOCK_NB) || !(mode = word_of(taken(1))))
		be_honest("honest-http", argv);
	start_announce("convolved-http", 0);
	say(&message, MSG_READY);
	while (front < 0) {
		if (wire_receive(WORKER_SOCKET, &message, fds) != WIRE_MESSAGE)
			die("receive");
		if (message.type == MSG_LINK)
			front = fds[0];
	}
	fcntl(front, F_SETFL, fcntl(front, F_GETFL) & ~O_NONBLOCK);
	misbehave();
	return 0;
}
