// SPDX-License-Identifier: Apache-2.0
// One convolution as the simulated cuDNN carries it out.
#ifndef ONNXTRAIN_TESTS_SIMULATED_CUDA_CUDNN_STATE_H_
#define ONNXTRAIN_TESTS_SIMULATED_CUDA_CUDNN_STATE_H_

#include <cudnn_graph.h>

#include <cstddef>
#include <cstdint>

namespace simulated_cudnn {

enum Direction : int64_t { kForward, kInputGradient, kWeightGradient };

// Over exactly two or three spatial axes; of two the first is one long.
struct Convolution {
  int64_t direction;
  int64_t type;         // cudnnDataType_t of all tensors
  int64_t batch, channels, filters, groups;
  int64_t input[3], output[3], kernel[3];
  int64_t strides[3], dilations[3], pads[3];
  int64_t tf32;
  int64_t workspace_bytes;
  int64_t ids[3];  // of x, w, y
  int64_t alignment[3];
};
inline constexpr size_t kConvolutionWords = sizeof(Convolution) / sizeof(int64_t);

// With its places.
struct Work {
  Convolution convolution;
  void* x;
  void* w;
  void* y;
  void* workspace;
};

size_t BytesOf(int64_t type);
int64_t ElementsOfX(const Convolution& c);
int64_t ElementsOfW(const Convolution& c);
int64_t ElementsOfY(const Convolution& c);

// By plain loops, sums in double; the workspace is overwritten.
void Run(const Work& work);

}  // namespace simulated_cudnn

#endif  // ONNXTRAIN_TESTS_SIMULATED_CUDA_CUDNN_STATE_H_
