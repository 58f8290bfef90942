/* An HTTP worker that has been taken over: it does what CONVOLVED_HOSTILE says, a word a process.
 * The tests put it in the place of convolved-http. One at a time is hostile, whoever has the lock
 * of the file CONVOLVED_LOCK, as long as there are words; the others are honest, and accept all
 * connections. */
#include "hostile.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "base/memfd.h"
#include "link/link.h"
#include "process/start.h"

enum { STEPS_MAX = 6, AWAIT = LINK_TYPES + 100 };

/* A message; or (AWAIT) the wait for one, whose type is its size, with these flags. */
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

#define DATA(text)  .data = (text), .data_size = sizeof(text)
#define TEXT(text)  .data = (text), .data_size = sizeof(text) - 1
#define EIGHT(text) text text text text text text text text
#define RAW                                                                                        \
	"\2/v1/filters/box\0"                                                                      \
	"\4size\0"                                                                                 \
	"\0053\0"                                                                                  \
	"\4raw\0"                                                                                  \
	"\00510x10x1:u8\0"                                                                         \
	"\4format\0"                                                                               \
	"\5raw"
#define GUEST                                                                                      \
	{                                                                                          \
		LINK_GUEST, .number = 1                                                            \
	}
#define HEAD(n, text, ...)                                                                         \
	{                                                                                          \
		LINK_HEAD, .number = (n), .guest = 1, DATA(text), __VA_ARGS__                      \
	}
#define GET(n) HEAD(n, "\1GET\0\2/livez", .size = 0)
#define POST   HEAD(2, "\1POST\0" RAW, .size = 100)
#define FORM   HEAD(2, "\1POST\0\2/v1/filters/box", .size = 1000, .flags = LINK_IS_FORM)
#define WHOLE(...)                                                                                 \
	{                                                                                          \
		LINK_HEAD, LINK_IS_COMPLETE | LINK_HAS_FILE, .number = 2, .guest = 1,              \
		                                             DATA("\1POST\0" RAW), __VA_ARGS__     \
	}
#define UNTIL(what, ...)                                                                           \
	{                                                                                          \
		AWAIT, .size = LINK_##what, __VA_ARGS__                                            \
	}
#define UNTIL_ROOM UNTIL(ROOM, .flags = LINK_HAS_FILE)
#define SAY(what, ...)                                                                             \
	{                                                                                          \
		LINK_##what, .number = 2, __VA_ARGS__                                              \
	}

/* The error is the last step, or the step after it is never reached. */
static const struct mode {
	const char *name;
	struct step step[STEPS_MAX];
} modes[] = {
    {"guest-unknown", {{LINK_GUEST_END, .number = 7}}},
    {"guest-name",
     {{LINK_GUEST, .number = 1, TEXT("123456789012345678901234567890123456789012345678")}}},
    {"guest-ended", {GUEST, {LINK_GUEST_END, .number = 1}, {LINK_GUEST_END, .number = 1}}},
    {"guest-busy", {GUEST, POST, {LINK_GUEST_END, .number = 1}}},
    {"head-alone", {GET(2)}},
    {"head-number",
     {GUEST,
      {LINK_GUEST, .number = 3},
      POST,
      {LINK_HEAD, .number = 2, .guest = 3, DATA("\1GET\0\2/livez")}}},
    {"head-second", {GUEST, POST, GET(3)}},
    {"head-empty", {GUEST, {LINK_HEAD, .number = 2, .guest = 1}}},
    {"head-cut", {GUEST, {LINK_HEAD, .number = 2, .guest = 1, TEXT("\1GET\0\2/livez")}}},
    {"head-path", {GUEST, HEAD(2, "\1GET", .size = 0)}},
    {"head-complete", {GUEST, HEAD(2, "\1GET\0\2/livez", .size = 1, .flags = LINK_IS_COMPLETE)}},
    {"whole-alone", {GUEST, WHOLE(.size = 100)}},
    {"whole-empty", {GUEST, WHOLE(.size = 0, .file = SEALED)}},
    {"whole-large", {GUEST, WHOLE(.size = 2 << 20, .file = SEALED)}},
    {"whole-finish", {GUEST, WHOLE(.size = 100, .file = SEALED), SAY(FINISH, .size = 100)}},
    {"lend-twice", {GUEST, POST, UNTIL_ROOM, SAY(LEND, .size = 200)}},
    {"lend-nothing", {GUEST, POST, UNTIL_ROOM, SAY(LEND, .size = 0)}},
    {"finish-more", {GUEST, POST, UNTIL_ROOM, SAY(FINISH, .size = 101)}},
    {"finish-twice", {GUEST, POST, UNTIL_ROOM, SAY(FINISH, .size = 0), SAY(FINISH, .size = 0)}},
    {"form-of-none", {GUEST, POST, UNTIL_ROOM, SAY(FORM, DATA("\4size\0\0053"))}},
    {"form-cut",
     {GUEST, FORM, UNTIL_ROOM, SAY(FORM, TEXT("\4size\0\0053")), SAY(FINISH, .size = 0)}},
    {"form-unnamed", {GUEST, FORM, UNTIL_ROOM, SAY(FORM, DATA("\0053")), SAY(FINISH, .size = 0)}},
    {"form-path", {GUEST, FORM, UNTIL_ROOM, SAY(FORM, DATA("\2/livez")), SAY(FINISH, .size = 0)}},
    {"form-many",
     {GUEST, FORM, UNTIL_ROOM, SAY(FORM, DATA(EIGHT(EIGHT("\4n\0\5\0")) "\4n\0\5")),
      SAY(FINISH, .size = 0)}},
    {"form-late", {GUEST, FORM, UNTIL_ROOM, SAY(FINISH, .size = 0), SAY(FORM, DATA("\4n\0\5"))}},
    {"next-none", {GUEST, GET(2), UNTIL(ANSWER, .flags = 0), SAY(NEXT, .size = 0)}},
    {"read-early", {GUEST, POST, SAY(READ, .size = 1)}},
    {"fail-not", {GUEST, POST, SAY(FAIL, .size = 0)}},
    {"fail-what", {GUEST, POST, SAY(FAIL, .size = ERR_COUNT)}},
    {"refusal", {{LINK_FAIL, .number = 2, .size = UINT64_MAX}}},
    {"request-unknown", {SAY(END, .size = 0)}},
    {"fronts-word", {GUEST, POST, SAY(CUT, .size = 0)}},
    {"fronts-answer", {GUEST, POST, SAY(ANSWER, TEXT("200"))}},
    {"flags", {{LINK_PONG, .flags = LINK_IS_PROXY}}},
    {"data", {{LINK_PONG, TEXT("x")}}},
    {"type", {{.type = LINK_TYPES}}},
};

