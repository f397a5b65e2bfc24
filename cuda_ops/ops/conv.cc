// SPDX-License-Identifier: Apache-2.0
// Convolutions by cuDNN; where it is missing or has no engine, as products with columns, several samples a product.
#include "cuda_ops/kernels/conv.h"

#include <algorithm>
#include <numeric>

#include "cuda_ops/convolution_library.h"
#include "cuda_ops/cublaslt_product.h"
#include "cuda_ops/kernels/cast.h"
#include "cuda_ops/kernels/elementwise.h"
#include "cuda_ops/kernels/reduction.h"
#include "cuda_ops/ops/all_ops.h"
#include "cuda_ops/ops/element_types.h"
#include "cuda_ops/ops/launch_kernel.h"
#include "cuda_ops/ops/loops.h"
#include "cuda_ops/ops/windows.h"

namespace onnxtrain {
namespace {

using Direction = ConvolutionDirection;

// Bytes of columns that are in memory at a time.
constexpr int64_t kMostColumnBytes = int64_t{64} << 20;

constexpr int64_t kFloatBytes = 4;

// Of places that are multiples of `bytes` from the start of a tensor.
uint32_t AlignmentOf(int64_t bytes) { return static_cast<uint32_t>(std::gcd(bytes, int64_t{256})); }

size_t Rounded(int64_t bytes) { return static_cast<size_t>((bytes + 255) / 256 * 256); }

// x [batch, channels, input...], w [filters, channels / groups, kernel...], y [batch, filters, output...].
struct Geometry {
  int64_t batch = 0;
  int64_t channels = 0;
  int64_t filters = 0;
  int64_t groups = 1;
  DeviceWindow window;
  DType dtype = DType::kFloat;

  int64_t positions() const { return window.OutputSize(); }
  int64_t taps() const { return channels / groups * window.Taps(); }  // of a filter
  int64_t input_elements() const { return channels * window.InputSize(); }
  int64_t output_elements() const { return filters * positions(); }
  int64_t column_elements() const { return channels * window.Taps() * positions(); }
  int64_t weight_elements() const { return filters * taps(); }
  int64_t bytes() const { return static_cast<int64_t>(SizeOf(dtype)); }
};

// The product of `samples` samples and all groups; of weight gradients one result a sample.
ProductShape ProductOf(Direction direction, const Geometry& g, int64_t samples) {
  const int64_t filters = g.filters / g.groups;
  const MatrixLayout weights{g.taps(), 1, {0, filters * g.taps()}};
  const MatrixLayout gradients{g.taps(), 1, {g.weight_elements(), filters * g.taps()}};
  const MatrixLayout outputs{g.positions(), 1, {g.output_elements(), filters * g.positions()}};
  const MatrixLayout columns{g.positions(), 1, {g.column_elements(), g.taps() * g.positions()}};
  const auto transposed = [](MatrixLayout layout) {
    std::swap(layout.row, layout.column);
    return layout;
  };
  const std::vector<int64_t> batch = {samples, g.groups};
  switch (direction) {
    case Direction::kForward:
      return {filters, g.positions(), g.taps(), batch, weights, columns, outputs};
    case Direction::kInputGradient:
      return {g.taps(), g.positions(), filters, batch, transposed(weights), outputs, columns};
    case Direction::kWeightGradient:
      break;
  }
  return {filters, g.taps(), g.positions(), batch, outputs, transposed(columns), gradients};
}

// y += bias
cudaError_t AddBias(const Geometry& geometry, const LaunchArgs& args, cudaStream_t stream) {
  BinaryArguments g;
  g.a = args.outputs[0];
  g.b = args.inputs[2];
  g.y = args.outputs[0];
  const std::vector<int64_t> y = {geometry.output_elements(), geometry.positions(), 1};
  (void)MakeStridedLoop<3>({geometry.batch, geometry.filters, geometry.positions()}, {y, std::vector<int64_t>{0, 1, 0}, y}, {},
                           &g.loop);
  g.dtype = geometry.dtype;
  return LaunchArithmetic(ArithmeticFunction::kAdd, g, stream);
}

// dbias = the sums of dy over all but the filters
cudaError_t SumBias(const Geometry& geometry, const LaunchArgs& args, cudaStream_t stream) {
  ReductionArguments a;
  a.x = args.inputs[0];
  a.y = args.outputs[1];
  (void)MakeStridedLoop<1>({geometry.filters}, {std::vector<int64_t>{geometry.positions()}}, {}, &a.kept);
  (void)MakeStridedLoop<1>({geometry.batch, geometry.positions()}, {std::vector<int64_t>{geometry.output_elements(), 1}}, {},
                           &a.reduced);
  a.rows = true;
  a.dtype = geometry.dtype;
  a.y_dtype = geometry.dtype;
  return LaunchReduction(a, stream);
}

Status FinishBias(Direction direction, const Geometry& geometry, const LaunchArgs& args, cudaStream_t stream) {
  RETURN_IF_CUDA_ERROR(direction == Direction::kForward ? AddBias(geometry, args, stream)
                                                        : SumBias(geometry, args, stream));
  return OkStatus();
}

class LibraryConvKernel : public Kernel {
 public:
  LibraryConvKernel(std::unique_ptr<LibraryConvolution> convolution, Direction direction, const Geometry& g, bool bias)
      : convolution_(std::move(convolution)), direction_(direction), g_(g), bias_(bias) {}

