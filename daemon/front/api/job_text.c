#include "front/api/job_text.h"

#include <stdio.h>

#include "front/workers/device_table.h"

void job_text_devices(const struct job *job, char *text, size_t room)
{
	size_t used = 0;

	*text = '\0';
	for (unsigned i = 0; i < devices_count(); i++)
		if (job->devices_used >> i & 1 && used < room)
			used += (size_t)snprintf(text + used, room - used, "%s%s", used ? "," : "",
			                         device_get(i)->label);
}

void job_text_filters(const struct job *job, char *text, size_t room)
{
	const struct chain *chain = job->asked->chain;
	size_t used = 0;

	*text = '\0';
	for (uint32_t i = 0; i < chain->count && used < room; i++) {
		const struct filter_call *call = &chain->call[i];

		used += (size_t)snprintf(text + used, room - used, "%s%s%s%s", i ? "," : "",
		                         call->channels ? channels_name(call->channels) : "",
		                         call->channels ? ":" : "", filter_name(call->filter));
	}
}

void job_text_image(const struct job *job, char *text, size_t room)
{
	const struct image *image = &job->whole;

	*text = '\0';
	if (job->image_known)
		snprintf(text, room, "%ux%ux%u:%s", image->width, image->height, image->bands,
		         pixel_type_name(image->type));
}
