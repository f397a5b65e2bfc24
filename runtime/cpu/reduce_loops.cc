// SPDX-License-Identifier: Apache-2.0
#include "runtime/cpu/reduce_loops.h"

#include <algorithm>
#include <cstring>

#include "graph/status.h"

namespace onnxtrain {
namespace {

// Fits the first-level cache together with one source block.
constexpr int64_t kBlock = 2048;

template <typename T>
struct Plain {
  using Storage = T;
  using Accumulator = T;
  static T Load(T value) { return value; }
  static T Store(T value) { return value; }
};

struct Float16 {
  using Storage = uint16_t;
  using Accumulator = float;
  static float Load(uint16_t bits) { return Float16ToFloat(bits); }
  static uint16_t Store(float value) { return FloatToFloat16(value); }
};

struct Bfloat16 {
  using Storage = uint16_t;
  using Accumulator = float;
  static float Load(uint16_t bits) { return Bfloat16ToFloat(bits); }
  static uint16_t Store(float value) { return FloatToBfloat16(value); }
};

template <typename Format>
void ReduceAs(const std::function<const std::byte*(int)>& source, int ranks, int64_t count, ReduceOp op,
              std::byte* out) {
  using Storage = typename Format::Storage;
  using Accumulator = typename Format::Accumulator;
  Accumulator sum[kBlock];
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    const int64_t length = std::min(kBlock, count - begin);
    for (int r = 0; r < ranks; ++r) {
      const Storage* from = reinterpret_cast<const Storage*>(source(r)) + begin;
      if (r == 0) {
        for (int64_t i = 0; i < length; ++i) sum[i] = Format::Load(from[i]);
      } else if (op == ReduceOp::kSum) {
        for (int64_t i = 0; i < length; ++i) sum[i] += Format::Load(from[i]);
      } else {
        for (int64_t i = 0; i < length; ++i) sum[i] = std::max(sum[i], Format::Load(from[i]));
      }
    }
    Storage* to = reinterpret_cast<Storage*>(out) + begin;
    for (int64_t i = 0; i < length; ++i) to[i] = Format::Store(sum[i]);
  }
}

}  // namespace

bool CanReduce(DType dtype) {
  switch (dtype) {
    case DType::kFloat:
    case DType::kDouble:
    case DType::kInt32:
    case DType::kInt64:
    case DType::kFloat16:
    case DType::kBfloat16: return true;
    default: return false;
  }
}

void ReduceInRankOrder(const std::function<const std::byte*(int)>& source, int ranks, int64_t count, DType dtype,
                       ReduceOp op, std::byte* out) {
  switch (dtype) {
    case DType::kFloat: return ReduceAs<Plain<float>>(source, ranks, count, op, out);
    case DType::kDouble: return ReduceAs<Plain<double>>(source, ranks, count, op, out);
    case DType::kInt32: return ReduceAs<Plain<int32_t>>(source, ranks, count, op, out);
    case DType::kInt64: return ReduceAs<Plain<int64_t>>(source, ranks, count, op, out);
    case DType::kFloat16: return ReduceAs<Float16>(source, ranks, count, op, out);
    case DType::kBfloat16: return ReduceAs<Bfloat16>(source, ranks, count, op, out);
    default: CHECK_WITH(false, "reduction of " + std::string(NameOf(dtype)));
  }
}

}  // namespace onnxtrain
