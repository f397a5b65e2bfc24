// SPDX-License-Identifier: Apache-2.0
// Errors, counters, planted failures, devices and their properties.
#include "tests/simulated_cuda/cudart_state.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace simulated_cuda {
namespace {

thread_local cudaError_t last_error = cudaSuccess;
thread_local int current_device = 0;
std::atomic<int64_t> calls_until_failure = -1;

struct ErrorText {
  cudaError_t error;
  const char* name;
  const char* text;
};
constexpr ErrorText kErrors[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {cudaErrorInvalidDeviceFunction, "cudaErrorInvalidDeviceFunction", "invalid device function"},
    {cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration", "invalid configuration argument"},
    {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
    {cudaErrorNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    {cudaErrorIllegalAddress, "cudaErrorIllegalAddress", "an illegal memory access was encountered"},
    {cudaErrorStreamCaptureUnsupported, "cudaErrorStreamCaptureUnsupported",
     "operation not permitted when stream is capturing"},
    {cudaErrorStreamCaptureInvalidated, "cudaErrorStreamCaptureInvalidated",
     "operation failed due to a previous error during capture"},
    {cudaErrorStreamCaptureUnjoined, "cudaErrorStreamCaptureUnjoined", "capturing stream has unjoined work"},
    {cudaErrorStreamCaptureUnmatched, "cudaErrorStreamCaptureUnmatched", "capture was not initiated in this stream"},
    {cudaErrorIllegalState, "cudaErrorIllegalState", "the operation cannot be performed in the present state"},
    {cudaErrorUnknown, "cudaErrorUnknown", "unknown error"},
};

const ErrorText& TextOf(cudaError_t error) {
  for (const ErrorText& entry : kErrors) {
    if (entry.error == error) return entry;
  }
  return kErrors[std::size(kErrors) - 1];
}

}  // namespace

Counters& counters() {
  static Counters all;
  return all;
}

cudaError_t Return(cudaError_t error) {
  if (error != cudaSuccess) last_error = error;
  return error;
}

cudaError_t Enter(cudaError_t planted) {
  ++counters().calls;
  int64_t left = calls_until_failure.load();
  while (left >= 0 && !calls_until_failure.compare_exchange_weak(left, left - 1)) {
  }
  return left == 0 ? planted : cudaSuccess;
}

int DeviceCount() {
  static const int count = [] {
    const char* text = std::getenv("SIMULATED_CUDA_DEVICES");
    return text == nullptr ? 4 : std::atoi(text);
  }();
  return count;
}

int CurrentDevice() { return current_device; }

void Explain(const char* format, ...) {
  std::va_list arguments;
  va_start(arguments, format);
  std::fputs("simulated CUDA: ", stderr);
  std::vfprintf(stderr, format, arguments);
  std::fputc('\n', stderr);
  va_end(arguments);
}

}  // namespace simulated_cuda

using simulated_cuda::counters;
using simulated_cuda::Return;

extern "C" {

// The n-th call from now on fails, 0 being the next; -1: none.
void simulated_cuda_fail_at(int64_t n) { simulated_cuda::calls_until_failure = n; }

// By the names of the fields of Counters; -1 for any other name.
int64_t simulated_cuda_counter(const char* name) {
  const simulated_cuda::Counters& all = counters();
  const std::pair<const char*, const std::atomic<int64_t>*> fields[] = {
      {"calls", &all.calls},
      {"kernel_launches", &all.kernel_launches},
      {"graph_launches", &all.graph_launches},
      {"copies", &all.copies},
      {"pageable_copies", &all.pageable_copies},
      {"host_functions", &all.host_functions},
      {"host_waits", &all.host_waits},
      {"allocations", &all.allocations},
  };
  for (const auto& [field, counter] : fields) {
    if (std::strcmp(field, name) == 0) return counter->load();
  }
  return -1;
}

cudaError_t cudaGetLastError() {
  const cudaError_t error = simulated_cuda::last_error;
  simulated_cuda::last_error = cudaSuccess;
  return error;
}

cudaError_t cudaPeekAtLastError() { return simulated_cuda::last_error; }
const char* cudaGetErrorName(cudaError_t error) { return simulated_cuda::TextOf(error).name; }
const char* cudaGetErrorString(cudaError_t error) { return simulated_cuda::TextOf(error).text; }

cudaError_t cudaGetDeviceCount(int* count) {
  SIMULATED_CUDA_ENTER();
  *count = simulated_cuda::DeviceCount();
  return *count > 0 ? cudaSuccess : Return(cudaErrorNoDevice);
}

cudaError_t cudaSetDevice(int device) {
  SIMULATED_CUDA_ENTER();
  if (device < 0 || device >= simulated_cuda::DeviceCount()) return Return(cudaErrorInvalidDevice);
  simulated_cuda::current_device = device;
  return cudaSuccess;
}

cudaError_t cudaGetDevice(int* device) {
  SIMULATED_CUDA_ENTER();
  *device = simulated_cuda::current_device;
  return cudaSuccess;
}

// Those of an H200 that anybody asks for.
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  SIMULATED_CUDA_ENTER();
  if (device < 0 || device >= simulated_cuda::DeviceCount()) return Return(cudaErrorInvalidDevice);
  switch (attribute) {
    case cudaDevAttrMultiProcessorCount:
      *value = 132;
      return cudaSuccess;
    case cudaDevAttrComputeCapabilityMajor:
      *value = 9;
      return cudaSuccess;
    case cudaDevAttrComputeCapabilityMinor:
      *value = 0;
      return cudaSuccess;
    case cudaDevAttrMaxThreadsPerBlock:
      *value = 1024;
      return cudaSuccess;
    case cudaDevAttrWarpSize:
      *value = 32;
      return cudaSuccess;
    case cudaDevAttrMaxSharedMemoryPerBlock:
      *value = 49152;
      return cudaSuccess;
    default:
      simulated_cuda::Explain("device attribute %d is not simulated", attribute);
      return Return(cudaErrorInvalidValue);
  }
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

}  // extern "C"
