/* samples_packed.cl: bytes, each by itself, by a comparison or a table, for CPUs.
 *
 * threshold_packed, curve_packed, lut_packed: the results of general/threshold.cl, curve.cl and
 * lut.cl, in vectors of 64 bytes.
 *
 * A byte has but 256 values. So a work-item first makes a table of their results, one for each band
 * if bands differ; that of a band that is kept has each value for itself. Four registers hold a
 * table: one instruction of AVX-512 looks up 32 pairs of entries in two of them, one of AVX2 32
 * entries in 16 of them. Thresholds need no table: a byte is above a limit if it is at least the
 * next whole number. The exponent of a curve is 1: plans look up powers of integers.
 *
 * A work-item makes a block of BLOCK_Y rows, one after another. At least 64 samples a row. */

enum { PACKED_VECTOR = 64, VALUES = 256, PATTERN = PACKED_VECTOR + BANDS };

typedef uchar bytes __attribute__((ext_vector_type(64)));
typedef bytes bytes_anywhere __attribute__((aligned(1)));
#define BYTES(space, p) (*(space bytes_anywhere *)(p))

enum samples_kind { BY_THRESHOLD, BY_TABLE, BY_TABLES };

/* Parameters of samples. Patterns repeat band after band, from band 0 on: `mine`, for each band,
 * 255 at its own samples; `kept`, 255 at samples that are not changed; `least`, the least byte
 * above the limit, or 255 and `never` 255 where there is none. */
struct samples_how {
	bytes table[BANDS][VALUES / PACKED_VECTOR];
	uchar mine[BANDS][PATTERN], kept[PATTERN], least[PATTERN], never[PATTERN];
	uchar full;
};

#ifdef __AVX512BW__
typedef ushort lanes __attribute__((ext_vector_type(32)));
typedef short signed_lanes __attribute__((ext_vector_type(32)));

/* Picks, from 64 words in two registers, those whose numbers are the lower 6 bits of the lanes. */
FORCE_INLINE lanes samples_half(lanes i, bytes low, bytes high)
{
	return __builtin_astype(
	    __builtin_ia32_vpermi2varhi512(__builtin_astype(low, signed_lanes),
	                                   __builtin_astype(i, signed_lanes),
	                                   __builtin_astype(high, signed_lanes)),
	    lanes);
}

/* Pairs of entries, by number. */
FORCE_INLINE lanes samples_pairs(lanes v, const bytes *table)
{
	const lanes i = v >> (ushort)1;

	return v > (ushort)127 ? samples_half(i, table[2], table[3])
	                       : samples_half(i, table[0], table[1]);
}

FORCE_INLINE bytes samples_look_up(bytes v, const bytes *table)
{
	const lanes both = __builtin_astype(v, lanes);
	const lanes even = both & (ushort)255, odd = both >> (ushort)8;
	const lanes low = samples_pairs(even, table) >> (even & (ushort)1) * (ushort)8;
	const lanes high = samples_pairs(odd, table) << (~odd & (ushort)1) * (ushort)8;

	return __builtin_astype((low & (ushort)0xff) | (high & (ushort)0xff00), bytes);
}
#elif defined __AVX2__
typedef uchar narrow __attribute__((ext_vector_type(32)));
typedef char signed_narrow __attribute__((ext_vector_type(32)));
typedef uchar16 entries_anywhere __attribute__((aligned(1)));

/* An instruction looks up 16 entries by the lower four bits; the result counts if the upper four
 * bits are those of these entries. */
FORCE_INLINE narrow samples_narrow(narrow v, const uchar *entries)
{
	const signed_narrow low = __builtin_astype(v & (uchar)15, signed_narrow);
	const narrow high = v >> (uchar)4;
	narrow made = (uchar)0;

#pragma unroll
	for (int i = 0; i < 16; i++) {
		const uchar16 part = *(const private entries_anywhere *)(entries + 16 * i);
		const narrow both =
		    __builtin_shufflevector(part, part, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13,
		                            14, 15, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);

		made |= __builtin_astype(high == (uchar)i, narrow) &
		        __builtin_astype(__builtin_ia32_pshufb256(
		                             __builtin_astype(both, signed_narrow), low),
		                         narrow);
	}
	return made;
}

FORCE_INLINE bytes samples_look_up(bytes v, const bytes *table)
{
	union {
		bytes all;
		narrow half_of[2];
	} made = {.all = v};

	for (int i = 0; i < 2; i++)
		made.half_of[i] = samples_narrow(made.half_of[i], (const uchar *)table);
	return made.all;
}
#else
FORCE_INLINE bytes samples_look_up(bytes v, const bytes *table)
{
	const uchar *entries = (const uchar *)table;
	uchar each[PACKED_VECTOR];

	BYTES(private, each) = v;
	for (int i = 0; i < PACKED_VECTOR; i++)
		each[i] = entries[each[i]];
	return BYTES(private, each);
}
#endif

/* Maps 64 samples; the first is of band `first`. */
FORCE_INLINE bytes samples_make(bytes v, uint first, const struct samples_how *how,
                                const enum samples_kind kind)
{
	bytes made = (uchar)0;

	if (kind == BY_TABLE)
		return samples_look_up(v, how->table[0]);
	if (kind == BY_TABLES) {
#pragma unroll
		for (int b = 0; b < BANDS; b++)
			made |= samples_look_up(v, how->table[b]) &
			        BYTES(const private, how->mine[b] + first);
		return made;
	}

	const bytes above = __builtin_astype(v >= BYTES(const private, how->least + first), bytes) &
	                    ~BYTES(const private, how->never + first);

	made = above & how->full;
	if (KEEP) {
		const bytes kept = BYTES(const private, how->kept + first);

		made = (made & ~kept) | (v & kept);
	}
	return made;
}