  size_t workspace_bytes() const override { return convolution_->workspace_bytes(); }

  Status Launch(const LaunchArgs& args) override {
    const auto stream = static_cast<cudaStream_t>(args.native_stream);
    RETURN_IF_ERROR(Run(args, stream));
    return bias_ ? FinishBias(direction_, g_, args, stream) : OkStatus();
  }

 private:
  Status Run(const LaunchArgs& args, cudaStream_t stream) {
    const std::byte* const first = args.inputs[0];
    const std::byte* const second = args.inputs[1];
    const std::byte* const result = args.outputs[0];
    switch (direction_) {
      case Direction::kForward:
        return convolution_->Run(first, second, result, args.workspace, stream);
      case Direction::kInputGradient:
        return convolution_->Run(result, second, first, args.workspace, stream);
      case Direction::kWeightGradient:
        break;
    }
    return convolution_->Run(second, result, first, args.workspace, stream);
  }

  const std::unique_ptr<LibraryConvolution> convolution_;
  const Direction direction_;
  const Geometry g_;
  const bool bias_;
};

class ConvKernel : public Kernel {
 public:
  static StatusOr<std::unique_ptr<Kernel>> Create(const CudaContext& cuda, Direction direction, const Geometry& g,
                                                  bool bias) {
    std::unique_ptr<ConvKernel> kernel(new ConvKernel(direction, g, bias));
    CublasLtProduct::Options options;
    options.dtype = g.dtype;
    // What is summed afterwards is rounded once, at the end.
    options.float_result = direction != Direction::kForward;
    // The outputs of a chunk begin where those of the chunk before end.
    uint32_t& of_outputs = direction == Direction::kForward         ? options.c_alignment
                           : direction == Direction::kInputGradient ? options.b_alignment
                                                                    : options.a_alignment;
    if (kernel->chunk_ != g.batch) of_outputs = AlignmentOf(kernel->chunk_ * g.output_elements() * g.bytes());
    for (const int64_t samples : {kernel->chunk_, g.batch % kernel->chunk_}) {
      if (samples == 0) continue;
      ASSIGN_OR_RETURN(auto product, CublasLtProduct::Create(cuda, ProductOf(direction, g, samples), options));
      kernel->product_bytes_ = std::max(kernel->product_bytes_, product->workspace_bytes());
      kernel->products_.push_back(std::move(product));
    }
    return std::unique_ptr<Kernel>(std::move(kernel));
  }

  // Columns; gradients of single samples, and the sum of a chunk; the library's own.
  size_t workspace_bytes() const override { return column_bytes() + partial_bytes() + product_bytes_; }

