// SPDX-License-Identifier: Apache-2.0
// oneDNN's convolutions on plain tensors, in float, or in bfloat16 with sums in float.
#ifndef ONNXTRAIN_RUNTIME_CPU_DNNL_CONV_H_
#define ONNXTRAIN_RUNTIME_CPU_DNNL_CONV_H_

#include <memory>

#include "runtime/cpu/convolution.h"

namespace onnxtrain {

// No dimension may be zero. Layouts: oneDNN's own, copied to and from plain ones around the primitive, except where
// plain ones were measured faster: kernels of one element (a matrix product), and the input gradient of a few channels.
// InvalidModel for bfloat16 on processors without instructions for it.
StatusOr<std::unique_ptr<Convolution>> CreateDnnlConvolution(DType dtype, ConvDirection direction,
                                                             const ConvShape& shape, bool bias, int threads);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_CPU_DNNL_CONV_H_
