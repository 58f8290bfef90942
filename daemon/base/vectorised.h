/* Loops that the compiler vectorises, for each generation of processors. */
#pragma once

/* Makes the compiler vectorise the following loops. VECTORISED compiles a function for several
 * generations of processors; sanitizers cannot choose between these as a program starts. */
#if defined __GNUC__ && !defined __clang__
#pragma GCC optimize("O3", "no-math-errno", "no-trapping-math")
#ifdef __x86_64__
#define GENERATIONS
#endif
#endif
#if defined GENERATIONS && !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__
#define VECTORISED __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define VECTORISED
#endif
