// SPDX-License-Identifier: Apache-2.0
// Element-wise combination of the ranks' buffers in rank order, one thread, vectorised by the compiler.
#ifndef ONNXTRAIN_RUNTIME_CPU_REDUCE_LOOPS_H_
#define ONNXTRAIN_RUNTIME_CPU_REDUCE_LOOPS_H_

#include <cstddef>
#include <cstdint>
#include <functional>

#include "runtime/communicator.h"

namespace onnxtrain {

// out[i] = ((source(0)[i] op source(1)[i]) op ...). `out` may be one of the sources. Float, double, int32, int64; 16-bit
// floats are combined in float and rounded once.
void ReduceInRankOrder(const std::function<const std::byte*(int)>& source, int ranks, int64_t count, DType dtype,
                       ReduceOp op, std::byte* out);
// Whether ReduceInRankOrder serves the type.
bool CanReduce(DType dtype);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_CPU_REDUCE_LOOPS_H_
