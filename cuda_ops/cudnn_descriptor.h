// SPDX-License-Identifier: Apache-2.0
// One descriptor of cuDNN's backend interface: made, filled with attributes, finalized, read. Setters keep the first
// failure and do nothing after it; Finalize reports it. One thread at a time.
#ifndef ONNXTRAIN_CUDA_OPS_CUDNN_DESCRIPTOR_H_
#define ONNXTRAIN_CUDA_OPS_CUDNN_DESCRIPTOR_H_

#include <cudnn_graph.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "graph/dtype.h"
#include "graph/status.h"

namespace onnxtrain {

// "cuDNN, convolution plan: CUDNN_STATUS_NOT_SUPPORTED (the library's own words)". ResourceExhausted for want of memory,
// InvalidModel for what the library does not support, else Internal.
Status CudnnError(cudnnStatus_t status, std::string_view what);

// float, double, bfloat16, float16; CHECKs others.
cudnnDataType_t CudnnTypeOf(DType dtype);

class CudnnDescriptor {
 public:
  explicit CudnnDescriptor(cudnnBackendDescriptorType_t type);
  ~CudnnDescriptor();
  CudnnDescriptor(CudnnDescriptor&& other) noexcept;
  CudnnDescriptor& operator=(CudnnDescriptor&& other) noexcept;

  cudnnBackendDescriptor_t get() const { return descriptor_; }

  void SetInts(cudnnBackendAttributeName_t name, const std::vector<int64_t>& values);
  void SetInt(cudnnBackendAttributeName_t name, int64_t value) { SetInts(name, {value}); }
  void SetBool(cudnnBackendAttributeName_t name, bool value);
  void SetFloat(cudnnBackendAttributeName_t name, float value);
  void SetDataType(cudnnBackendAttributeName_t name, cudnnDataType_t value);
  // Of any other kind: `count` values of `type`.
  void Set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count, const void* values);
  // The library keeps what it needs of a finalized descriptor, but not the descriptor: `others` live as long as this one.
  void SetDescriptors(cudnnBackendAttributeName_t name, const std::vector<const CudnnDescriptor*>& others);
  void SetDescriptor(cudnnBackendAttributeName_t name, const CudnnDescriptor& other) { SetDescriptors(name, {&other}); }
  // `what` names the object in errors.
  Status Finalize(std::string_view what);

  StatusOr<int64_t> ReadInt(cudnnBackendAttributeName_t name) const;
  StatusOr<std::string> ReadText(cudnnBackendAttributeName_t name) const;
  // Into `others`, which are made for it; returns how many there were.
  StatusOr<int64_t> ReadDescriptors(cudnnBackendAttributeName_t name, std::vector<CudnnDescriptor>& others) const;
  StatusOr<int64_t> Count(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type) const;
  StatusOr<int64_t> Read(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count,
                         void* values) const;

 private:
  cudnnBackendDescriptor_t descriptor_ = nullptr;
  Status failure_;
};

}  // namespace onnxtrain

#endif  // ONNXTRAIN_CUDA_OPS_CUDNN_DESCRIPTOR_H_
