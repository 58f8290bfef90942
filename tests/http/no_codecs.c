/* Preloaded: libheif without codecs, which can be packages of their own. HEIF_LACKS names the
 * missing ones: "encoder", "decoder" or both. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

typedef int query(int format);

static int lacks(const char *what)
{
	const char *all = getenv("HEIF_LACKS");

	return all && strstr(all, what);
}

int heif_have_decoder_for_format(int format)
{
	query *next = (query *)dlsym(RTLD_NEXT, "heif_have_decoder_for_format");

	return lacks("decoder") ? 0 : next(format);
}

int heif_have_encoder_for_format(int format)
{
	query *next = (query *)dlsym(RTLD_NEXT, "heif_have_encoder_for_format");

	return lacks("encoder") ? 0 : next(format);
}
