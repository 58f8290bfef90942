/* Preloaded: libheif without codecs, which can be packages of their own. HEIF_LACKS names what is
 * missing: "encoder", "decoder" or both. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

struct heif_error {
	int code, detail;
	const char *text;
};

typedef struct heif_error decode(const void *handle, void **image, int space, int chroma,
                                 const void *options);
typedef struct heif_error encode(void *context, const void *image, void *encoder,
                                 const void *options, void **handle);

static const struct heif_error unsupported = {4, 3003, "Unsupported codec"};

static int lacks(const char *what)
{
	const char *all = getenv("HEIF_LACKS");

	return all && strstr(all, what);
}

struct heif_error heif_decode_image(const void *handle, void **image, int space, int chroma,
                                    const void *options)
{
	decode *next = (decode *)dlsym(RTLD_NEXT, "heif_decode_image");

	return lacks("decoder") ? unsupported : next(handle, image, space, chroma, options);
}

struct heif_error heif_context_encode_image(void *context, const void *image, void *encoder,
                                            const void *options, void **handle)
{
	encode *next = (encode *)dlsym(RTLD_NEXT, "heif_context_encode_image");

	return lacks("encoder") ? unsupported : next(context, image, encoder, options, handle);
}
