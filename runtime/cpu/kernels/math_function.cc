// SPDX-License-Identifier: Apache-2.0
// Functions of one number that are not activations; Clip. Integers where shape arithmetic needs them.
#include <cmath>
#include <limits>

#include "runtime/cpu/kernels/all_kernels.h"
#include "runtime/cpu/kernels/element_types.h"
#include "runtime/cpu/kernels/unary_kernel.h"
#include "runtime/cpu/pieces.h"

namespace onnxtrain {
namespace {

struct FunctionEntry {
  const char* op;
  UnaryFunction function;
  int64_t grain;
};

constexpr FunctionEntry kFunctions[] = {
    {"Exp", UnaryFunction::kExp, kFunctionGrain},    {"Log", UnaryFunction::kLog, kFunctionGrain},
    {"Sqrt", UnaryFunction::kSqrt, kFunctionGrain},  {"Reciprocal", UnaryFunction::kReciprocal, kMoveGrain},
    {"Floor", UnaryFunction::kFloor, kMoveGrain},    {"Ceil", UnaryFunction::kCeil, kMoveGrain},
    {"Round", UnaryFunction::kRound, kMoveGrain},    {"Sin", UnaryFunction::kSin, kLibraryGrain},
    {"Cos", UnaryFunction::kCos, kLibraryGrain},     {"Tan", UnaryFunction::kTan, kLibraryGrain},
    {"Asin", UnaryFunction::kAsin, kLibraryGrain},   {"Acos", UnaryFunction::kAcos, kLibraryGrain},
    {"Atan", UnaryFunction::kAtan, kLibraryGrain},   {"Sinh", UnaryFunction::kSinh, kLibraryGrain},
    {"Cosh", UnaryFunction::kCosh, kLibraryGrain},   {"Asinh", UnaryFunction::kAsinh, kLibraryGrain},
    {"Acosh", UnaryFunction::kAcosh, kLibraryGrain}, {"Atanh", UnaryFunction::kAtanh, kLibraryGrain},
};

// A function of one element for which no vector loop is kept.
template <typename T, typename Result, typename Function>
class MapKernel : public Kernel {
 public:
  MapKernel(const KernelContext& context, Function function)
      : count_(context.output_type(0).elements()), threads_(context.threads), function_(function) {}

  Status Launch(const LaunchArgs& args) override {
    const T* x = args.input<T>(0);
    Result* y = args.output<Result>(0);
    ForEachPiece(threads_, count_, kMoveGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) y[i] = function_(x[i]);
    });
    return OkStatus();
  }

 private:
  int64_t count_;
  int threads_;
  Function function_;
};

template <typename T, typename Result, typename Function>
std::unique_ptr<Kernel> MakeMap(const KernelContext& context, Function function) {
  return std::make_unique<MapKernel<T, Result, Function>>(context, function);
}

template <typename T>
using Unsigned = std::make_unsigned_t<T>;

// Neg, Abs and Sign wrap around in integers, as two's complement has it.
StatusOr<std::unique_ptr<Kernel>> MakeInteger(const KernelContext& context, UnaryFunction function) {
  return ForElementType(IntegerTypes(), context.input_type(0).dtype, context, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto negative = [](T x) { return static_cast<T>(Unsigned<T>(0) - static_cast<Unsigned<T>>(x)); };
    if (function == UnaryFunction::kNeg) return MakeMap<T, T>(context, negative);
    if (function == UnaryFunction::kAbs) {
      return MakeMap<T, T>(context, [negative](T x) { return x < T(0) ? negative(x) : x; });
    }
    return MakeMap<T, T>(context, [](T x) { return static_cast<T>((x > T(0)) - (x < T(0))); });
  });
}

KernelFactory SignedFactory(UnaryFunction function) {
  return [function](const KernelContext& context) -> StatusOr<std::unique_ptr<Kernel>> {
    if (IsInteger(context.input_type(0).dtype)) return MakeInteger(context, function);
    return MakeUnaryKernel(context, {function, 0, 0, kMoveGrain});
  };
}

StatusOr<std::unique_ptr<Kernel>> MakeIsNaN(const KernelContext& context) {
  return ForElementType(FloatTypes(), context.input_type(0).dtype, context, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return MakeMap<T, bool>(context, [](T x) { return x != x; });
  });
}

StatusOr<std::unique_ptr<Kernel>> MakeIsInf(const KernelContext& context) {
  const bool negative = context.node.attributes().Int("detect_negative", 1) != 0;
  const bool positive = context.node.attributes().Int("detect_positive", 1) != 0;
  return ForElementType(FloatTypes(), context.input_type(0).dtype, context, [&](auto tag) {
    using T = typename decltype(tag)::type;
    constexpr T kInfinity = std::numeric_limits<T>::infinity();
    return MakeMap<T, bool>(context,
                            [=](T x) { return (positive && x == kInfinity) || (negative && x == -kInfinity); });
  });
}

