/* lattice.cl: from pixels to a lattice of every stride-th row and column and back, for Gaussians of
 * large sigma; daemon/filters/lattice.h has the arithmetic.
 *
 * shrink_down: pixels to float; row i is the sum over t of spline[t] * in(y = i * stride + t).
 * shrink_across: the same along a row of floats.
 * grow_across, grow_down: row (or place) p is the sum over tap of weight[tap][(p + phase) % stride] *
 * in((p + phase) / stride + tap); grow_down ends in pixels, rounded once. Bands in `keep` are those
 * of `original`.
 *
 * The source's offset is that of the first sample that the region's first one is made from. The
 * kernels down go through a block of `block_rows` rows in vectors, and load shared rows once: when
 * shrinking, a row of the source adds to up to `taps` sums at a time; when growing, stride rows are
 * made from the same points. The kernels across take a row of a block a work-item. Nothing that has
 * weight 0 in the spline is read. */

/* Vectors of columns that shrink_down works on at once. */
#ifndef LATTICE_VECTORS
#define LATTICE_VECTORS 4
#endif

/* Most taps and phases; and samples of the lattice that are done at once across. */
/* Columns are as many streams as there are rows: too many for a processor to predict. */
#ifdef __x86_64__
#define LATTICE_AHEAD 2
#define LATTICE_PREFETCH(p, vectors)                                                               \
	for (uint line = 0; line < vectors * VECTOR * sizeof(PIXEL); line += 64)                  \
	__builtin_prefetch((const global uchar *)(p) + line)
#else
#define LATTICE_AHEAD 0
#define LATTICE_PREFETCH(p, vectors)
#endif

enum { LATTICE_TAPS = 6, LATTICE_PHASES = 8, LATTICE_PART = 256 };

/* Adds a row of the source to the sums of the rows of the lattice that begin here, one before, and
 * so on. */
FORCE_INLINE void shrink_add(float16 *sum, source_row in, constant float *spline, uint stride,
                             const int taps, const int vectors, uint width)
{
	float16 v[LATTICE_VECTORS];

	LATTICE_PREFETCH(in + LATTICE_AHEAD * vectors * VECTOR, vectors);
#pragma unroll
	for (int n = 0; n < vectors; n++)
		v[n] = pixel_load(in + n * VECTOR, width);
#pragma unroll
	for (int i = 0; i < taps; i++)
#pragma unroll
		for (int n = 0; n < vectors; n++)
			sum[i * vectors + n] =
			    fma(v[n], (float16)(spline[i * stride]), sum[i * vectors + n]);
}

/* Makes a few vectors of columns: `here` rows of the lattice; the first begins at p. */
FORCE_INLINE void shrink_rows(const global uchar *p, uint pitch, constant float *spline,
                              uint length, uint stride, const int taps, uint here,
                              global uchar *out, uint out_pitch, const int vectors, uint width)
{
	const uint tail = length - (taps - 1) * stride;
	float16 sum[LATTICE_TAPS * LATTICE_VECTORS];

#pragma unroll
	for (int i = 0; i < taps; i++)
#pragma unroll
		for (int n = 0; n < vectors; n++)
			sum[i * vectors + n] = 0.0f;
	for (uint left = here + taps - 1;; left--) {
		for (uint t = 0; t < tail; t++, p += pitch)
			shrink_add(sum, (source_row)p, spline + t, stride, taps, vectors, width);
		if (left <= here) {
#pragma unroll
			for (int n = 0; n < vectors; n++)
				float_store(sum[(taps - 1) * vectors + n],
				            (global float *)out + n * VECTOR, width);
			out += out_pitch;
		}
		if (left == 1)
			return;
		for (uint t = tail; t < stride; t++, p += pitch)
			shrink_add(sum, (source_row)p, spline + t, stride, taps - 1, vectors,
			           width);
#pragma unroll
		for (int n = 0; n < vectors; n++) {
#pragma unroll
			for (int i = taps - 1; i > 0; i--)
				sum[i * vectors + n] = sum[(i - 1) * vectors + n];
			sum[n] = 0.0f;
		}
	}
}

