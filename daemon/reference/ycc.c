/* YCbCr in double precision, with the slack of float32. */
#include "reference/ycc.h"

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

/* The error of converting a pixel in float32. */
static double noise_of(const double *p)
{
	double noise = FLOAT_NOISE * (fabs(p[0]) + fabs(p[1]) + fabs(p[2]));

	return isfinite(noise) ? noise : 0;
}

/* factor: the maximum over samples of the sum of the coefficients' magnitudes. */
static void each_pixel(struct canvas *c, double middle, void (*convert)(double *, double),
                       double factor)
{
	for (size_t i = 0; i < canvas_samples(c); i += c->bands) {
		double *s = &c->slack[i];
		double slack = factor * fmax(s[0], fmax(s[1], s[2])) + noise_of(&c->value[i]);

		convert(&c->value[i], middle);
		for (size_t b = 0; b < 3; b++)
			s[b] = slack;
	}
	c->exact = false;
}

void ycc_convert(struct canvas *c, double middle)
{
	each_pixel(c, middle, ycc_from_rgb, 1);
}

void ycc_convert_back(struct canvas *c, double middle)
{
	each_pixel(c, middle, ycc_to_rgb, 1 + 1.772);
}
