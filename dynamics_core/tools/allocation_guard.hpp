// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Counts what the calling thread asks of the heap, in whatever code: the C library's functions are
/// replaced for the whole program, and operator new ends there, too.
///
///     tools::AllocationGuard guard;
///     run();
///     EXPECT_EQ(guard.count(), 0);
///
/// Include it in one source file of a program. A sanitizer brings its own heap; under one of them,
/// and without the GNU C library, nothing is counted and `tools::allocations_are_counted` is false.

#include <cerrno>
#include <cstddef>
#include <cstdlib>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(memory_sanitizer)
#define RD_OTHER_HEAP 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__GLIBC__)
#define RD_OTHER_HEAP 1
#endif

namespace dynamics_core::tools {

#ifdef RD_OTHER_HEAP
inline constexpr bool allocations_are_counted = false;
#else
inline constexpr bool allocations_are_counted = true;
#endif

namespace detail {
/// In the executable's own block of thread storage, so that reading it allocates nothing.
inline thread_local long heap_calls = 0;
}  // namespace detail

class AllocationGuard {
 public:
  AllocationGuard() noexcept : start_(detail::heap_calls) {}
  /// Calls by this thread since construction that took or gave back memory.
  [[nodiscard]] long count() const noexcept { return detail::heap_calls - start_; }

 private:
  long start_;
};

}  // namespace dynamics_core::tools

#ifndef RD_OTHER_HEAP

// The names behind the GNU C library's own malloc.
// NOLINTBEGIN: these are the C library's names, and one source file of a program includes them
extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
void __libc_free(void*);

void* malloc(std::size_t size) noexcept {
  ++dynamics_core::tools::detail::heap_calls;
  return __libc_malloc(size);
}
void* calloc(std::size_t count, std::size_t size) noexcept {
  ++dynamics_core::tools::detail::heap_calls;
  return __libc_calloc(count, size);
}
void* realloc(void* old, std::size_t size) noexcept {
  ++dynamics_core::tools::detail::heap_calls;
  return __libc_realloc(old, size);
}
void* memalign(std::size_t alignment, std::size_t size) noexcept {
  ++dynamics_core::tools::detail::heap_calls;
  return __libc_memalign(alignment, size);
}
void* aligned_alloc(std::size_t alignment, std::size_t size) noexcept {
  ++dynamics_core::tools::detail::heap_calls;
  return __libc_memalign(alignment, size);
}
int posix_memalign(void** out, std::size_t alignment, std::size_t size) noexcept {
  ++dynamics_core::tools::detail::heap_calls;
  void* const memory = __libc_memalign(alignment, size);
  if (memory == nullptr) return ENOMEM;
  *out = memory;
  return 0;
}
void free(void* memory) noexcept {
  if (memory != nullptr) ++dynamics_core::tools::detail::heap_calls;
  __libc_free(memory);
}
}
// NOLINTEND

#endif
