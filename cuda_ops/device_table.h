// SPDX-License-Identifier: Apache-2.0
// Constants of one kernel in device memory: written when the kernel is made, freed with it. For what is too much for
// the arguments of a launch; such tables are small beside tensors and lie outside of the plan's regions.
#ifndef ONNXTRAIN_CUDA_OPS_DEVICE_TABLE_H_
#define ONNXTRAIN_CUDA_OPS_DEVICE_TABLE_H_

#include <cstddef>
#include <memory>
#include <span>

#include "cuda_ops/cuda_context.h"
#include "graph/status.h"

namespace onnxtrain {

class DeviceTable {
 public:
  // A copy of `bytes`, complete when this returns. Waits for the device; ResourceExhausted where it has no room.
  static StatusOr<std::shared_ptr<const DeviceTable>> Create(const CudaContext& context,
                                                             std::span<const std::byte> bytes);
  ~DeviceTable();
  DeviceTable(const DeviceTable&) = delete;
  DeviceTable& operator=(const DeviceTable&) = delete;

  // Device memory, aligned to 256 bytes.
  const std::byte* data() const { return static_cast<const std::byte*>(data_); }

 private:
  DeviceTable(int device, void* data) : device_(device), data_(data) {}

  const int device_;
  void* const data_;
};

}  // namespace onnxtrain

#endif  // ONNXTRAIN_CUDA_OPS_DEVICE_TABLE_H_
