/* warp.cl: what the lanes of one of NVIDIA's warps do together; stands between window.cl and the
 * kernels of gpu/. HAS_WARPS is defined where there are such instructions: for NVIDIA's GPUs, and in
 * tests (WARPS_ON_HOST), whose functions do the same on a CPU. */

#if (defined(__NV_CL_C_VERSION) && defined(FOR_NVIDIA)) || defined(WARPS_ON_HOST)
#define HAS_WARPS

/* sum += left * right: 16 x 16 halves, 16 x 8 halves, 16 x 8 floats. */
#ifdef WARPS_ON_HOST
void mma_halves(float *sum, const uint *left, const uint *right);
#else
FORCE_INLINE void mma_halves(float *sum, const uint *left, const uint *right)
{
	asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
	             "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
	             : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
	             : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right[0]),
	               "r"(right[1]));
}
#endif

#endif
