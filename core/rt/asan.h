/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TM_RT_ASAN_H
#define TM_RT_ASAN_H
/* TM_ASAN: is this compiled with AddressSanitizer? gcc and clang say so in ways of their own. */
#if defined(__SANITIZE_ADDRESS__)
#define TM_ASAN 1
#elif defined(__has_feature)
#define TM_ASAN __has_feature(address_sanitizer)
#else
#define TM_ASAN 0
#endif
#endif