kernel void shrink_down(REGION_ARGUMENTS, constant float *spline, uint length, uint stride,
                        uint taps, uint block_rows)
{
	const uint2 span = block_span(samples, blocks, min((uint)get_global_id(0), blocks - 1));
	const uint y = get_global_id(1) * block_rows, width = min(samples, (uint)VECTOR);
	const global uchar *in = (const global uchar *)SOURCE_ROW((ulong)y * stride);
	global uchar *out = dst + dst_offset + (ulong)y * dst_pitch;

	if (get_global_id(0) >= blocks || y >= rows)
		return;
	const uint here = min(rows - y, block_rows), many = LATTICE_VECTORS * VECTOR;
	uint x = span.x;

#define SHRINK_ROWS(at, taps, vectors, width) \
	shrink_rows(in + (ulong)(at) * sizeof(PIXEL), src_pitch, spline, length, stride, taps, here, \
	            out + (ulong)(at) * sizeof(float), dst_pitch, vectors, width)
	for (; x + many <= span.y; x += many)
		if (taps == 5)
			SHRINK_ROWS(x, 5, LATTICE_VECTORS, VECTOR);
		else
			SHRINK_ROWS(x, 6, LATTICE_VECTORS, VECTOR);
	for (; x < span.y; x += VECTOR)
		if (taps == 5)
			SHRINK_ROWS(min(x, span.y - width), 5, 1, width);
		else
			SHRINK_ROWS(min(x, span.y - width), 6, 1, width);
}

#ifdef __x86_64__
/* Across, a CPU works on 16 samples whose pixels (or points) are neighbours only within a phase: so a
 * part of the row is split into its phases, or joined from them, by copying. */
enum { LATTICE_ROOM = LATTICE_PART + LATTICE_TAPS * 4 + VECTOR };

/* Sums `count` points; the first begins at `in`. */
FORCE_INLINE void shrink_part(const global float *in, global float *out, constant float *spline,
                              uint length, uint stride, uint bands, uint count)
{
	float split[LATTICE_PHASES][LATTICE_ROOM];

	for (uint phase = 0; phase < stride; phase++) {
		const uint needed = count + (length - 1 - phase) / stride;

		for (uint k = 0; k < needed; k++)
			for (uint b = 0; b < bands; b++)
				split[phase][k * bands + b] = in[(k * stride + phase) * bands + b];
	}
	for (uint x = 0; x < count * bands; x += VECTOR) {
		float16 sum = 0.0f;

		for (uint first = 0, t = 0; t < length; first += bands)
			for (uint phase = 0; phase < stride && t < length; phase++, t++)
				sum = fma(vload16(0, split[phase] + first + x), (float16)(spline[t]),
				          sum);
		float_store(sum, out + x, min(count * bands - x, (uint)VECTOR));
	}
}

/* One band: all pixels of a point at once; the next point overwrites surplus ones. */
FORCE_INLINE void grow_grey(const global float *in, global float *out, constant float *weight,
                            uint stride, uint taps, uint phase, uint count)
{
	float part[LATTICE_PHASES];

	for (uint x = 0; x < count; in++) {
		float8 sum = in[0] * vload8(0, weight);

		for (uint tap = 1; tap < taps; tap++)
			sum = fma((float8)(in[tap]), vload8(tap, weight), sum);
		if (!phase && x + LATTICE_PHASES <= count) {
			vstore8(sum, 0, out + x);
			x += stride;
			continue;
		}
		vstore8(sum, 0, part);
		for (; phase < stride && x < count; phase++, x++)
			out[x] = part[phase];
		phase = 0;
	}
}

/* Makes `count` pixels; the first is of this phase of the points at `in`. */
FORCE_INLINE void grow_part(const global float *in, global float *out, constant float *weight,
                            uint stride, uint taps, uint phase, uint bands, uint count)
{
	const uint points = (phase + count + stride - 1) / stride, wide = points * bands;
	const uint width = min(wide, (uint)VECTOR);
	float split[LATTICE_PHASES][LATTICE_ROOM];

	if (bands == 1) {
		grow_grey(in, out, weight, stride, taps, phase, count);
		return;
	}
	for (uint x = 0; x < wide; x += VECTOR) {
		const uint at = min(x, wide - width);
		float16 point[LATTICE_TAPS];

		for (uint tap = 0; tap < taps; tap++)
			point[tap] = float_load(in + tap * bands + at, width);
		for (uint i = 0; i < stride; i++) {
			float16 sum = point[0] * weight[i];

			for (uint tap = 1; tap < taps; tap++)
				sum = fma(point[tap], (float16)(weight[tap * LATTICE_PHASES + i]),
				          sum);
			vstore16(sum, 0, split[i] + at);
		}
	}
	for (uint i = 0; i < stride; i++)
		for (uint k = i < phase; k * stride + i < phase + count; k++)
			for (uint b = 0; b < bands; b++)
				out[(k * stride + i - phase) * bands + b] = split[i][k * bands + b];
}
#else
FORCE_INLINE void shrink_part(const global float *in, global float *out, constant float *spline,
                              uint length, uint stride, uint bands, uint count)
{
	for (uint x = 0; x < count * bands; x++) {
		const global float *p = in + x / bands * stride * bands + x % bands;
		float sum = 0.0f;

		for (uint t = 0; t < length; t++)
			sum = fma(p[t * bands], spline[t], sum);
		out[x] = sum;
	}
}

