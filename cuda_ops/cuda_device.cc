// SPDX-License-Identifier: Apache-2.0
#include "cuda_ops/cuda_device.h"

#include <cstring>

#include "cuda_ops/cublaslt_product.h"
#include "cuda_ops/cuda_error.h"
#include "cuda_ops/cuda_stream.h"
#include "cuda_ops/host_kernel.h"
#include "cuda_ops/ops/all_ops.h"

namespace onnxtrain {
namespace {

// Device memory, or page-locked host memory.
class CudaBuffer : public Buffer {
 public:
  enum class Kind : uint8_t { kDevice, kHost };
  CudaBuffer(Kind kind, int device, void* data, size_t size) : kind_(kind), device_(device), data_(data), size_(size) {}
  ~CudaBuffer() override {
    (void)cudaSetDevice(device_);
    if (kind_ == Kind::kDevice) {
      (void)cudaFree(data_);
    } else {
      (void)cudaFreeHost(data_);
    }
  }
  std::byte* data() const override { return static_cast<std::byte*>(data_); }
  size_t size() const override { return size_; }

 private:
  const Kind kind_;
  const int device_;
  void* const data_;
  const size_t size_;
};

// Both allocators align to 256 bytes at least and have no use for a size of zero.
size_t AtLeastOne(size_t bytes) { return bytes == 0 ? 1 : bytes; }

class CudaRecording : public Recording {
 public:
  explicit CudaRecording(cudaGraphExec_t graph) : graph_(graph) {}
  ~CudaRecording() override { (void)cudaGraphExecDestroy(graph_); }
  void Replay(Stream& origin) override {
    auto& stream = static_cast<CudaStream&>(origin);
    if (stream.status().ok()) stream.Keep(CudaError(cudaGraphLaunch(graph_, stream.handle()), "cudaGraphLaunch"));
  }

 private:
  const cudaGraphExec_t graph_;
};

StatusOr<cudaGraphExec_t> Instantiate(cudaStream_t stream) {
  cudaGraph_t graph = nullptr;
  RETURN_IF_CUDA_ERROR(cudaStreamEndCapture(stream, &graph));
  cudaGraphExec_t executable = nullptr;
  const cudaError_t error = cudaGraphInstantiate(&executable, graph, 0);
  (void)cudaGraphDestroy(graph);
  RETURN_IF_CUDA_ERROR(error);
  return executable;
}

}  // namespace

StatusOr<int> CudaDevice::Count() {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error == cudaSuccess && count > 0) return count;
  return UsageError(std::string("--device cuda: no GPU can be used here (") + cudaGetErrorString(error) +
                    "); look at nvidia-smi, or use --device cpu");
}

StatusOr<std::unique_ptr<CudaDevice>> CudaDevice::Create(int ordinal, const BackendOptions& options) {
  std::unique_ptr<CudaDevice> device(new CudaDevice);
  device->context_.device = ordinal;
  device->context_.tf32 = options.tf32;
  device->context_.cache_folder = options.cache_folder;
  RETURN_IF_ERROR(device->MakeCurrent());
  RETURN_IF_CUDA_ERROR(
      cudaDeviceGetAttribute(&device->context_.multiprocessors, cudaDevAttrMultiProcessorCount, ordinal));
  RETURN_IF_ERROR(device->OpenMatmul());
  RETURN_IF_ERROR(device->OpenConvolutions());
  device->AddKernels(options.fallback.get());
  return device;
}

void CudaDevice::AddKernels(const KernelRegistry* fallback) {
  if (fallback == nullptr) return AddAllCudaOps(kernels_, context_);
  KernelRegistry native;
  AddAllCudaOps(native, context_);
  for (const std::string& op : native.Ops()) {
    const KernelFactory* host = fallback->Find(op);
    kernels_.Add(op, host == nullptr ? *native.Find(op) : WithHostKernel(*native.Find(op), *host, &host_notes_));
  }
  for (const std::string& op : fallback->Ops()) {
    if (!native.Has(op)) kernels_.Add(op, WithHostKernel(nullptr, *fallback->Find(op), &host_notes_));
  }
}

Status CudaDevice::OpenMatmul() {
  const cublasStatus_t status = cublasLtCreate(&context_.matmul_handle);
  if (status != CUBLAS_STATUS_SUCCESS) return CublasError(status, "cublasLtCreate");
  int major = 0;
  int minor = 0;
  RETURN_IF_CUDA_ERROR(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, context_.device));
  RETURN_IF_CUDA_ERROR(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, context_.device));
  const std::string made_for = "cuBLASLt " + std::to_string(cublasLtGetVersion()) + " on compute capability " +
                               std::to_string(major) + "." + std::to_string(minor) + " with " +
                               std::to_string(context_.multiprocessors) + " multiprocessors";
  matmul_algorithms_ = MatmulAlgorithms::Open(std::make_unique<PosixFileSystem>(), context_.cache_folder, made_for);
  context_.matmul_algorithms = matmul_algorithms_.get();
  return OkStatus();
}

