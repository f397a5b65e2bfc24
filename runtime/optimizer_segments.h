// SPDX-License-Identifier: Apache-2.0
// Which elements of an optimizer node's tensors have which hyper-parameters, the same for every backend. A node without
// attribute `bucket` is one segment; with it, these are the Layout's segments of this rank with the settings of their
// groups. What lies between segments is padding and stays zero.
#ifndef ONNXTRAIN_RUNTIME_OPTIMIZER_SEGMENTS_H_
#define ONNXTRAIN_RUNTIME_OPTIMIZER_SEGMENTS_H_

#include <cstdint>
#include <vector>

#include "runtime/kernel.h"

namespace onnxtrain {

// A run of elements with one set of hyper-parameters.
struct OptimizerSegment {
  int64_t begin = 0;
  int64_t end = 0;
  double weight_decay = 0;
  double lr_multiplier = 1;
};

// In rising order. Internal where node and Layout do not fit.
StatusOr<std::vector<OptimizerSegment>> OptimizerSegmentsOf(const KernelContext& context);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_OPTIMIZER_SEGMENTS_H_
