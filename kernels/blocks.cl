/* blocks.cl: the blocks of an image whose means pixelate makes, and their sums; stands before the
 * kernels that do.
 *
 * The blocks are size x size pixels; the first one begins at the image's first pixel. The border
 * rule makes the part of a block that is outside the image. Beyond the image, where only `wrap`
 * needs a result, blocks begin again with each copy of the image, so that a pixel's block is that
 * of the pixel that it is a copy of. A block that reaches out of the region is summed whole, too:
 * the radius covers it.
 *
 * Sums of integers are exact; floats are summed with their rounding errors (Kahan, "Further remarks
 * on reducing truncation errors", 1965). */

/* One pixel's contribution to the sum, the rounding error to add to the next, and the mean. 256 x
 * 256 of 65535 fit an integer; floats are divided first, so that large ones do not overflow. */
#ifdef PIXEL_MAX
enum { PIXELATE_EXACT = true };
typedef uint pixelate_sum;
#define PIXELATE_TERM(v, share)         (v)
#define PIXELATE_LOST(total, before, v) 0
#define PIXELATE_MEAN(sum, share)       (convert_float(sum) * (share))
#else
enum { PIXELATE_EXACT = false };
typedef float pixelate_sum;
#define PIXELATE_TERM(v, share)         ((v) * (share))
#define PIXELATE_LOST(total, before, v) (((total) - (before)) - (v))
#define PIXELATE_MEAN(sum, share)       (sum)
#endif

/* A block in one direction, in pixels of the image: its start, its part [from, to) in the region,
 * and the end of its copy of the image. */
struct pixelate_span {
	int start, from, to, edge;
};

/* Returns the i-th of the blocks that meet [first, first + length). */
FORCE_INLINE struct pixelate_span pixelate_block(uint i, int first, uint length, int image, int size)
{
	const int count = (image + size - 1) / size;
	const int copy = first / image - (first % image < 0), place = first - copy * image;
	const int number = place / size + (int)i;
	const int origin = (copy + number / count) * image;
	struct pixelate_span span;

	span.start = origin + number % count * size;
	span.edge = origin + image;
	span.from = max(span.start, first);
	span.to = min(min(span.start + size, span.edge), first + (int)length);
	return span;
}

/* Returns the next block. end: that of the region. */
FORCE_INLINE struct pixelate_span pixelate_next(struct pixelate_span span, int end, int image, int size)
{
	span.start = min(span.start + size, span.edge);
	if (span.start == span.edge)
		span.edge += image;
	span.from = span.start;
	span.to = min(min(span.start + size, span.edge), end);
	return span;
}
