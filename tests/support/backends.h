// SPDX-License-Identifier: Apache-2.0
// The backends that the conformance suites run on. A new backend adds one line in backends.cc and nothing else.
#ifndef ONNXTRAIN_TESTS_SUPPORT_BACKENDS_H_
#define ONNXTRAIN_TESTS_SUPPORT_BACKENDS_H_

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "graph/status.h"
#include "runtime/backend.h"

namespace onnxtrain {

// Names of all backends of this build, those that cannot run here included.
const std::vector<std::string>& AllBackends();

// Why the backend cannot run here, for a test to be skipped by name; empty when it can.
std::string WhyNot(const std::string& backend);

// Usage when this machine cannot have so many ranks of it, for want of GPUs or of NCCL.
StatusOr<std::unique_ptr<Backend>> TryTestBackend(const std::string& name, int ranks,
                                                  std::chrono::milliseconds timeout = std::chrono::minutes(1));
// CHECKs that it opens.
std::unique_ptr<Backend> OpenTestBackend(const std::string& name, int ranks,
                                         std::chrono::milliseconds timeout = std::chrono::minutes(1));

// An array in device memory. CHECKs that copies succeed.
template <typename T>
class DeviceArray {
 public:
  DeviceArray(Device& device, const std::vector<T>& values)
      : device_(device), size_(values.size()), buffer_(*device.Allocate(values.size() * sizeof(T))) {
    CHECK(device.CopyToDevice(buffer_->data(), values.data(), size_ * sizeof(T)).ok());
  }
  T* data() const { return reinterpret_cast<T*>(buffer_->data()); }
  std::vector<T> Read() const {
    std::vector<T> values(size_);
    CHECK(device_.CopyToHost(values.data(), buffer_->data(), size_ * sizeof(T)).ok());
    return values;
  }

 private:
  Device& device_;
  size_t size_;
  std::unique_ptr<Buffer> buffer_;
};

}  // namespace onnxtrain

#endif  // ONNXTRAIN_TESTS_SUPPORT_BACKENDS_H_
