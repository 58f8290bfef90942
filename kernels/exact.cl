/* exact.cl: stands before the general kernels, whose results have the same bits on every device.
 *
 * Additions, products, fma(), divisions and square roots are rounded correctly (the latter two by
 * -cl-fp32-correctly-rounded-divide-sqrt); nothing is contracted. Functions that OpenCL lets a
 * device round freely are defined here, with errors of some units in the last place. Sums are taken
 * in an order that depends neither on tiles nor on the number of work-items. */
#pragma OPENCL FP_CONTRACT OFF

/* Returns 2^(n + f), where n is whole and |f| hardly above 1/2: its series, to a term of 2^-27. */
FORCE_INLINE float16 exact_power_of_2(float16 n, float16 f)
{
	const int16 low = convert_int16(n) >> 1, high = convert_int16(n) - low;
	float16 p = 1.525273380e-5f;

	p = fma(p, f, (float16)(1.540353039e-4f));
	p = fma(p, f, (float16)(1.333355815e-3f));
	p = fma(p, f, (float16)(9.618129108e-3f));
	p = fma(p, f, (float16)(5.550410866e-2f));
	p = fma(p, f, (float16)(2.402265070e-1f));
	p = fma(p, f, (float16)(6.931471806e-1f));
	p = fma(p, f, (float16)(1.0f));
	/* In two steps, for results below the smallest normal number, or infinite. */
	return p * as_float16((low + 127) << 23) * as_float16((high + 127) << 23);
}

FORCE_INLINE float16 exact_exp2(float16 x)
{
	const float16 n = rint(x);

	return exact_power_of_2(n, x - n);
}

/* Returns t^exponent for t >= 0. log2(t) = e + log2(m), m around 1, by the series of the area
 * tangent. */
FORCE_INLINE float16 exact_powr(float16 t, float exponent)
{
	const int16 tiny = t < FLT_MIN;
	const float16 normal = select(t, t * 0x1p24f, tiny);
	const int16 e = (as_int16(normal) - 0x3f3504f3) >> 23; /* m from sqrt(1/2) to sqrt(2) */
	const float16 m = as_float16(as_int16(normal) - (e << 23));
	const float16 s = (m - 1.0f) / (m + 1.0f), z = s * s;
	const float16 whole = convert_float16(e - (tiny & 24)), product = whole * exponent;
	float16 part = 3.205989e-1f, n, result;

	part = fma(part, z, (float16)(4.121985831e-1f));
	part = fma(part, z, (float16)(5.770780164e-1f));
	part = fma(part, z, (float16)(9.617966939e-1f));
	part = fma(part, z, (float16)(2.885390082f)) * s * exponent;
	n = clamp(rint(product + part), -200.0f, 200.0f);
	result = exact_power_of_2(
	    n, clamp(product - n + part + fma(whole, (float16)(exponent), -product), -1.0f, 1.0f));
	return select(t + 0.0f, result, t > 0.0f && t < INFINITY);
}

/* Returns atan2(y, x) by the quotient q of the smaller and the larger, or (q - 1) / (q + 1) and an
 * eighth of a turn (Moshier, "Methods and Programs for Mathematical Functions", 1989). */
FORCE_INLINE float16 exact_atan2(float16 y, float16 x)
{
	const float16 a = fabs(y), b = fabs(x);
	const int16 steep = a > b, none = a == 0.0f, alike = a == b;
	const float16 q = select(select(a, b, steep) / select(b, a, steep), (float16)(1.0f), alike);
	const int16 high = q > 0.4142135624f;
	const float16 r = select(q, (q - 1.0f) / (q + 1.0f), high), z = r * r;
	float16 p = 8.05374449538e-2f, angle;

	p = fma(p, z, (float16)(-1.38776856032e-1f));
	p = fma(p, z, (float16)(1.99777106478e-1f));
	p = fma(p, z, (float16)(-3.33329491539e-1f));
	angle = fma(p * z, r, r);
	angle = select(angle, angle + 0.7853981634f, high);
	angle = select(angle, 1.5707963268f - angle, steep);
	angle = select(angle, (float16)(0.0f), none);
	angle = select(angle, 3.1415926536f - angle, as_int16(x) < 0);
	return copysign(angle, y);
}
