// SPDX-License-Identifier: Apache-2.0
// oneDNN's convolutions in single precision on plain tensors.
#ifndef ONNXTRAIN_RUNTIME_CPU_DNNL_CONV_H_
#define ONNXTRAIN_RUNTIME_CPU_DNNL_CONV_H_

#include <memory>

#include "runtime/cpu/convolution.h"

namespace onnxtrain {

// No dimension may be zero. Layouts: oneDNN's own, copied to and from plain ones around the primitive, except where
// plain ones were measured faster: kernels of one element (a matrix product), and the input gradient of a few channels.
StatusOr<std::unique_ptr<Convolution>> CreateDnnlConvolution(ConvDirection direction, const ConvShape& shape, bool bias,
                                                             int threads);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_CPU_DNNL_CONV_H_
