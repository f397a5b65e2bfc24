// SPDX-License-Identifier: Apache-2.0
// What libonnxtrain_cuda.so exports.
#include "cuda_ops/cuda_backend.h"
#include "runtime/backend_build.h"

extern "C" __attribute__((visibility("default"))) const onnxtrain::BackendModule* onnxtrain_backend_module() {
  static constexpr onnxtrain::BackendModule kModule = {onnxtrain::kBackendBuildText, onnxtrain::CreateCudaBackend};
  return &kModule;
}