static int front = -1, room = -1, lock;

/* Takes the next word; `taken` words have been taken. */
static const char *next_word(void)
{
	char *rest = getenv("CONVOLVED_HOSTILE"), *word;
	uint8_t taken = 0;

	if (pread(lock, &taken, 1, 0) < 0)
		die("lock");
	for (int i = 0; i <= taken; i++)
		word = strsep(&rest, ",");
	taken++;
	if (pwrite(lock, &taken, 1, 0) != 1)
		die("lock");
	return word;
}

/* The word is for the next process. */
static void give_back_word(void)
{
	uint8_t taken;

	if (pread(lock, &taken, 1, 0) != 1)
		die("lock");
	taken--;
	if (pwrite(lock, &taken, 1, 0) != 1)
		die("lock");
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
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = {0};
	int file = s->file ? make_file(s) : -1;
	struct link_message message = {.type = s->type,
	                               .flags = s->flags,
	                               .number = s->number,
	                               .guest = s->guest,
	                               .announced = s->size};
	struct iovec parts[] = {{&message, offsetof(struct link_message, data)},
	                        {(void *)(uintptr_t)s->data, s->data_size}};
	struct msghdr header = {.msg_iov = parts, .msg_iovlen = 2};

	if (file >= 0) {
		header.msg_control = control.bytes;
		header.msg_controllen = sizeof control;
		control.align.cmsg_level = SOL_SOCKET;
		control.align.cmsg_type = SCM_RIGHTS;
		control.align.cmsg_len = CMSG_LEN(sizeof file);
		memcpy(CMSG_DATA(&control.align), &file, sizeof file);
	}
	if (sendmsg(front, &header, MSG_NOSIGNAL) < 0)
		die("link");
	if (file >= 0)
		close(file);
}

/* Takes the next message of the front; the descriptor of ROOM is kept, answers' are tried and
 * closed.
 */
static struct link_message hear(char text[4])
{
	static char data[LINK_DATA_MAX];
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	struct link_message message = {0};
	struct iovec parts[] = {{&message, offsetof(struct link_message, data)},
	                        {data, sizeof data}};
	struct msghdr header = {.msg_iov = parts,
	                        .msg_iovlen = 2,
	                        .msg_control = control.bytes,
	                        .msg_controllen = sizeof control};
	struct cmsghdr *c;
	int fd;

