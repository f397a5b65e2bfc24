// SPDX-License-Identifier: Apache-2.0
#include "cuda_ops/cudnn_descriptor.h"

#include <utility>

namespace onnxtrain {

Status CudnnError(cudnnStatus_t status, std::string_view what) {
  if (status == CUDNN_STATUS_SUCCESS) return OkStatus();
  char words[512] = "";
  cudnnGetLastErrorString(words, sizeof(words));
  std::string text = "cuDNN, " + std::string(what) + ": " + cudnnGetErrorString(status);
  if (words[0] != '\0') text += " (" + std::string(words) + ")";
  const int kind = CUDNN_STATUS_CATEGORY(static_cast<int>(status));
  if (kind == CUDNN_STATUS_NOT_SUPPORTED) return InvalidModelError(std::move(text));
  if (status == CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED ||
      status == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED) {
    return ResourceExhaustedError(std::move(text));
  }
  return InternalError(std::move(text));
}

cudnnDataType_t CudnnTypeOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat:
      return CUDNN_DATA_FLOAT;
    case DType::kDouble:
      return CUDNN_DATA_DOUBLE;
    case DType::kBfloat16:
      return CUDNN_DATA_BFLOAT16;
    case DType::kFloat16:
      return CUDNN_DATA_HALF;
    default:
      CHECK_WITH(false, "no element type of cuDNN: " + std::string(NameOf(dtype)));
  }
  return CUDNN_DATA_FLOAT;
}

CudnnDescriptor::CudnnDescriptor(cudnnBackendDescriptorType_t type)
    : failure_(CudnnError(cudnnBackendCreateDescriptor(type, &descriptor_), "cudnnBackendCreateDescriptor")) {}

CudnnDescriptor::~CudnnDescriptor() {
  if (descriptor_ != nullptr) (void)cudnnBackendDestroyDescriptor(descriptor_);
}

CudnnDescriptor::CudnnDescriptor(CudnnDescriptor&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, nullptr)), failure_(std::move(other.failure_)) {}

CudnnDescriptor& CudnnDescriptor::operator=(CudnnDescriptor&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(failure_, other.failure_);
  return *this;
}

void CudnnDescriptor::Set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count,
                          const void* values) {
  if (!failure_.ok()) return;
  failure_ = CudnnError(cudnnBackendSetAttribute(descriptor_, name, type, count, values),
                        "attribute " + std::to_string(static_cast<int>(name)));
}

void CudnnDescriptor::SetInts(cudnnBackendAttributeName_t name, const std::vector<int64_t>& values) {
  Set(name, CUDNN_TYPE_INT64, static_cast<int64_t>(values.size()), values.data());
}

void CudnnDescriptor::SetBool(cudnnBackendAttributeName_t name, bool value) {
  Set(name, CUDNN_TYPE_BOOLEAN, 1, &value);
}

void CudnnDescriptor::SetFloat(cudnnBackendAttributeName_t name, float value) {
  Set(name, CUDNN_TYPE_FLOAT, 1, &value);
}

void CudnnDescriptor::SetDataType(cudnnBackendAttributeName_t name, cudnnDataType_t value) {
  Set(name, CUDNN_TYPE_DATA_TYPE, 1, &value);
}

void CudnnDescriptor::SetDescriptors(cudnnBackendAttributeName_t name,
                                     const std::vector<const CudnnDescriptor*>& others) {
  std::vector<cudnnBackendDescriptor_t> raw;
  for (const CudnnDescriptor* other : others) {
    if (failure_.ok()) failure_ = other->failure_;
    raw.push_back(other->descriptor_);
  }
  Set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, static_cast<int64_t>(raw.size()), raw.data());
}

Status CudnnDescriptor::Finalize(std::string_view what) {
  if (failure_.ok()) {
    failure_ = CudnnError(cudnnBackendFinalize(descriptor_), what);
    return failure_;
  }
  failure_ = failure_.Prepend(what);
  return failure_;
}

StatusOr<int64_t> CudnnDescriptor::Read(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                                        int64_t count, void* values) const {
  int64_t found = 0;
  RETURN_IF_ERROR(CudnnError(cudnnBackendGetAttribute(descriptor_, name, type, count, &found, values),
                             "reading attribute " + std::to_string(static_cast<int>(name))));
  return found;
}

StatusOr<int64_t> CudnnDescriptor::Count(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type) const {
  return Read(name, type, 0, nullptr);
}

StatusOr<int64_t> CudnnDescriptor::ReadInt(cudnnBackendAttributeName_t name) const {
  int64_t value = 0;
  RETURN_IF_ERROR(Read(name, CUDNN_TYPE_INT64, 1, &value).status());
  return value;
}

StatusOr<std::string> CudnnDescriptor::ReadText(cudnnBackendAttributeName_t name) const {
  ASSIGN_OR_RETURN(const int64_t length, Count(name, CUDNN_TYPE_CHAR));
  std::string text(static_cast<size_t>(length), '\0');
  RETURN_IF_ERROR(Read(name, CUDNN_TYPE_CHAR, length, text.data()).status());
  while (!text.empty() && text.back() == '\0') text.pop_back();
  return text;
}

StatusOr<int64_t> CudnnDescriptor::ReadDescriptors(cudnnBackendAttributeName_t name,
                                                   std::vector<CudnnDescriptor>& others) const {
  std::vector<cudnnBackendDescriptor_t> raw;
  for (const CudnnDescriptor& other : others) {
    RETURN_IF_ERROR(other.failure_);
    raw.push_back(other.descriptor_);
  }
  return Read(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, static_cast<int64_t>(raw.size()), raw.data());
}

}  // namespace onnxtrain
