/* A device worker that has been taken over. The tests put it in the place of convolved-device.
 *
 * CONVOLVED_HOSTILE has a word for each device: the act of its worker. `honest`: it is of the
 * program that lies beside this one, as the probe is, unless `probe` is the first device's word. */
#include "hostile.h"

#include <limits.h>
#include <signal.h>
#include <sys/prctl.h>

#include "process/start.h"

static struct message_tile_done done;

/* READY that is right, unless it is to be wrong. */
static void say_ready(void)
{
	struct message message = {.ready = {.name = "hostile",
	                                    .driver = "none",
	                                    .memory = UINT64_C(1) << 33,
	                                    .lanes = 4,
	                                    .small_max = 1}};
	struct message_ready *m = &message.ready;

	if (is("ready-lanes"))
		m->lanes = UINT32_MAX;
	else if (is("ready-no-lanes"))
		m->lanes = 0;
	else if (is("ready-stack"))
		m->small_max = UINT32_MAX;
	else if (is("ready-memory"))
		m->memory = UINT64_MAX;
	else if (is("ready-time"))
		m->startup_ms = UINT32_MAX;
	else if (is("names")) {
		memset(m->name, 0xe9, sizeof m->name);
		memset(m->driver, '\n', sizeof m->driver);
	}
	say(&message, MSG_READY);
}

/* A device that is there, under no such name, and then nothing without end. */
static void say_probed(void)
{
	struct message message = {.device = {.type = DEVICE_CPU}};

	memset(message.device.name, 0xe9, sizeof message.device.name);
	memset(message.device.platform_name, '\r', sizeof message.device.platform_name);
	say(&message, MSG_DEVICE);
	message.device.type = DEVICE_NONE;
	for (;;)
		say(&message, MSG_DEVICE);
}

static void say_objects(uint32_t live)
{
	struct message message = {.objects = {.live = {live}}};

	say(&message, MSG_OBJECTS);
}

static void say_programs(uint32_t compiled)
{
	struct message message = {.programs = {.compiled = compiled}};

	say(&message, MSG_PROGRAMS);
}

static void say_choice(void)
{
	struct message message = {.choice = {.work = "a", .count = 1, .samples = 1}};
	struct message_choice *m = &message.choice;

	if (is("choice-count"))
		m->count = CANDIDATES_MAX + 1;
	else if (is("choice-none"))
		m->count = 0;
	else if (is("choice-chosen"))
		m->chosen = 1;
	else if (is("choice-kernel"))
		m->candidate[0].kernel = KERNELS;
	else if (is("choice-time"))
		m->candidate[0].ns = UINT64_MAX;
	else if (is("choice-samples"))
		m->samples = UINT64_MAX;
	else if (is("choice-text"))
		memset(m->work, 0xe9, sizeof m->work);
	say(&message, MSG_CHOICE);
}

/* Makes an honest worker's message about this tile, except for the mode's error. */
static void say_done(void)
{
	struct message message = {.tile_done = done};
	struct message_tile_done *m = &message.tile_done;

	if (is("other-job"))
		m->job++;
	else if (is("test-job"))
		m->job = UINT64_MAX;
	else if (is("other-tile"))
		m->index += 1000;
	else if (is("launch-times"))
		m->launch[0].ns = m->launch[1].ns = UINT32_MAX, m->launches = 2;
	else if (is("upload-time"))
		m->upload_ns = UINT64_MAX, m->upload_bytes = 1;
	else if (is("times-wrap"))
		m->upload_ns = m->download_ns = UINT64_C(1) << 63;
	else if (is("kernel"))
		m->launch[0].kernel = KERNELS;
	else if (is("launches"))
		m->launches = LAUNCHES_MAX + 1;
	else if (is("stack"))
		m->stack = 0;
	else if (is("stack-huge"))
		m->stack = UINT32_MAX;
	else if (is("place"))
		m->place = m->stack;
	else if (is("error"))
		m->error = ERR_COUNT;
	else if (is("error-of-others"))
		m->error = ERR_TOKEN_MISSING;
	else if (is("reason"))
		memset(m->reason, 'x', sizeof m->reason), m->error = ERR_INTERNAL;
	say(&message, MSG_TILE_DONE);
	if (is("twice"))
		say(&message, MSG_TILE_DONE);
}

