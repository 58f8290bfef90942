/* A device worker that has been taken over. The tests put it in the place of convolved-device.
 *
 * CONVOLVED_HOSTILE has a word for each device: the act of its worker. `honest`: it is of the
 * program that lies beside this one. The first device's worker lists the devices, so it is honest,
 * unless it spoils the list: `listed-wrong`, `listed-twice`; once, then it is honest. */
#include "hostile.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>

#include "process/start.h"

static const struct lie lies[] = {
    LIE("ready-lanes", READY, ready.lanes, UINT32_MAX),
    LIE("ready-no-lanes", READY, ready.lanes, 0),
    LIE("ready-stack", READY, ready.small_max, UINT32_MAX),
    LIE("ready-memory", READY, ready.memory, UINT64_MAX),
    LIE("ready-time", READY, ready.startup_ms, UINT32_MAX),
    LIE("names", READY, ready.name, 0xe9),
    LIE("names", READY, ready.driver, '\n'),
    LIE("choice-count", CHOICE, choice.count, CANDIDATES_MAX + 1),
    LIE("choice-none", CHOICE, choice.count, 0),
    LIE("choice-chosen", CHOICE, choice.chosen, 1),
    LIE("choice-kernel", CHOICE, choice.candidate[0].kernel, KERNELS),
    LIE("choice-time", CHOICE, choice.candidate[0].ns, UINT64_MAX),
    LIE("choice-samples", CHOICE, choice.samples, UINT64_MAX),
    LIE("choice-text", CHOICE, choice.work, 0xe9),
    LIE("other-job", TILE_DONE, tile_done.job, UINT64_C(1) << 40),
    LIE("test-job", TILE_DONE, tile_done.job, UINT64_MAX),
    LIE("other-tile", TILE_DONE, tile_done.index, 1000),
    LIE("launch-times", TILE_DONE, tile_done.launch[0].ns, UINT32_MAX),
    LIE("launch-times", TILE_DONE, tile_done.launch[1].ns, UINT32_MAX),
    LIE("launch-times", TILE_DONE, tile_done.launches, 2),
    LIE("upload-time", TILE_DONE, tile_done.upload_ns, UINT64_MAX),
    LIE("upload-time", TILE_DONE, tile_done.upload_bytes, 1),
    LIE("times-wrap", TILE_DONE, tile_done.upload_ns, UINT64_C(1) << 63),
    LIE("times-wrap", TILE_DONE, tile_done.download_ns, UINT64_C(1) << 63),
    LIE("kernel", TILE_DONE, tile_done.launch[0].kernel, KERNELS),
    LIE("launches", TILE_DONE, tile_done.launches, LAUNCHES_MAX + 1),
    LIE("stack", TILE_DONE, tile_done.stack, 0),
    LIE("stack-huge", TILE_DONE, tile_done.stack, UINT32_MAX),
    LIE("place", TILE_DONE, tile_done.place, 1),
    LIE("error", TILE_DONE, tile_done.error, ERR_COUNT),
    LIE("error-of-others", TILE_DONE, tile_done.error, ERR_TOKEN_MISSING),
    LIE("reason", TILE_DONE, tile_done.error, ERR_INTERNAL),
    LIE("reason", TILE_DONE, tile_done.reason, 'x'),
};
enum { LIES = sizeof lies / sizeof *lies };

static struct message_tile_done done;

static void say_ready(void)
{
	struct message message = {.ready = {.name = "hostile",
	                                    .driver = "none",
	                                    .memory = UINT64_C(1) << 33,
	                                    .lanes = 4,
	                                    .small_max = 1}};

	say_with_lies(&message, MSG_READY, lies, LIES);
}

/* A device that is there, under no such name, and then an unknown type, or the end without end. */
static void say_list(void)
{
	struct message message = {.device = {.type = DEVICE_CPU}};

	memset(message.device.name, 0xe9, sizeof message.device.name);
	memset(message.device.platform_name, '\r', sizeof message.device.platform_name);
	say(&message, MSG_DEVICE);
	message.device.type = is("listed-wrong") ? DEVICE_ACCELERATOR + 1 : DEVICE_NONE;
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

	say_with_lies(&message, MSG_CHOICE, lies, LIES);
}

/* Makes an honest worker's message about this tile, except for the mode's lie. */
static void say_done(void)
{
	struct message message = {.tile_done = done};

	say_with_lies(&message, MSG_TILE_DONE, lies, LIES);
	if (is("twice"))
		say(&message, MSG_TILE_DONE);
}

/* Messages of every type, which are spoilt. */
static void say_anything(void)
{
	static const enum message_type usual[] = {MSG_TILE_DONE, MSG_OBJECTS};
	const enum message_type type =
	    random_number(2) ? usual[random_number(2)] : (enum message_type)random_number(MESSAGES);
	struct message message = {.cancel = {.job = done.job}};

	if (type == MSG_TILE_DONE)
		message.tile_done = done;
	say(&message, type);
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
	spoils = is("random");
	for (int i = 0; spoils && i < 20; i++)
		say_anything();
	spoils = false;
	say_done();
}

int main(int argc, char **argv)
{
	struct message message;
	int fds[MESSAGE_FDS_MAX];
	unsigned device = 0;
	bool lists;

	if (!getenv("CONVOLVED_HOSTILE") || argc < 2)
		return 2;
	sscanf(argv[1], "device-%u", &device);
	mode = word_of(device);
	signal(SIGPIPE, SIG_IGN);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	lists = !strncmp(mode, "listed-", 7);
	if (is("honest") ||
	    (lists && open(getenv("CONVOLVED_LOCK"), O_RDWR | O_CREAT | O_EXCL, 0600) < 0))
		be_honest("honest-device", argv);
	if (!is("no-hello"))
		start_announce("convolved-device", 0);
	if (is("hello-twice"))
		start_announce("convolved-device", 0);
	if (lists)
		say_list();
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
