// SPDX-License-Identifier: Apache-2.0
// Copies and fills of the simulated CUDA runtime, with the rules about where their ends lie.
#include <cstring>
#include <memory>
#include <vector>

#include "tests/simulated_cuda/cudart_state.h"
#include "tests/simulated_cuda/cudart_stream.h"

namespace simulated_cuda {
namespace {

bool Fits(cudaMemcpyKind kind, MemoryKind to, MemoryKind from) {
  const bool to_device = to == MemoryKind::kDevice;
  const bool from_device = from == MemoryKind::kDevice;
  switch (kind) {
    case cudaMemcpyHostToHost:
      return !to_device && !from_device;
    case cudaMemcpyHostToDevice:
      return to_device && !from_device;
    case cudaMemcpyDeviceToHost:
      return !to_device && from_device;
    case cudaMemcpyDeviceToDevice:
      return to_device && from_device;
    default:
      return true;
  }
}

// Whether both ends lie in memory that the kind names, inside their allocations.
bool Check(const char* call, const void* to, const void* from, size_t bytes, cudaMemcpyKind kind, MemoryKind* to_kind,
           MemoryKind* from_kind) {
  bool to_fits = true;
  bool from_fits = true;
  *to_kind = PlaceOf(to, bytes, &to_fits).kind;
  *from_kind = PlaceOf(from, bytes, &from_fits).kind;
  if (!to_fits || !from_fits) {
    Explain("%s: %zu bytes leave the allocation they are %s", call, bytes, to_fits ? "read from" : "written to");
    return false;
  }
  if (Fits(kind, *to_kind, *from_kind)) return true;
  Explain("%s: kind %d does not fit the memory of its arguments", call, static_cast<int>(kind));
  return false;
}

}  // namespace
}  // namespace simulated_cuda

using simulated_cuda::counters;
using simulated_cuda::Enqueue;
using simulated_cuda::MemoryKind;
using simulated_cuda::Resolve;
using simulated_cuda::Return;

extern "C" {

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  SIMULATED_CUDA_ENTER();
  stream = Resolve(stream, "cudaMemcpyAsync");
  if (stream == nullptr) return Return(cudaErrorInvalidResourceHandle);
  MemoryKind to_kind;
  MemoryKind from_kind;
  if (!simulated_cuda::Check("cudaMemcpyAsync", to, from, bytes, kind, &to_kind, &from_kind)) {
    return Return(cudaErrorInvalidValue);
  }
  ++counters().copies;
  const bool pageable = to_kind == MemoryKind::kPageable || from_kind == MemoryKind::kPageable;
  if (pageable) ++counters().pageable_copies;
  if (from_kind == MemoryKind::kPageable && stream->capture == nullptr) {
    // Staged before the call returns.
    const auto* begin = static_cast<const unsigned char*>(from);
    auto staged = std::make_shared<std::vector<unsigned char>>(begin, begin + bytes);
    return Return(Enqueue(stream, [to, staged] { std::memcpy(to, staged->data(), staged->size()); }));
  }
  const cudaError_t error = Enqueue(stream, [to, from, bytes] { std::memmove(to, from, bytes); });
  if (error == cudaSuccess && to_kind == MemoryKind::kPageable && stream->capture == nullptr) {
    ++counters().host_waits;  // such a copy returns when it is done
    stream->Drain();
  }
  return Return(error);
}

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  SIMULATED_CUDA_ENTER();
  if (simulated_cuda::RefusedWhileRecording("cudaMemcpy")) return Return(cudaErrorStreamCaptureUnsupported);
  MemoryKind to_kind;
  MemoryKind from_kind;
  if (!simulated_cuda::Check("cudaMemcpy", to, from, bytes, kind, &to_kind, &from_kind))
    return Return(cudaErrorInvalidValue);
  ++counters().copies;
  ++counters().host_waits;
  Resolve(nullptr, "cudaMemcpy")->Drain();  // in the order of the default stream
  const simulated_cuda::DeviceAccess access;
  std::memmove(to, from, bytes);
  return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
  SIMULATED_CUDA_ENTER();
  stream = Resolve(stream, "cudaMemsetAsync");
  if (stream == nullptr) return Return(cudaErrorInvalidResourceHandle);
  bool fits = true;
  if (simulated_cuda::PlaceOf(to, bytes, &fits).kind != MemoryKind::kDevice || !fits) {
    simulated_cuda::Explain("cudaMemsetAsync: %zu bytes are not all device memory of one allocation", bytes);
    return Return(cudaErrorInvalidValue);
  }
  return Return(Enqueue(stream, [to, value, bytes] { std::memset(to, value, bytes); }));
}

cudaError_t cudaMemset(void* to, int value, size_t bytes) {
  if (simulated_cuda::RefusedWhileRecording("cudaMemset")) return Return(cudaErrorStreamCaptureUnsupported);
  return cudaMemsetAsync(to, value, bytes, nullptr);
}

}  // extern "C"
