// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "cuda_ops/convolution_library.h"
#include "cuda_ops/cuda_error.h"
#include "cuda_ops/cudnn_convolution.h"
#include "cuda_ops/cudnn_plan_files.h"

namespace onnxtrain {
namespace {

constexpr std::array<int64_t, 3> kIds = {kConvolutionX, kConvolutionW, kConvolutionY};

class CudnnRun : public LibraryConvolution {
 public:
  CudnnRun(cudnnHandle_t handle, std::shared_ptr<const CudnnPlan> plan) : handle_(handle), bound_(std::move(plan)) {}

  size_t workspace_bytes() const override { return bound_.plan().workspace_bytes(); }

  Status Run(const void* x, const void* w, const void* y, void* workspace, cudaStream_t stream) override {
    RETURN_IF_ERROR(CudnnError(cudnnSetStream(handle_, stream), "cudnnSetStream"));
    const std::array<void*, 3> pointers = {const_cast<void*>(x), const_cast<void*>(w), const_cast<void*>(y)};
    return bound_.Run(handle_, kIds, pointers, workspace);
  }

 private:
  const cudnnHandle_t handle_;
  BoundCudnnPlan bound_;
};

class CudnnConvolutionLibrary : public ConvolutionLibrary {
 public:
  CudnnConvolutionLibrary(cudnnHandle_t handle, std::unique_ptr<CudnnDevice> device, bool tf32, CudnnPlanFiles files)
      : handle_(handle), device_(std::move(device)), files_(std::move(files)) {
    options_.tf32 = tf32;
  }
  ~CudnnConvolutionLibrary() override { (void)cudnnDestroy(handle_); }

  StatusOr<std::unique_ptr<LibraryConvolution>> Create(const ConvolutionProblem& problem) override {
    StatusOr<std::shared_ptr<const CudnnPlan>> plan = PlanFor(problem);
    if (!plan.ok()) {
      notes_.push_back(problem.ToString() + " runs as matrix products: " + plan.status().message());
      return plan.status();
    }
    return std::unique_ptr<LibraryConvolution>(std::make_unique<CudnnRun>(handle_, std::move(*plan)));
  }

  std::vector<std::string> notes() const override {
    std::vector<std::string> all = files_.notes();
    all.insert(all.end(), notes_.begin(), notes_.end());
    return all;
  }

 private:
  // Equal convolutions share a plan, which is only read.
  StatusOr<std::shared_ptr<const CudnnPlan>> PlanFor(const ConvolutionProblem& problem) {
    const std::string key = problem.ToString();
    if (const auto known = plans_.find(key); known != plans_.end()) return known->second;
    std::shared_ptr<const CudnnPlan> plan = FromFile(key);
    if (plan == nullptr) {
      ASSIGN_OR_RETURN(CudnnGraph graph, ConvolutionGraph(problem));
      ASSIGN_OR_RETURN(plan, CudnnPlan::Create(*device_, std::move(graph), options_));
      const StatusOr<std::string> json = plan->ToJson();
      if (json.ok()) files_.Write(key, *json);
    }
    plans_[key] = plan;
    return plan;
  }

  std::shared_ptr<const CudnnPlan> FromFile(const std::string& key) {
    const std::optional<std::string> json = files_.Read(key);
    if (!json) return nullptr;
    auto plan = CudnnPlan::FromJson(*device_, *json);
    if (plan.ok()) return std::move(*plan);
    files_.Reject(key, plan.status().message());
    return nullptr;
  }

  const cudnnHandle_t handle_;
  const std::unique_ptr<CudnnDevice> device_;
  CudnnPlanOptions options_;
  CudnnPlanFiles files_;
  std::map<std::string, std::shared_ptr<const CudnnPlan>> plans_;
  std::vector<std::string> notes_;
};

}  // namespace

StatusOr<std::unique_ptr<ConvolutionLibrary>> ConvolutionLibrary::Open(std::unique_ptr<FileSystem> files,
                                                                       const Options& options) {
  RETURN_IF_CUDA_ERROR(cudaSetDevice(options.gpu));
  ASSIGN_OR_RETURN(std::unique_ptr<CudnnDevice> device, CudnnDevice::OfGpu(options.gpu));
  ASSIGN_OR_RETURN(const std::string json, device->ToJson());
  cudnnHandle_t handle = nullptr;
  RETURN_IF_ERROR(CudnnError(cudnnCreate(&handle), "cudnnCreate"));
  const std::string made_for = Version() + (options.tf32 ? " with TF32 on " : " on ") + json;
  return std::unique_ptr<ConvolutionLibrary>(std::make_unique<CudnnConvolutionLibrary>(
      handle, std::move(device), options.tf32, CudnnPlanFiles(std::move(files), options.cache_folder, made_for)));
}

std::string ConvolutionLibrary::Version() {
  const size_t version = cudnnGetVersion();
  return "cuDNN " + std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

}  // namespace onnxtrain
