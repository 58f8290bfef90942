#include "filters/operations.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	const char *name;
	enum operation_kind by;
} rows[OPERATIONS] = {
#define OPERATION(symbol, name, by, ...) {name, OPERATION_##by},
#include "filters/operations.def"
};

const char *operation_name(enum operation_kind kind)
{
	return rows[kind].name;
}

uint32_t operation_kernels(enum operation_kind kind)
{
	return 1u << rows[kind].by | 1u << kind;
}

bool operation_compares(enum operation_kind kind)
{
	return kind == OPERATION_UNSHARP || kind == OPERATION_LOCAL_THRESHOLD;
}

double operation_terms(enum operation_kind kind, uint32_t radius_x, uint32_t radius_y)
{
	const double width = 2.0 * radius_x + 1, height = 2.0 * radius_y + 1;
	const double terms[OPERATIONS] = {
#define OPERATION(symbol, name, by, coefficients, terms) terms,
#include "filters/operations.def"
	};

	return terms[kind];
}

struct operation operation_extreme(const struct operation *op, bool largest)
{
	const uint32_t passes = op->morphology == MORPHOLOGY_GRADIENT ? 1 : 2;

	return (struct operation){.kind = OPERATION_EXTREME,
	                          .radius_x = op->radius_x / passes,
	                          .radius_y = op->radius_y / passes,
	                          .element = op->element,
	                          .largest = largest,
	                          .gain = 1};
}

size_t operation_coefficients(const struct operation *op)
{
	const size_t width = 2 * (size_t)op->radius_x + 1, height = 2 * (size_t)op->radius_y + 1;
	const size_t counts[OPERATIONS] = {
#define OPERATION(symbol, name, by, coefficients, terms) coefficients,
#include "filters/operations.def"
	};

	return counts[op->kind];
}

enum error operation_init(struct operation *op)
{
	/* One more: of none the pointer could be NULL. */
	op->coefficients = calloc(operation_coefficients(op) + 1, sizeof *op->coefficients);
	return op->coefficients ? ERR_OK : ERR_MEMORY;
}

bool operation_is_of_samples(enum operation_kind kind)
{
	return kind == OPERATION_CURVE || kind == OPERATION_LUT || kind == OPERATION_THRESHOLD;
}

double operation_pixel(const struct operation *op, uint32_t band, double pixel, double full)
{
	const struct curve *c = &op->curve;
	double out;

	if (op->kind == OPERATION_THRESHOLD)
		return pixel > op->limit[band] * full ? full : 0;
	if (op->kind != OPERATION_CURVE) {
		const uint32_t own = band < op->tables ? band : op->tables - 1;
		const double *table = op->coefficients + (size_t)own * op->entries;
		const double place = pixel * (op->entries - 1) / full;
		const uint32_t i = (uint32_t)fmin(place, op->entries - 2);

		out = full * (table[i] + (place - i) * (table[i + 1] - table[i]));
	} else if (c->exponent == 1) {
		/* Equals the kernels' result in floats to the last bit, so a filter's result does
		 * not depend on whether it shares a table. */
		const float straight =
		    fmaf((float)pixel, (float)(c->gain[band] / full), (float)c->bias[band]);

		out = fmaf(fminf(fmaxf(straight, (float)c->low), (float)c->high),
		           (float)(c->scale * full), (float)(c->shift * full));
	} else {
		const double t = c->gain[band] * (pixel / full) + c->bias[band];

		out =
		    full * (c->scale * pow(fmin(fmax(t, c->low), c->high), c->exponent) + c->shift);
	}
	return rint(fmin(fmax(out, 0), full));
}

enum error operation_tabulate(const struct operation *ops, uint32_t count, uint32_t full,
                              struct operation *table)
{
	*table = (struct operation){
	    .kind = OPERATION_LUT, .tables = 1, .entries = full + 1, .gain = full};
	for (uint32_t k = 0; k < count; k++)
		table->by_band |= ops[k].by_band;
	if (table->by_band)
		table->tables = BANDS_MAX;
	if (operation_init(table))
		return ERR_MEMORY;
	for (uint32_t i = 0; i < table->tables * table->entries; i++) {
		double pixel = i % table->entries;

		for (uint32_t k = 0; k < count; k++)
			pixel = operation_pixel(&ops[k], i / table->entries, pixel, full);
		table->coefficients[i] = pixel / full;
	}
	return ERR_OK;
}

enum error operation_copy(const struct operation *from, struct operation *to)
{
	enum error e;

	*to = *from;
	e = operation_init(to);
	if (!e && from->coefficients) /* there may be none */
		memcpy(to->coefficients, from->coefficients,
		       operation_coefficients(from) * sizeof *to->coefficients);
	return e;
}

void operation_fini(struct operation *op)
{
	free(op->coefficients);
	op->coefficients = NULL;
}
