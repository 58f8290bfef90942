/* The link of front and HTTP worker: messages on it, the block of a request's head, addresses. */
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <wchar.h>

#include "base/loop.h"
#include "link/address.h"
#include "link/answer.h"
#include "link/head.h"
#include "link/link.h"
#include "unit.h"

static struct link links[2];
static uint64_t linked, link_turns;

static void take_number(void *context, struct link_message *message)
{
	assert_int_equal(message->number, linked++);
	assert_true(!message->data_size && message->fd < 0);
	if (linked == *(const uint64_t *)context)
		loop_stop();
}

static void link_lost(void *context, const char *why)
{
	(void)context;
	fail_msg("the link broke: %s", why ? why : "closed");
}

static int link_turn(void)
{
	link_turns++;
	return -1;
}

/* Sends so many numbers from one end to the other; the loop stops at number `stop_at`. */
static void send_numbers(uint64_t count, uint64_t *stop_at)
{
	static const struct link_owner owner = {take_number, link_lost};
	struct link_message message = {.type = LINK_PONG};
	int fds[2];

	linked = link_turns = 0;
	assert_int_equal(loop_init(), ERR_OK);
	assert_int_equal(link_pair(fds), ERR_OK);
	for (int i = 0; i < 2; i++)
		assert_int_equal(link_open(&links[i], fds[i], &owner, stop_at), ERR_OK);
	for (; message.number < count; message.number++)
		assert_true(link_send(&links[0], &message));
}

static void close_links(void)
{
	link_close(&links[0]);
	link_close(&links[1]);
	loop_fini();
}

/* Messages for which there is no room are sent later, in order. */
TEST(test_link_queue)
{
	uint64_t count = 20000;

	send_numbers(count, &count);
	assert_true(links[0].writable.fd >= 0);
	loop_run(link_turn);
	assert_int_equal(linked, count);
	assert_int_equal(links[0].writable.fd, -1);
	close_links();
}

static void stop(void *context)
{
	(void)context;
	loop_stop();
}

/* That a message has been read does not wake its sender. */
TEST(test_link_wakes)
{
	struct loop_timer silence;
	uint64_t never = 0;

	send_numbers(1, &never);
	assert_int_equal(loop_timer_init(&silence, stop, NULL), ERR_OK);
	loop_timer_start(&silence, 100);
	loop_run(link_turn);
	assert_int_equal(linked, 1);
	assert_true(link_turns <= 2); /* the message, the timer */
	loop_timer_fini(&silence);
	close_links();
}

/* A message that the other end would refuse is a fault of the sender: it ends at once, where the
 * fault is, and no truncated message leaves. */
TEST(test_link_refuses)
{
	static char data[LINK_DATA_MAX + 1];
	static const struct {
		uint32_t type, flags;
		size_t size;
		bool allowed;
	} cases[] = {
	    {LINK_PIECE, LINK_IS_LAST, LINK_DATA_MAX, true},
	    {LINK_PIECE, 0, LINK_DATA_MAX + 1, false},
	    {LINK_PONG, 0, 1, false},
	    {LINK_PONG, LINK_IS_PROXY, 0, false},
	    {LINK_PONG, LINK_HAS_FILE, 0, false},
	    {LINK_ROOM, LINK_HAS_FILE, 0, true},
	    {LINK_ROOM, 0, 0, true},
	};
	uint64_t none = 0;
	int status;

	send_numbers(0, &none);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct link_message message = {.type = cases[i].type,
		                               .flags = cases[i].flags,
		                               .data = data,
		                               .data_size = cases[i].size,
		                               .fd = STDOUT_FILENO};
		pid_t child = fork();

		if (!child) {
			prctl(PR_SET_DUMPABLE, 0);
			close(STDERR_FILENO);
			_exit(!link_send(&links[0], &message));
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		if (cases[i].allowed)
			assert_true(WIFEXITED(status) && !WEXITSTATUS(status));
		else
			assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
	}
	close_links();
}

TEST(test_address)
{
	static const struct {
		const char *text;
		sa_family_t family; /* AF_UNSPEC: no address */
		bool tls, local;
	} cases[] = {
	    {"127.0.0.1:80", AF_INET, false, true},
	    {"tls:0.0.0.0:1", AF_INET, true, false},
	    {"[::1]:80", AF_INET6, false, true},
	    {"tls:[::ffff:127.0.0.9]:1", AF_INET6, true, true},
	    {"::1:80", AF_INET6, false, true},
	    {"[fd00::1]:80", AF_INET6, false, false},
	    {"unix:/a", AF_UNIX, false, true},
	    {"unix:", AF_UNSPEC, false, false},
	    {"localhost:80", AF_UNSPEC, false, false},
	    {"1.2.3.4", AF_UNSPEC, false, false},
	    {"tls:unix:/a", AF_UNSPEC, true, false},
	    {"[1.2.3.4:5", AF_UNSPEC, false, false},
	    {"", AF_UNSPEC, false, false},
	    {"]:1", AF_UNSPEC, false, false},
	};
	char longest[160] = "unix:";
	struct address a;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		bool valid = cases[i].family != AF_UNSPEC;

		assert_int_equal(address_parse(cases[i].text, &a), valid);
		assert_int_equal(address_valid(cases[i].text), valid);
		assert_int_equal(a.socket.ss_family, cases[i].family);
		assert_int_equal(!a.size, !valid);
		assert_int_equal(a.tls, cases[i].tls);
		assert_int_equal(address_is_local((struct sockaddr *)&a.socket), cases[i].local);
	}
	memset(longest + 5, 'x', 107);
	assert_true(address_valid(longest));
	longest[5 + 107] = 'x';
	assert_false(address_valid(longest));
}

