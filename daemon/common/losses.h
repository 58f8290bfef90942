/* What an answer's format loses from its image. */
#ifndef COMMON_LOSSES_H
#define COMMON_LOSSES_H

enum loss {
#define LOSS(symbol, token, text) LOSS_##symbol,
#include "common/losses.def"
#undef LOSS
	LOSSES
};

/* The token that clients read, and its meaning. */
const char *loss_token(enum loss loss);
const char *loss_text(enum loss loss);

#endif
