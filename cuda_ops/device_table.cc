// SPDX-License-Identifier: Apache-2.0
#include "cuda_ops/device_table.h"

#include <cuda_runtime_api.h>

#include <algorithm>

#include "cuda_ops/cuda_error.h"

namespace onnxtrain {

StatusOr<std::shared_ptr<const DeviceTable>> DeviceTable::Create(const CudaContext& context,
                                                                 std::span<const std::byte> bytes) {
  RETURN_IF_CUDA_ERROR(cudaSetDevice(context.device));
  void* data = nullptr;
  RETURN_IF_CUDA_ERROR(cudaMalloc(&data, std::max<size_t>(bytes.size(), 1)));
  const std::shared_ptr<const DeviceTable> table(new DeviceTable(context.device, data));
  RETURN_IF_CUDA_ERROR(cudaMemcpy(data, bytes.data(), bytes.size(), cudaMemcpyHostToDevice));
  // Streams do not wait for the default stream, on which the copy may still run.
  RETURN_IF_CUDA_ERROR(cudaDeviceSynchronize());
  return table;
}

DeviceTable::~DeviceTable() {
  (void)cudaSetDevice(device_);
  (void)cudaFree(data_);
}

}  // namespace onnxtrain