FORCE_INLINE void samples_row(const global uchar *in, global uchar *out, uint2 span,
                              const struct samples_how *how, const enum samples_kind kind)
{
	/* The starts of the target's vectors; the first and the last vector may overlap others. */
	const uint whole = -(ulong)(out + span.x) & (PACKED_VECTOR - 1);
	const uint last = span.y - PACKED_VECTOR;
	const ulong2 lines = stream_lines(out + span.x, out + span.y, PACKED_VECTOR);
	uint x = span.x;

	if (whole) {
		BYTES(global, out + x) =
		    samples_make(BYTES(const global, in + x), x % BANDS, how, kind);
		x += whole;
	}
	for (; x <= last; x += PACKED_VECTOR) {
		const bytes made = samples_make(BYTES(const global, in + x), x % BANDS, how, kind);

		if (streams(lines, out + x, PACKED_VECTOR))
			__builtin_nontemporal_store(made, (global bytes *)(out + x));
		else
			BYTES(global, out + x) = made;
	}
	if (x < span.y)
		BYTES(global, out + last) =
		    samples_make(BYTES(const global, in + last), last % BANDS, how, kind);
}

FORCE_INLINE void samples_block(const global uchar *in, uint src_pitch, global uchar *out,
                                uint dst_pitch, uint2 span, uint count,
                                const struct samples_how *how, const enum samples_kind kind)
{
	for (uint r = 0; r < count; r++)
		samples_row(in + (ulong)r * src_pitch, out + (ulong)r * dst_pitch, span, how, kind);
}

/* One table for all bands, or one for each. */
FORCE_INLINE void samples_by_tables(const global uchar *in, uint src_pitch, global uchar *out,
                                    uint dst_pitch, uint2 span, uint count, struct samples_how *how,
                                    const bool many)
{
	for (int b = 0; b < BANDS; b++)
		for (int i = 0; i < PATTERN; i++)
			how->mine[b][i] = i % BANDS == b ? 255 : 0;
	if (many)
		samples_block(in, src_pitch, out, dst_pitch, span, count, how, BY_TABLES);
	else
		samples_block(in, src_pitch, out, dst_pitch, span, count, how, BY_TABLE);
}

FORCE_INLINE float band_value(float4 values, uint by_band, uint band)
{
	if (!by_band || band == 0)
		return values.s0;
	return band == 1 ? values.s1 : band == 2 ? values.s2 : values.s3;
}

#define SAMPLES_PLACE                                                                              \
	const uint2 span = block_span(samples, blocks, get_global_id(0));                          \
	const uint y = get_global_id(1) * BLOCK_Y, count = min(rows - y, (uint)BLOCK_Y);           \
	const global uchar *in = (const global uchar *)SOURCE_ROW(y);                              \
	global uchar *out = (global uchar *)TARGET_ROW(y);                                         \
	struct samples_how how;

#define SAMPLES_KERNEL kernel __attribute__((reqd_work_group_size(1, 1, 1))) void

SAMPLES_KERNEL threshold_packed(REGION_ARGUMENTS, float4 limits, float full, uint by_band,
                                uint keep)
{
	SAMPLES_PLACE
	how.full = PIXEL_ROUND_1(full);
	for (int i = 0; i < PATTERN; i++) {
		const float limit = band_value(limits, by_band, i % BANDS);

		how.kept[i] = KEEP >> i % BANDS & 1 ? 255 : 0;
		how.never[i] = limit >= PIXEL_MAX ? 255 : 0;
		how.least[i] = convert_uchar(clamp(floor(limit) + 1.0f, 0.0f, PIXEL_MAX));
	}
	samples_block(in, src_pitch, out, dst_pitch, span, count, &how, BY_THRESHOLD);
}

SAMPLES_KERNEL curve_packed(REGION_ARGUMENTS, float4 gain, float4 bias, float low, float high,
                            float exponent, float scale, float shift, uint by_band, uint keep)
{
	SAMPLES_PLACE
	for (uint b = 0; b < BANDS; b++)
		for (uint i = 0; i < VALUES; i += VECTOR) {
			const float16 v =
			    convert_float16((uint16)(i) + (uint16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10,
			                                           11, 12, 13, 14, 15));
			float16 t = fma(v, (float16)(band_value(gain, by_band, b)),
			                (float16)(band_value(bias, by_band, b)));

			t = fmin(fmax(t, (float16)(low)), (float16)(high));
			t = fma(t, (float16)(scale), (float16)(shift));
			*(private uchar16 *)((private uchar *)how.table[b] + i) =
			    PIXEL_ROUND(KEEP >> b & 1 ? v : t);
		}
	samples_by_tables(in, src_pitch, out, dst_pitch, span, count, &how,
	                  BANDS > 1 && (by_band || KEEP));
}

SAMPLES_KERNEL lut_packed(REGION_ARGUMENTS, const global PIXEL *tables, uint count_tables,
                          uint entries, float places, uint keep)
{
	SAMPLES_PLACE
	for (uint b = 0; b < BANDS; b++) {
		const global uchar *table = tables + min(b, count_tables - 1) * entries;
	      private
		uchar *to = (private uchar *)how.table[b];

		for (uint i = 0; i < VALUES; i++)
			to[i] = KEEP >> b & 1 ? i : table[i];
	}
	samples_by_tables(in, src_pitch, out, dst_pitch, span, count, &how,
	                  BANDS > 1 && (count_tables > 1 || KEEP));
}
