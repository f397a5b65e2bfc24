// SPDX-License-Identifier: Apache-2.0
#include "cuda_ops/host_kernel.h"

#include <cuda_runtime_api.h>

#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "cuda_ops/cuda_error.h"
#include "cuda_ops/kernels/host_fault.h"

namespace onnxtrain {
namespace {

constexpr size_t kAlignment = 256;

size_t Rounded(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// Page-locked memory that kernels of the GPU may read, too.
class Staging {
 public:
  ~Staging() {
    if (data_ != nullptr) (void)cudaFreeHost(data_);
  }
  Status Allocate(size_t bytes) {
    RETURN_IF_CUDA_ERROR(cudaHostAlloc(&data_, bytes, cudaHostAllocMapped | cudaHostAllocPortable));
    return OkStatus();
  }
  std::byte* data() const { return static_cast<std::byte*>(data_); }

 private:
  void* data_ = nullptr;
};

class HostKernel : public Kernel {
 public:
  static StatusOr<std::unique_ptr<Kernel>> Create(const KernelContext& context, std::unique_ptr<Kernel> kernel) {
    std::unique_ptr<HostKernel> made(new HostKernel(context, std::move(kernel)));
    RETURN_IF_ERROR(made->Place(context.node));
    return std::unique_ptr<Kernel>(std::move(made));
  }

  Status Launch(const LaunchArgs& args) override {
    RETURN_IF_ERROR(Failure());
    const auto stream = static_cast<cudaStream_t>(args.native_stream);
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (inputs_[i] == nullptr || input_bytes_[i] == 0) continue;
      RETURN_IF_CUDA_ERROR(cudaMemcpyAsync(const_cast<std::byte*>(inputs_[i]), args.inputs[i], input_bytes_[i],
                                           cudaMemcpyDeviceToHost, stream));
    }
    RETURN_IF_CUDA_ERROR(cudaLaunchHostFunc(stream, &Run, CallFor(args.run)));
    for (size_t i = 0; i < outputs_.size(); ++i) {
      if (outputs_[i] == nullptr || output_bytes_[i] == 0) continue;
      RETURN_IF_CUDA_ERROR(
          cudaMemcpyAsync(args.outputs[i], outputs_[i], output_bytes_[i], cudaMemcpyHostToDevice, stream));
    }
    if (args.status_word == nullptr) return OkStatus();
    RETURN_IF_CUDA_ERROR(LaunchMergeFault(device_word_, args.status_word, stream));
    return OkStatus();
  }

 private:
  // What a host function gets: recorded ones keep it.
  struct Call {
    HostKernel* kernel;
    RunContext run;
  };

  HostKernel(const KernelContext& context, std::unique_ptr<Kernel> kernel)
      : kernel_(std::move(kernel)), node_index_(context.node_index) {}

  Status Place(const Node& node) {
    size_t bytes = kAlignment;  // the status word
    const auto sized = [&](const std::vector<Value*>& values, std::vector<size_t>& sizes) {
      for (const Value* value : values) {
        sizes.push_back(value == nullptr ? 0 : value->type().bytes());
        bytes += Rounded(sizes.back());
      }
    };
    sized(node.inputs(), input_bytes_);
    sized(node.outputs(), output_bytes_);
    const size_t workspace = bytes;
    RETURN_IF_ERROR(staging_.Allocate(bytes + Rounded(kernel_->workspace_bytes())));
    std::byte* at = staging_.data() + kAlignment;
    for (size_t i = 0; i < input_bytes_.size(); at += Rounded(input_bytes_[i++])) {
      inputs_.push_back(node.input(i) == nullptr ? nullptr : at);
    }
    for (size_t i = 0; i < output_bytes_.size(); at += Rounded(output_bytes_[i++])) {
      outputs_.push_back(node.output(i) == nullptr ? nullptr : at);
    }
    workspace_ = staging_.data() + workspace;
    void* mapped = nullptr;
    RETURN_IF_CUDA_ERROR(cudaHostGetDevicePointer(&mapped, staging_.data(), 0));
    device_word_ = static_cast<const uint64_t*>(mapped);
    return OkStatus();
  }

  // One for each micro-batch, made the first time.
  Call* CallFor(const RunContext* run) {
    const RunContext context = run == nullptr ? RunContext() : *run;
    std::unique_ptr<Call>& call = calls_[context.micro_batch];
    if (call == nullptr) call = std::make_unique<Call>(Call{this, context});
    return call.get();
  }

  static void Run(void* pointer) {
    const auto& call = *static_cast<const Call*>(pointer);
    call.kernel->RunOnHost(call.run);
  }

  void RunOnHost(const RunContext& run) {
    auto* const word = reinterpret_cast<uint64_t*>(staging_.data());
    *word = 0;
    LaunchArgs args;
    args.inputs = inputs_;
    args.outputs = outputs_;
    args.workspace = workspace_;
    args.status_word = word;
    args.run = &run;
    const Status status = kernel_->Launch(args);
    if (status.ok()) return;
    *word = uint64_t{static_cast<uint32_t>(DeviceFault::kHostKernel)} << 32 | (static_cast<uint32_t>(node_index_) + 1);
    const std::lock_guard<std::mutex> lock(mutex_);
    if (failure_.ok()) failure_ = status;
  }

  // Of an earlier launch: a host function has nobody to tell.
  Status Failure() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return failure_;
  }

  const std::unique_ptr<Kernel> kernel_;
  const int node_index_;
  Staging staging_;
  std::vector<size_t> input_bytes_;
  std::vector<size_t> output_bytes_;
  std::vector<const std::byte*> inputs_;
  std::vector<std::byte*> outputs_;
  std::byte* workspace_ = nullptr;
  const uint64_t* device_word_ = nullptr;
  std::map<int64_t, std::unique_ptr<Call>> calls_;
  std::mutex mutex_;
  Status failure_;
};

}  // namespace

KernelFactory WithHostKernel(KernelFactory native, KernelFactory host, std::vector<std::string>* notes) {
  return [native = std::move(native), host = std::move(host),
          notes](const KernelContext& context) -> StatusOr<std::unique_ptr<Kernel>> {
    StatusOr<std::unique_ptr<Kernel>> kernel = UnsupportedTypes(context);
    if (native) kernel = native(context);
    if (kernel.ok()) return kernel;
    StatusOr<std::unique_ptr<Kernel>> on_host = host(context);
    if (!on_host.ok()) return kernel;
    notes->push_back("--fallback cpu: " + context.node.Describe() + " runs on the host");
    return HostKernel::Create(context, std::move(*on_host));
  };
}

}  // namespace onnxtrain
