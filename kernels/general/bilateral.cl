/* bilateral.cl: smooths, but not across edges.
 *
 * out = sum of w in(x + i, y + j) / sum of w over i² + j² <= radius², with
 * w = exp2(space (i² + j²) + range e²), 0 below 2^-100; e² sums the squared differences of the colour
 * bands that are not kept to those at (x, y). With alpha, the last band, w for colour is w times alpha there; colour is
 * 0 where these sum to 0.
 * Tomasi and Manduchi, "Bilateral Filtering for Gray and Color Images", 1998.
 *
 * A work-item makes one row of a block, 16 pixels at a time, the bands of a pixel in four vectors.
 * At the row's end fewer lanes are loaded and stored. */

enum { BANDS_MAX = 4 };

/* Weights of less than 2^BILATERAL_LEAST count as 0, since floats end not far below. */
#define BILATERAL_LEAST -100.0f

/* Loads one band of the first `width` of 16 pixels. */
FORCE_INLINE float16 band_load(source_row p, uint bands, uint band, uint width)
{
	float part[VECTOR];

	if (bands == 1)
		return pixel_load(p, width);
	for (uint i = 0; i < VECTOR; i++)
		part[i] = i < width ? convert_float(p[i * bands + band]) : 0.0f;
	return vload16(0, part);
}

FORCE_INLINE void band_store(float16 v, target_row p, uint bands, uint band, uint width)
{
	PIXEL part[VECTOR];

	if (bands == 1) {
		pixel_store(v, p, width);
		return;
	}
	vstore16(PIXEL_ROUND(v), 0, part);
	for (uint i = 0; i < width; i++)
		p[i * bands + band] = part[i];
}

/* Sums over a window; with alpha, the last band's sum is that of w times alpha. */
struct window {
	float16 band[BANDS_MAX], weight;
};

/* Adds the pixels at p, which lie at a distance that weighs 2^space. */
FORCE_INLINE void window_add(struct window *sum, const float16 centre[BANDS_MAX], source_row p,
                             uint bands, uint alpha, uint keep, float space, float range, uint width)
{
	float16 v[BANDS_MAX], e = 0.0f, w, opacity;

#pragma unroll
	for (uint b = 0; b < BANDS_MAX; b++)
		v[b] = b < bands ? band_load(p, bands, b, width) : 0.0f;
#pragma unroll
	for (uint b = 0; b < BANDS_MAX; b++)
		if (b + alpha < bands && !(keep >> b & 1))
			e = fma(v[b] - centre[b], v[b] - centre[b], e);
	e = fma(e, (float16)(range), (float16)(space));
	w = select((float16)(0.0f), exact_exp2(e), e >= BILATERAL_LEAST);
	sum->weight += w;
	opacity = !alpha ? (float16)(1.0f) : bands == 2 ? v[1] : v[3];
#pragma unroll
	for (uint b = 0; b < BANDS_MAX; b++)
		sum->band[b] = b + alpha < bands ? fma(w * opacity, v[b], sum->band[b])
		                                 : fma(w, opacity, sum->band[b]);
}

/* Filters the first `width` of the 16 pixels at `in`. */
FORCE_INLINE void bilateral_pixels(source_row in, uint pitch, target_row out, uint bands, int radius,
                                   float space, float range, uint alpha, uint keep, uint width)
{
	const float16 none = 0.0f;
	float16 centre[BANDS_MAX];
	struct window sum = {{none, none, none, none}, none};

#pragma unroll
	for (uint b = 0; b < BANDS_MAX; b++)
		centre[b] = b < bands ? band_load(in, bands, b, width) : none;
	for (int j = -radius; j <= radius; j++) {
		const source_row row =
		    (source_row)((const global uchar *)in + (long)j * (long)pitch);

		for (int i = -radius; i <= radius; i++)
			if (i * i + j * j <= radius * radius)
				window_add(&sum, centre, row + i * (int)bands, bands, alpha, keep,
				           space * (i * i + j * j), range, width);
	}
#pragma unroll
	for (uint b = 0; b < BANDS_MAX; b++) {
		/* Alpha, and all bands without it, weigh by w alone. */
		const bool colour = alpha && b + 1 < bands;
		const float16 weight =
		    !colour ? sum.weight : bands == 2 ? sum.band[1] : sum.band[3];
		const float16 mean = sum.band[b] / weight;

		if (b >= bands)
			continue;
		band_store(keep >> b & 1 ? centre[b]
		           : colour      ? select(none, mean, weight > 0.0f)
		                         : mean,
		           out, bands, b, width);
	}
}

kernel void bilateral(REGION_ARGUMENTS, uint radius, float space, float range, uint alpha, uint keep)
{
	const uint2 span =
	    block_span(samples / bands, blocks, min((uint)get_global_id(0), blocks - 1));
	const uint y = get_global_id(1);
	const source_row in = SOURCE_ROW(y);
	const target_row out = TARGET_ROW(y);
	uint x = span.x;

	if (get_global_id(0) >= blocks)
		return;
	for (; x + VECTOR <= span.y; x += VECTOR)
		bilateral_pixels(in + x * bands, src_pitch, out + x * bands, bands, (int)radius,
		                 space, range, alpha, keep, VECTOR);
	if (x < span.y)
		bilateral_pixels(in + x * bands, src_pitch, out + x * bands, bands, (int)radius,
		                 space, range, alpha, keep, span.y - x);
}
