// SPDX-License-Identifier: Apache-2.0
// The CPU as a device: memory from the heap, streams as worker threads, kernels from runtime/cpu/kernels.
#ifndef ONNXTRAIN_RUNTIME_CPU_CPU_DEVICE_H_
#define ONNXTRAIN_RUNTIME_CPU_CPU_DEVICE_H_

#include <memory>

#include "runtime/device.h"

namespace onnxtrain {

class CpuDevice : public Device {
 public:
  CpuDevice();
  std::string_view name() const override { return "cpu"; }
  const KernelRegistry& kernels() const override { return kernels_; }
  bool shares_host_memory() const override { return true; }
  StatusOr<std::unique_ptr<Buffer>> Allocate(size_t bytes) override;
  StatusOr<std::unique_ptr<Buffer>> AllocateStaging(size_t bytes) override { return Allocate(bytes); }
  StatusOr<std::unique_ptr<Stream>> CreateStream(const StreamOptions& options) override;
  StatusOr<std::unique_ptr<Event>> CreateEvent() override;
  Status CopyToDevice(void* destination, const void* source, size_t bytes) override;
  Status CopyToHost(void* destination, const void* source, size_t bytes) override;

 private:
  KernelRegistry kernels_;
};

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_CPU_CPU_DEVICE_H_
