// SPDX-License-Identifier: Apache-2.0
#include "runtime/backend.h"

#include <dlfcn.h>

#include <filesystem>
#include <vector>

#include "runtime/backend_build.h"
#include "runtime/cpu/cpu_device.h"
#include "runtime/cpu/kernels/all_kernels.h"
#include "runtime/cpu/local_communicator.h"

namespace onnxtrain {
namespace {

class CpuBackend : public Backend {
 public:
  explicit CpuBackend(const BackendOptions& options) : group_(options.ranks, options.timeout) {}
  std::string_view name() const override { return "cpu"; }
  Device& device(int) override { return device_; }
  Communicator& communicator(int rank) override { return group_.communicator(rank); }
  bool wants_thread_per_rank() const override { return false; }

 private:
  CpuDevice device_;
  LocalGroup group_;
};

// Beside the running program, then in lib of the installation, then wherever the dynamic linker looks.
std::vector<std::string> PlacesOf(const std::string& file) {
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  std::vector<std::string> places;
  if (!error) {
    places.push_back((program.parent_path() / file).string());
    places.push_back((program.parent_path().parent_path() / "lib" / file).string());
  }
  places.push_back(file);
  return places;
}

StatusOr<void*> OpenSharedObject(const std::string& name, const std::string& module) {
  const std::string file = "libonnxtrain_" + name + ".so";
  std::string reasons;
  for (const std::string& place : module.empty() ? PlacesOf(file) : std::vector<std::string>{module}) {
    if (place.find('/') != std::string::npos && !std::filesystem::exists(place)) continue;
    // Local: the shared object has its own copy of what it shares with the program.
    if (void* handle = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL)) return handle;
    reasons += std::string(reasons.empty() ? "" : "; ") + dlerror();
  }
  return UsageError("--device " + name + ": cannot open " + file + " (" +
                    (reasons.empty() ? "there is no such file" : reasons) +
                    "); it is built where the toolkit is found, see docs/cuda.md, or use --device cpu");
}

}  // namespace

std::shared_ptr<const KernelRegistry> CpuKernels() {
  auto kernels = std::make_shared<KernelRegistry>();
  AddAllKernels(*kernels);
  return kernels;
}

StatusOr<std::unique_ptr<Backend>> OpenBackend(std::string_view name, const BackendOptions& options) {
  if (name == "cpu") {
    if (options.fallback != nullptr) {
      return UsageError("--fallback: --device cpu has nothing to fall back from; leave it out or use --device cuda");
    }
    if (options.tf32) return UsageError("--tf32: --device cpu multiplies in float; leave it out or use --device cuda");
    if (!options.cache_folder.empty()) return UsageError("--cache: --device cpu has nothing to keep; leave it out");
    return std::unique_ptr<Backend>(std::make_unique<CpuBackend>(options));
  }
  const std::string text(name);
  ASSIGN_OR_RETURN(void* const handle, OpenSharedObject(text, options.module));
  // Never closed: libraries such as the CUDA runtime do not survive that.
  using Entry = const BackendModule* (*)();
  const auto entry = reinterpret_cast<Entry>(dlsym(handle, kBackendModuleSymbol));
  if (entry == nullptr) return UsageError("libonnxtrain_" + text + ".so is no backend of onnx-train");
  const BackendModule& module = *entry();
  if (std::string_view(module.build) != kBackendBuildText) {
    return UsageError("libonnxtrain_" + text + ".so belongs to another build (" + module.build + "), this is " +
                      kBackendBuildText + ": install both from the same build");
  }
  return module.create(options);
}

}  // namespace onnxtrain
