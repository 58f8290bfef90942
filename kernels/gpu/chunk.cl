/* gpu/chunk.cl: chunks of neighbouring samples from global memory; stands before the kernels whose
 * work-items take turns at them, on their way to local memory. */

enum { CHUNK = 4, CHUNK_WORDS = CHUNK / PER_WORD };

/* Loads a chunk that is aligned to its size. */
FORCE_INLINE void chunk_load(uint *words, const global uchar *p)
{
	if (CHUNK_WORDS == 1) {
		words[0] = *(const global uint *)p;
	} else if (CHUNK_WORDS == 2) {
		const uint2 v = *(const global uint2 *)p;

		words[0] = v.x, words[1 % CHUNK_WORDS] = v.y;
	} else {
		const uint4 v = *(const global uint4 *)p;

		words[0] = v.x, words[1 % CHUNK_WORDS] = v.y;
		words[2 % CHUNK_WORDS] = v.z, words[3 % CHUNK_WORDS] = v.w;
	}
}

/* Loads any other, `at` bytes from p: its part in [low, high]. */
FORCE_INLINE void chunk_gather(uint *words, const global uchar *p, int at, int low, int high)
{
	const int shift = (int)((uint)(size_t)p & 3);
	const global uchar *base = p - shift;
	uint last;

	low += shift, high += shift;
	last = *(const global uint *)(base + (clamp(at, low, high) & ~3));
#pragma unroll
	for (int i = 0; i < CHUNK_WORDS; i++) {
		const uint next =
		    *(const global uint *)(base + (clamp(at + 4 * i + 4, low, high) & ~3));

		words[i] = (uint)(((ulong)next << 32 | last) >> (8 * shift));
		last = next;
	}
}
