// SPDX-License-Identifier: Apache-2.0
// An operation graph of cuDNN made ready to run: an engine is chosen, its code is built or loaded, its workspace known.
// Everything before Run needs the properties of a GPU and no GPU: the same code plans on a machine without one.
#ifndef ONNXTRAIN_CUDA_OPS_CUDNN_PLAN_H_
#define ONNXTRAIN_CUDA_OPS_CUDNN_PLAN_H_

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cuda_ops/cudnn_descriptor.h"

namespace onnxtrain {

// What the library plans for. Immutable; outlives the plans that are made with it.
class CudnnDevice {
 public:
  // `json` as the library writes it: {"multiProcessorCount": 132, ...}.
  static StatusOr<std::unique_ptr<CudnnDevice>> FromJson(const std::string& json);
  // Of this machine's GPU.
  static StatusOr<std::unique_ptr<CudnnDevice>> OfGpu(int ordinal);

  const CudnnDescriptor& descriptor() const { return descriptor_; }
  StatusOr<std::string> ToJson() const;

 private:
  CudnnDevice() : descriptor_(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR) {}
  CudnnDescriptor descriptor_;
};

struct CudnnPlanOptions {
  bool deterministic = true;  // no engine whose sums depend on the order of threads
  // Engines that round float factors to TF32 or less. Of 16-bit tensors every engine may use tensor cores.
  bool tf32 = false;
  size_t most_workspace = size_t{1} << 30;  // bytes
};

// Descriptors and all that they name, by the order in which they were finalized.
struct CudnnGraph {
  std::vector<CudnnDescriptor> parts;  // tensors, convolutions, ...
  std::vector<CudnnDescriptor> operations;
  DType dtype = DType::kFloat;  // of its widest input
  std::string name;             // for errors
};

class CudnnPlan {
 public:
  // The library's first choice that the options allow and that it can build. Fails with InvalidModel and the reasons when
  // there is none.
  static StatusOr<std::unique_ptr<CudnnPlan>> Create(const CudnnDevice& device, CudnnGraph graph,
                                                     const CudnnPlanOptions& options);
  // A plan that ToJson gave, for the same properties and version of the library.
  static StatusOr<std::unique_ptr<CudnnPlan>> FromJson(const CudnnDevice& device, const std::string& json);

  size_t workspace_bytes() const { return workspace_bytes_; }
  int64_t engine() const { return engine_; }  // the library's number; -1 of a plan from JSON
  StatusOr<std::string> ToJson() const { return plan_.ReadText(CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION); }

  cudnnBackendDescriptor_t get() const { return plan_.get(); }

 private:
  CudnnPlan() : plan_(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) {}
  Status ReadWorkspace();

  CudnnGraph graph_;
  std::vector<CudnnDescriptor> choice_;  // operation graph, heuristics, engine, configuration
  CudnnDescriptor plan_;
  size_t workspace_bytes_ = 0;
  int64_t engine_ = -1;
};

// A plan and the places of tensors with which it ran: a step runs at the places of one before, and makes nothing then.
// One thread at a time.
class BoundCudnnPlan {
 public:
  explicit BoundCudnnPlan(std::shared_ptr<const CudnnPlan> plan) : plan_(std::move(plan)) {}
  const CudnnPlan& plan() const { return *plan_; }
  // Enqueues on the stream of the handle. `pointers` are of the tensors with the unique ids `ids`.
  Status Run(cudnnHandle_t handle, std::span<const int64_t> ids, std::span<void* const> pointers, void* workspace);

 private:
  struct Places {
    std::vector<void*> pointers;
    void* workspace;
    CudnnDescriptor pack;
  };

  std::shared_ptr<const CudnnPlan> plan_;
  std::vector<Places> places_;  // a few: feeds alternate between two buffers
};

}  // namespace onnxtrain

#endif  // ONNXTRAIN_CUDA_OPS_CUDNN_PLAN_H_
