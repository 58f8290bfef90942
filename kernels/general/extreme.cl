/* extreme.cl: the smallest or the largest value in a window: erosion and dilation.
 *
 * A work-item makes a block of EXTREME_ROWS rows; the group is one work-item, so there is no barrier.
 * Samples are compared as keys: see keys.cl.
 *
 * Rectangles cost the same whatever their size, nearly. Down, a few rows at a time (no more than the
 * window is high): their windows share the rows from the last one's first to the first one's last;
 * running extremes from there upwards and downwards complete them (van Herk, "A fast algorithm for
 * local minimum and maximum filters on rectangular and octagonal kernels", 1992; Gil and Werman,
 * "Computing 2-D Min, Median, and Max Filters", 1993). Across, in local memory, where lanes of a
 * vector cannot run: of two windows of the same width side by side one of twice the width, up to the
 * largest power of two within; two of those overlap in the window.
 *
 * Other elements are taken row by row: each source row is widened in the same way, once, and each
 * row of the element takes its width from the power of two below it. */

/* Rows of a block. More rows: less of the windows' common part a row. */
#ifndef EXTREME_ROWS
#define EXTREME_ROWS 32
#endif

enum { EXTREME_RADIUS_MAX = 50 };

/* Makes the extremes down of one vector of columns in `here` rows, at most `taps`. p: the first
 * source row of the first window. */
FORCE_INLINE void extreme_down(const global uchar *p, uint pitch, uint taps, uint here, local key *to,
                               uint stride, const bool largest, uint width)
{
#define DOWN_ROW(j) keys_load((source_row)(p + (ulong)(j) * pitch), width)
	keys run = DOWN_ROW(here - 1);

	for (uint j = here; j < taps; j++)
		run = keys_extreme(run, DOWN_ROW(j), largest);
	KEYS_STORE(local, run, to + (here - 1) * stride);
	for (uint r = here - 1; r-- > 0;) {
		run = keys_extreme(run, DOWN_ROW(r), largest);
		KEYS_STORE(local, run, to + r * stride);
	}
	if (here > 1)
		run = DOWN_ROW(taps);
	for (uint r = 1; r < here; r++) {
		local key *const row = to + r * stride;

		if (r > 1)
			run = keys_extreme(run, DOWN_ROW(taps + r - 1), largest);
		KEYS_STORE(local, keys_extreme(KEYS_LOAD(local, row), run, largest), row);
	}
#undef DOWN_ROW
}

/* Turns the extremes of `wide` samples into those of twice as many, in place, in a row of `columns`
 * extremes. Values that it reads beyond do not reach the result. */
FORCE_INLINE void extreme_widen(local key *row, uint columns, uint wide, uint bands,
                                const bool largest)
{
	for (uint x = 0; x + wide * bands < columns; x += LANES)
		KEYS_STORE(local,
		           keys_extreme(KEYS_LOAD(local, row + x),
		                      KEYS_LOAD(local, row + x + wide * bands), largest),
		           row + x);
}

/* Writes a row: the extreme of two at each place, `apart` samples apart. */
FORCE_INLINE void extreme_write(const local key *row, uint apart, source_row in, target_row out,
                                uint2 span, uint bands, uint keep, const bool largest)
{
	const uint count = span.y - span.x, width = min(count, (uint)LANES);

	for (uint x = 0; x < count; x += LANES) {
		const uint at = min(x, count - width);
		const keys v = keys_extreme(KEYS_LOAD(local, row + at),
		                          KEYS_LOAD(local, row + at + apart), largest);

		if (width == LANES)
			keys_store(v, out + span.x + at, LANES);
		else
			keys_store(v, out + span.x + at, width);
	}
	keys_keep(in, out, span, bands, keep);
}

/* Makes the block of rows [y, y + here), samples [span.x, span.y), by a rectangle. */
FORCE_INLINE void extreme_rectangle(REGION_ARGUMENTS, uint2 span, uint y, uint here, uint radius,
                                    uint keep, local key *scratch, const bool largest)
{
	const uint taps = 2 * radius + 1, reach = radius * bands;
	const uint columns = span.y - span.x + 2 * reach;
	const uint stride = (columns + LANES - 1) / LANES * LANES, width = min(columns, (uint)LANES);
	uint together;

	/* Samples behind each row's own are read, though they do not count. */
	for (uint r = 1; r <= here; r++)
		KEYS_STORE(local, (keys)(0), scratch + r * stride - LANES);
	KEYS_STORE(local, (keys)(0), scratch + here * stride);
	for (uint r = 0; r < here; r += together) {
		const global uchar *top =
		    (const global uchar *)(SOURCE_ROW((long)y + r - radius) + span.x - reach);

		together = min(here - r, taps);
		for (uint x = 0; x < columns; x += LANES) {
			const uint at = min(x, columns - width);

			if (width == LANES)
				extreme_down(top + at * sizeof(PIXEL), src_pitch, taps, together,
				             scratch + r * stride + at, stride, largest, LANES);
			else
				extreme_down(top, src_pitch, taps, together,
				             scratch + r * stride, stride, largest, width);
		}
	}
	for (uint r = 0; r < here; r++) {
		local key *const row = scratch + r * stride;
		uint wide = 1;

		for (; 2 * wide <= taps; wide *= 2)
			extreme_widen(row, columns - (wide - 1) * bands, wide, bands, largest);
		extreme_write(row, (taps - wide) * bands, SOURCE_ROW(y + r), TARGET_ROW(y + r),
		              span, bands, keep, largest);
	}
}