/* Messages that are right in some places and anything in others. */
static void say_anything(void)
{
	static const uint64_t numbers[] = {0, 1, 2, 64, 128, UINT32_MAX, UINT64_MAX, 1ull << 62};
	struct message message = {.tile_done = done};
	uint64_t *words = (uint64_t *)(void *)&message.tile_done;

	message.type = (uint32_t)random_number(MESSAGES);
	if (random_number(2))
		message.type = random_number(2) ? MSG_TILE_DONE : MSG_OBJECTS;
	if (message.type != MSG_TILE_DONE)
		memset(&message.tile_done, 0, sizeof message.tile_done);
	for (uint64_t i = random_number(4); i; i--)
		words[random_number(24)] =
		    random_number(2) ? numbers[random_number(8)] : random_number(UINT32_MAX);
	if (!random_number(16))
		say_with_descriptors(WORKER_SOCKET, &message,
		                     8 + (size_t)random_number(sizeof message - 8),
		                     1 + (unsigned)random_number(8));
	else if (!message_fds(message.type))
		say(&message, message.type);
}

static void say_bytes(void)
{
	struct message message = {.type = MSG_OBJECTS};
	char bytes[2 * sizeof message] = {0};
	size_t size = is("oversized") ? sizeof bytes : is("truncated") ? 12 : 3;

	memcpy(bytes, &message, sizeof message);
	if (is("unknown"))
		memset(bytes, 0xff, size = 64);
	if (send(WORKER_SOCKET, bytes, size, MSG_NOSIGNAL) < 0)
		die("send");
}

/* Sends wrong messages that need no tile. */
static void misbehave(void)
{
	struct message message = {.type = MSG_OBJECTS};

	if (is("ready-twice"))
		say_ready();
	else if (is("objects"))
		say_objects(UINT32_MAX);
	else if (is("programs-back"))
		say_programs(2), say_programs(1);
	else if (!strncmp(mode, "choice-", 7))
		say_choice();
	else if (is("no-tile"))
		say_done();
	else if (is("codecs-word"))
		say(&message, MSG_IMAGE);
	else if (is("descriptors"))
		say_with_descriptors(WORKER_SOCKET, &message, 8 + sizeof message.objects, 3);
	else if (is("truncated") || is("oversized") || is("tiny") || is("unknown"))
		say_bytes();
	for (uint32_t i = 0; is("flood"); i++)
		say_objects(i % 2);
}

/* Tries what the arenas and the chain should not allow. */
static void try_files(const struct message *message, const int *fds)
{
	for (unsigned i = 0; i < message_fds(message->type); i++)
		if (!ftruncate(fds[i], 1) || !ftruncate(fds[i], 1 << 30) ||
		    (message->type == MSG_PLAN && pwrite(fds[i], "x", 1, 0) > 0))
			fprintf(stderr, "<4>hostile: %s CAN BE CHANGED\n",
			        message_name(message->type));
}

static void take_tile(const struct tile *tile)
{
	struct message message = {.tile_waits = {.job = tile->job, .index = tile->index}};

	done = (struct message_tile_done){
	    .job = tile->job, .index = tile->index, .stack = 1, .launches = 1};
	while (is("waits"))
		say(&message, MSG_TILE_WAITS);
	for (int i = 0; is("random") && i < 20; i++)
		say_anything();
	say_done();
}

/* Becomes the honest program beside this one. */
static void be_honest(char **argv)
{
	char path[PATH_MAX + 32];
	ssize_t length = readlink("/proc/self/exe", path, PATH_MAX);

	path[length > 0 ? length : 0] = '\0';
	strcpy(strrchr(path, '/'), "/honest-device");
	execv(path, argv);
	die(path);
}

static const char *word(const char *words, unsigned i)
{
	char *all = strdup(words), *rest = all, *found = strsep(&rest, ",");

	while (i-- && rest)
		found = strsep(&rest, ",");
	return found;
}

int main(int argc, char **argv)
{
	struct message message;
	int fds[MESSAGE_FDS_MAX];
	const bool probe = argc > 1 && !strcmp(argv[1], "probe-0");
	unsigned device = 0;

	if (!getenv("CONVOLVED_HOSTILE") || argc < 2)
		return 2;
	sscanf(argv[1], "device-%u", &device);
	mode = word(getenv("CONVOLVED_HOSTILE"), device);
	signal(SIGPIPE, SIG_IGN);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (probe ? !is("probe") : is("probe") || is("honest"))
		be_honest(argv);
	if (!is("no-hello"))
		start_announce("convolved-device", 0);
	if (is("hello-twice"))
		start_announce("convolved-device", 0);
	if (probe)
		say_probed();
	if (is("before-ready"))
		say_objects(1);
	say_ready();
	misbehave();
	for (;;) {
		if (wire_receive(WORKER_SOCKET, &message, fds) != WIRE_MESSAGE)
			die("receive");
		try_files(&message, fds);
		for (unsigned i = 0; i < message_fds(message.type); i++)
			close(fds[i]);
		if (message.type == MSG_TILE)
			take_tile(&message.tile.tile);
	}
}
