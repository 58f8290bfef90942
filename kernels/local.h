/* local.h: the local memory that kernels declare, for C and OpenCL C alike: the kernels take their
 * sizes from here, and the host its requirements of a device.
 *
 * group_x, group_y, block_x, block_y: a work-group and its work-items' blocks. reach: samples to
 * either side, radius_x * bands. Strides are in floats or words of 4 bytes. */
#ifndef LOCAL_H
#define LOCAL_H

/* separable_local: group_y * block_y rows. */
#define SEPARABLE_LOCAL_LEFT(reach) (((reach) + 7) / 8 * 8)
#define SEPARABLE_LOCAL_STRIDE(group_x, block_x, reach)                                            \
	((group_x) * (block_x) + 2 * SEPARABLE_LOCAL_LEFT(reach))

/* extreme_local: group_y * block_y rows of bytes, or of larger samples of `size` bytes. */
#define EXTREME_LOCAL_LEFT(reach) (((reach) + 7) / 8 * 8)
#define EXTREME_LOCAL_STRIDE(group_x, block_x, reach, size)                                        \
	(((group_x) * (block_x) + 2 * EXTREME_LOCAL_LEFT(reach)) * (size) / 4)

/* samples.cl: a table for bytes, and a copy of it for each work-item across. */
#define SAMPLES_WORDS(group_x) (256 * ((group_x) + 1))

/* rank_counts: numbers in a word, whose sum is at most that of a window; words for all values of a
 * byte for each work-item. */
#define RANK_COUNTS_PER(radius)            ((radius) < 8 ? 4u : 2u)
#define RANK_COUNTS_WORDS(group_x, radius) (256 / RANK_COUNTS_PER(radius) * (group_x))

/* separable_mma: weights of the row and of the column between zeros, and a scratch of each lane. */
#define SEPARABLE_MMA_REACH_UP(reach)          (((reach) + 15) / 16 * 16)
#define SEPARABLE_MMA_BLOCKS(reach)            (1 + (2 * SEPARABLE_MMA_REACH_UP(reach) + 31) / 32)
#define SEPARABLE_MMA_DEPTH(radius_y)          ((16 + 2 * (radius_y) + 15) / 16)
#define SEPARABLE_MMA_PAD(reach)               (32 * SEPARABLE_MMA_BLOCKS(reach) + 32)
#define SEPARABLE_MMA_ROW(reach)               (2 * SEPARABLE_MMA_PAD(reach) + 2 * (reach) + 1)
#define SEPARABLE_MMA_COLUMN(reach, radius_y)  (2 * SEPARABLE_MMA_PAD(reach) + 2 * (radius_y) + 1)
#define SEPARABLE_MMA_SCRATCH(lanes, radius_y) (4 * SEPARABLE_MMA_DEPTH(radius_y) * (lanes))

/* matrix_fixed, which has no local memory: samples that a block's window has to either side, and
 * the words of a row of weights. */
#define MATRIX_FIXED_SPAN(reach)  ((reach) > 4 ? 8 : 4)
#define MATRIX_FIXED_STRIP(reach) ((reach) > 4 ? 36 : 20)

/* bilateral_table: 32 copies, one for each bank, of an entry for each difference up to DISTANCE
 * either way. */
#define BILATERAL_TABLE_DISTANCE 191
#define BILATERAL_TABLE_WORDS    (32 * (2 * BILATERAL_TABLE_DISTANCE + 1))

/* resize_ring: samples and rows of the source that a group reads, weights of its pixels, and rows
 * of the result that wait to be made across. TURN: work-items that a processor has room for, by
 * their registers. */
#define RESIZE_RING_SAMPLES(group_x) (4 * (group_x))
#define RESIZE_RING_ROWS             256
#define RESIZE_RING_WEIGHTS          4800
#define RESIZE_RING_TOGETHER         4
#define RESIZE_RING_TURN             1024
/* Sums of a sample; words of a row of the source in the lists. */
#define RESIZE_RING_ACTIVE    6
#define RESIZE_RING_ROW_WORDS 8
/* Words of a pixel's weights, and places of every fourth sample: neighbours are in other banks. */
#define RESIZE_RING_STRIDE(taps)   (4 * (((taps) + 3) / 4 | 1))
#define RESIZE_RING_PLANE(group_x) ((group_x) + 33)
#define RESIZE_RING_WORDS(group_x)                                                                 \
	(RESIZE_RING_WEIGHTS + RESIZE_RING_ROW_WORDS * RESIZE_RING_ROWS +                          \
	 4 * RESIZE_RING_TOGETHER * RESIZE_RING_PLANE(group_x) +                                   \
	 (RESIZE_RING_SAMPLES(group_x) + RESIZE_RING_ROWS) / 2)

/* The published kernels, of fixed groups: floats. */
#define CONV_LOCAL_FLOATS                    (4 * 10 * 6)
#define SEP_ONE_PASS_FLOATS(reach, radius_y) ((16 + 2 * (radius_y)) * (16 + 2 * (reach)))
#define SEP_TILED_FLOATS(reach, radius_y)    ((32 + 2 * (radius_y)) * (32 + 2 * (reach)) + 1)

#endif
