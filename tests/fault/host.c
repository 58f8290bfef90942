/* Preloaded into the service (LD_PRELOAD): a host that is not as it should be.
 *
 * CONVOLVED_HOST_CLOCK names a file with an int64_t: the seconds by which CLOCK_REALTIME is ahead.
 * It may change at any time; waits until a moment of that clock end by it, too. CONVOLVED_HOST_WMEM
 * stands for net.core.wmem_max: a socket's buffer gets no more bytes if it is given a size;
 * CONVOLVED_HOST_WMEM_DEFAULT for net.core.wmem_default: it has so many otherwise. */
#undef _FORTIFY_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const int64_t none;
static const volatile int64_t *ahead = &none;

#define REAL(function) ((__typeof__(&function))(intptr_t)dlsym(RTLD_NEXT, #function))

/* Later, a sandbox lets no file be opened. */
__attribute__((constructor)) static void begin(void)
{
	const char *path = getenv("CONVOLVED_HOST_CLOCK");
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	void *clock = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof *ahead, PROT_READ, MAP_SHARED, fd, 0);

	if (clock != MAP_FAILED)
		ahead = clock;
	if (fd >= 0)
		close(fd);
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
	static _Atomic(__typeof__(&clock_gettime)) real;
	int failed;

	if (!real)
		real = REAL(clock_gettime);
	failed = real(clock, now);
	if (!failed && clock == CLOCK_REALTIME)
		now->tv_sec += *ahead;
	return failed;
}

time_t time(time_t *to)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	if (to)
		*to = now.tv_sec;
	return now.tv_sec;
}

int gettimeofday(struct timeval *restrict to, void *restrict zone)
{
	struct timespec now;

	(void)zone;
	clock_gettime(CLOCK_REALTIME, &now);
	*to = (struct timeval){.tv_sec = now.tv_sec, .tv_usec = now.tv_nsec / 1000};
	return 0;
}

int pthread_timedjoin_np(pthread_t thread, void **returned, const struct timespec *until)
{
	struct timespec now;
	int failed;

	while ((failed = pthread_tryjoin_np(thread, returned)) == EBUSY) {
		clock_gettime(CLOCK_REALTIME, &now);
		if (now.tv_sec > until->tv_sec)
			return ETIMEDOUT;
		usleep(1000);
	}
	return failed;
}

int setsockopt(int fd, int level, int name, const void *value, socklen_t size)
{
	const char *most = getenv("CONVOLVED_HOST_WMEM");
	int limit = most ? atoi(most) : 0;

	if (most && level == SOL_SOCKET && name == SO_SNDBUF && *(const int *)value > limit)
		value = &limit;
	return REAL(setsockopt)(fd, level, name, value, size);
}

int socketpair(int domain, int type, int protocol, int fds[2])
{
	const char *given = getenv("CONVOLVED_HOST_WMEM_DEFAULT");
	int half = given ? atoi(given) / 2 : 0; /* Linux doubles what it is told */
	int failed = REAL(socketpair)(domain, type, protocol, fds);

	for (int i = 0; i < 2 && given && !failed; i++)
		REAL(setsockopt)(fds[i], SOL_SOCKET, SO_SNDBUF, &half, sizeof half);
	return failed;
}
