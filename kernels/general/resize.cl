/* resize.cl: a change of size, in two passes; daemon/filters/resize.h has the arithmetic.
 *
 * resize_down: pixels to float; each row of the result is a sum of rows of the source.
 * resize_across: floats to pixels; each pixel is a sum of pixels of its row, rounded once.
 *
 * `weights` has `words` words for each row (or column) of the result: the place in the image of the
 * first pixel that it is made from, their number, and their weights; those of the region's first one
 * are the `entry`-th. The source's offset is that of its first pixel, whose place in the image is
 * `place`. A work-item makes one row of a block. */

kernel void resize_down(REGION_ARGUMENTS, global const float *weights, uint words, uint entry, int place)
{
	const uint2 span = block_span(samples, blocks, min((uint)get_global_id(0), blocks - 1));
	const uint y = get_global_id(1), width = min(samples, (uint)VECTOR);
	const global float *weight = weights + (ulong)(entry + y) * words;
	const uint taps = as_uint(weight[1]);
	const global uchar *in = src + src_offset + (ulong)(as_int(weight[0]) - place) * src_pitch;
	global float *out = (global float *)(dst + dst_offset + (ulong)y * dst_pitch);

	if (get_global_id(0) >= blocks)
		return;
	for (uint x = span.x; x < span.y; x += VECTOR) {
		const uint at = min(x, span.y - width);
		float16 sum = 0.0f;

		for (uint i = 0; i < taps; i++)
			sum = fma(pixel_load((source_row)(in + (ulong)i * src_pitch) + at, width),
			          (float16)(weight[2 + i]), sum);
		float_store(sum, out + at, width);
	}
}

kernel void resize_across(REGION_ARGUMENTS, global const float *weights, uint words, uint entry, int place)
{
	const uint y = get_global_id(1);
	const global float *in = (const global float *)(src + src_offset + (ulong)y * src_pitch);
	const target_row out = TARGET_ROW(y);

	if (get_global_id(0) >= blocks)
		return;

	const uint2 span = points_span(samples, bands, blocks);

	for (uint x = span.x; x < span.y; x++) {
		const global float *weight = weights + (ulong)(entry + x) * words;
		const global float *p = in + (ulong)(as_int(weight[0]) - place) * bands;
		const uint taps = as_uint(weight[1]);
		float4 sum = 0.0f;

		if (bands == 3)
			for (uint i = 0; i < taps; i++)
				sum.s012 = fma(vload3(i, p), (float3)(weight[2 + i]), sum.s012);
		else if (bands == 4)
			for (uint i = 0; i < taps; i++)
				sum = fma(vload4(i, p), (float4)(weight[2 + i]), sum);
		else if (bands == 2)
			for (uint i = 0; i < taps; i++)
				sum.s01 = fma(vload2(i, p), (float2)(weight[2 + i]), sum.s01);
		else
			for (uint i = 0; i < taps; i++)
				sum.s0 = fma(p[i], weight[2 + i], sum.s0);
		out[x * bands] = PIXEL_ROUND_1(sum.s0);
		if (bands > 1)
			out[x * bands + 1] = PIXEL_ROUND_1(sum.s1);
		if (bands > 2)
			out[x * bands + 2] = PIXEL_ROUND_1(sum.s2);
		if (bands > 3)
			out[x * bands + 3] = PIXEL_ROUND_1(sum.s3);
	}
}
