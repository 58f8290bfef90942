/* border.h: the one definition of pixels outside an image, for C and OpenCL C alike.
 *
 * Modes are numbered as enum border in daemon/image/image.h. `constant` has no source pixel and
 * `crop` never looks outside; neither is mapped here. */
#ifndef BORDER_H
#define BORDER_H

/* Returns the place inside [0, n) whose value stands for place i. mode: 0 replicate aaa|abc|ccc, 1
 * reflect cba|abc|cba, 2 reflect101 dcb|abcd|cba, 3 wrap abc|abc|abc. Defined for every i, however
 * far outside: the modes are periodic, of period 2n, 2n-2 and n. n >= 1. */
static inline int border_map(int i, int n, int mode)
{
	int period, m;

	if (i >= 0 && i < n)
		return i;
	if (mode == 0)
		return i < 0 ? 0 : n - 1;
	if (mode == 2 && n == 1)
		return 0;
	period = mode == 1 ? 2 * n : mode == 2 ? 2 * n - 2 : n;
	m = i % period;
	if (m < 0)
		m += period;
	if (m < n)
		return m;
	return mode == 1 ? period - 1 - m : period - m;
}

#endif
