// SPDX-License-Identifier: Apache-2.0
// CumSum, and the gradient of ReduceProd, which is a product of what lies before and what lies behind.
#include "graph/op_registry.h"
#include "runtime/cpu/kernels/all_kernels.h"
#include "runtime/cpu/kernels/axis_lines.h"
#include "runtime/cpu/kernels/element_types.h"
#include "runtime/cpu/kernels/reduction_plan.h"
#include "runtime/cpu/pieces.h"

namespace onnxtrain {
namespace {

template <typename T>
class CumSumKernel : public Kernel {
 public:
  CumSumKernel(const KernelContext& context, int64_t axis)
      : lines_(context.input_type(0).shape, axis),
        exclusive_(context.node.attributes().Int("exclusive", 0) != 0),
        reverse_(context.node.attributes().Int("reverse", 0) != 0),
        threads_(context.threads) {}

  Status Launch(const LaunchArgs& args) override {
    const T* x = args.input<T>(0);
    T* y = args.output<T>(0);
    ParallelFor(threads_, lines_.count, std::max<int64_t>(1, kFunctionGrain / std::max<int64_t>(lines_.length, 1)),
                [&](int64_t begin, int64_t end) {
                  for (int64_t i = begin; i < end; ++i) Line(x + lines_.Start(i), y + lines_.Start(i));
                });
    return OkStatus();
  }

 private:
  void Line(const T* x, T* y) const {
    std::conditional_t<std::is_floating_point_v<T>, double, uint64_t> sum = 0;
    for (int64_t i = 0; i < lines_.length; ++i) {
      const int64_t at = (reverse_ ? lines_.length - 1 - i : i) * lines_.step;
      const auto before = sum;
      sum += static_cast<decltype(sum)>(x[at]);
      y[at] = static_cast<T>(exclusive_ ? before : sum);
    }
  }

  AxisLines lines_;
  bool exclusive_;
  bool reverse_;
  int threads_;
};

StatusOr<std::unique_ptr<Kernel>> MakeCumSum(const KernelContext& context) {
  const Tensor* axis = context.node.input(1)->constant();
  if (axis == nullptr) {
    return InvalidModelError("the axis of " + context.node.Describe() + " must be a constant");
  }
  using Types = TypeList<float, double, int32_t, int64_t>;
  return ForElementType(Types(), context.input_type(0).dtype, context, [&](auto tag) -> std::unique_ptr<Kernel> {
    return std::make_unique<CumSumKernel<typename decltype(tag)::type>>(context, axis->IntAt(0));
  });
}

// dx_i = dy * product of all x but x_i: exact for any number of zeros, without division.
template <typename T>
class ReduceProdGradKernel : public Kernel {
 public:
  explicit ReduceProdGradKernel(const KernelContext& context)
      : plan_(context.input_type(0).shape, context.node.attributes().Ints("axes")), threads_(context.threads) {}

  Status Launch(const LaunchArgs& args) override {
    const T* x = args.input<T>(0);
    const T* dy = args.input<T>(1);
    T* dx = args.output<T>(0);
    const int64_t outputs = plan_.kept.count() * Columns();
    ParallelFor(threads_, outputs, std::max<int64_t>(1, kLibraryGrain / std::max<int64_t>(plan_.reduced_count, 1)),
                [&](int64_t begin, int64_t end) {
                  for (int64_t i = begin; i < end; ++i) {
                    const int64_t start = plan_.kept.Offset(i / Columns()) + i % Columns();
                    One(x + start, dy[i], dx + start);
                  }
                });
    return OkStatus();
  }

 private:
  int64_t Columns() const { return plan_.inner_reduced ? 1 : plan_.inner; }
  int64_t OffsetOf(int64_t i) const {
    if (!plan_.inner_reduced) return plan_.reduced.Offset(i);
    return plan_.reduced.Offset(i / plan_.inner) + i % plan_.inner;
  }

  void One(const T* x, T dy, T* dx) const {
    double before = static_cast<double>(dy);
    for (int64_t i = 0; i < plan_.reduced_count; ++i) {
      dx[OffsetOf(i)] = static_cast<T>(before);
      before *= static_cast<double>(x[OffsetOf(i)]);
    }
    double behind = 1;
    for (int64_t i = plan_.reduced_count; i-- > 0;) {
      dx[OffsetOf(i)] = static_cast<T>(static_cast<double>(dx[OffsetOf(i)]) * behind);
      behind *= static_cast<double>(x[OffsetOf(i)]);
    }
  }

  ReductionPlan plan_;
  int threads_;
};

StatusOr<std::unique_ptr<Kernel>> MakeReduceProdGrad(const KernelContext& context) {
  return ForElementType(FloatTypes(), context.input_type(0).dtype, context, [&](auto tag) -> std::unique_ptr<Kernel> {
    return std::make_unique<ReduceProdGradKernel<typename decltype(tag)::type>>(context);
  });
}

}  // namespace

void AddCumulativeKernels(KernelRegistry& registry) {
  registry.Add("CumSum", MakeCumSum);
  registry.Add("onnxtrain.ReduceProdGrad", MakeReduceProdGrad);
}

}  // namespace onnxtrain