StatusOr<std::unique_ptr<Kernel>> MakeNot(const KernelContext& context) {
  return ForElementType(TypeList<bool>(), context.input_type(0).dtype, context,
                        [&](auto) { return MakeMap<bool, bool>(context, [](bool x) { return !x; }); });
}

StatusOr<std::unique_ptr<Kernel>> MakeBitwiseNot(const KernelContext& context) {
  return ForElementType(IntegerTypes(), context.input_type(0).dtype, context, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return MakeMap<T, T>(context, [](T x) { return static_cast<T>(~x); });
  });
}

// Bounds are inputs `first_bound` and the next; an omitted one does not limit.
template <typename T>
struct Bounds {
  Bounds(const LaunchArgs& args, size_t first_bound) {
    if (const T* bound = args.input<T>(first_bound)) lower = *bound;
    if (const T* bound = args.input<T>(first_bound + 1)) upper = *bound;
  }
  using Limits = std::numeric_limits<T>;
  T lower = Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
  T upper = Limits::has_infinity ? Limits::infinity() : Limits::max();
};

template <typename T>
class ClipKernel : public Kernel {
 public:
  explicit ClipKernel(const KernelContext& context)
      : count_(context.output_type(0).elements()), threads_(context.threads) {
    if constexpr (std::is_same_v<T, float>) loop_ = ONNXTRAIN_SELECT_ISA(ClipFloat);
    if constexpr (std::is_same_v<T, double>) loop_ = ONNXTRAIN_SELECT_ISA(ClipDouble);
  }

  Status Launch(const LaunchArgs& args) override {
    const Bounds<T> bounds(args, 1);
    const T* x = args.input<T>(0);
    T* y = args.output<T>(0);
    ForEachPiece(threads_, count_, kMoveGrain, [&](int64_t begin, int64_t end) {
      loop_(bounds.lower, bounds.upper, x + begin, y + begin, end - begin);
    });
    return OkStatus();
  }

 private:
  static void Plain(T lower, T upper, const T* x, T* y, int64_t n) {
    for (int64_t i = 0; i < n; ++i) y[i] = std::min(upper, std::max(lower, x[i]));
  }
  void (*loop_)(T, T, const T*, T*, int64_t) = &Plain;
  int64_t count_;
  int threads_;
};

template <typename T>
class ClipGradKernel : public Kernel {
 public:
  explicit ClipGradKernel(const KernelContext& context)
      : count_(context.output_type(0).elements()), threads_(context.threads) {
    if constexpr (std::is_same_v<T, float>) loop_ = ONNXTRAIN_SELECT_ISA(ClipGradFloat);
    if constexpr (std::is_same_v<T, double>) loop_ = ONNXTRAIN_SELECT_ISA(ClipGradDouble);
  }

  Status Launch(const LaunchArgs& args) override {
    Bounds<T> bounds(args, 2);
    const T* x = args.input<T>(0);
    const T* dy = args.input<T>(1);
    T* dx = args.output<T>(0);
    ForEachPiece(threads_, count_, kMoveGrain, [&](int64_t begin, int64_t end) {
      loop_(bounds.lower, bounds.upper, x + begin, dy + begin, dx + begin, end - begin);
    });
    return OkStatus();
  }

 private:
  void (*loop_)(T, T, const T*, const T*, T*, int64_t);
  int64_t count_;
  int threads_;
};

template <template <typename> class K, typename Types>
StatusOr<std::unique_ptr<Kernel>> Make(const KernelContext& context) {
  return ForElementType(Types(), context.input_type(0).dtype, context, [&](auto tag) -> std::unique_ptr<Kernel> {
    return std::make_unique<K<typename decltype(tag)::type>>(context);
  });
}

}  // namespace

void AddMathFunctionKernels(KernelRegistry& registry) {
  for (const FunctionEntry& entry : kFunctions) {
    registry.Add(entry.op, [entry](const KernelContext& context) {
      return MakeUnaryKernel(context, {entry.function, 0, 0, entry.grain});
    });
  }
  registry.Add("Neg", SignedFactory(UnaryFunction::kNeg));
  registry.Add("Abs", SignedFactory(UnaryFunction::kAbs));
  registry.Add("Sign", SignedFactory(UnaryFunction::kSign));
  registry.Add("IsNaN", MakeIsNaN);
  registry.Add("IsInf", MakeIsInf);
  registry.Add("Not", MakeNot);
  registry.Add("BitwiseNot", MakeBitwiseNot);
  registry.Add("Clip", Make<ClipKernel, NumberTypes>);
  registry.Add("onnxtrain.ClipGrad", Make<ClipGradKernel, FloatTypes>);
}

}  // namespace onnxtrain
