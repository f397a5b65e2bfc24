// SPDX-License-Identifier: Apache-2.0
// A loop over the elements of a shape in which N tensors are each walked with strides of their own: broadcasting,
// slices, permutations. Neighbouring axes that all tensors walk alike are joined when the loop is made, so that most
// loops have one or two axes. For host and device.
#ifndef ONNXTRAIN_CUDA_OPS_KERNELS_STRIDED_LOOP_H_
#define ONNXTRAIN_CUDA_OPS_KERNELS_STRIDED_LOOP_H_

#include <array>
#include <cstdint>
#include <vector>

#include "cuda_ops/kernels/divisor.h"
#include "runtime/math/host_device.h"

namespace onnxtrain {

inline constexpr int kMaxLoopAxes = 10;

template <int N>
struct StridedLoop {
  int64_t count = 0;
  int axes = 0;  // outermost first
  Divisor sizes[kMaxLoopAxes] = {};
  int64_t strides[N][kMaxLoopAxes] = {};
  int64_t start[N] = {};
  bool dense = false;  // every tensor lies as the loop goes

  struct Offsets {
    int64_t at[N];
  };
  // Where element `index` of the loop lies in each tensor.
  ONNXTRAIN_HOST_DEVICE inline Offsets At(int64_t index) const {
    Offsets offsets;
    for (int n = 0; n < N; ++n) offsets.at[n] = start[n] + (dense ? index : 0);
    if (dense) return offsets;
    for (int axis = axes - 1; axis >= 0; --axis) {
      const int64_t coordinate = axis == 0 ? index : sizes[axis].Split(&index);
      for (int n = 0; n < N; ++n) offsets.at[n] += coordinate * strides[n][axis];
    }
    return offsets;
  }
};

// Strides of a dense tensor, in elements.
inline std::vector<int64_t> DenseLoopStrides(const std::vector<int64_t>& shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t axis = shape.size(); axis-- > 1;) strides[axis - 1] = strides[axis] * shape[axis];
  return strides;
}

// Strides along `to` of a dense tensor of shape `from` that is broadcast to it: 0 along repeated axes.
inline std::vector<int64_t> BroadcastLoopStrides(const std::vector<int64_t>& from, const std::vector<int64_t>& to) {
  const std::vector<int64_t> dense = DenseLoopStrides(from);
  std::vector<int64_t> strides(to.size(), 0);
  for (size_t i = 0; i < from.size(); ++i) {
    if (from[i] != 1) strides[to.size() - from.size() + i] = dense[i];
  }
  return strides;
}

// False when more axes are left than a loop has.
template <int N>
bool MakeStridedLoop(const std::vector<int64_t>& shape, const std::array<std::vector<int64_t>, N>& strides,
                     const std::array<int64_t, N>& start, StridedLoop<N>* loop) {
  *loop = {};
  loop->count = 1;
  for (int n = 0; n < N; ++n) loop->start[n] = start[static_cast<size_t>(n)];
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    loop->count *= shape[axis];
    if (shape[axis] == 1) continue;
    bool joins = loop->axes > 0;
    for (int n = 0; n < N && joins; ++n) {
      joins = loop->strides[n][loop->axes - 1] == strides[static_cast<size_t>(n)][axis] * shape[axis];
    }
    if (!joins && loop->axes == kMaxLoopAxes) return false;
    const int last = joins ? loop->axes - 1 : loop->axes++;
    loop->sizes[last] = Divisor((joins ? loop->sizes[last].value() : 1) * shape[axis]);
    for (int n = 0; n < N; ++n) loop->strides[n][last] = strides[static_cast<size_t>(n)][axis];
  }
  loop->dense = loop->axes <= 1;
  for (int n = 0; n < N && loop->axes == 1; ++n) loop->dense = loop->dense && loop->strides[n][0] == 1;
  return true;
}

}  // namespace onnxtrain

#endif  // ONNXTRAIN_CUDA_OPS_KERNELS_STRIDED_LOOP_H_
