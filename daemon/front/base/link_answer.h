/* An answer as the data of a message, for link.h. */
#ifndef FRONT_BASE_LINK_ANSWER_H
#define FRONT_BASE_LINK_ANSWER_H

#include "common/answer.h"
#include "front/base/link.h"

/* Sends an answer. stream: its body comes in pieces. A text that is too long for a message goes as
 * a file. False: it cannot be sent. */
bool link_send_answer(struct link *link, uint64_t number, const struct answer *answer, bool stream);

/* Reads an answer, which holds what it needs of the data (*kept, to be freed after it); it owns
 * the text but not the file; fd: that of ANSWER_FILE, or -1. ERR_BAD_REQUEST: it is none. */
enum error link_read_answer(struct answer *answer, char **kept, const struct link_message *message,
                            const char *data, size_t size, int fd) MUST_CHECK;

#endif
