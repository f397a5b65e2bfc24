// SPDX-License-Identifier: Apache-2.0
// Resize and its gradient: the matrices of up to three axes in one pass; passes hand on floats.
#include "cuda_ops/kernels/resize.h"

#include <algorithm>

#include "cuda_ops/device_table.h"
#include "cuda_ops/kernels/strided_copy.h"
#include "cuda_ops/ops/all_ops.h"
#include "cuda_ops/ops/element_types.h"
#include "cuda_ops/ops/launch_kernel.h"
#include "cuda_ops/ops/loops.h"
#include "runtime/resize_taps.h"

namespace onnxtrain {
namespace {

// The numbers of all axes behind each other, and where those of one begin.
struct Tables {
  std::vector<int64_t> positions;
  std::vector<float> weights;
};
struct AxisPlace {
  size_t begin;
  size_t offset;
  size_t weight;
};

AxisPlace Append(const AxisTaps& taps, int64_t stride, Tables& tables) {
  const AxisPlace place{tables.positions.size(), tables.positions.size() + taps.begin.size(), tables.weights.size()};
  tables.positions.insert(tables.positions.end(), taps.begin.begin(), taps.begin.end());
  for (const int64_t index : taps.index) tables.positions.push_back(index * stride);
  for (const double weight : taps.weight) tables.weights.push_back(static_cast<float>(weight));
  return place;
}

struct Pass {
  ResizeArguments arguments;  // all but x, y and the tables
  std::vector<AxisPlace> places;
};

// `taps` are of ascending axes; `shape` is that of x and becomes that of y.
Pass PassOf(const std::vector<AxisTaps>& taps, Shape& shape, Tables& tables) {
  const std::vector<int64_t> strides = DenseLoopStrides(shape);
  const auto behind = [&](size_t axis) {
    return strides[axis] * shape[axis];
  };  // elements of x in this axis and inside
  Pass pass;
  pass.arguments.axes = static_cast<int>(taps.size());
  pass.arguments.outer_stride = behind(taps.front().axis);
  for (size_t n = 0; n < taps.size(); ++n) {
    ResizedAxis& axis = pass.arguments.axis[n];
    axis.size = Divisor(taps[n].to);
    axis.inner_stride = n + 1 < taps.size() ? behind(taps[n + 1].axis) : 1;
    axis.inner = Divisor(strides[taps[n].axis] / axis.inner_stride);
    pass.places.push_back(Append(taps[n], strides[taps[n].axis], tables));
  }
  for (const AxisTaps& one : taps) shape[one.axis] = one.to;
  pass.arguments.count = ElementsOf(shape);
  return pass;
}

std::vector<Pass> PassesOf(const KernelContext& context, std::vector<AxisTaps> taps, Tables& tables) {
  Shape shape = context.input_type(0).shape;
  std::vector<Pass> passes;
  for (size_t first = 0; first < taps.size(); first += kMostResizedAxes) {
    const size_t last = std::min(taps.size(), first + kMostResizedAxes);
    std::vector<AxisTaps> some(taps.begin() + static_cast<std::ptrdiff_t>(first),
                               taps.begin() + static_cast<std::ptrdiff_t>(last));
    std::sort(some.begin(), some.end(), [](const AxisTaps& a, const AxisTaps& b) { return a.axis < b.axis; });
    passes.push_back(PassOf(some, shape, tables));
  }
  for (Pass& pass : passes) pass.arguments.dtype = pass.arguments.y_dtype = DType::kFloat;
  passes.front().arguments.dtype = context.input_type(0).dtype;
  passes.back().arguments.y_dtype = context.output_type(0).dtype;
  return passes;
}

// What a kernel keeps: its passes, complete but for x and y, and the memory of their tables.
struct ResizeProgram {
  std::vector<ResizeArguments> passes;
  std::shared_ptr<const DeviceTable> positions;
  std::shared_ptr<const DeviceTable> weights;
  int64_t largest = 0;  // elements between two passes

