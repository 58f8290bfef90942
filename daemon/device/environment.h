/* What drivers are told by the environment. */
#ifndef DEVICE_ENVIRONMENT_H
#define DEVICE_ENVIRONMENT_H

/* Gives drivers directories of their own below this one (NULL: theirs), and PoCL the way to compile
 * that the service uses; what the environment already says stays. Must be called before the first
 * call of OpenCL, by every program that runs or measures kernels. */
void environment_set(const char *cache_dir);

#endif
