/* samples_rows.cl: each sample by itself, in wide vectors of floats, for CPUs.
 *
 * threshold_rows, curve_rows: the results of general/threshold.cl and curve.cl. t^exponent is
 * 2^(exponent log2 t), by functions that PoCL has for vectors; a power of floats to floats takes it
 * four times as long. A square root has an instruction.
 *
 * A work-item makes a block of BLOCK_Y rows, one after another. At least 16 samples a row. */

enum samples_power { POWER_NONE, POWER_ROOT, POWER_ANY };

/* The arguments of curve_rows. */
struct samples_curve {
	float4 gain, bias;
	float low, high, exponent, scale, shift;
};

/* Parameters of 16 samples; the first is sample x of its row. */
FORCE_INLINE float16 samples_values(float4 by_band, const bool many, uint x)
{
	return many ? band_values(by_band, x, BANDS) : (float16)(by_band.s0);
}

/* Returns the lines of a row that wide_store() may write past the cache. */
FORCE_INLINE ulong2 samples_lines(target_row out, uint2 span)
{
	return stream_lines(out + span.x, out + span.y, VECTOR * sizeof(PIXEL));
}

FORCE_INLINE void samples_curve_row(const struct samples_curve *how,
                                    const enum samples_power power, const bool many,
                                    source_row in, target_row out, uint2 span)
{
	const ulong2 lines = samples_lines(out, span);

	for (uint i = span.x; i < span.y; i += VECTOR) {
		const uint x = min(i, span.y - VECTOR);
		float16 t = fma(pixel_load(in + x, VECTOR), samples_values(how->gain, many, x),
		                samples_values(how->bias, many, x));

		t = WITHIN(t, (float16)(how->low), (float16)(how->high));
		if (power == POWER_ROOT)
			t = sqrt(t);
		if (power == POWER_ANY)
			t = exp2(log2(t) * how->exponent);
		wide_store(fma(t, (float16)(how->scale), (float16)(how->shift)), in + x, out + x, x,
		           lines);
	}
}

FORCE_INLINE void samples_threshold_row(float4 limits, float full, const bool many, source_row in,
                                        target_row out, uint2 span)
{
	const ulong2 lines = samples_lines(out, span);

	for (uint i = span.x; i < span.y; i += VECTOR) {
		const uint x = min(i, span.y - VECTOR);
		const float16 v = pixel_load(in + x, VECTOR);

		wide_store(select((float16)(0.0f), (float16)(full),
		                  v > samples_values(limits, many, x)),
		           in + x, out + x, x, lines);
	}
}

/* The work-item's rows of the source and the target, one after another. */
struct samples_place {
	const global uchar *in;
	global uchar *out;
	uint src_pitch, dst_pitch, count;
	uint2 span;
};

FORCE_INLINE void samples_curve(const struct samples_curve *how, const enum samples_power power,
                                const bool many, struct samples_place p)
{
	for (uint r = 0; r < p.count; r++)
		samples_curve_row(how, power, many, (source_row)(p.in + (ulong)r * p.src_pitch),
		                  (target_row)(p.out + (ulong)r * p.dst_pitch), p.span);
}

FORCE_INLINE void samples_threshold(float4 limits, float full, const bool many,
                                    struct samples_place p)
{
	for (uint r = 0; r < p.count; r++)
		samples_threshold_row(limits, full, many,
		                      (source_row)(p.in + (ulong)r * p.src_pitch),
		                      (target_row)(p.out + (ulong)r * p.dst_pitch), p.span);
}

#define SAMPLES_PLACE                                                                              \
	const uint y = get_global_id(1) * BLOCK_Y;                                                 \
	const struct samples_place place = {(const global uchar *)SOURCE_ROW(y),                   \
	                                    (global uchar *)TARGET_ROW(y),                         \
	                                    src_pitch,                                             \
	                                    dst_pitch,                                             \
	                                    min(rows - y, (uint)BLOCK_Y),                          \
	                                    block_span(samples, blocks, get_global_id(0))};

#define SAMPLES_KERNEL kernel __attribute__((reqd_work_group_size(1, 1, 1))) void

SAMPLES_KERNEL threshold_rows(REGION_ARGUMENTS, float4 limits, float full, uint by_band, uint keep)
{
	SAMPLES_PLACE
	if (BANDS > 1 && by_band)
		samples_threshold(limits, full, true, place);
	else
		samples_threshold(limits, full, false, place);
}

SAMPLES_KERNEL curve_rows(REGION_ARGUMENTS, float4 gain, float4 bias, float low, float high,
                          float exponent, float scale, float shift, uint by_band, uint keep)
{
	const struct samples_curve how = {gain, bias, low, high, exponent, scale, shift};
	const bool many = BANDS > 1 && by_band;

	SAMPLES_PLACE
	if (exponent == 1.0f && !many)
		samples_curve(&how, POWER_NONE, false, place);
	else if (exponent == 1.0f)
		samples_curve(&how, POWER_NONE, true, place);
	else if (exponent == 0.5f)
		samples_curve(&how, POWER_ROOT, many, place);
	else
		samples_curve(&how, POWER_ANY, many, place);
}
