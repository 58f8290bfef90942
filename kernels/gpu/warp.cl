/* warp.cl: operations that the lanes of one of NVIDIA's warps do together; stands between window.cl
 * and the kernels of gpu/. HAS_WARPS is defined if there are such instructions: for NVIDIA's GPUs,
 * and in tests (WARPS_ON_HOST), whose functions do the same on a CPU. */

#if (defined(__NV_CL_C_VERSION) && defined(FOR_NVIDIA)) || defined(WARPS_ON_HOST)
#define HAS_WARPS

#ifdef WARPS_ON_HOST
void mma_halves(float *sum, const uint *left, const uint *right);
void mma_bytes(int *sum, const uint *left, const uint *right);
void mma_signed(int *sum, const uint *left, const uint *right);
uint neighbour_get(uint v);
#else
#define MMA_FUNCTION(name, element, constraint, instruction)                                       \
	FORCE_INLINE void name(element *sum, const uint *left, const uint *right)                  \
	{                                                                                          \
		asm volatile("mma.sync.aligned." instruction                                       \
		             " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"    \
		             : "+" constraint(sum[0]), "+" constraint(sum[1]),                     \
		               "+" constraint(sum[2]), "+" constraint(sum[3])                      \
		             : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]),             \
		               "r"(right[0]), "r"(right[1]));                                      \
	}

/* Add the product left * right to sum: 16 x 16 halves, 16 x 8 halves, 16 x 8 floats; 16 x 32 bytes,
 * 32 x 8 bytes, not signed or signed, 16 x 8 integers. */
MMA_FUNCTION(mma_halves, float, "f", "m16n8k16.row.col.f32.f16.f16.f32")
MMA_FUNCTION(mma_bytes, int, "r", "m16n8k32.row.col.s32.u8.u8.s32")
MMA_FUNCTION(mma_signed, int, "r", "m16n8k32.row.col.s32.u8.s8.s32")

/* Returns the value of the lane beside: lanes 2 n and 2 n + 1 swap. */
FORCE_INLINE uint neighbour_get(uint v)
{
	uint d;

	asm volatile("shfl.sync.bfly.b32 %0, %1, 1, 31, 0xffffffff;" : "=r"(d) : "r"(v));
	return d;
}
#endif

#endif
