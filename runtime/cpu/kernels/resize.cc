// SPDX-License-Identifier: Apache-2.0
// Resize and its gradient: one pass per axis that changes, each a sparse matrix applied along it.
#include "runtime/cpu/kernels/all_kernels.h"
#include "runtime/cpu/kernels/element_types.h"
#include "runtime/cpu/kernels/strided_copy.h"
#include "runtime/resize_taps.h"

namespace onnxtrain {
namespace {

template <typename T>
class AxisPass {
 public:
  // `shape` is that of the input; the axis gets its new size.
  AxisPass(const AxisTaps& taps, Shape& shape)
      : from_(taps.from), to_(taps.to), begin_(taps.begin), index_(taps.index) {
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      if (axis < taps.axis) outer_ *= shape[axis];
      if (axis > taps.axis) inner_ *= shape[axis];
    }
    shape[taps.axis] = to_;
    for (double weight : taps.weight) weight_.push_back(static_cast<T>(weight));
  }

  int64_t elements() const { return outer_ * to_ * inner_; }

  void Run(int threads, const T* x, T* y) const {
    ParallelFor(threads, outer_ * to_, std::max<int64_t>(1, kFunctionGrain / std::max<int64_t>(inner_, 1)),
                [&](int64_t begin, int64_t end) {
                  for (int64_t row = begin; row < end; ++row) {
                    Row(x + row / to_ * from_ * inner_, static_cast<size_t>(row % to_), y + row * inner_);
                  }
                });
  }

 private:
  void Row(const T* x, size_t j, T* y) const {
    const auto first = static_cast<size_t>(begin_[j]);
    const auto last = static_cast<size_t>(begin_[j + 1]);
    if (inner_ == 1) {
      T sum = 0;
      for (size_t t = first; t < last; ++t) sum += weight_[t] * x[index_[t]];
      *y = sum;
      return;
    }
    std::fill_n(y, inner_, T(0));
    for (size_t t = first; t < last; ++t) {
      const T* from = x + index_[t] * inner_;
      const T weight = weight_[t];
      for (int64_t i = 0; i < inner_; ++i) y[i] += weight * from[i];
    }
  }

  int64_t from_;
  int64_t to_;
  int64_t outer_ = 1;
  int64_t inner_ = 1;
  std::vector<int64_t> begin_;
  std::vector<int64_t> index_;
  std::vector<T> weight_;
};

// Passes alternate between two halves of the workspace and end in the output.
template <typename T>
class ResizeKernel : public Kernel {
 public:
  ResizeKernel(const KernelContext& context, const std::vector<AxisTaps>& taps)
      : count_(context.output_type(0).elements()),
        nothing_read_(context.input_type(0).elements() == 0),
        threads_(context.threads) {
    Shape shape = context.input_type(0).shape;
    for (const AxisTaps& one : taps) {
      passes_.emplace_back(one, shape);
      largest_ = std::max(largest_, passes_.back().elements());
    }
  }

  size_t workspace_bytes() const override {
    return passes_.size() < 2 ? 0 : 2 * static_cast<size_t>(largest_) * sizeof(T);
  }

  Status Launch(const LaunchArgs& args) override {
    const T* x = args.input<T>(0);
    T* y = args.output<T>(0);
    if (nothing_read_) FillParallel(threads_, y, count_, T(0));
    if (passes_.empty() && !nothing_read_) CopyParallel(threads_, x, y, count_);
    T* scratch = reinterpret_cast<T*>(args.workspace);
    for (size_t i = 0; i < passes_.size(); ++i) {
      T* to = i + 1 == passes_.size() ? y : scratch + static_cast<int64_t>(i % 2) * largest_;
      passes_[i].Run(threads_, x, to);
      x = to;
    }
    return OkStatus();
  }

 private:
  std::vector<AxisPass<T>> passes_;
  int64_t largest_ = 0;  // elements of the largest intermediate
  int64_t count_;
  bool nothing_read_;  // the gradient of what was resized to nothing
  int threads_;
};

StatusOr<std::unique_ptr<Kernel>> Make(const KernelContext& context, const std::vector<AxisTaps>& taps) {
  return ForElementType(FloatTypes(), context.input_type(0).dtype, context, [&](auto tag) -> std::unique_ptr<Kernel> {
    return std::make_unique<ResizeKernel<typename decltype(tag)::type>>(context, taps);
  });
}

StatusOr<std::unique_ptr<Kernel>> MakeResize(const KernelContext& context) {
  ASSIGN_OR_RETURN(const std::vector<AxisTaps> taps, ResizeTapsOf(context.node));
  return Make(context, taps);
}

StatusOr<std::unique_ptr<Kernel>> MakeResizeGrad(const KernelContext& context) {
  ASSIGN_OR_RETURN(const std::vector<AxisTaps> taps, ResizeGradTapsOf(context.node));
  return Make(context, taps);
}

}  // namespace

void AddResizeKernels(KernelRegistry& registry) {
  registry.Add("Resize", MakeResize);
  registry.Add("onnxtrain.ResizeGrad", MakeResizeGrad);
}

}  // namespace onnxtrain