Status CudaDevice::OpenConvolutions() {
  const ConvolutionLibrary::Options options{context_.device, context_.tf32, context_.cache_folder};
  ASSIGN_OR_RETURN(convolutions_, ConvolutionLibrary::Open(std::make_unique<PosixFileSystem>(), options));
  context_.convolutions = convolutions_.get();
  return OkStatus();
}

std::vector<std::string> CudaDevice::notes() const {
  std::vector<std::string> notes = matmul_algorithms_->notes();
  notes.insert(notes.end(), host_notes_.begin(), host_notes_.end());
  if (convolutions_ == nullptr) return notes;
  const std::vector<std::string> more = convolutions_->notes();
  notes.insert(notes.end(), more.begin(), more.end());
  return notes;
}

CudaDevice::~CudaDevice() {
  if (context_.matmul_handle != nullptr) (void)cublasLtDestroy(context_.matmul_handle);
}

Status CudaDevice::MakeCurrent() const {
  RETURN_IF_CUDA_ERROR(cudaSetDevice(context_.device));
  return OkStatus();
}

StatusOr<std::unique_ptr<Buffer>> CudaDevice::Allocate(size_t bytes) {
  RETURN_IF_ERROR(MakeCurrent());
  void* data = nullptr;
  RETURN_IF_CUDA_ERROR(cudaMalloc(&data, AtLeastOne(bytes)));
  auto buffer = std::make_unique<CudaBuffer>(CudaBuffer::Kind::kDevice, context_.device, data, bytes);
  RETURN_IF_CUDA_ERROR(cudaMemset(data, 0, AtLeastOne(bytes)));
  // Streams do not wait for the default stream, on which the fill may still run.
  RETURN_IF_CUDA_ERROR(cudaDeviceSynchronize());
  return std::unique_ptr<Buffer>(std::move(buffer));
}

StatusOr<std::unique_ptr<Buffer>> CudaDevice::AllocateStaging(size_t bytes) {
  RETURN_IF_ERROR(MakeCurrent());
  void* data = nullptr;
  RETURN_IF_CUDA_ERROR(cudaHostAlloc(&data, AtLeastOne(bytes), cudaHostAllocPortable));
  std::memset(data, 0, AtLeastOne(bytes));
  return std::unique_ptr<Buffer>(std::make_unique<CudaBuffer>(CudaBuffer::Kind::kHost, context_.device, data, bytes));
}

StatusOr<std::unique_ptr<Stream>> CudaDevice::CreateStream(const StreamOptions& options) {
  ASSIGN_OR_RETURN(std::unique_ptr<CudaStream> stream, CudaStream::Create(context_.device, failure_, options));
  return std::unique_ptr<Stream>(std::move(stream));
}

StatusOr<std::unique_ptr<Event>> CudaDevice::CreateEvent() {
  ASSIGN_OR_RETURN(std::unique_ptr<CudaEvent> event, CudaEvent::Create(context_.device));
  return std::unique_ptr<Event>(std::move(event));
}

// Thread-local: other threads, such as a watchdog, may call CUDA meanwhile.
void CudaDevice::BeginRecording(Stream& origin) {
  auto& stream = static_cast<CudaStream&>(origin);
  stream.Keep(MakeCurrent());
  if (!stream.status().ok()) return;
  stream.Keep(
      CudaError(cudaStreamBeginCapture(stream.handle(), cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture"));
}

std::unique_ptr<Recording> CudaDevice::EndRecording(Stream& origin) {
  auto& stream = static_cast<CudaStream&>(origin);
  StatusOr<cudaGraphExec_t> graph = Instantiate(stream.handle());
  stream.Keep(graph.status());
  if (!graph.ok()) return nullptr;
  return std::make_unique<CudaRecording>(*graph);
}

Status CudaDevice::CopyToDevice(void* destination, const void* source, size_t bytes) {
  RETURN_IF_ERROR(MakeCurrent());
  if (bytes != 0) RETURN_IF_CUDA_ERROR(cudaMemcpy(destination, source, bytes, cudaMemcpyHostToDevice));
  return OkStatus();
}

Status CudaDevice::CopyToHost(void* destination, const void* source, size_t bytes) {
  RETURN_IF_ERROR(MakeCurrent());
  if (bytes != 0) RETURN_IF_CUDA_ERROR(cudaMemcpy(destination, source, bytes, cudaMemcpyDeviceToHost));
  return OkStatus();
}

}  // namespace onnxtrain