	memset(data, 0, 4);
	if (recvmsg(front, &header, 0) <= 0)
		die("link");
	memcpy(text, data, 4);
	text[3] = '\0';
	c = CMSG_FIRSTHDR(&header);
	if (!c)
		return message;
	memcpy(&fd, CMSG_DATA(c), sizeof fd);
	if (message.type == LINK_ROOM)
		room = fd;
	if (message.type == LINK_ROOM)
		return message;
	if (pwrite(fd, "x", 1, 0) > 0 || !ftruncate(fd, 1) ||
	    mmap(NULL, 1, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) != MAP_FAILED)
		fprintf(stderr, "<4>hostile: THE ANSWER CAN BE CHANGED\n");
	close(fd);
	return message;
}

/* Waits for a message; an answer to what should not have one yet means that there is no device
 * yet. */
static void hear_until(uint64_t type, uint32_t flags, char text[4])
{
	struct link_message message;

	do {
		message = hear(text);
		if (message.type == LINK_ANSWER &&
		    (type != LINK_ANSWER || flags & ~message.flags)) {
			give_back_word();
			_exit(1);
		}
	} while (message.type != type || flags & ~message.flags);
}

static void take_steps(const struct mode *m)
{
	char text[4];

	for (int i = 0; i < STEPS_MAX; i++) {
		const struct step *s = &m->step[i];

		if (s->type == AWAIT)
			hear_until(s->size, s->flags, text);
		else if (s->type || s->number)
			say_step(s);
	}
	pause();
}

/* Has a body of 100 bytes, of them `size` written. */
static void send_body(size_t size)
{
	static const struct step begin[] = {GUEST, POST}, finish = SAY(FINISH, .size = 100);
	char body[100] = "", text[4];

	say_step(&begin[0]);
	say_step(&begin[1]);
	hear_until(LINK_ROOM, LINK_HAS_FILE, text);
	if (pwrite(room, "x", 1, (off_t)30 << 30) > 0)
		fprintf(stderr, "<4>hostile: A BODY CAN BE OF ANY SIZE\n");
	if (pwrite(room, body, size, 0) != (ssize_t)size)
		die("body");
	if (is("maps") &&
	    mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, room, 0) == MAP_FAILED)
		die("mmap");
	if (memfd_seal(room) == is("maps"))
		die("seal");
	say_step(&finish);
}

static void lie(void)
{
	char text[4];

	send_body(is("maps") ? 100 : 99);
	hear_until(LINK_ANSWER, 0, text);
	fprintf(stderr, "<4>hostile: the answer is %s\n", text);
	pause();
}

/* Without a device every answer is 503; another process then tries again. */
static void tell_answer(void)
{
	char text[4];

	hear_until(LINK_ANSWER, 0, text);
	if (!strcmp(text, "503")) {
		give_back_word();
		_exit(1);
	}
	fprintf(stderr, "<4>hostile: the answer is %s\n", text);
}

/* Sends wrong bodies with their requests. */
static void lie_whole(void)
{
	static const struct step guest = GUEST, whole = WHOLE(.size = 100);
	struct step step = whole;

	say_step(&guest);
	step.file = SMALLER;
	say_step(&step);
	tell_answer();
	step.file = UNSEALED;
	step.number++;
	say_step(&step);
	tell_answer();
	step.file = NO_MEMFD;
	step.number++;
	say_step(&step);
	tell_answer();
	pause();
}

static void change_later(void)
{
	char text[4];

	send_body(100);
	hear_until(LINK_ANSWER, 0, text);
	if (pwrite(room, "x", 1, 0) > 0 || !ftruncate(room, 1))
		fprintf(stderr, "<4>hostile: THE BODY CAN BE CHANGED\n");
	fprintf(stderr, "<4>hostile: the answer is %s\n", text);
	pause();
}

/* A job that takes seconds, and a last word that does not say that nobody waits for it. */
static void leave_job(uint32_t type, uint64_t size)
{
	static const struct problem problem;
	static const struct step first[] = {GUEST, WHOLE(.size = 100, .file = SEALED)},
	                         slow = {LINK_HEAD,
	                                 .flags = LINK_IS_COMPLETE | LINK_HAS_FILE,
	                                 .number = 3,
	                                 .guest = 1,
	                                 .size = 1000000,
	                                 .file = SEALED,
	                                 DATA("\1POST\0"
	                                      "\2/v1/filters/bilateral\0"
	                                      "\4radius\0"
	                                      "\00516\0"
	                                      "\4variant\0"
	                                      "\5general\0"
	                                      "\4raw\0"
	                                      "\0051000x1000x1:u8")};
	char text[4];

	say_step(&first[0]);
	say_step(&first[1]);
	hear_until(LINK_ANSWER, LINK_HAS_FILE, text);
	say_step(&slow);
	say_step(&(struct step){type, .number = 3, .size = size, .data = (const char *)&problem,
	                        .data_size = size ? sizeof problem : 0});
	pause();
}

