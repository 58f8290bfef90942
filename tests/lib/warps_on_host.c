/* The common operations of the lanes of NVIDIA's warps (kernels/gpu/warp.cl), and the half floats
 * of these kernels (kernels/gpu/window.cl), for kernels that opencl_on_host runs. A lane that comes
 * to an instruction leaves its operands and yields; the last of the 32 does the work for all. Lanes
 * that do not all come to the same instruction are the kernel's fault: it aborts. */
#include <CL/cl_half.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "opencl_on_host.h"

enum { WARP = 32, WARPS_MAX = 32, ROWS = 16, COLUMNS = 8, DEPTH_MAX = 32 };

typedef double part_value(uint32_t word, int part);

struct lane {
	void *result;
	const uint32_t *left, *right;
	part_value *part; /* reads `right` */
};

typedef void warp_work(const struct lane lanes[WARP]);

static struct {
	struct lane lane[WARP];
	warp_work *work;
	unsigned arrived, done;
} warps[WARPS_MAX];

static void arrive(warp_work *work, struct lane own)
{
	const size_t item = host_item_number();
	const size_t warp = item / WARP;
	const unsigned done = warps[warp].done;

	if (warp >= WARPS_MAX || warps[warp].arrived != item % WARP ||
	    (item % WARP && warps[warp].work != work))
		abort();
	warps[warp].work = work;
	warps[warp].lane[warps[warp].arrived++] = own;
	if (warps[warp].arrived == WARP) {
		work(warps[warp].lane);
		warps[warp].arrived = 0;
		warps[warp].done++;
	}
	host_yield();
	if (warps[warp].done == done)
		abort();
}

/* Floats --------------------------------------------------------------------------------------- */

static double half_value(uint32_t bits)
{
	const int exponent = bits >> 10 & 31, fraction = bits & 1023;
	const double value = exponent == 31 ? (fraction ? NAN : INFINITY)
	                     : exponent     ? ldexp(1024 + fraction, exponent - 25)
	                                    : ldexp(fraction, -24);

	return bits >> 15 & 1 ? -value : value;
}

typedef float float2 __attribute__((vector_size(8)));

FUNCTION(float, k_vload_half, "_Z10vload_halfmPU9CLprivateKDh", (size_t at, const uint16_t *p),
         (float)half_value(p[at]))
BUILTIN(void, k_vstore_half, "_Z15vstore_half_rtefmPU9CLprivateDh", float v, size_t at, uint16_t *p)
{
	p[at] = cl_half_from_float(v, CL_HALF_RTE);
}
FUNCTION(float2, k_fmin, "_Z4fminDv2_fS_", (float2 a, float2 b),
         (float2){fminf(a[0], b[0]), fminf(a[1], b[1])})
FUNCTION(int32_t, k_round, "_Z15convert_int_rtef", (float a), (int32_t)lrintf(a))

/* Products of matrices ----------------------------------------------------------------------------
 *
 * "PTX ISA", "Matrix Fragments for mma.m16n8k16" and "… mma.m16n8k32": a row of the left-hand side,
 * and a column of the right-hand one, lies in the words of four neighbours in turns, `parts` values
 * a word; a row of the result too, two values a lane. */

/* The 16 x k and the k x 8 values, exactly. */
struct sides {
	int depth;
	double left[ROWS][DEPTH_MAX], right[COLUMNS][DEPTH_MAX];
};

static double half_part(uint32_t word, int part)
{
	return half_value(word >> 16 * part & 0xffff);
}

static void sides_read(struct sides *sides, const struct lane *lanes, int parts, part_value *left)
{
	sides->depth = 8 * parts;
	for (int k = 0; k < sides->depth; k++) {
		const int place = k / parts % 4, half = k / parts / 4, part = k % parts;

		for (int row = 0; row < ROWS; row++)
			sides->left[row][k] =
			    left(lanes[4 * (row % 8) + place].left[row / 8 + 2 * half], part);
		for (int column = 0; column < COLUMNS; column++)
			sides->right[column][k] =
			    lanes->part(lanes[4 * column + place].right[half], part);
	}
}

static double sides_product(const struct sides *sides, int row, int column)
{
	double sum = 0;

	for (int k = 0; k < sides->depth; k++)
		sum += sides->left[row][k] * sides->right[column][k];
	return sum;
}

static double byte_part(uint32_t word, int part)
{
	return word >> 8 * part & 255;
}

static double signed_part(uint32_t word, int part)
{
	return (int8_t)(word >> 8 * part);
}

/* Returns the place of a result. */
static int result_place(int row, int column)
{
	return row / 8 * 2 + column % 2;
}

static const struct lane *result_lane(const struct lane *lanes, int row, int column)
{
	return &lanes[4 * (row % 8) + column / 2];
}

static void multiply_halves(const struct lane lanes[WARP])
{
	struct sides sides;

	sides_read(&sides, lanes, 2, half_part);
	for (int row = 0; row < ROWS; row++)
		for (int column = 0; column < COLUMNS; column++) {
			float *sum = result_lane(lanes, row, column)->result;

			sum += result_place(row, column);
			*sum = (float)(*sum + sides_product(&sides, row, column));
		}
}

/* Integers do not overflow: kernels have no use for that. */
static void multiply_integers(const struct lane lanes[WARP])
{
	struct sides sides;

	sides_read(&sides, lanes, 4, byte_part);
	for (int row = 0; row < ROWS; row++)
		for (int column = 0; column < COLUMNS; column++) {
			int32_t *sum = result_lane(lanes, row, column)->result;
			double wide;

			sum += result_place(row, column);
			wide = *sum + sides_product(&sides, row, column);
			if (wide < INT32_MIN || wide > INT32_MAX)
				abort();
			*sum = (int32_t)wide;
		}
}

static void get_neighbours(const struct lane lanes[WARP])
{
	for (int i = 0; i < WARP; i++)
		*(uint32_t *)lanes[i].result = *lanes[i ^ 1].left;
}

/* Functions that kernels call. ----------------------------------------------------------------- */

#define MMA(name, number, work, part)                                                              \
	BUILTIN(void, name, #name, number *sum, const uint32_t *left, const uint32_t *right)       \
	{                                                                                          \
		arrive(work, (struct lane){sum, left, right, part});                               \
	}
MMA(mma_halves, float, multiply_halves, half_part)
MMA(mma_bytes, int32_t, multiply_integers, byte_part)
MMA(mma_signed, int32_t, multiply_integers, signed_part)
BUILTIN(uint32_t, neighbour_get, "neighbour_get", uint32_t v)
{
	uint32_t other;

	arrive(get_neighbours, (struct lane){&other, &v, NULL, NULL});
	return other;
}
