// SPDX-License-Identifier: Apache-2.0
#include "runtime/cpu/convolution.h"
#include "runtime/cpu/kernels/all_kernels.h"
#include "runtime/kernel.h"

namespace onnxtrain {
namespace {

// Which arguments of a launch are the convolution's.
class ConvKernel : public Kernel {
 public:
  ConvKernel(std::unique_ptr<Convolution> convolution, bool bias_is_read)
      : convolution_(std::move(convolution)), bias_is_read_(bias_is_read) {}
  size_t workspace_bytes() const override { return convolution_->workspace_bytes(); }
  Status Launch(const LaunchArgs& args) override {
    void* bias = bias_is_read_ ? const_cast<std::byte*>(args.input<std::byte>(2)) : args.output<std::byte>(1);
    return convolution_->Run(args.inputs[0], args.inputs[1], args.outputs[0], bias, args.workspace);
  }

 private:
  const std::unique_ptr<Convolution> convolution_;
  const bool bias_is_read_;
};

StatusOr<ConvShape> ShapeOf(const KernelContext& context, const Shape& x, const Shape& w, const Shape& y) {
  ConvShape shape{x[0], x[1], y[1], context.node.attributes().Int("group", 1), SpatialOf(x), SpatialOf(y), {}};
  StatusOr<Window> window = WindowOf(context.node.attributes(), shape.input, SpatialOf(w));
  if (!window.ok()) return window.status().Prepend(context.node.Describe());
  shape.window = *std::move(window);
  return shape;
}

StatusOr<std::unique_ptr<Kernel>> Make(const KernelContext& context, ConvDirection direction, const Shape& x,
                                       const Shape& w, const Shape& y, bool bias) {
  const DType dtype = context.output_type(0).dtype;
  if (dtype != DType::kFloat && dtype != DType::kDouble && dtype != DType::kBfloat16) return UnsupportedTypes(context);
  ASSIGN_OR_RETURN(const ConvShape shape, ShapeOf(context, x, w, y));
  auto convolution = Convolution::Create(dtype, direction, shape, bias, context.threads);
  if (!convolution.ok()) return convolution.status().Prepend(context.node.Describe());
  return std::unique_ptr<Kernel>(new ConvKernel(*std::move(convolution), direction == ConvDirection::kForward));
}

StatusOr<std::unique_ptr<Kernel>> MakeForward(const KernelContext& context) {
  return Make(context, ConvDirection::kForward, context.input_type(0).shape, context.input_type(1).shape,
              context.output_type(0).shape, context.node.input(2) != nullptr);
}

StatusOr<std::unique_ptr<Kernel>> MakeInputGradient(const KernelContext& context) {
  return Make(context, ConvDirection::kInputGradient, context.output_type(0).shape, context.input_type(1).shape,
              context.input_type(0).shape, false);
}

StatusOr<std::unique_ptr<Kernel>> MakeWeightGradient(const KernelContext& context) {
  return Make(context, ConvDirection::kWeightGradient, context.input_type(1).shape, context.output_type(0).shape,
              context.input_type(0).shape, context.node.output(1) != nullptr);
}

}  // namespace

void AddConvKernels(KernelRegistry& registry) {
  registry.Add("Conv", MakeForward);
  registry.Add("onnxtrain.ConvInputGrad", MakeInputGradient);
  registry.Add("onnxtrain.ConvWeightGrad", MakeWeightGradient);
}

}  // namespace onnxtrain
