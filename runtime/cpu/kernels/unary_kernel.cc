// SPDX-License-Identifier: Apache-2.0
#include "runtime/cpu/kernels/unary_kernel.h"

#include "runtime/cpu/pieces.h"

namespace onnxtrain {
namespace {

template <typename T>
UnaryLoops<T> LoopsOf(UnaryFunction function) {
  if constexpr (std::is_same_v<T, float>) {
    return ONNXTRAIN_SELECT_ISA(FloatUnaryLoops)(function);
  } else {
    return ONNXTRAIN_SELECT_ISA(DoubleUnaryLoops)(function);
  }
}

template <typename T>
class UnaryKernel : public Kernel {
 public:
  UnaryKernel(const KernelContext& context, const UnaryKernelOptions& options)
      : loop_(LoopsOf<T>(options.function).value),
        scalars_{static_cast<T>(options.alpha), static_cast<T>(options.beta)},
        count_(context.output_type(0).elements()),
        threads_(context.threads),
        grain_(options.grain) {
    CHECK(loop_ != nullptr);
  }

  Status Launch(const LaunchArgs& args) override {
    const T* x = args.input<T>(0);
    T* y = args.output<T>(0);
    ForEachPiece(threads_, count_, grain_,
                 [&](int64_t begin, int64_t end) { loop_(scalars_, x + begin, y + begin, end - begin); });
    return OkStatus();
  }

 private:
  decltype(UnaryLoops<T>::value) loop_;
  math::ActivationScalars<T> scalars_;
  int64_t count_;
  int threads_;
  int64_t grain_;
};

template <typename T>
class UnaryGradientKernel : public Kernel {
 public:
  UnaryGradientKernel(const KernelContext& context, const UnaryKernelOptions& options)
      : loop_(LoopsOf<T>(options.function).gradient),
        scalars_{static_cast<T>(options.alpha), static_cast<T>(options.beta)},
        count_(context.output_type(0).elements()),
        threads_(context.threads),
        grain_(options.grain) {
    CHECK(loop_ != nullptr);
  }

  Status Launch(const LaunchArgs& args) override {
    const T* point = args.input<T>(0);
    const T* dy = args.input<T>(1);
    T* dx = args.output<T>(0);
    ForEachPiece(threads_, count_, grain_, [&](int64_t begin, int64_t end) {
      loop_(scalars_, point + begin, dy + begin, dx + begin, end - begin);
    });
    return OkStatus();
  }

 private:
  decltype(UnaryLoops<T>::gradient) loop_;
  math::ActivationScalars<T> scalars_;
  int64_t count_;
  int threads_;
  int64_t grain_;
};

template <template <typename> class K>
StatusOr<std::unique_ptr<Kernel>> Make(const KernelContext& context, const UnaryKernelOptions& options) {
  switch (context.input_type(0).dtype) {
    case DType::kFloat:
      return std::unique_ptr<Kernel>(new K<float>(context, options));
    case DType::kDouble:
      return std::unique_ptr<Kernel>(new K<double>(context, options));
    default:
      return UnsupportedTypes(context);
  }
}

}  // namespace

StatusOr<std::unique_ptr<Kernel>> MakeUnaryKernel(const KernelContext& context, const UnaryKernelOptions& options) {
  return Make<UnaryKernel>(context, options);
}

StatusOr<std::unique_ptr<Kernel>> MakeUnaryGradientKernel(const KernelContext& context,
                                                          const UnaryKernelOptions& options) {
  if (context.input_type(0) != context.input_type(1)) return UnsupportedTypes(context);
  return Make<UnaryGradientKernel>(context, options);
}

}  // namespace onnxtrain