  size_t workspace_bytes() const { return passes.size() < 2 ? 0 : 2 * static_cast<size_t>(largest) * sizeof(float); }
  cudaError_t Launch(const LaunchArgs& args, cudaStream_t stream) const {
    const void* x = args.inputs[0];
    auto* const scratch = reinterpret_cast<float*>(args.workspace);
    for (size_t i = 0; i < passes.size(); ++i) {
      ResizeArguments a = passes[i];
      a.x = x;
      a.y = i + 1 == passes.size() ? static_cast<void*>(args.outputs[0])
                                   : scratch + static_cast<int64_t>(i % 2) * largest;
      const cudaError_t error = LaunchResize(a, stream);
      if (error != cudaSuccess) return error;
      x = a.y;
    }
    return cudaSuccess;
  }
};

StatusOr<ResizeProgram> ProgramOf(const KernelContext& context, const CudaContext& cuda,
                                  const std::vector<AxisTaps>& taps) {
  Tables tables;
  const std::vector<Pass> passes = PassesOf(context, taps, tables);
  ResizeProgram program;
  ASSIGN_OR_RETURN(program.positions, DeviceTable::Create(cuda, std::as_bytes(std::span(tables.positions))));
  ASSIGN_OR_RETURN(program.weights, DeviceTable::Create(cuda, std::as_bytes(std::span(tables.weights))));
  const auto* const positions = reinterpret_cast<const int64_t*>(program.positions->data());
  const auto* const weights = reinterpret_cast<const float*>(program.weights->data());
  for (const Pass& pass : passes) {
    ResizeArguments& a = program.passes.emplace_back(pass.arguments);
    for (size_t n = 0; n < pass.places.size(); ++n) {
      a.axis[n].begin = positions + pass.places[n].begin;
      a.axis[n].offset = positions + pass.places[n].offset;
      a.axis[n].weight = weights + pass.places[n].weight;
    }
    program.largest = std::max(program.largest, a.count);
  }
  return program;
}

StatusOr<std::unique_ptr<Kernel>> MakeCopy(const KernelContext& context) {
  const size_t bytes = context.output_type(0).bytes();
  return MakeLaunchKernel(context, [bytes](const LaunchArgs& args, cudaStream_t stream) {
    return cudaMemcpyAsync(args.outputs[0], args.inputs[0], bytes, cudaMemcpyDeviceToDevice, stream);
  });
}

// The gradient of what was resized to nothing.
StatusOr<std::unique_ptr<Kernel>> MakeZeros(const KernelContext& context) {
  const TensorType& type = context.output_type(0);
  return MakeLaunchKernel(
      context, [count = type.elements(), bytes = SizeOf(type.dtype)](const LaunchArgs& args, cudaStream_t stream) {
        return LaunchFill(args.outputs[0], 0, count, bytes, stream);
      });
}

StatusOr<std::unique_ptr<Kernel>> Make(const KernelContext& context, const CudaContext& cuda,
                                       const StatusOr<std::vector<AxisTaps>>& taps) {
  if (!taps.ok()) return taps.status();
  if (!IsDeviceFloat(context.input_type(0).dtype)) return UnsupportedTypes(context);
  if (context.output_type(0).elements() == 0) return MakeNoKernel(context);
  if (context.input_type(0).elements() == 0) return MakeZeros(context);
  if (taps->empty()) return MakeCopy(context);
  ASSIGN_OR_RETURN(const ResizeProgram program, ProgramOf(context, cuda, *taps));
  const size_t workspace = program.workspace_bytes();
  return MakeLaunchKernel(
      context, [program](const LaunchArgs& args, cudaStream_t stream) { return program.Launch(args, stream); },
      workspace);
}

}  // namespace

void AddResizeOps(KernelRegistry& registry, const CudaContext& cuda) {
  registry.Add("Resize", [&cuda](const KernelContext& c) { return Make(c, cuda, ResizeTapsOf(c.node)); });
  registry.Add("onnxtrain.ResizeGrad",
               [&cuda](const KernelContext& c) { return Make(c, cuda, ResizeGradTapsOf(c.node)); });
}

}  // namespace onnxtrain
