/* Preloaded: libheif without codecs, which can be packages of their own. HEIF_LACKS names the
 * missing ones: "encoder", "decoder" or both. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

static int lacks(const char *what)
{
	const char *all = getenv("HEIF_LACKS");

	return all && strstr(all, what);
}

#define LACKING(what)                                                                              \
	int heif_have_##what##_for_format(int format)                                              \
	{                                                                                          \
		int (*next)(int) = (int (*)(int))dlsym(RTLD_NEXT, __func__);                       \
                                                                                                   \
		return lacks(#what) ? 0 : next(format);                                            \
	}

LACKING(decoder)
LACKING(encoder)
