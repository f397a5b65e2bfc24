// SPDX-License-Identifier: Apache-2.0
// One collective as the ranks must agree on it, for messages and comparisons. Knows no CUDA.
#ifndef ONNXTRAIN_CUDA_OPS_COLLECTIVE_CALL_H_
#define ONNXTRAIN_CUDA_OPS_COLLECTIVE_CALL_H_

#include <cstdint>
#include <string>

#include "graph/dtype.h"

namespace onnxtrain {

enum class CollectiveKind : uint8_t { kNone, kAllReduce, kReduceScatter, kAllGather, kBroadcast };

struct CollectiveCall {
  CollectiveKind kind = CollectiveKind::kNone;
  DType dtype = DType::kUndefined;
  int detail = 0;     // the ReduceOp or the root
  int64_t count = 0;  // elements, as in runtime/communicator.h

  bool operator==(const CollectiveCall&) const = default;
  // "AllReduce of 1024 float".
  std::string ToString() const;
  // In 64 bits, to travel as a kernel's argument: 4 bits kind, 6 dtype, 14 detail, 40 count. Larger values lose their
  // high bits.
  uint64_t Pack() const;
  static CollectiveCall Unpack(uint64_t bits);
};

}  // namespace onnxtrain

#endif  // ONNXTRAIN_CUDA_OPS_COLLECTIVE_CALL_H_
