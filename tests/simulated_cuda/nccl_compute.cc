// SPDX-License-Identifier: Apache-2.0
// Arguments and arithmetic of the simulated collectives: ranks are added in their order, 16-bit floats in float.
#include <algorithm>
#include <cstring>

#include "tests/simulated_cuda/nccl_state.h"

namespace simulated_nccl {
namespace {

template <typename Storage, typename Accumulator>
void Combine(const std::vector<const std::byte*>& sources, size_t count, bool sum, std::byte* out) {
  auto* result = reinterpret_cast<Storage*>(out);
  for (size_t i = 0; i < count; ++i) {
    auto value = static_cast<Accumulator>(reinterpret_cast<const Storage*>(sources[0])[i]);
    for (size_t r = 1; r < sources.size(); ++r) {
      const auto other = static_cast<Accumulator>(reinterpret_cast<const Storage*>(sources[r])[i]);
      value = sum ? static_cast<Accumulator>(value + other) : std::max(value, other);
    }
    result[i] = static_cast<Storage>(value);
  }
}

void CombineAs(ncclDataType_t type, const std::vector<const std::byte*>& sources, size_t count, bool sum,
               std::byte* out) {
  switch (type) {
    case ncclInt8:
      return Combine<int8_t, int8_t>(sources, count, sum, out);
    case ncclUint8:
      return Combine<uint8_t, uint8_t>(sources, count, sum, out);
    case ncclInt32:
      return Combine<int32_t, int32_t>(sources, count, sum, out);
    case ncclUint32:
      return Combine<uint32_t, uint32_t>(sources, count, sum, out);
    case ncclInt64:
      return Combine<int64_t, int64_t>(sources, count, sum, out);
    case ncclUint64:
      return Combine<uint64_t, uint64_t>(sources, count, sum, out);
    case ncclFloat16:
      return Combine<__half, float>(sources, count, sum, out);
    case ncclBfloat16:
      return Combine<__nv_bfloat16, float>(sources, count, sum, out);
    case ncclFloat32:
      return Combine<float, float>(sources, count, sum, out);
    case ncclFloat64:
      return Combine<double, double>(sources, count, sum, out);
    default:
      return;
  }
}

const std::byte* Bytes(const void* pointer) { return static_cast<const std::byte*>(pointer); }
std::byte* Bytes(void* pointer) { return static_cast<std::byte*>(pointer); }

bool Overlap(const std::byte* a, size_t a_bytes, const std::byte* b, size_t b_bytes) {
  return a < b + b_bytes && b < a + a_bytes;
}

// Where in its larger buffer the smaller one of an in-place call begins.
size_t InPlaceOffset(Kind kind, size_t bytes, int rank) {
  return kind == Kind::kReduceScatter || kind == Kind::kAllGather ? bytes * static_cast<size_t>(rank) : 0;
}

void ComputeReduction(const std::vector<const Call*>& calls, size_t bytes) {
  const Call& first = *calls[0];
  const bool scatter = first.kind == Kind::kReduceScatter;
  const size_t slices = scatter ? calls.size() : 1;
  std::vector<std::byte> result(bytes * slices);
  std::vector<const std::byte*> sources;
  for (const Call* call : calls) sources.push_back(Bytes(call->send));
  CombineAs(first.type, sources, first.count * slices, first.detail == ncclSum, result.data());
  for (size_t r = 0; r < calls.size(); ++r) {
    std::memcpy(calls[r]->recv, result.data() + (scatter ? r * bytes : 0), bytes);
  }
}

}  // namespace

const char* NameOf(Kind kind) {
  constexpr const char* kNames[] = {"ncclAllReduce", "ncclReduceScatter", "ncclAllGather", "ncclBroadcast"};
  return kNames[static_cast<int>(kind)];
}

size_t SizeOf(ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
    case ncclUint8:
      return 1;
    case ncclFloat16:
    case ncclBfloat16:
      return 2;
    case ncclInt32:
    case ncclUint32:
    case ncclFloat32:
      return 4;
    case ncclInt64:
    case ncclUint64:
    case ncclFloat64:
      return 8;
    default:
      return 0;
  }
}

bool Call::Matches(const Call& other) const {
  const bool same_form = kind == Kind::kBroadcast || in_place == other.in_place;
  return kind == other.kind && count == other.count && type == other.type && detail == other.detail && same_form &&
         captured == other.captured;
}

std::string Call::ToString() const {
  constexpr const char* kTypes[] = {"int8",   "uint8",   "int32",   "uint32",  "int64",
                                    "uint64", "float16", "float32", "float64", "bfloat16"};
  return std::string(NameOf(kind)) + " of " + std::to_string(count) + " " + kTypes[type] +
         (kind == Kind::kAllGather ? "" : (kind == Kind::kBroadcast ? ", root " : ", op ") + std::to_string(detail)) +
         (in_place ? ", in place" : "") + (captured ? ", captured" : "");
}

std::string CheckArguments(Call& call, int rank, int ranks) {
  const size_t bytes = call.count * SizeOf(call.type);
  if (SizeOf(call.type) == 0) return "data type " + std::to_string(call.type) + " is not simulated";
  if (call.kind == Kind::kBroadcast && (call.detail < 0 || call.detail >= ranks)) {
    return "root " + std::to_string(call.detail) + " is no rank";
  }
  const bool reduces = call.kind == Kind::kAllReduce || call.kind == Kind::kReduceScatter;
  if (reduces && call.detail != ncclSum && call.detail != ncclMax) return "only sum and max are simulated";
  const bool reads = call.kind != Kind::kBroadcast || call.detail == rank;
  if (bytes == 0 || !reads) return "";
  if (call.send == nullptr || call.recv == nullptr) return "a buffer is null";
  const size_t whole = bytes * static_cast<size_t>(ranks);
  const size_t send_bytes = call.kind == Kind::kReduceScatter ? whole : bytes;
  const size_t recv_bytes = call.kind == Kind::kAllGather ? whole : bytes;
  if (!Overlap(Bytes(call.send), send_bytes, Bytes(call.recv), recv_bytes)) return "";
  const bool gather = call.kind == Kind::kAllGather;
  const ptrdiff_t offset = gather ? Bytes(call.send) - Bytes(call.recv) : Bytes(call.recv) - Bytes(call.send);
  const auto expected = static_cast<ptrdiff_t>(InPlaceOffset(call.kind, bytes, rank));
  call.in_place = offset == expected;
  if (call.in_place) return "";
  return std::string("the buffers overlap but are not in place: ") + (gather ? "sendbuff" : "recvbuff") + " lies " +
         std::to_string(offset) + " bytes behind " + (gather ? "recvbuff" : "sendbuff") + ", in place is " +
         std::to_string(expected);
}

void Compute(const std::vector<const Call*>& calls) {
  const Call& first = *calls[0];
  const size_t bytes = first.count * SizeOf(first.type);
  if (bytes == 0) return;
  switch (first.kind) {
    case Kind::kAllReduce:
    case Kind::kReduceScatter:
      return ComputeReduction(calls, bytes);
    case Kind::kAllGather:
      for (const Call* call : calls) {
        for (size_t r = 0; r < calls.size(); ++r) std::memmove(Bytes(call->recv) + r * bytes, calls[r]->send, bytes);
      }
      return;
    case Kind::kBroadcast:
      for (const Call* call : calls) std::memmove(call->recv, calls[static_cast<size_t>(first.detail)]->send, bytes);
      return;
  }
}

}  // namespace simulated_nccl
