// SPDX-License-Identifier: Apache-2.0
// Memory of the current (simulated) GPU for tests.
#ifndef ONNXTRAIN_TESTS_CUDA_GPU_ARRAY_H_
#define ONNXTRAIN_TESTS_CUDA_GPU_ARRAY_H_

#include <cuda_runtime_api.h>

#include <vector>

#include "graph/status.h"

namespace onnxtrain {

template <typename T>
class GpuArray {
 public:
  explicit GpuArray(const std::vector<T>& values) : size_(values.size()) {
    CHECK(cudaMalloc(&data_, (size_ + 1) * sizeof(T)) == cudaSuccess);
    Write(values);
  }
  explicit GpuArray(size_t size) : GpuArray(std::vector<T>(size)) {}
  ~GpuArray() { (void)cudaFree(data_); }
  GpuArray(const GpuArray&) = delete;
  GpuArray& operator=(const GpuArray&) = delete;

  T* data() const { return static_cast<T*>(data_); }
  void Write(const std::vector<T>& values) {
    if (!values.empty()) {
      CHECK(cudaMemcpy(data_, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice) == cudaSuccess);
    }
  }
  std::vector<T> Read() const {
    std::vector<T> values(size_);
    if (size_ != 0) {
      CHECK(cudaMemcpy(values.data(), data_, size_ * sizeof(T), cudaMemcpyDeviceToHost) == cudaSuccess);
    }
    return values;
  }

 private:
  void* data_ = nullptr;
  const size_t size_;
};

}  // namespace onnxtrain

#endif  // ONNXTRAIN_TESTS_CUDA_GPU_ARRAY_H_