  Status Launch(const LaunchArgs& args) override {
    const auto stream = static_cast<cudaStream_t>(args.native_stream);
    std::byte* const partial = args.workspace + column_bytes();
    std::byte* const scratch = partial + partial_bytes();
    for (int64_t first = 0; first < g_.batch; first += chunk_) {
      RETURN_IF_ERROR(RunChunk(args, first, partial, scratch, stream));
    }
    return bias_ ? FinishBias(direction_, g_, args, stream) : OkStatus();
  }

 private:
  ConvKernel(Direction direction, const Geometry& g, bool bias)
      : direction_(direction),
        g_(g),
        bias_(bias),
        chunk_(std::clamp<int64_t>(kMostColumnBytes / std::max<int64_t>(1, g.column_elements() * g.bytes()), 1,
                                   g.batch)) {}

  size_t column_bytes() const {
    return Rounded(chunk_ * g_.column_elements() *
                   (direction_ == Direction::kInputGradient ? kFloatBytes : g_.bytes()));
  }

  size_t partial_bytes() const {
    if (direction_ != Direction::kWeightGradient) return 0;
    return Rounded(chunk_ * g_.weight_elements() * kFloatBytes) + Rounded(g_.weight_elements() * kFloatBytes);
  }

  Status RunChunk(const LaunchArgs& args, int64_t first, std::byte* partial, std::byte* scratch, cudaStream_t stream) {
    const int64_t samples = std::min(chunk_, g_.batch - first);
    CublasLtProduct& product = *(samples == chunk_ ? products_.front() : products_.back());
    const std::byte* const image = args.inputs[direction_ == Direction::kWeightGradient ? 1 : 0];
    ColumnArguments columns;
    columns.samples = samples;
    columns.channels = g_.channels;
    columns.window = g_.window;
    columns.from_dtype = direction_ == Direction::kInputGradient ? DType::kFloat : g_.dtype;
    columns.to_dtype = g_.dtype;
    if (direction_ == Direction::kInputGradient) {
      const std::byte* const dy = args.inputs[0] + first * g_.output_elements() * g_.bytes();
      RETURN_IF_ERROR(product.Run(args.inputs[1], dy, args.workspace, nullptr, scratch, stream));
      columns.from = args.workspace;
      columns.to = args.outputs[0] + first * g_.input_elements() * g_.bytes();
      RETURN_IF_CUDA_ERROR(LaunchFromColumns(columns, stream));
      return OkStatus();
    }
    columns.from = image + first * g_.input_elements() * g_.bytes();
    columns.to = args.workspace;
    RETURN_IF_CUDA_ERROR(LaunchToColumns(columns, stream));
    if (direction_ == Direction::kForward) {
      std::byte* const y = args.outputs[0] + first * g_.output_elements() * g_.bytes();
      return product.Run(args.inputs[1], args.workspace, y, nullptr, scratch, stream);
    }
    const std::byte* const dy = args.inputs[0] + first * g_.output_elements() * g_.bytes();
    RETURN_IF_ERROR(product.Run(dy, args.workspace, partial, nullptr, scratch, stream));
    RETURN_IF_CUDA_ERROR(SumSamples(args, first, samples, partial, stream));
    return OkStatus();
  }

