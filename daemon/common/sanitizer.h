/* SANITIZER: 1 in a build with AddressSanitizer or ThreadSanitizer, which do not work in
 * sandboxes. */
#ifndef COMMON_SANITIZER_H
#define COMMON_SANITIZER_H

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZER 1
#endif
#endif
#ifndef SANITIZER
#define SANITIZER 0
#endif

#endif
