/* Environment variables for drivers. */
#ifndef DEVICE_ENVIRONMENT_H
#define DEVICE_ENVIRONMENT_H

/* Gives drivers directories of their own below cache_dir (NULL: their default), and sets PoCL's
 * compiler options for the service. Variables that are already set stay. To be called before the
 * first OpenCL call, by every program that runs or measures kernels. */
void environment_set(const char *cache_dir);

#endif
