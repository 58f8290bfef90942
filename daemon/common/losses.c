/* Losses: see losses.def. */
#include "common/losses.h"

static const struct {
	const char *token, *text;
} losses[LOSSES] = {
#define LOSS(symbol, token, text) [LOSS_##symbol] = {token, text},
#include "common/losses.def"
#undef LOSS
};

const char *loss_token(enum loss loss)
{
	return losses[loss].token;
}

const char *loss_text(enum loss loss)
{
	return losses[loss].text;
}
