// SPDX-License-Identifier: Apache-2.0
#include "runtime/cpu/cpu_device.h"

#include <cstdlib>
#include <cstring>
#include <system_error>

#include "runtime/cpu/cpu_stream.h"
#include "runtime/cpu/kernels/all_kernels.h"

namespace onnxtrain {
namespace {

constexpr size_t kAlignment = 256;

class CpuBuffer : public Buffer {
 public:
  CpuBuffer(std::byte* data, size_t size) : data_(data), size_(size) {}
  ~CpuBuffer() override { std::free(data_); }
  std::byte* data() const override { return data_; }
  size_t size() const override { return size_; }

 private:
  std::byte* data_;
  size_t size_;
};

}  // namespace

CpuDevice::CpuDevice() { AddAllKernels(kernels_); }

StatusOr<std::unique_ptr<Buffer>> CpuDevice::Allocate(size_t bytes) {
  const size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  void* data = std::aligned_alloc(kAlignment, rounded == 0 ? kAlignment : rounded);
  if (data == nullptr) {
    return ResourceExhaustedError("out of host memory: " + std::to_string(bytes) +
                                  " bytes were asked for; use a smaller batch or --memory-limit to see the plan's need");
  }
  std::memset(data, 0, rounded);
  return std::unique_ptr<Buffer>(std::make_unique<CpuBuffer>(static_cast<std::byte*>(data), bytes));
}

StatusOr<std::unique_ptr<Stream>> CpuDevice::CreateStream(const StreamOptions& options) {
  try {
    return std::unique_ptr<Stream>(std::make_unique<CpuStream>(options));
  } catch (const std::system_error& error) {
    return ResourceExhaustedError("cannot start the worker thread of stream '" + std::string(options.name) +
                                  "': " + error.what());
  }
}

StatusOr<std::unique_ptr<Event>> CpuDevice::CreateEvent() {
  return std::unique_ptr<Event>(std::make_unique<CpuEvent>());
}

Status CpuDevice::CopyToDevice(void* destination, const void* source, size_t bytes) {
  if (bytes != 0) std::memcpy(destination, source, bytes);
  return OkStatus();
}

Status CpuDevice::CopyToHost(void* destination, const void* source, size_t bytes) {
  if (bytes != 0) std::memcpy(destination, source, bytes);
  return OkStatus();
}

}  // namespace onnxtrain