/* Opens connections of one client without end, and does not read that they are too many. */
static void be_crowded(void)
{
	struct step guest = {LINK_GUEST, TEXT("a")};

	for (uint64_t n = 1;; n++) {
		guest.number = n < 5000 ? n : 5000;
		say_step(&guest);
	}
}

/* Many requests, each with as large a head as there may be, until one is refused for that. */
static void hold_heads(void)
{
	static char head[LINK_DATA_MAX - 1] = "\1POST\0\2/v1/filters/box\0\4x\0\5";
	struct step guest = GUEST, post = POST;
	char text[4] = "";

	memset(head + 27, 'x', sizeof head - 28);
	post.data = head;
	post.data_size = sizeof head;
	for (uint64_t n = 1; n < 10000 && strcmp(text, "429"); n += 2) {
		guest.number = post.guest = n;
		post.number = n + 1;
		say_step(&guest);
		say_step(&post);
		hear_until(LINK_ANSWER, 0, text);
	}
	fprintf(stderr, "<4>hostile: the answer is %s\n", text);
	pause();
}

/* A form without end. */
static void be_endless(void)
{
	static const struct step begin[] = {GUEST, FORM};
	static char names[LINK_DATA_MAX];
	const struct step more = SAY(FORM, DATA(names));

	say_step(&begin[0]);
	say_step(&begin[1]);
	for (;;)
		say_step(&more);
}

/* Has an answer with a file, which hear() tries. */
static void read_answer(void)
{
	static const struct step guest = GUEST, whole = WHOLE(.size = 100, .file = SEALED);
	char text[4];

	say_step(&guest);
	say_step(&whole);
	hear_until(LINK_ANSWER, LINK_HAS_FILE, text);
	fprintf(stderr, "<4>hostile: the answer is %s\n", text);
	pause();
}

/* Requests without end, whose answers it does not read. */
static void be_greedy(void)
{
	struct step guest = GUEST, get = GET(0);

	for (uint64_t n = 1;; n += 2) {
		guest.number = get.guest = n;
		get.number = n + 1;
		say_step(&guest);
		say_step(&get);
	}
}

static void say_anything(void)
{
	static const uint64_t numbers[] = {0, 1, 2, 10, 99, 100, UINT32_MAX, UINT64_MAX};
	static const struct step known[] = {GUEST,
	                                    GET(2),
	                                    POST,
	                                    FORM,
	                                    {LINK_GUEST_END, .number = 1},
	                                    WHOLE(.size = 100, .file = SEALED),
	                                    SAY(LEND, .size = 100),
	                                    SAY(FORM, DATA("\4size\0\0053")),
	                                    SAY(FINISH, .size = 100),
	                                    SAY(NEXT, .size = 0),
	                                    SAY(READ, .size = 10),
	                                    SAY(END, .size = 0),
	                                    SAY(FAIL, .size = ERR_BAD_REQUEST),
	                                    {LINK_GUEST, .number = 1, TEXT("x")},
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
		if (is(modes[i].name))
			take_steps(&modes[i]);
	if (is("descriptors")) {
		say_with_descriptors(WORKER_SOCKET, &message, 8, 4);
	} else if (is("other-socket")) {
		say(&message, MSG_TILE_WAITS);
	} else if (is("closes")) {
		close(front);
	} else if (is("spins")) {
		for (;;)
			;
	} else if (is("lies") || is("maps")) {
		lie();
	} else if (is("lies-whole")) {
		lie_whole();
	} else if (is("later")) {
		change_later();
	} else if (is("empty")) {
		say_with_descriptors(WORKER_SOCKET, NULL, 0, 3);
	} else if (is("empty-link")) {
		say_with_descriptors(front, NULL, 0, 1);
	} else if (is("leaves-failed")) {
		leave_job(LINK_FAIL, ERR_BAD_REQUEST);
	} else if (is("leaves-ended")) {
		leave_job(LINK_END, 0);
	} else if (is("crowded")) {
		be_crowded();
	} else if (is("heads")) {
		hold_heads();
	} else if (is("endless")) {
		be_endless();
	} else if (is("reads")) {
		read_answer();
	} else if (is("greedy")) {
		be_greedy();
	} else if (is("random")) {
		be_random();
	}
	pause(); /* sleeps */
}

/* Becomes the honest program beside this one. */
static void be_honest(char **argv)
{
	char path[PATH_MAX + 32];
	ssize_t length = readlink("/proc/self/exe", path, PATH_MAX);

	path[length > 0 ? length : 0] = '\0';
	strcpy(strrchr(path, '/'), "/honest-http");
	execv(path, argv);
	die(path);
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
	if (flock(lock, LOCK_EX | LOCK_NB) || !(mode = next_word()))
		be_honest(argv);
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
