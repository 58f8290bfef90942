/* What an answer loses of its image by how it is written. */
#ifndef COMMON_LOSSES_H
#define COMMON_LOSSES_H

enum loss {
#define LOSS(symbol, token, text) LOSS_##symbol,
#include "common/losses.def"
#undef LOSS
	LOSSES
};

/* The token that clients read, and what it means. */
const char *loss_token(enum loss loss);
const char *loss_text(enum loss loss);

#endif
