/* YCbCr, in double precision. */
#include "common/ycc.h"

#include <math.h>

void ycc_from_rgb(double *p, double middle)
{
	double y = 0.299 * p[0] + 0.587 * p[1] + 0.114 * p[2];
	double cb = (p[2] - y) / 1.772 + middle, cr = (p[0] - y) / 1.402 + middle;

	p[0] = y;
	p[1] = cb;
	p[2] = cr;
}

void ycc_to_rgb(double *p, double middle)
{
	double red = p[0] + 1.402 * (p[2] - middle), blue = p[0] + 1.772 * (p[1] - middle);

	p[1] = (p[0] - 0.299 * red - 0.114 * blue) / 0.587;
	p[0] = red;
	p[2] = blue;
}

/* Slacks go through the magnitudes of the coefficients. */
static void slack_from_rgb(double *s)
{
	double y = 0.299 * s[0] + 0.587 * s[1] + 0.114 * s[2];
	double cb = 0.168736 * s[0] + 0.331264 * s[1] + 0.5 * s[2];
	double cr = 0.5 * s[0] + 0.418688 * s[1] + 0.081312 * s[2];

	s[0] = y;
	s[1] = cb;
	s[2] = cr;
}

static void slack_to_rgb(double *s)
{
	double y = s[0], cb = s[1], cr = s[2];

	s[0] = y + 1.402 * cr;
	s[1] = y + 0.344137 * cb + 0.714137 * cr;
	s[2] = y + 1.772 * cb;
}

/* What the conversion of a pixel loses in float32. */
static double noise_of(const double *p)
{
	double noise = FLOAT_NOISE * (fabs(p[0]) + fabs(p[1]) + fabs(p[2]));

	return isfinite(noise) ? noise : 0;
}

static void each_pixel(struct canvas *c, double middle, void (*value)(double *, double),
                       void (*slack)(double *))
{
	for (size_t i = 0; i < canvas_samples(c); i += c->bands) {
		double noise = noise_of(&c->value[i]);

		value(&c->value[i], middle);
		slack(&c->slack[i]);
		for (size_t b = 0; b < 3; b++)
			c->slack[i + b] += noise;
	}
	c->exact = false;
}

void ycc_convert(struct canvas *c, double middle)
{
	each_pixel(c, middle, ycc_from_rgb, slack_from_rgb);
}

void ycc_convert_back(struct canvas *c, double middle)
{
	each_pixel(c, middle, ycc_to_rgb, slack_to_rgb);
}
