// SPDX-License-Identifier: Apache-2.0
#include "cuda_ops/cuda_backend.h"

#include <vector>

#include "cuda_ops/cuda_device.h"

namespace onnxtrain {
namespace {

class CudaBackend : public Backend {
 public:
  static StatusOr<std::unique_ptr<Backend>> Create(const BackendOptions& options) {
    ASSIGN_OR_RETURN(const int gpus, CudaDevice::Count());
    if (options.ranks > gpus) {
      return UsageError("--ranks " + std::to_string(options.ranks) +
                        " --device cuda: a rank needs a GPU of its own, found " + std::to_string(gpus));
    }
    auto backend = std::make_unique<CudaBackend>();
    for (int rank = 0; rank < options.ranks; ++rank) {
      ASSIGN_OR_RETURN(std::unique_ptr<CudaDevice> device, CudaDevice::Create(rank));
      backend->devices_.push_back(std::move(device));
    }
    return std::unique_ptr<Backend>(std::move(backend));
  }

  std::string_view name() const override { return "cuda"; }
  Device& device(int rank) override { return *devices_[static_cast<size_t>(rank)]; }
  Communicator& communicator(int rank) override { return *communicators_[static_cast<size_t>(rank)]; }
  bool wants_thread_per_rank() const override { return true; }

 private:
  std::vector<std::unique_ptr<CudaDevice>> devices_;
  std::vector<std::unique_ptr<Communicator>> communicators_;
};

}  // namespace

StatusOr<std::unique_ptr<Backend>> CreateCudaBackend(const BackendOptions& options) {
  return CudaBackend::Create(options);
}

}  // namespace onnxtrain