  // The sum over the samples of a chunk joins that of the chunks before, which becomes dw at the end.
  cudaError_t SumSamples(const LaunchArgs& args, int64_t first, int64_t samples, std::byte* partial,
                         cudaStream_t stream) {
    auto* const sum = reinterpret_cast<float*>(partial + Rounded(chunk_ * g_.weight_elements() * kFloatBytes));
    const bool last = first + samples == g_.batch;
    // Where all samples are one chunk there is nothing to join.
    const bool only = first == 0 && last;
    ReductionArguments a;
    a.x = partial;
    a.y = only ? args.outputs[0] : first == 0 ? reinterpret_cast<std::byte*>(sum) : partial;
    a.y_dtype = only ? g_.dtype : DType::kFloat;
    (void)MakeStridedLoop<1>({g_.weight_elements()}, {std::vector<int64_t>{1}}, {}, &a.kept);
    (void)MakeStridedLoop<1>({samples}, {std::vector<int64_t>{g_.weight_elements()}}, {}, &a.reduced);
    cudaError_t error = LaunchReduction(a, stream);
    if (error != cudaSuccess || only) return error;
    if (first != 0) {
      BinaryArguments g;
      g.a = sum;
      g.b = partial;
      g.y = sum;
      const std::vector<int64_t> dense{1};
      (void)MakeStridedLoop<3>({g_.weight_elements()}, {dense, dense, dense}, {}, &g.loop);
      error = LaunchArithmetic(ArithmeticFunction::kAdd, g, stream);
    }
    if (error != cudaSuccess || !last) return error;
    return LaunchCast(sum, DType::kFloat, args.outputs[0], g_.dtype, g_.weight_elements(), stream);
  }

  const Direction direction_;
  const Geometry g_;
  const bool bias_;
  const int64_t chunk_;                                     // samples
  std::vector<std::unique_ptr<CublasLtProduct>> products_;  // of a whole chunk, and of the rest
  size_t product_bytes_ = 0;
};

StatusOr<std::unique_ptr<Kernel>> Make(const KernelContext& context, const CudaContext& cuda, Direction direction,
                                       const Shape& x, const Shape& w, const Shape& y, bool bias) {
  Geometry g;
  g.dtype = context.output_type(0).dtype;
  for (const Value* input : context.node.inputs()) {
    if (input != nullptr && input->type().dtype != g.dtype) return UnsupportedTypes(context);
  }
  if (!IsDeviceFloat(g.dtype)) return UnsupportedTypes(context);
  g.batch = x[0];
  g.channels = x[1];
  g.filters = y[1];
  g.groups = context.node.attributes().Int("group", 1);
  const auto window = WindowOf(context.node.attributes(), SpatialOf(x), SpatialOf(w));
  if (!window.ok()) return window.status().Prepend(context.node.Describe());
  ASSIGN_OR_RETURN(g.window, DeviceWindowOf(*window, SpatialOf(x), SpatialOf(y)));
  const bool empty = g.batch * g.column_elements() * g.weight_elements() == 0;
  if (empty) return InvalidModelError(context.node.Describe() + ": a convolution of nothing has no CUDA kernel");
  if (cuda.convolutions != nullptr) {
    auto convolution = cuda.convolutions->Create({direction, g.dtype, g.batch, g.channels, g.filters, g.groups,
                                                  SpatialOf(x), SpatialOf(y), *window});
    if (convolution.ok()) {
      return std::unique_ptr<Kernel>(new LibraryConvKernel(std::move(*convolution), direction, g, bias));
    }
  }
  auto kernel = ConvKernel::Create(cuda, direction, g, bias);
  if (!kernel.ok()) return kernel.status().Prepend(context.node.Describe());
  return kernel;
}

}  // namespace

void AddConvOps(KernelRegistry& registry, const CudaContext& cuda) {
  registry.Add("Conv", [&cuda](const KernelContext& c) {
    return Make(c, cuda, Direction::kForward, c.input_type(0).shape, c.input_type(1).shape, c.output_type(0).shape,
                c.node.input(2) != nullptr);
  });
  registry.Add("onnxtrain.ConvInputGrad", [&cuda](const KernelContext& c) {
    return Make(c, cuda, Direction::kInputGradient, c.output_type(0).shape, c.input_type(1).shape,
                c.input_type(0).shape, false);
  });
  registry.Add("onnxtrain.ConvWeightGrad", [&cuda](const KernelContext& c) {
    return Make(c, cuda, Direction::kWeightGradient, c.input_type(1).shape, c.output_type(0).shape,
                c.input_type(0).shape, c.node.output(1) != nullptr);
  });
}

}  // namespace onnxtrain
