// SPDX-License-Identifier: Apache-2.0
// Kernel launches of the simulated CUDA runtime. The code that nvcc puts into the program registers every kernel under
// the address of its host stub and its mangled name; the host build of the same sources has a function of that name,
// found in the shared object of the kernels, which also knows the sizes of its arguments and how to run a grid.
#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tests/simulated_cuda/cudart_state.h"
#include "tests/simulated_cuda/cudart_stream.h"

// A cudaKernel_t points to one.
struct CUkern_st {
  std::string name;
  void* function = nullptr;  // of the host build; null when it has none
  std::vector<size_t> argument_bytes;
};

namespace simulated_cuda {
namespace {

using RunFunction = bool (*)(void* function, dim3 grid, dim3 block, size_t shared_bytes, void** arguments);
using SizesFunction = size_t (*)(void* function, size_t* sizes, size_t capacity);

struct Kernels {
  std::mutex mutex;
  std::map<const void*, std::unique_ptr<CUkern_st>> by_stub;
  void* library = nullptr;
  RunFunction run = nullptr;
  SizesFunction sizes = nullptr;
};

std::string LibraryPath() {
  if (const char* path = std::getenv("SIMULATED_CUDA_KERNELS")) return path;
  Dl_info self;
  dladdr(reinterpret_cast<void*>(&LibraryPath), &self);
  const std::string file = self.dli_fname;
  return file.substr(0, file.rfind('/') + 1) + "libonnxtrain_host_kernels.so";
}

Kernels& kernels() {
  static Kernels& all = *[] {
    auto* made = new Kernels;
    const std::string path = LibraryPath();
    made->library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (made->library == nullptr) {
      Explain("no kernels: %s", dlerror());
      return made;
    }
    made->run = reinterpret_cast<RunFunction>(dlsym(made->library, "onnxtrain_host_kernel_run"));
    made->sizes = reinterpret_cast<SizesFunction>(dlsym(made->library, "onnxtrain_host_kernel_argument_bytes"));
    return made;
  }();
  return all;
}

// The kernel behind a host stub, bound to its twin in the host build.
CUkern_st* Find(const void* stub) {
  Kernels& all = kernels();
  const std::lock_guard<std::mutex> lock(all.mutex);
  const auto found = all.by_stub.find(stub);
  if (found == all.by_stub.end()) return nullptr;
  CUkern_st& kernel = *found->second;
  if (kernel.function == nullptr && all.library != nullptr && all.run != nullptr && all.sizes != nullptr) {
    kernel.function = dlsym(all.library, kernel.name.c_str());
    size_t sizes[64];
    const size_t count = kernel.function == nullptr ? 0 : all.sizes(kernel.function, sizes, std::size(sizes));
    if (count == 0) kernel.function = nullptr;
    kernel.argument_bytes.assign(sizes, sizes + count);
  }
  if (kernel.function == nullptr) Explain("the host build has no kernel %s", kernel.name.c_str());
  return &kernel;
}

// Copies of the arguments of one launch, which may run after the caller's are gone.
struct Arguments {
  std::vector<std::vector<std::max_align_t>> storage;
  std::vector<void*> pointers;

  Arguments(const CUkern_st& kernel, void** from) {
    for (size_t i = 0; i < kernel.argument_bytes.size(); ++i) {
      const size_t bytes = kernel.argument_bytes[i];
      storage.emplace_back(bytes / sizeof(std::max_align_t) + 1);
      std::memcpy(storage.back().data(), from[i], bytes);
    }
    for (std::vector<std::max_align_t>& one : storage) pointers.push_back(one.data());
  }
};

bool IsLegal(dim3 grid, dim3 block, size_t shared_bytes) {
  const uint64_t threads = uint64_t{block.x} * block.y * block.z;
  const bool grid_fits =
      grid.x >= 1 && grid.x <= 2147483647u && grid.y >= 1 && grid.y <= 65535 && grid.z >= 1 && grid.z <= 65535;
  return grid_fits && threads >= 1 && threads <= 1024 && block.z <= 64 && shared_bytes <= 49152;
}

struct Configuration {
  dim3 grid;
  dim3 block;
  size_t shared_bytes;
  cudaStream_t stream;
};
thread_local std::vector<Configuration> pushed;

}  // namespace
}  // namespace simulated_cuda

using simulated_cuda::Return;

extern "C" {

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes, cudaStream_t stream) {
  simulated_cuda::pushed.push_back({grid, block, shared_bytes, stream});
  return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared_bytes, void* stream) {
  if (simulated_cuda::pushed.empty()) return cudaErrorIllegalState;
  const simulated_cuda::Configuration last = simulated_cuda::pushed.back();
  simulated_cuda::pushed.pop_back();
  *grid = last.grid;
  *block = last.block;
  *shared_bytes = last.shared_bytes;
  *static_cast<cudaStream_t*>(stream) = last.stream;
  return cudaSuccess;
}

void** __cudaRegisterFatBinary(void* binary) { return new void*(binary); }
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void** handle) { delete handle; }
char __cudaInitModule(void**) { return 1; }

void __cudaRegisterFunction(void**, const char* stub, char*, const char* name, int, uint3*, uint3*, dim3*, dim3*,
                            int*) {
  simulated_cuda::Kernels& all = simulated_cuda::kernels();
  const std::lock_guard<std::mutex> lock(all.mutex);
  all.by_stub[stub] = std::make_unique<CUkern_st>(CUkern_st{name, nullptr, {}});
}

// Constant and device variables: kernels of this project have none.
void __cudaRegisterVar(void**, char*, char*, const char* name, int, size_t, int, int) {
  simulated_cuda::Explain("device variable %s is not simulated", name);
}

cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* stub) {
  *kernel = simulated_cuda::Find(stub);
  return *kernel == nullptr ? Return(cudaErrorInvalidDeviceFunction) : cudaSuccess;
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments, size_t shared_bytes,
                               cudaStream_t stream) {
  SIMULATED_CUDA_ENTER();
  stream = simulated_cuda::Resolve(stream, kernel->name.c_str());
  if (stream == nullptr) return Return(cudaErrorInvalidResourceHandle);
  if (kernel->function == nullptr) return Return(cudaErrorInvalidDeviceFunction);
  if (!simulated_cuda::IsLegal(grid, block, shared_bytes)) {
    simulated_cuda::Explain("%s: no GPU takes grid %u %u %u, block %u %u %u, %zu bytes of shared memory",
                            kernel->name.c_str(), grid.x, grid.y, grid.z, block.x, block.y, block.z, shared_bytes);
    return Return(cudaErrorInvalidConfiguration);
  }
  ++simulated_cuda::counters().kernel_launches;
  auto copy = std::make_shared<simulated_cuda::Arguments>(*kernel, arguments);
  return Return(simulated_cuda::Enqueue(stream, [kernel, grid, block, shared_bytes, copy] {
    simulated_cuda::kernels().run(kernel->function, grid, block, shared_bytes, copy->pointers.data());
  }));
}

cudaError_t cudaLaunchKernel(const void* stub, dim3 grid, dim3 block, void** arguments, size_t shared_bytes,
                             cudaStream_t stream) {
  cudaKernel_t kernel = nullptr;
  const cudaError_t error = __cudaGetKernel(&kernel, stub);
  return error != cudaSuccess ? error : __cudaLaunchKernel(kernel, grid, block, arguments, shared_bytes, stream);
}

}  // extern "C"
