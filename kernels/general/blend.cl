/* blend.cl: the last step of a chain with regions. Writes the result in the regions, and the original
 * pixels, bit for bit, elsewhere; or the other way round.
 *
 * A pixel's weight is 1 in a shape and falls to 0 over `feather` pixels around it; the largest of
 * all shapes counts. Membership of a pixel in a shape is computed in integers, the same everywhere.
 * A mixed pixel's colours count by their alphas, unless those are 0 or less.
 *
 * shapes: kind, x, y, width, height, first corner, count of corners of each; behind them x and y of
 * all corners. A work-item makes one row of a block; it looks for the shapes near that row, and
 * copies the pixels beside them. */

enum { BLEND_NUMBERS = 7, BLEND_SHAPES = 256 };
enum { BLEND_RECTANGLE, BLEND_ELLIPSE, BLEND_POLYGON, BLEND_NONZERO };

/* The shapes near a row of a block, and the pixels [first, end) that they reach. */
struct blend_near {
	uchar number[BLEND_SHAPES];
	uint count;
	int first, end;
};

/* Returns how far the place lies outside [start, start + length), in pixels: 0 inside, 1 next to
 * it. */
FORCE_INLINE int blend_outside(int place, int start, int length)
{
	return max(max(start - place, place - (start + length - 1)), 0);
}

FORCE_INLINE void blend_find(struct blend_near *near, constant int *shapes, uint count, int feather,
                             int y, int first, int end)
{
	near->count = 0;
	near->first = end;
	near->end = first;
	for (uint i = 0; i < count; i++) {
		constant int *s = shapes + i * BLEND_NUMBERS;
		const int from = max(s[1] - feather, first), to = min(s[1] + s[3] + feather, end);

		if (from >= to || blend_outside(y, s[2], s[4]) > feather)
			continue;
		near->number[near->count++] = (uchar)i;
		near->first = min(near->first, from);
		near->end = max(near->end, to);
	}
}

/* Returns how far a pixel is outside an ellipse, along the line to its centre, and half a pixel, as
 * for a rectangle: with r the distance in units of the ellipse's own, d (1 - 1 / r) = d (r² - 1) /
 * (r (r + 1)). The products fit: no side is above 32768, and no pixel more than 1000 outside.
 * Everything is twice as large, to be whole. */
FORCE_INLINE float blend_ellipse(constant int *s, int x, int y)
{
	const long w = s[3], h = s[4], dx = 2 * (long)(x - s[1]) + 1 - w,
	           dy = 2 * (long)(y - s[2]) + 1 - h;
	const long over = dx * dx * h * h + dy * dy * w * w - w * w * h * h;
	const float excess = convert_float(over) / convert_float(w * w * h * h);
	const float r = sqrt(1.0f + excess), d = sqrt(convert_float(dx * dx + dy * dy)) * 0.5f;

	return over <= 0 ? 0.0f : 0.5f + d * excess / (r * (r + 1.0f));
}

/* Returns a corner as seen from the pixel's centre, twice as large, to be whole. So it is odd, and
 * never as high as the centre. */
FORCE_INLINE int2 blend_corner(constant int *corner, uint i, int x, int y)
{
	return 2 * (vload2(i, corner) - (int2)(x, y)) - 1;
}

FORCE_INLINE long blend_cross(int2 a, int2 b)
{
	return (long)a.x * b.y - (long)a.y * b.x;
}

FORCE_INLINE long blend_dot(int2 a, int2 b)
{
	return (long)a.x * b.x + (long)a.y * b.y;
}

/* Returns how far a pixel is outside a polygon: the distance of its centre from the nearest edge,
 * and half a pixel, as for a rectangle; feather + 1 if that is farther. A centre on an edge is
 * right of it. */
FORCE_INLINE float blend_polygon(constant int *s, constant int *corner, int feather, int x, int y)
{
	const uint corners = (uint)s[6];
	const float reach = convert_float(2 * feather + 1);
	float nearest = reach * reach;
	int2 a = blend_corner(corner, corners - 1, x, y), b;
	int turns = 0;

	for (uint i = 0; i < corners; i++, a = b) {
		b = blend_corner(corner, i, x, y);
		if ((a.y < 0) != (b.y < 0))
			turns += a.y < 0 ? blend_cross(a, b) <= 0 : -(blend_cross(a, b) >= 0);
	}
	if (s[0] == BLEND_POLYGON ? turns & 1 : turns)
		return 0.0f;
	for (uint i = 0; i < corners && feather; i++, a = b) {
		b = blend_corner(corner, i, x, y);

		const float2 beside = convert_float2(max(max(min(a, b), -max(a, b)), 0));
		const long length = blend_dot(b - a, b - a), along = blend_dot(a, a - b);

		if (beside.x * beside.x + beside.y * beside.y >= nearest)
			continue;
		if (along <= 0) {
			nearest = fmin(nearest, convert_float(blend_dot(a, a)));
		} else if (along < length) {
			const float across = convert_float(blend_cross(a, b));

			nearest = fmin(nearest, across * across / convert_float(length));
		}
	}
	return 0.5f + sqrt(nearest) * 0.5f;
}

