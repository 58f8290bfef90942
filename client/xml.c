/* Texts of elements. */
#include "client/xml.h"

#include <string.h>

void xml_text(const char *xml, const char *element, char *text, size_t size)
{
	static const struct {
		const char *name;
		char c;
	} entities[] = {
	    {"&lt;", '<'}, {"&gt;", '>'}, {"&amp;", '&'}, {"&quot;", '"'}, {"&apos;", '\''}};
	size_t length = strlen(element), used = 0;
	const char *at = xml ? strstr(xml, element) : NULL;

	*text = '\0';
	while (at && (at == xml || at[-1] != '<' || at[length] != '>'))
		at = strstr(at + 1, element);
	if (!at)
		return;
	for (at += length + 1; *at && *at != '<' && used + 1 < size; used++) {
		text[used] = *at++;
		for (size_t i = 0; text[used] == '&' && i < sizeof entities / sizeof *entities; i++)
			if (!strncmp(at - 1, entities[i].name, strlen(entities[i].name))) {
				at += strlen(entities[i].name) - 1;
				text[used] = entities[i].c;
				break;
			}
	}
	text[used] = '\0';
}
