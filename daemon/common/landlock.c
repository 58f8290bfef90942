/* Each version of Landlock adds access rights (landlock(7)), and headers lag behind: each right is
 * requested only from the version that introduced it. */
#include "common/landlock.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { CREATE_RULESET_VERSION = 1, RULE_PATH_BENEATH = 1, RULE_NET_PORT = 2 };

enum {
	FS_EXECUTE = 1 << 0,
	FS_WRITE_FILE = 1 << 1,
	FS_READ_FILE = 1 << 2,
	FS_READ_DIR = 1 << 3,
	FS_REMOVE_AND_MAKE = 0x1ff << 4,
	FS_REFER = 1 << 13,
	FS_TRUNCATE = 1 << 14,
	FS_IOCTL_DEVICE = 1 << 15,
	NET_BIND_AND_CONNECT_TCP = 3,
	NET_CONNECT_TCP = 2,
	SCOPE_ABSTRACT_SOCKETS_AND_SIGNALS = 3,
};

struct ruleset {
	uint64_t files, net, scopes;
};

struct beneath {
	uint64_t allowed;
	int32_t directory;
} __attribute__((packed));

static struct ruleset choose(int abi, bool all_files)
{
	struct ruleset r = {.files = FS_WRITE_FILE | FS_REMOVE_AND_MAKE};

	if (abi >= 2)
		r.files |= FS_REFER;
	if (abi >= 3)
		r.files |= FS_TRUNCATE;
	if (abi >= 4)
		r.net = NET_BIND_AND_CONNECT_TCP;
	if (abi >= 6)
		r.scopes = SCOPE_ABSTRACT_SOCKETS_AND_SIGNALS;
	if (all_files)
		r.files |=
		    FS_EXECUTE | FS_READ_FILE | FS_READ_DIR | (abi >= 5 ? FS_IOCTL_DEVICE : 0);
	return r;
}

static size_t ruleset_size(int abi)
{
	return abi < 4 ? 8 : abi < 6 ? 16 : sizeof(struct ruleset);
}

static enum error allow(int ruleset, const char *path, uint64_t files)
{
	struct beneath rule = {.allowed = files, .directory = open(path, O_PATH | O_CLOEXEC)};
	struct stat status;
	long failed;

	if (rule.directory < 0)
		return ERR_OK;
	if (!fstat(rule.directory, &status) && !S_ISDIR(status.st_mode))
		rule.allowed &= FS_EXECUTE | FS_WRITE_FILE | FS_READ_FILE | FS_TRUNCATE;
	failed = syscall(SYS_landlock_add_rule, ruleset, RULE_PATH_BENEATH, &rule, 0);
	close(rule.directory);
	return failed ? ERR_IO : ERR_OK;
}

/* Begins a ruleset that forbids all. *ruleset: -1 if the kernel has none. */
static enum error begin(bool all_files, int *abi, struct ruleset *rules, int *ruleset)
{
	long version = syscall(SYS_landlock_create_ruleset, NULL, 0, CREATE_RULESET_VERSION);

	*abi = version > 0 ? (int)version : 0;
	*ruleset = -1;
	if (!*abi)
		return ERR_OK;
	*rules = choose(*abi, all_files);
	*ruleset = (int)syscall(SYS_landlock_create_ruleset, rules, ruleset_size(*abi), 0);
	return *ruleset < 0 ? ERR_IO : ERR_OK;
}

/* Enters it unless something has failed before. */
static enum error enter(int ruleset, enum error e)
{
	if (!e && syscall(SYS_landlock_restrict_self, ruleset, 0))
		e = ERR_IO;
	close(ruleset);
	return e;
}

enum error landlock_enter(const char *const *writable, size_t count, int *abi)
{
	struct ruleset rules;
	int fd;
	enum error e = begin(!writable, abi, &rules, &fd);

	if (fd < 0)
		return e;
	for (size_t i = 0; !e && i < count; i++)
		if (writable[i])
			e = allow(fd, writable[i], rules.files);
	return enter(fd, e);
}

enum error landlock_enter_client(const struct landlock_client *client, int *abi)
{
	struct ruleset rules;
	int fd;
	enum error e = begin(true, abi, &rules, &fd);

	if (fd < 0)
		return e;
	for (size_t i = 0; !e && i < client->readable_count; i++)
		if (client->readable[i])
			e = allow(fd, client->readable[i], FS_READ_FILE | FS_READ_DIR);
	for (size_t i = 0; !e && rules.net && i < client->port_count; i++) {
		const struct {
			uint64_t allowed, port;
		} rule = {NET_CONNECT_TCP, client->ports[i]};

		if (syscall(SYS_landlock_add_rule, fd, RULE_NET_PORT, &rule, 0))
			e = ERR_IO;
	}
	return enter(fd, e);
}