FORCE_INLINE float blend_distance(constant int *s, constant int *corners, int feather, int x, int y)
{
	const int dx = blend_outside(x, s[1], s[3]), dy = blend_outside(y, s[2], s[4]);

	return s[0] == BLEND_RECTANGLE ? sqrt(convert_float(dx) * dx + convert_float(dy) * dy)
	       : s[0] == BLEND_ELLIPSE ? blend_ellipse(s, x, y)
	                               : blend_polygon(s, corners + 2 * s[5], feather, x, y);
}

/* corners: those of all polygons. */
FORCE_INLINE float blend_weight(const struct blend_near *near, constant int *shapes,
                                constant int *corners, int feather, int x, int y)
{
	float most = 0.0f;

	for (uint i = 0; i < near->count && most < 1.0f; i++) {
		constant int *s = shapes + near->number[i] * BLEND_NUMBERS;
		float distance;

		if (blend_outside(x, s[1], s[3]) > feather)
			continue;
		distance = blend_distance(s, corners, feather, x, y);
		if (distance <= 0.0f)
			most = 1.0f;
		else if (feather)
			most = fmax(most, 1.0f - distance / convert_float(feather + 1));
	}
	return most < 1e-6f ? 0.0f : most;
}

/* Mixes a pixel; weight: the result's. */
FORCE_INLINE void blend_mix(source_row original, source_row result, target_row out, float weight,
                            uint bands, uint alpha)
{
	const uint last = bands - 1;
	float share = weight;

	if (alpha) {
		const float b = convert_float(result[last]);
		const float sum = fma(weight, b, (1.0f - weight) * convert_float(original[last]));

		share = sum > 0.0f ? weight * b / sum : weight;
	}
	for (uint b = 0; b < bands; b++) {
		const float part = alpha && b == last ? weight : share;

		out[b] = PIXEL_ROUND_1(fma(part, convert_float(result[b]),
		                           (1.0f - part) * convert_float(original[b])));
	}
}

FORCE_INLINE void blend_copy(source_row from, target_row to, uint first, uint end)
{
	uint i = first;

	for (; i + VECTOR <= end; i += VECTOR)
		PIXEL_VSTORE(vload16(0, from + i), to + i);
	for (; i < end; i++)
		to[i] = from[i];
}

kernel void blend(REGION_ARGUMENTS, PLACE_ARGUMENTS, global const uchar *original,
                  ulong original_offset, uint original_pitch, constant int *shapes, uint count,
                  uint feather, uint invert, uint alpha)
{
	const ulong row = (ulong)stack_tile() * distance + get_global_id(1);
	const uint i = min((uint)get_global_id(0), blocks - 1), pixels = samples / bands;
	const int y = place_y0(y0s, more_y0s) + (int)get_global_id(1);
	const int first = (int)((ulong)pixels * i / blocks);
	const int end = (int)((ulong)pixels * (i + 1) / blocks);
	const source_row result = (source_row)(src + src_offset + row * src_pitch);
	const source_row before = (source_row)(original + original_offset + row * original_pitch);
	const target_row out = (target_row)(dst + dst_offset + row * dst_pitch);
	const source_row inside = invert ? before : result, outside = invert ? result : before;
	constant int *corners = shapes + count * BLEND_NUMBERS;
	struct blend_near near;

	if (get_global_id(0) >= blocks)
		return;
	blend_find(&near, shapes, count, (int)feather, y, x0 + first, x0 + end);
	if (near.first > near.end)
		near.first = near.end = x0 + first;
	blend_copy(outside, out, (uint)first * bands, (uint)(near.first - x0) * bands);
	for (int x = near.first; x < near.end; x++) {
		const float weight = blend_weight(&near, shapes, corners, (int)feather, x, y);
		const ulong at = (ulong)(x - x0) * bands;

		if (weight > 0.0f && weight < 1.0f)
			blend_mix(outside + at, inside + at, out + at, weight, bands, alpha);
		for (uint b = 0; b < bands && (weight <= 0.0f || weight >= 1.0f); b++)
			out[at + b] = (weight > 0.0f ? inside : outside)[at + b];
	}
	blend_copy(outside, out, (uint)(near.end - x0) * bands, (uint)end * bands);
}