/* A block is read as it was written; one without a method and a path, with anything doubled, cut
 * off or unknown, is none. */
TEST(test_head)
{
#define BLOCK(text) text, sizeof text - 1
#define START       "\1GET\0\2/\0"
#define EIGHT(text) text text text text text text text text
	static const struct {
		const char *block;
		size_t size;
		bool is_form;
	} bad[] = {
	    {BLOCK("\1GET\0"), false},
	    {BLOCK("\2/\0"), false},
	    {BLOCK("\1GET\0\2/"), false},
	    {BLOCK(START "\0"), false},
	    {BLOCK(START "\177\0"), false},
	    {BLOCK(START "\377\0"), false},
	    {BLOCK(START "\2/other\0"), false},
	    {BLOCK(START "\4sigma\0"), false},
	    {BLOCK("\0067\0\0067\0"), true},
	    {BLOCK(START "\0052\0"), false},
	    {BLOCK(START "\4sigma\0\3::1\0\0052\0"), false},
	    {BLOCK(START "\4sigma\0\0052\0\0053\0"), false},
	    {BLOCK(START "\3123456789012345678901234567890123456789012345678\0"), false},
	    {BLOCK("\4sigma\0\0052"), true},
	    {BLOCK("\4sigma\0"), true},
	    {BLOCK("\0052\0"), true},
	    {BLOCK("\3::1\0"), true},
	    {BLOCK("\4sigma\0\0052\0\2/\0"), true},
	    {BLOCK(EIGHT(EIGHT("\4n\0\5\0"))), true},
	};
	struct head_writer writer = {0};
	struct head head;

	assert_int_equal(head_read(&head, strdup(""), 0), ERR_BAD_REQUEST);
	head_fini(&head);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		head = (struct head){.parameters = 1};
		head_append(&writer, bad[i].block, bad[i].size);
		if (bad[i].is_form) {
			assert_int_equal(head_read_form(&head, &writer), ERR_BAD_REQUEST);
		} else {
			assert_int_equal(head_read(&head, writer.data, writer.size),
			                 ERR_BAD_REQUEST);
			writer = (struct head_writer){0};
		}
		head_fini(&head);
	}
	head_add(&writer, HEAD_METHOD, "GET");
	head_add(&writer, HEAD_PATH, "/");
	head_add(&writer, HEAD_PREFER, "wait=1");
	head_extend(&writer, ", respond-", 10);
	head_extend(&writer, "async", 5);
	for (int i = 0; i < HEAD_PARAMETERS_MAX + 2; i++) {
		head_add(&writer, HEAD_NAME, i ? "n" : "");
		head_add(&writer, HEAD_VALUE, "");
	}
	assert_int_equal(head_read(&head, writer.data, writer.size), ERR_OK);
	writer = (struct head_writer){0};
	assert_string_equal(head.text[HEAD_PREFER], "wait=1, respond-async");
	assert_null(head.text[HEAD_HOST]);
	assert_int_equal(head.parameters, HEAD_PARAMETERS_MAX + 2);
	assert_string_equal(head.parameter[HEAD_PARAMETERS_MAX - 1].name, "n");
	assert_string_equal(head.parameter[0].value, "");
	head_fini(&head);
	head_add(&writer, HEAD_NAME, "sigma");
	head_add(&writer, HEAD_VALUE, "2");
	head_add(&writer, HEAD_MASK, "123456789012345678");
	head.parameters = HEAD_PARAMETERS_MAX - 1;
	assert_int_equal(head_read_form(&head, &writer), ERR_OK);
	assert_int_equal(head.parameters, HEAD_PARAMETERS_MAX);
	assert_true(head.mask == UINT64_C(123456789012345678));
	assert_string_equal(head.parameter[HEAD_PARAMETERS_MAX - 1].value, "2");
	head_fini(&head);
}

/* An answer without memory for a header, here with a character that the locale lacks, says so: it
 * must not be kept as if it were whole. */
TEST(test_answer_fails)
{
	struct answer answer;

	answer_init(&answer);
	answer_header(&answer, "X-Lost", "%s", "profile");
	assert_false(answer.failed);
	answer_header(&answer, "X-Device", "%ls", L"\x263a");
	assert_true(answer.failed);
	assert_int_equal(answer.headers, 1);
	answer_fini(&answer);
	assert_false(answer.failed);
}
