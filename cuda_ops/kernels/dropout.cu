// SPDX-License-Identifier: Apache-2.0
#include "cuda_ops/kernels/dropout.h"
#include "cuda_ops/kernels/element_access.h"
#include "cuda_ops/kernels/grid.h"
#include "runtime/math/philox.h"

namespace onnxtrain {
namespace cuda_kernels {

constexpr int64_t kWords = 4;  // of a draw

// A thread a draw of four elements.
__global__ void __launch_bounds__(kBlockThreads, kResidentBlocks) Dropout(DropoutArguments a) {
  const auto attempt = static_cast<uint32_t>(*a.attempt);
  const int64_t draws = (a.count + kWords - 1) / kWords;
  for (int64_t draw = FirstElement(); draw < draws; draw += ElementStride()) {
    const math::PhiloxCounter drawn =
        math::Philox4x32({{static_cast<uint32_t>(draw), a.draw_id, attempt, a.slice}}, a.seed);
    for (int64_t word = 0; word < kWords; ++word) {
      const int64_t i = draw * kWords + word;
      if (i >= a.count) return;
      const bool kept = drawn.words[word] >= a.threshold;
      StoreFloat(a.y, a.dtype, i, kept ? LoadFloat(a.x, a.dtype, i) * a.scale : 0);
      if (a.mask != nullptr) a.mask[i] = kept ? 1 : 0;
    }
  }
}

__global__ void __launch_bounds__(kBlockThreads) DropoutGradient(DropoutArguments a) {
  for (int64_t i = FirstElement(); i < a.count; i += ElementStride()) {
    StoreFloat(a.y, a.dtype, i, a.mask[i] != 0 ? LoadFloat(a.x, a.dtype, i) * a.scale : 0);
  }
}

}  // namespace cuda_kernels

cudaError_t LaunchDropout(const DropoutArguments& a, cudaStream_t stream) {
  if (a.count == 0) return cudaSuccess;
  const int64_t draws = (a.count + cuda_kernels::kWords - 1) / cuda_kernels::kWords;
  return ONNXTRAIN_LAUNCH(cuda_kernels::Dropout, ElementBlocks(draws), kBlockThreads, 0, stream, a);
}

cudaError_t LaunchDropoutGradient(const DropoutArguments& a, cudaStream_t stream) {
  if (a.count == 0) return cudaSuccess;
  return ONNXTRAIN_LAUNCH(cuda_kernels::DropoutGradient, ElementBlocks(a.count), kBlockThreads, 0, stream, a);
}

}  // namespace onnxtrain
