// SPDX-License-Identifier: Apache-2.0
// One GPU as a Device. Memory is cudaMalloc's, a stream is a cudaStream_t, an event a cudaEvent_t without timing;
// kernels come from cuda_ops/ops. Any host thread may call; each call makes this GPU current on its thread.
#ifndef ONNXTRAIN_CUDA_OPS_CUDA_DEVICE_H_
#define ONNXTRAIN_CUDA_OPS_CUDA_DEVICE_H_

#include <memory>
#include <string>
#include <vector>

#include "cuda_ops/convolution_library.h"
#include "cuda_ops/cuda_context.h"
#include "cuda_ops/first_failure.h"
#include "cuda_ops/matmul_algorithms.h"
#include "runtime/backend.h"
#include "runtime/device.h"

namespace onnxtrain {

class CudaDevice : public Device {
 public:
  // Fails with ResourceExhausted or Internal and CUDA's own words when the GPU cannot be used. Of the options TF32 and
  // the cache folder matter here.
  static StatusOr<std::unique_ptr<CudaDevice>> Create(int ordinal, const BackendOptions& options);
  // The number of GPUs; Usage with the driver's words when there is none.
  static StatusOr<int> Count();

  ~CudaDevice() override;

  std::string_view name() const override { return "cuda"; }
  const KernelRegistry& kernels() const override { return kernels_; }
  bool shares_host_memory() const override { return false; }
  StatusOr<std::unique_ptr<Buffer>> Allocate(size_t bytes) override;
  StatusOr<std::unique_ptr<Buffer>> AllocateStaging(size_t bytes) override;
  StatusOr<std::unique_ptr<Stream>> CreateStream(const StreamOptions& options) override;
  StatusOr<std::unique_ptr<Event>> CreateEvent() override;
  bool can_record() const override { return true; }
  void BeginRecording(Stream& origin) override;
  std::unique_ptr<Recording> EndRecording(Stream& origin) override;
  Status CopyToDevice(void* destination, const void* source, size_t bytes) override;
  Status CopyToHost(void* destination, const void* source, size_t bytes) override;

  const CudaContext& context() const { return context_; }
  // What a user should know of files that were not used or could not be written.
  std::vector<std::string> notes() const;
  // Every stream reports this from now on, unless it has failed before: what it has passed is not to be trusted. Any
  // thread.
  void Fail(const Status& reason) { (void)failure_.Keep(reason); }

 private:
  CudaDevice() = default;
  Status MakeCurrent() const;
  Status OpenMatmul();
  Status OpenConvolutions();
  // Kernels of cuda_ops/ops, and where there is a fallback, of the host.
  void AddKernels(const KernelRegistry* fallback);

  std::unique_ptr<MatmulAlgorithms> matmul_algorithms_;
  std::unique_ptr<ConvolutionLibrary> convolutions_;  // may be null
  std::vector<std::string> host_notes_;               // of nodes that run on the host
  CudaContext context_;
  FirstFailure failure_;  // outlives the streams
  KernelRegistry kernels_;
};

}  // namespace onnxtrain

#endif  // ONNXTRAIN_CUDA_OPS_CUDA_DEVICE_H_
