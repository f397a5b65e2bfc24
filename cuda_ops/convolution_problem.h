// SPDX-License-Identifier: Apache-2.0
// A convolution as libraries and our own code are told of it.
#ifndef ONNXTRAIN_CUDA_OPS_CONVOLUTION_PROBLEM_H_
#define ONNXTRAIN_CUDA_OPS_CONVOLUTION_PROBLEM_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "graph/dtype.h"
#include "graph/ops/window.h"

namespace onnxtrain {

enum class ConvolutionDirection : uint8_t { kForward, kInputGradient, kWeightGradient };
// "forward", "input gradient", "weight gradient".
std::string_view NameOf(ConvolutionDirection direction);

// x [batch, channels, input...], w [filters, channels / groups, kernel...], y [batch, filters, output...].
struct ConvolutionProblem {
  ConvolutionDirection direction = ConvolutionDirection::kForward;
  DType dtype = DType::kFloat;
  int64_t batch = 0;
  int64_t channels = 0;
  int64_t filters = 0;
  int64_t groups = 1;
  Shape input;
  Shape output;
  Window window;

  Shape x() const;
  Shape w() const;
  Shape y() const;
  // "convolution forward float x 64x3x224x224 w 64x3x7x7 y 64x64x112x112 stride 2,2 ...": all that a plan depends on.
  std::string ToString() const;
};

}  // namespace onnxtrain

#endif  // ONNXTRAIN_CUDA_OPS_CONVOLUTION_PROBLEM_H_
