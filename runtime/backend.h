// SPDX-License-Identifier: Apache-2.0
// Where the ranks of a process run, and what joins them: for each rank a device and its end of the group. The CPU is
// built in; every other backend is a shared object beside the program, opened by name when it is asked for, so that the
// core needs none of its libraries.
#ifndef ONNXTRAIN_RUNTIME_BACKEND_H_
#define ONNXTRAIN_RUNTIME_BACKEND_H_

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "graph/status.h"
#include "runtime/communicator.h"
#include "runtime/device.h"

namespace onnxtrain {

struct BackendOptions {
  int ranks = 1;                              // of this process
  std::chrono::milliseconds timeout{600000};  // after which a collective that does not end fails
  std::string module;                         // path of the shared object; empty: searched beside the program
  bool tf32 = false;                          // factors of float products may be rounded to TF32
  std::string cache_folder;                   // what was chosen is kept there for the next run; empty: not
  // Kernels of the CPU for nodes that the device has none for, which then run on the host; null: such nodes are refused.
  std::shared_ptr<const KernelRegistry> fallback;
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view name() const = 0;  // "cpu", "cuda"
  // The ranks may share one device or have one each.
  virtual Device& device(int rank) = 0;
  virtual Communicator& communicator(int rank) = 0;
  // Whether every rank wants a host thread of its own for its submissions: a library that may block in a collective
  // until the other ranks have called it, too (NCCL), must not be called for all of them by one thread.
  virtual bool wants_thread_per_rank() const = 0;
  // What a user should know of files in the cache folder that were not used or could not be written.
  virtual std::vector<std::string> notes() { return {}; }
};

// "cpu", which has neither TF32 nor a cache, or a backend with a shared object libonnxtrain_NAME.so. Fails with Usage
// naming what is missing: an option that it does not have, the shared object, a library it needs, a device.
StatusOr<std::unique_ptr<Backend>> OpenBackend(std::string_view name, const BackendOptions& options);

// What the shared object of a backend exports, as `extern "C" const onnxtrain::BackendModule*
// onnxtrain_backend_module()`. `build` is that of backend_build.h when the shared object was compiled; another than the
// program's is refused.
// For BackendOptions::fallback.
std::shared_ptr<const KernelRegistry> CpuKernels();

struct BackendModule {
  const char* build;
  StatusOr<std::unique_ptr<Backend>> (*create)(const BackendOptions& options);
};
inline constexpr const char* kBackendModuleSymbol = "onnxtrain_backend_module";

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_BACKEND_H_