/* Adds, from source row s, those rows of the element that are at least `wide`, and less than twice
 * as wide, to the block's rows. line: the source row, its extremes of `wide`. */
FORCE_INLINE void extreme_add(const local key *line, local key *rows_made, uint stride, uint s,
                              uint here, uint count, uint wide, uint radius, uint bands,
                              const uchar *sides, const bool largest)
{
	const uint taps = 2 * radius + 1;

	for (uint r = s < taps ? 0 : s - taps + 1; r < min(here, s + 1); r++) {
		const uint across = 2 * sides[abs_diff(s - r, radius)] + 1;
		const local key *const from = line + (radius - across / 2) * bands;
		local key *const to = rows_made + r * stride;

		if (across < wide || across >= 2 * wide)
			continue;
		for (uint x = 0; x < count; x += LANES) {
			const keys v = keys_extreme(
			    KEYS_LOAD(local, from + x),
			    KEYS_LOAD(local, from + x + (across - wide) * bands), largest);

			KEYS_STORE(local,
			           s == r ? v : keys_extreme(v, KEYS_LOAD(local, to + x), largest),
			           to + x);
		}
	}
}

/* Makes the same block by any element. */
FORCE_INLINE void extreme_element(REGION_ARGUMENTS, uint2 span, uint y, uint here, uint radius,
                                  uint element, uint keep, local key *scratch, const bool largest)
{
	const uint reach = radius * bands, count = span.y - span.x, columns = count + 2 * reach;
	const uint stride = (columns + LANES - 1) / LANES * LANES, width = min(columns, (uint)LANES);
	local key *const rows_made = scratch + stride;
	uchar sides[EXTREME_RADIUS_MAX + 1];

	for (uint j = 0; j <= radius; j++)
		sides[j] = (uchar)element_half_width((int)j, (int)radius, (int)element);
	KEYS_STORE(local, (keys)(0), rows_made - LANES);
	KEYS_STORE(local, (keys)(0), rows_made);
	for (uint s = 0; s < here + 2 * radius; s++) {
		const source_row in = SOURCE_ROW((long)y + s - radius) + span.x - reach;

		for (uint x = 0; x < columns; x += LANES) {
			const uint at = min(x, columns - width);

			KEYS_STORE(local, keys_load(in + at, width), scratch + at);
		}
		for (uint wide = 1; wide <= 2 * radius + 1; wide *= 2) {
			extreme_add(scratch, rows_made, stride, s, here, count, wide, radius, bands,
			            sides, largest);
			extreme_widen(scratch, columns - (wide - 1) * bands, wide, bands, largest);
		}
	}
	for (uint r = 0; r < here; r++)
		extreme_write(rows_made + r * stride, 0, SOURCE_ROW(y + r), TARGET_ROW(y + r), span,
		              bands, keep, largest);
}

/* scratch: EXTREME_ROWS + 1 rows of a block and its reach. */
kernel void extreme(REGION_ARGUMENTS, uint radius, uint element, uint largest, uint keep,
                    local float *scratch)
{
	const uint2 span = block_span(samples, blocks, get_global_id(0));
	const uint y = get_global_id(1) * EXTREME_ROWS, here = min(rows - y, (uint)EXTREME_ROWS);
	local key *const room = (local key *)scratch;

#define BLOCK                                                                                  \
	src, src_offset, src_pitch, dst, dst_offset, dst_pitch, samples, rows, bands, blocks, span, \
	    y, here, radius
	if (element == ELEMENT_IS_RECTANGLE && largest)
		extreme_rectangle(BLOCK, keep, room, true);
	else if (element == ELEMENT_IS_RECTANGLE)
		extreme_rectangle(BLOCK, keep, room, false);
	else if (largest)
		extreme_element(BLOCK, element, keep, room, true);
	else
		extreme_element(BLOCK, element, keep, room, false);
#undef BLOCK
}
