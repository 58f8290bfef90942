#include "device/plan/step.h"

void step_retain_kernel(const struct step *step)
{
	clRetainKernel(object_add(OBJECT_STEP_KERNEL, step->function));
}

void step_retain(const struct step *step)
{
	if (step->function)
		step_retain_kernel(step);
	if (step->weights)
		clRetainMemObject(step->weights);
	object_add(OBJECT_STEP_WEIGHTS, step->weights);
}

void step_release(struct step *step)
{
	object_release(OBJECT_STEP_KERNEL, step->function);
	object_release(OBJECT_STEP_WEIGHTS, step->weights);
	*step = (struct step){0};
}
