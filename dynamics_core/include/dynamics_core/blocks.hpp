// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Several numbers of a long row at a time: loops over rows of a matrix, which need not know how wide
/// the processor's registers are. For double and float a block is four numbers and the compiler puts
/// it into the registers that there are; for any other scalar it is one number.

#include <cstddef>
#include <cstring>
#include <new>
#include <type_traits>
#include <vector>

#include "dynamics_core/inline.hpp"

namespace dynamics_core {

template <class S>
struct BlockOf {
  using Type = S;
  static constexpr int width = 1;
};
#if defined(__GNUC__)
template <>
struct BlockOf<double> {
  typedef double Type __attribute__((vector_size(32)));  // NOLINT(modernize-use-using)
  static constexpr int width = 4;
};
template <>
struct BlockOf<float> {
  typedef float Type __attribute__((vector_size(16)));  // NOLINT(modernize-use-using)
  static constexpr int width = 4;
};
#endif

/// `width` numbers with the operations of one, lane by lane, also with an S for one operand.
template <class S>
using Block = typename BlockOf<S>::Type;
template <class S>
constexpr int block_width = BlockOf<S>::width;

/// The number of blocks that hold n numbers.
template <class S>
[[nodiscard]] constexpr int blocks_for(int n) noexcept {
  constexpr int width = block_width<S>;
  return (n + width - 1) / width;
}

/// Memory in which a block that begins at a multiple of its width lies in one line of the cache.
/// Without that a mass matrix took up to a fifth longer, by the luck of the allocation.
template <class S>
struct BlockAllocator {
  using value_type = S;
  static constexpr std::align_val_t alignment{64};
  BlockAllocator() = default;
  template <class T>
  explicit BlockAllocator(const BlockAllocator<T>& /*other*/) noexcept {}
  [[nodiscard]] S* allocate(std::size_t n) {
    return static_cast<S*>(::operator new(n * sizeof(S), alignment));
  }
  void deallocate(S* p, std::size_t /*n*/) noexcept { ::operator delete(p, alignment); }
  friend bool operator==(const BlockAllocator&, const BlockAllocator&) noexcept { return true; }
  friend bool operator!=(const BlockAllocator&, const BlockAllocator&) noexcept { return false; }
};
template <class S>
using BlockVector = std::vector<S, BlockAllocator<S>>;

/// B is a block or an S.
template <class S, class B>
RD_INLINE void load_block(const S* from, B& to) noexcept {
  if constexpr (std::is_same_v<S, B>)
    to = *from;
  else
    std::memcpy(&to, from, sizeof to);
}
template <class S, class B>
RD_INLINE void store_block(const B& from, S* to) noexcept {
  if constexpr (std::is_same_v<S, B>)
    *to = from;
  else
    std::memcpy(to, &from, sizeof from);
}

/// The numbers at four places of an array, or the one at the first of them.
template <class S, class B>
RD_INLINE void gather_block(const S* from, const std::ptrdiff_t* at, B& to) noexcept {
  if constexpr (std::is_same_v<S, B>)
    to = from[at[0]];
  else
    to = B{from[at[0]], from[at[1]], from[at[2]], from[at[3]]};
}
template <class S, class B>
[[nodiscard]] RD_INLINE S sum_of_block(const B& x) noexcept {
  if constexpr (std::is_same_v<S, B>)
    return x;
  else
    return (x[0] + x[1]) + (x[2] + x[3]);
}

/// y[0..n) −= x · row[0..n), in whole blocks: the numbers after the n-th change as well, up to the
/// end of the block.
template <class S>
RD_INLINE void subtract_multiple(const S& x, const S* row, int n, S* y) noexcept {
  for (int k = 0; k < n; k += block_width<S>) {
    Block<S> from, to;
    load_block<S>(row + k, from);
    load_block<S>(y + k, to);
    to -= x * from;
    store_block<S>(to, y + k);
  }
}

}  // namespace dynamics_core
