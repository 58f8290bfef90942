/* jpeg/image.h: data of each image of a batch that the host gives the kernels of jpeg/, and their
 * results; for C and OpenCL C alike. Terms are those of ITU-T T.81.
 *
 * Every buffer is one array for the whole batch; each image has a span of it. The host alone counts
 * spans, from checked numbers; no kernel writes outside its image's. */
#ifndef JPEG_IMAGE_H
#define JPEG_IMAGE_H

#ifdef __OPENCL_VERSION__
typedef uint jpeg_uint;
typedef ulong jpeg_ulong;
#else
#include <stdint.h>
typedef uint32_t jpeg_uint;
typedef uint64_t jpeg_ulong;
#endif

enum {
	JPEG_CHUNK = 4096,        /* bytes that a work-group destuffs or stuffs at a time */
	JPEG_GROUP = 256,         /* work-items of most kernels, blocks that a group codes */
	JPEG_SYNC_GROUP = 128,    /* work-items of kernels that read Huffman codes */
	JPEG_SYNC_WINDOW = 512,   /* subsequences that a group brings into step */
	JPEG_STREAM_PADDING = 16, /* words that may be read behind a stream */
	JPEG_NEAR = 1024,         /* entries of a table of codes by their first 10 bits */
	JPEG_FAR = 8192,          /* entries of a table of longer codes, by 16 bits */
	JPEG_TABLES = 4,          /* DC and AC of luma, DC and AC of chroma */
	JPEG_TABLE_ENTRIES = JPEG_TABLES * (JPEG_NEAR + JPEG_FAR),
	JPEG_CODES = 16 + 256,    /* an encoder's codes of a plane: DC, AC */
	JPEG_IDCT_BLOCKS = 8,     /* blocks that a group transforms, a row or column an item */
	JPEG_COLOR_GROUP = 64,    /* work-items along a row, 8 pixels each */
	JPEG_BLOCK_WORDS = 16,    /* encoded words a block; more flag the image */
	JPEG_SPARE_WORDS = 256,   /* additional encoded words an image */
	JPEG_WORDS_MAX = 1 << 27, /* encoded words an image: their bits are counted in 32 bits */
	JPEG_STEP_WORDS = 256,    /* an image's quantization steps */
};

/* Reasons not to use a result: the file is damaged, or libjpeg-turbo decodes it otherwise, or a
 * buffer was too small. */
enum {
	JPEG_FLAG_MARKER = 1,   /* a marker that is none of the expected RSTn */
	JPEG_FLAG_SYNC = 2,     /* not in step after all rounds */
	JPEG_FLAG_CODE = 4,     /* bits that are no Huffman code, or too large a category */
	JPEG_FLAG_POSITION = 8, /* a coefficient beyond the 64th */
	JPEG_FLAG_LENGTH = 16,  /* an interval with too few or too many bits */
	JPEG_FLAG_RANGE = 32,   /* numbers at which libjpeg-turbo's 16-bit arithmetic overflows */
	JPEG_FLAG_ROOM = 64,    /* more encoded bytes than there is room for */
	JPEG_FLAG_WORK = 128,   /* set by the host: the description of the image is not valid */
	JPEG_FLAG_DEVICE = 256, /* set by the host: the device lacks memory or programs for it */
};

struct jpeg_span {
	jpeg_uint first, count;
};

/* The spans: of decoding, of encoding, of both. */
#define JPEG_SPANS(SPAN)                                                                           \
	SPAN(scan)         /* bytes: entropy-coded, as in the file */                              \
	SPAN(chunks)       /* pieces of JPEG_CHUNK bytes of the scan */                            \
	SPAN(stream)       /* words: the bit stream without stuffed bytes and markers */           \
	SPAN(intervals)    /* restart intervals; their arrays have one entry more */               \
	SPAN(subsequences) /* upper bound of their number */                                       \
	SPAN(groups)       /* JPEG_GROUP MCUs when decoding, blocks when encoding */               \
	SPAN(parts)        /* words: each group's encoded blocks */                                \
	SPAN(words)        /* words: the encoded stream before bytes are stuffed */                \
	SPAN(pieces)       /* pieces of JPEG_CHUNK bytes of it */                                  \
	SPAN(out)          /* bytes: entropy-coded, as for a file */                               \
	SPAN(blocks)       /* in the order of MCUs */                                              \
	SPAN(mcus)                                                                                 \
	SPAN(planes) /* bytes of the components' samples */                                        \
	SPAN(image)  /* 1: data that each image has once */

struct jpeg_image {
	/* Column after column. Decoding: three tables of 64 steps, two a word. Encoding: for luma
	 * and for chroma, for each of 64 the words 2^32 / divisor, rounded up, and divisor / 2; the
	 * divisor is 8 times the step. */
	jpeg_uint steps[JPEG_STEP_WORDS] __attribute__((aligned(16)));
#define SPAN(name) struct jpeg_span name;
	JPEG_SPANS(SPAN)
#undef SPAN
	jpeg_uint width, height, components;
	jpeg_uint h, v;                        /* sampling factors of Y; those of Cb and Cr are 1 */
	jpeg_uint mcus_x, mcus_y;              /* MCUs across and down */
	jpeg_uint mcu_blocks;                  /* blocks an MCU */
	jpeg_uint luma_blocks;                 /* blocks of Y, which are the first */
	jpeg_uint chroma_width, chroma_height; /* without the samples that fill blocks */
	jpeg_uint plane[3], plane_pitch[3];    /* bytes, from the batch's first plane */
	jpeg_uint samples_pitch;
	jpeg_ulong samples; /* bytes to the first sample: RGB or gray, interleaved */
	/* Decoding: */
	jpeg_uint restart_interval; /* MCUs an interval */
	jpeg_uint subsequence;      /* bytes a subsequence, a multiple of 4 */
	jpeg_uint tables;           /* first entry of its Huffman tables */
	jpeg_uint far_code[4];      /* first 16 bits of the codes that are not in the near table */
};

/* An image's result, which destuff_prefix or fdct begins. */
struct jpeg_result {
	jpeg_uint flags; /* 0: it is exact */
	jpeg_uint size;  /* bytes of an encoded scan */
};

#endif
