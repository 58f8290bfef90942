#include "codec/file_metadata.h"

#include <stdlib.h>

void file_metadata_free(struct file_metadata *m)
{
	exif_block_free(&m->exif);
	for (size_t i = 0; i < sizeof m->inflated / sizeof *m->inflated; i++)
		free(m->inflated[i]);
}

bool file_metadata_upright(const struct file_metadata *m)
{
	return !m->exif || exif_block_orientation(m->exif) == 1;
}
