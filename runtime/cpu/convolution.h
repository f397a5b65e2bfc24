// SPDX-License-Identifier: Apache-2.0
// Convolutions over one to three spatial axes in float, double and bfloat16, forward and both gradients, on plain [N, C, ...]
// tensors. The geometry is fixed at creation, and with it the code that runs it: oneDNN, or columns and matrix
// products.
#ifndef ONNXTRAIN_RUNTIME_CPU_CONVOLUTION_H_
#define ONNXTRAIN_RUNTIME_CPU_CONVOLUTION_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "graph/dtype.h"
#include "graph/ops/window.h"
#include "graph/status.h"

namespace onnxtrain {

// x [batch, channels, input...], w [filters, channels / groups, kernel...], y [batch, filters, output...].
struct ConvShape {
  int64_t batch = 0;
  int64_t channels = 0;
  int64_t filters = 0;
  int64_t groups = 1;
  Shape input;
  Shape output;
  Window window;
};

enum class ConvDirection : uint8_t {
  kForward,         // a = x, b = w -> y; the bias [filters] is read
  kInputGradient,   // a = dy, b = w -> dx
  kWeightGradient,  // a = dy, b = x -> dw; the bias gradient [filters] is written
};

class Convolution {
 public:
  // `bias`: there is one. bfloat16 only where the processor has instructions for it, else InvalidModel.
  static StatusOr<std::unique_ptr<Convolution>> Create(DType dtype, ConvDirection direction, const ConvShape& shape,
                                                       bool bias, int threads);
  virtual ~Convolution() = default;
  virtual size_t workspace_bytes() const = 0;
  // `bias` is read or written as the direction says; null without one. `workspace` is 64-byte aligned.
  virtual Status Run(const void* a, const void* b, void* result, void* bias, std::byte* workspace) = 0;
};

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_CPU_CONVOLUTION_H_
