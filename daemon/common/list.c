/* Lists of words: see list.h. */
#include "common/list.h"

#include <stdio.h>
#include <string.h>

void list_add(char *list, size_t size, const char *word)
{
	size_t used = strlen(list);

	snprintf(list + used, size - used, "%s%s", used ? ", " : "", word);
}