FORCE_INLINE void grow_part(const global float *in, global float *out, constant float *weight,
                            uint stride, uint taps, uint phase, uint bands, uint count)
{
	for (uint x = 0; x < count * bands; x++) {
		const uint pixel = x / bands + phase;
		const global float *p = in + pixel / stride * bands + x % bands;
		float sum = 0.0f;

		for (uint tap = 0; tap < taps; tap++)
			sum = fma(p[tap * bands], weight[tap * LATTICE_PHASES + pixel % stride], sum);
		out[x] = sum;
	}
}
#endif

kernel void shrink_across(REGION_ARGUMENTS, constant float *spline, uint length, uint stride)
{
	const uint y = get_global_id(1), part = LATTICE_PART / bands;
	const global float *in = (const global float *)(src + src_offset + (ulong)y * src_pitch);
	global float *out = (global float *)(dst + dst_offset + (ulong)y * dst_pitch);

	if (get_global_id(0) >= blocks)
		return;

	const uint2 span = points_span(samples, bands, blocks);

#define SHRINK_PART(bands) \
	shrink_part(in + k * stride * bands, out + k * bands, spline, length, stride, bands, \
	            min(part, span.y - k))
	for (uint k = span.x; k < span.y; k += part)
		if (bands == 1)
			SHRINK_PART(1);
		else if (bands == 3)
			SHRINK_PART(3);
		else if (bands == 4)
			SHRINK_PART(4);
		else
			SHRINK_PART(2);
}

kernel void grow_across(REGION_ARGUMENTS, constant float *weight, uint stride, uint taps,
                        uint phase)
{
	const uint y = get_global_id(1), part = (LATTICE_PART / bands - 1) * stride;
	const global float *in = (const global float *)(src + src_offset + (ulong)y * src_pitch);
	global float *out = (global float *)(dst + dst_offset + (ulong)y * dst_pitch);

	if (get_global_id(0) >= blocks)
		return;

	const uint2 span = points_span(samples, bands, blocks);

#define GROW_PART(bands) \
	grow_part(in + (x + phase) / stride * bands, out + x * bands, weight, stride, taps, \
	          (x + phase) % stride, bands, min(part, span.y - x))
	for (uint x = span.x; x < span.y; x += part)
		if (bands == 1)
			GROW_PART(1);
		else if (bands == 3)
			GROW_PART(3);
		else if (bands == 4)
			GROW_PART(4);
		else
			GROW_PART(2);
}

/* Returns the vector of a row that has these points, in pixels. */
FORCE_INLINE void grow_row(const float16 *point, constant float *weight, const int taps,
                           source_row before, target_row out, uint at, uint bands, uint keep,
                           uint width)
{
	float16 sum = point[0] * weight[0];

#pragma unroll
	for (int tap = 1; tap < taps; tap++)
		sum = fma(point[tap], (float16)(weight[tap * LATTICE_PHASES]), sum);
	if (keep)
		sum = select(sum, pixel_load(before + at, width), band_lanes(at, bands, keep));
	pixel_store(sum, out + at, width);
}

kernel void grow_down(REGION_ARGUMENTS, constant float *weight, uint stride, uint taps, uint phase,
                      uint block_rows, global const uchar *original, ulong original_offset,
                      uint original_pitch, uint keep)
{
	const uint2 span = block_span(samples, blocks, min((uint)get_global_id(0), blocks - 1));
	const uint first = get_global_id(1) * block_rows, end = min(rows, first + block_rows);
	const uint width = min(samples, (uint)VECTOR);

	if (get_global_id(0) >= blocks)
		return;
	for (uint x = span.x; x < span.y; x += VECTOR) {
		const uint at = min(x, span.y - width);
		uint y = first;

		while (y < end) {
			const uint i = (y + phase) / stride, next = min(end, (i + 1) * stride - phase);
			const global uchar *p =
			    src + src_offset + (ulong)i * src_pitch + at * sizeof(float);
			float16 point[LATTICE_TAPS];

#pragma unroll
			for (int tap = 0; tap < LATTICE_TAPS; tap++) {
				point[tap] = 0.0f;
				if (tap < (int)taps)
					point[tap] = float_load((const global float *)p, width);
				p += src_pitch;
			}
			for (; y < next; y++) {
				const source_row before = (source_row)(original + original_offset +
				                                       (ulong)y * original_pitch);
				constant float *w = weight + (y + phase - i * stride);

				if (taps == 5)
					grow_row(point, w, 5, before, TARGET_ROW(y), at, bands, keep,
					         width);
				else
					grow_row(point, w, 6, before, TARGET_ROW(y), at, bands, keep,
					         width);
			}
		}
	}
}
