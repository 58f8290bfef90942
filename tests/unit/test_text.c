/* The small modules below all others: text, file, memfd. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memfd.h"
#include "base/text.h"
#include "unit.h"

/* A slip of the fingers is near, another word is not; the nearest wins, and of two the first. */
TEST(test_nearest)
{
	static const char *const words[] = {"box", "gaussian", "gauss",
	                                    "a-word-of-more-than-31-characters"};
	static const struct {
		const char *said;
		int meant; /* index, or -1 */
	} cases[] = {{"bix", 0},    {"bo", 0},
	             {"", -1},      {"xyz", -1},
	             {"gauss", 2},  {"gausian", 1},
	             {"gaus", 2},   {"gaussia", 1},
	             {"sobel", -1}, {"a-word-of-more-than-31-charakters", 3}};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		size_t least = TEXT_NEAR_MAX;
		int nearest = -1;

		for (int w = 0; w < 4; w++)
			if (text_is_nearer(cases[i].said, words[w], &least))
				nearest = w;
		assert_int_equal(nearest, cases[i].meant);
	}
}

/* Others' texts command no terminal: C0, DEL and C1, as a character and as a byte, go; letters
 * stay, also those whose bytes include one of C1. */
TEST(test_flatten)
{
	static const struct {
		const char *said, *shown;
	} cases[] = {
	    {"plain", "plain"},
	    {"a\x1b[2J\nb\x7f", "a?[2J?b?"},
	    {"\xc2\x9b"
	     "2J\xc2\x80\xc2\x9f\xc2\xa0",
	     "??2J????\xc2\xa0"},
	    {"\x9b"
	     "2J\x80",
	     "?2J?"},
	    {"\xc3\x9b\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\x9b\xe2\x82\xac\xf0\x9f\x98\x80"},
	    {"\xc2", "\xc2"},
	    {"\xe2\x82", "\xe2?"},
	    {"\xe2\x82\xc3\x9b", "\xe2?\xc3\x9b"},
	    {"", ""},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char text[32];

		strcpy(text, cases[i].said);
		utf8_flatten(text);
		assert_string_equal(text, cases[i].shown);
	}
}

TEST(test_memory)
{
	int fd, read_only;
	char data[6];

	assert_int_equal(memfd_fixed("test", 8192, &fd), ERR_OK);
	assert_int_not_equal(ftruncate(fd, 4096), 0);
	assert_int_equal(memfd_reopen(fd, O_RDONLY, &read_only), ERR_OK);
	assert_ptr_equal(mmap(NULL, 4096, PROT_WRITE, MAP_SHARED, read_only, 0), MAP_FAILED);
	close(fd);
	close(read_only);
	assert_int_equal(memfd_sealed("test", "hello", 6, &fd), ERR_OK);
	assert_true(pwrite(fd, "x", 1, 0) < 0);
	assert_true(file_read(fd, data, 6, 0));
	assert_string_equal(data, "hello");
	assert_false(file_write(fd, "x", 1, 0));
	close(fd);
}

TEST(test_file)
{
	int fd = memfd_create("test", 0);
	char buffer[8];

	assert_true(file_write(fd, "hello", 5, 3));
	assert_true(file_read(fd, buffer, 8, 0));
	assert_memory_equal(buffer, "\0\0\0hello", 8);
	errno = 0;
	assert_false(file_read(fd, buffer, 6, 3));
	assert_int_equal(errno, EIO);
	assert_true(file_read(fd, buffer, 0, 9));
	close(fd);
}
