// SPDX-License-Identifier: Apache-2.0
#include "cuda_ops/cuda_backend.h"

#include <set>
#include <string>
#include <vector>

#include "cuda_ops/copy_communicator.h"
#include "cuda_ops/cuda_device.h"
#include "cuda_ops/nccl_communicator.h"

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
      ASSIGN_OR_RETURN(std::unique_ptr<CudaDevice> device, CudaDevice::Create(rank, options));
      backend->devices_.push_back(std::move(device));
    }
    RETURN_IF_ERROR(backend->Join(options));
    return std::unique_ptr<Backend>(std::move(backend));
  }

  std::string_view name() const override { return "cuda"; }
  Device& device(int rank) override { return *devices_[static_cast<size_t>(rank)]; }
  Communicator& communicator(int rank) override { return group_ != nullptr ? group_->communicator(rank) : *alone_; }
  bool wants_thread_per_rank() const override { return true; }
  std::vector<std::string> notes() override {
    std::set<std::string> all;  // ranks share the files
    for (const auto& device : devices_) {
      for (const std::string& note : device->notes()) all.insert(note);
    }
    return {all.begin(), all.end()};
  }

 private:
  // Whoever waits for a stream must not take a collective that was aborted for done: the streams fail with the group.
  Status Join(const BackendOptions& options) {
    if (options.ranks == 1) {
      alone_ = std::make_unique<CopyCommunicator>(0);
      return OkStatus();
    }
    NcclGroupOptions group;
    for (int rank = 0; rank < options.ranks; ++rank) group.devices.push_back(rank);
    group.timeout = options.timeout;
    group.on_failure = [this](const Status& reason) {
      for (const auto& device : devices_) device->Fail(reason);
    };
    ASSIGN_OR_RETURN(group_, NcclGroup::Create(group));
    return OkStatus();
  }

  std::vector<std::unique_ptr<CudaDevice>> devices_;
  std::unique_ptr<CopyCommunicator> alone_;
  std::unique_ptr<NcclGroup> group_;
};

}  // namespace

StatusOr<std::unique_ptr<Backend>> CreateCudaBackend(const BackendOptions& options) {
  return CudaBackend::Create(options);
}

}  // namespace onnxtrain
