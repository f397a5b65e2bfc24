// SPDX-License-Identifier: Apache-2.0
// CUDA device code on the host: what cuda_ops/device_code.h includes where there is no nvcc. A block runs on one host
// thread; its threads are fibers that give way to each other at barriers, in an order that tests choose. What it does
// not have is not in our device code either: inline PTX, asynchronous copies, partial-warp shuffles, spinning on other
// blocks.
#ifndef ONNXTRAIN_TESTS_SIMULATED_CUDA_HOST_CUDA_H_
#define ONNXTRAIN_TESTS_SIMULATED_CUDA_HOST_CUDA_H_

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>
#include <math.h>

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <tuple>
#include <utility>
#include <vector>

#undef __shared__
#ifdef ONNXTRAIN_HOST_CUDA_ONE_THREAD  // one host thread launches kernels; AddressSanitizer does not guard thread_local
#define __shared__ static
#else
#define __shared__ static thread_local
#endif
#undef __global__
#define __global__ __attribute__((noinline))
#undef __device__
#define __device__
#undef __launch_bounds__
#define __launch_bounds__(...)
#undef __restrict__
#define __restrict__

namespace host_cuda {

enum class ThreadOrder : uint8_t { kForward, kReversed, kShuffled };
// In which order the blocks of a grid run, and the fibers of a block between two barriers; of the whole process, for
// grids that start afterwards.
void SetThreadOrder(ThreadOrder order, uint32_t seed = 0);

// Of the fiber that runs.
struct Indices {
  uint3 thread;
  uint3 block;
  dim3 block_dim;
  dim3 grid_dim;
  unsigned lane;  // of its warp
};
const Indices& Here();
void* DynamicShared();
void BlockBarrier();
void WarpBarrier();
// Every fiber of the warp puts 8 bytes and reads those of `lane` (of its warp).
uint64_t Exchange(uint64_t mine, unsigned lane);

using Body = void (*)(const void* arguments);
// Runs body(arguments) as every thread of every block, one block after the other.
void RunGrid(dim3 grid, dim3 block, size_t shared_bytes, Body body, const void* arguments);

// A kernel as the simulated CUDA runtime calls it: arguments by address.
struct Thunk {
  void (*run)(dim3 grid, dim3 block, size_t shared_bytes, void** arguments);
  const size_t* argument_bytes;
  size_t argument_count;
  const std::atomic<bool>* launched;
};
bool Register(void* function, const Thunk& thunk);
// Those that no test has reached. dladdr names them where they are exported.
std::vector<void*> KernelsNeverLaunched();

template <auto kKernel>
struct KernelTwin;

template <typename... Arguments, void (*kKernel)(Arguments...)>
struct KernelTwin<kKernel> {
  static void Run(dim3 grid, dim3 block, size_t shared_bytes, std::tuple<Arguments...> arguments) {
    launched.store(true, std::memory_order_relaxed);
    RunGrid(
        grid, block, shared_bytes,
        [](const void* all) { std::apply(kKernel, *static_cast<const std::tuple<Arguments...>*>(all)); }, &arguments);
  }
  template <size_t... kIndex>
  static void RunAddresses(dim3 grid, dim3 block, size_t shared_bytes, void** addresses,
                           std::index_sequence<kIndex...>) {
    Run(grid, block, shared_bytes,
        std::tuple<Arguments...>(*static_cast<std::remove_cv_t<Arguments>*>(addresses[kIndex])...));
  }
  static void RunThunk(dim3 grid, dim3 block, size_t shared_bytes, void** addresses) {
    RunAddresses(grid, block, shared_bytes, addresses, std::index_sequence_for<Arguments...>());
  }
  static constexpr size_t kSizes[] = {sizeof(Arguments)...};
  static inline std::atomic<bool> launched = false;
  // Every kernel that a launcher names is known when the library is loaded.
  static inline const bool registered =
      Register(reinterpret_cast<void*>(kKernel), {RunThunk, kSizes, sizeof...(Arguments), &launched});
};

template <auto kKernel, typename... Arguments>
void Launch(dim3 grid, dim3 block, size_t shared_bytes, Arguments&&... arguments) {
  using Twin = KernelTwin<kKernel>;
  (void)Twin::registered;
  Twin::Run(grid, block, shared_bytes, {std::forward<Arguments>(arguments)...});
}

template <typename T>
uint64_t ToBits(T value) {
  static_assert(sizeof(T) <= 8);
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  return bits;
}
template <typename T>
T FromBits(uint64_t bits) {
  T value;
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}

}  // namespace host_cuda

#define threadIdx (::host_cuda::Here().thread)
#define blockIdx (::host_cuda::Here().block)
#define blockDim (::host_cuda::Here().block_dim)
#define gridDim (::host_cuda::Here().grid_dim)

inline void __syncthreads() { ::host_cuda::BlockBarrier(); }
inline void __syncwarp(unsigned = 0xffffffffu) { ::host_cuda::WarpBarrier(); }

template <typename T>
T __shfl_xor_sync(unsigned, T value, int mask, int = 32) {
  return ::host_cuda::FromBits<T>(
      ::host_cuda::Exchange(::host_cuda::ToBits(value), ::host_cuda::Here().lane ^ static_cast<unsigned>(mask)));
}
template <typename T>
T __shfl_sync(unsigned, T value, int lane, int = 32) {
  return ::host_cuda::FromBits<T>(::host_cuda::Exchange(::host_cuda::ToBits(value), static_cast<unsigned>(lane) & 31));
}
template <typename T>
T __shfl_down_sync(unsigned, T value, unsigned delta, int = 32) {
  const unsigned lane = ::host_cuda::Here().lane;
  return ::host_cuda::FromBits<T>(
      ::host_cuda::Exchange(::host_cuda::ToBits(value), lane + delta < 32 ? lane + delta : lane));
}

inline unsigned long long atomicCAS(unsigned long long* address, unsigned long long expected,
                                    unsigned long long desired) {
  __atomic_compare_exchange_n(address, &expected, desired, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return expected;
}
template <typename T>
T atomicAdd(T* address, T value) {
  static_assert(std::is_integral_v<T>, "float atomics are not deterministic");
  return __atomic_fetch_add(address, value, __ATOMIC_RELAXED);
}
inline float rsqrtf(float x) { return 1.0f / __builtin_sqrtf(x); }
inline double rsqrt(double x) { return 1.0 / __builtin_sqrt(x); }

#endif  // ONNXTRAIN_TESTS_SIMULATED_CUDA_HOST_CUDA_H_
