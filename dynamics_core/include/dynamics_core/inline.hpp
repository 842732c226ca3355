// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>

/// For the small functions of the recursions. Left to itself the compiler stops inlining in large
/// translation units, and every vector then travels through memory: a fifth more instructions.
#if defined(__GNUC__)
#define RD_INLINE [[gnu::always_inline]] inline
/// After a switch that treats every kind.
#define RD_UNREACHABLE() __builtin_unreachable()
#else
#define RD_INLINE inline
#define RD_UNREACHABLE() std::abort()
#endif
