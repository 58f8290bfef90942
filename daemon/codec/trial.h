/* Tries the formats whose codecs may be missing though libvips has their operations. */
#ifndef CODEC_TRIAL_H
#define CODEC_TRIAL_H

/* Reads and writes a tiny image of each, and takes from the repertoire what fails. Call it in the
 * sandbox, where the codecs are to work, and where what libvips starts for it stays. */
void trial_run(void);

#endif
