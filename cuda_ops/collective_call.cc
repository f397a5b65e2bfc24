// SPDX-License-Identifier: Apache-2.0
#include "cuda_ops/collective_call.h"

namespace onnxtrain {
namespace {

constexpr int kKindBits = 4;
constexpr int kDtypeBits = 6;
constexpr int kDetailBits = 14;
constexpr int kCountBits = 64 - kKindBits - kDtypeBits - kDetailBits;

constexpr uint64_t Low(uint64_t value, int bits) { return value & ((uint64_t{1} << bits) - 1); }

const char* NameOf(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::kNone:
      return "no collective";
    case CollectiveKind::kAllReduce:
      return "AllReduce";
    case CollectiveKind::kReduceScatter:
      return "ReduceScatter";
    case CollectiveKind::kAllGather:
      return "AllGather";
    case CollectiveKind::kBroadcast:
      return "Broadcast";
  }
  return "unknown collective";
}

}  // namespace

std::string CollectiveCall::ToString() const {
  std::string text =
      std::string(NameOf(kind)) + " of " + std::to_string(count) + " " + std::string(onnxtrain::NameOf(dtype));
  if (kind == CollectiveKind::kBroadcast) text += " from rank " + std::to_string(detail);
  return text;
}

uint64_t CollectiveCall::Pack() const {
  uint64_t bits = Low(static_cast<uint64_t>(kind), kKindBits);
  bits = bits << kDtypeBits | Low(static_cast<uint64_t>(dtype), kDtypeBits);
  bits = bits << kDetailBits | Low(static_cast<uint64_t>(detail), kDetailBits);
  return bits << kCountBits | Low(static_cast<uint64_t>(count), kCountBits);
}

CollectiveCall CollectiveCall::Unpack(uint64_t bits) {
  CollectiveCall call;
  call.count = static_cast<int64_t>(Low(bits, kCountBits));
  bits >>= kCountBits;
  call.detail = static_cast<int>(Low(bits, kDetailBits));
  bits >>= kDetailBits;
  call.dtype = static_cast<DType>(Low(bits, kDtypeBits));
  call.kind = static_cast<CollectiveKind>(bits >> kDtypeBits);
  return call;
}

}  // namespace onnxtrain
