/* Each version of Landlock adds access rights (landlock(7)), and headers lag behind: each right is
 * requested only from the version that introduced it. */
#include "common/landlock.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { CREATE_RULESET_VERSION = 1, RULE_PATH_BENEATH = 1 };

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
	struct beneath rule = {.allowed = files,
	                       .directory = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC)};
	long failed;

	if (rule.directory < 0)
		return ERR_OK;
	failed = syscall(SYS_landlock_add_rule, ruleset, RULE_PATH_BENEATH, &rule, 0);
	close(rule.directory);
	return failed ? ERR_IO : ERR_OK;
}

enum error landlock_enter(const char *const *writable, size_t count, int *abi)
{
	long version = syscall(SYS_landlock_create_ruleset, NULL, 0, CREATE_RULESET_VERSION);
	struct ruleset rules;
	enum error e = ERR_OK;
	int fd;

	*abi = version > 0 ? (int)version : 0;
	if (!*abi)
		return ERR_OK;
	rules = choose(*abi, !writable);
	fd = (int)syscall(SYS_landlock_create_ruleset, &rules, ruleset_size(*abi), 0);
	if (fd < 0)
		return ERR_IO;
	for (size_t i = 0; !e && i < count; i++)
		if (writable[i])
			e = allow(fd, writable[i], rules.files);
	if (!e && syscall(SYS_landlock_restrict_self, fd, 0))
		e = ERR_IO;
	close(fd);
	return e;
}
