// SPDX-License-Identifier: Apache-2.0
#include "cuda_ops/copy_communicator.h"

#include <cuda_runtime_api.h>

#include "cuda_ops/cuda_error.h"

namespace onnxtrain {

Status CopyCommunicator::Copy(const void* send, void* recv, int64_t count, DType dtype, void* native_stream) {
  RETURN_IF_ERROR(failure_.reason());
  if (count == 0 || send == recv) return OkStatus();
  const size_t bytes = static_cast<size_t>(count) * SizeOf(dtype);
  const cudaStream_t stream = static_cast<cudaStream_t>(native_stream);
  RETURN_IF_CUDA_ERROR(cudaSetDevice(device_));
  RETURN_IF_CUDA_ERROR(cudaMemcpyAsync(recv, send, bytes, cudaMemcpyDefault, stream));
  if (stream == nullptr) RETURN_IF_CUDA_ERROR(cudaStreamSynchronize(stream));
  return OkStatus();
}

Status CopyCommunicator::AllReduce(const void* send, void* recv, int64_t count, DType dtype, ReduceOp,
                                   void* native_stream) {
  return Copy(send, recv, count, dtype, native_stream);
}

Status CopyCommunicator::ReduceScatter(const void* send, void* recv, int64_t recv_count, DType dtype, ReduceOp,
                                       void* native_stream) {
  return Copy(send, recv, recv_count, dtype, native_stream);
}

Status CopyCommunicator::AllGather(const void* send, void* recv, int64_t send_count, DType dtype, void* native_stream) {
  return Copy(send, recv, send_count, dtype, native_stream);
}

Status CopyCommunicator::Broadcast(const void* send, void* recv, int64_t count, DType dtype, int, void* native_stream) {
  return Copy(send, recv, count, dtype, native_stream);
}

}  // namespace onnxtrain
