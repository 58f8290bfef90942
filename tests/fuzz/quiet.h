/* A log that writes its lines and shows them to nobody, and metrics that are not kept. */
#pragma once

#include <stdarg.h>

#include "base/log.h"
#include "front/base/metrics.h"
#include "fuzz.h"

void log_event(enum log_level level, const struct log_fields *fields, const char *format, ...)
{
	char text[2048];
	va_list list;

	(void)level, (void)fields;
	va_start(list, format);
	vsnprintf(text, sizeof text, format, list);
	va_end(list);
}

void metric_set(enum metric metric, const char *label1, const char *label2, double value)
{
	(void)value;
	must(metric < METRICS && (!label1 || *label1) && (!label2 || *label2));
}

void metric_add(enum metric metric, const char *label1, const char *label2, double value)
{
	metric_set(metric, label1, label2, value);
	must(value >= 0);
}

void metric_observe(enum metric metric, const char *label1, const char *label2, uint64_t ns,
                    const char *)
{
	metric_add(metric, label1, label2, (double)ns);
}

void metric_forget_gauges(const char *label1)
{
	must(*label1);
}
