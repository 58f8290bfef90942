/* The addresses that the service listens at; tests/http/test_access.py asks others than these. */
#include <getopt.h>

#include "front/config/load.h"
#include "front/listeners.h"
#include "unit.h"

static void load(struct config *settings, int argc, char **argv)
{
	optind = 1;
	config = settings;
	assert_int_equal(config_load(settings, argc, argv), CONFIG_RUN);
}

/* The defaults are a loopback address and a Unix socket; there may be no place for that one, unless
 * it was asked for. */
TEST(test_listen)
{
	char *argv[] = {"convolved", "--listen", "unix:/nonexistent/socket", NULL};
	struct listener list[LISTENERS_MAX];
	struct config settings;

	load(&settings, 1, argv);
	assert_int_equal(listener_list(list), 2);
	for (int i = 0; i < 2; i++)
		assert_true(list[i].local && !list[i].at.tls && list[i].use == LISTENER_CLIENTS);
	assert_string_equal(list[0].at.text, "127.0.0.1:8700");
	assert_true(list[1].optional && !list[0].optional);
	assert_true(address_parse("unix:/nonexistent/socket", &list[1].at));
	assert_int_equal(listener_open(&list[1]), ERR_OK);
	assert_int_equal(list[1].fd, -1);
	config_fini(&settings);
	load(&settings, 3, argv);
	assert_int_equal(listener_list(list), 1);
	assert_int_equal(listener_open(&list[0]), ERR_IO);
	config_fini(&settings);
}
