// SPDX-License-Identifier: Apache-2.0
// The simulated CUDA runtime, a stand-in for libcudart.so on machines without a GPU: streams are threads, device memory
// is host memory that the program may not touch, kernels are those that the host compiler made of the same sources. The
// functions keep CUDA's documented rules and refuse what breaks them.
//
// Switches, read when the library is loaded:
//   SIMULATED_CUDA_DEVICES=N   GPUs (4)
//   SIMULATED_CUDA_KERNELS=F   shared object with the kernels (libonnxtrain_host_kernels.so beside this one)
//   SIMULATED_CUDA_GUARD=1     device memory is unreadable while nothing runs on any device
//   SIMULATED_CUDA_JITTER=S    streams pause at random before each command, by seed S
#ifndef ONNXTRAIN_TESTS_SIMULATED_CUDA_CUDART_STATE_H_
#define ONNXTRAIN_TESTS_SIMULATED_CUDA_CUDART_STATE_H_

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace simulated_cuda {

// What tests may ask for afterwards.
struct Counters {
  std::atomic<int64_t> calls = 0;
  std::atomic<int64_t> kernel_launches = 0;
  std::atomic<int64_t> graph_launches = 0;
  std::atomic<int64_t> copies = 0;
  std::atomic<int64_t> pageable_copies = 0;  // asynchronous copies from or to memory that is not page-locked
  std::atomic<int64_t> host_functions = 0;
  std::atomic<int64_t> host_waits = 0;  // calls that stop the host until a device is done
  std::atomic<int64_t> allocations = 0;
};
Counters& counters();

// Keeps `error` as the calling thread's last one and returns it.
cudaError_t Return(cudaError_t error);
// Every call of the interface passes here first: counts, and fails the planted one with `planted`.
cudaError_t Enter(cudaError_t planted = cudaErrorUnknown);
#define SIMULATED_CUDA_ENTER(...)                                                                 \
  if (const cudaError_t entered = ::simulated_cuda::Enter(__VA_ARGS__); entered != cudaSuccess) { \
    return ::simulated_cuda::Return(entered);                                                     \
  }

int DeviceCount();
int CurrentDevice();  // of the calling thread

// A message for a rule that was broken, to standard error; the call's error code alone would not tell which.
void Explain(const char* format, ...) __attribute__((format(printf, 1, 2)));

enum class MemoryKind { kPageable, kPageLocked, kDevice };
struct Place {
  MemoryKind kind = MemoryKind::kPageable;
  int device = -1;
};
// Where [pointer, pointer + bytes) lies; *fits is false when it leaves its allocation.
Place PlaceOf(const void* pointer, size_t bytes, bool* fits);
// While one exists, device memory may be touched by the calling thread.
class DeviceAccess {
 public:
  DeviceAccess();
  ~DeviceAccess();
  DeviceAccess(const DeviceAccess&) = delete;
  DeviceAccess& operator=(const DeviceAccess&) = delete;
};

// Blocks until every stream of the device is idle.
void DrainDevice(int device);
// Whether a stream of the calling thread's device is recording and the thread may therefore not call what would stop
// it.
bool RefusedWhileRecording(const char* call);

}  // namespace simulated_cuda

#endif  // ONNXTRAIN_TESTS_SIMULATED_CUDA_CUDART_STATE_H_
