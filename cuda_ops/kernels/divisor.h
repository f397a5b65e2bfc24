// SPDX-License-Identifier: Apache-2.0
// Division by a number that is known when a kernel is launched, as one multiplication and a shift: a GPU needs some
// seventy instructions, and a call that spills registers, for a division of 64-bit integers. For host and device.
//
// With 2^(l-1) < d <= 2^l and m = ceil(2^(63+l) / d), m d = 2^(63+l) + e with 0 <= e < d, hence
// n m / 2^(63+l) = n / d + n e / (d 2^(63+l)), where the last term is below 1 / d for n < 2^63: the floor is exact
// (Granlund and Montgomery, "Division by invariant integers using multiplication", PLDI 1994).
#ifndef ONNXTRAIN_CUDA_OPS_KERNELS_DIVISOR_H_
#define ONNXTRAIN_CUDA_OPS_KERNELS_DIVISOR_H_

#include <cstdint>

#include "runtime/math/host_device.h"

namespace onnxtrain {

class Divisor {
 public:
  Divisor() = default;
  // Host only; up to 2^62. A divisor below 1 counts as 1: nothing is walked then.
  explicit Divisor(int64_t divisor) : divisor_(divisor < 1 ? 1 : divisor) {
    int bits = 0;
    while (bits < 62 && (int64_t{1} << bits) < divisor_) ++bits;
    if (bits == 0) return;
    const auto d = static_cast<unsigned __int128>(divisor_);
    multiplier_ = static_cast<uint64_t>(((static_cast<unsigned __int128>(1) << (63 + bits)) + d - 1) / d);
    shift_ = bits - 1;
  }

  ONNXTRAIN_HOST_DEVICE inline int64_t value() const { return divisor_; }

  // n / divisor for n >= 0.
  ONNXTRAIN_HOST_DEVICE inline int64_t Quotient(int64_t n) const {
    if (multiplier_ == 0) return n;
#ifdef __CUDA_ARCH__
    return static_cast<int64_t>(__umul64hi(static_cast<uint64_t>(n), multiplier_) >> shift_);
#else
    const auto product = static_cast<unsigned __int128>(static_cast<uint64_t>(n)) * multiplier_;
    return static_cast<int64_t>(static_cast<uint64_t>(product >> 64) >> shift_);
#endif
  }
  // n % divisor; sets n to n / divisor.
  ONNXTRAIN_HOST_DEVICE inline int64_t Split(int64_t* n) const {
    const int64_t quotient = Quotient(*n);
    const int64_t rest = *n - quotient * divisor_;
    *n = quotient;
    return rest;
  }

 private:
  int64_t divisor_ = 1;
  uint64_t multiplier_ = 0;  // 0: the divisor is 1
  int32_t shift_ = 0;
};

}  // namespace onnxtrain

#endif  // ONNXTRAIN_CUDA_OPS_KERNELS_DIVISOR_H_
