// SPDX-License-Identifier: Apache-2.0
// Arithmetic of two or more operands with broadcasting.
#include <cmath>
#include <string>
#include <type_traits>

#include "runtime/cpu/isa/binary_loops.h"
#include "runtime/cpu/kernels/all_kernels.h"
#include "runtime/cpu/kernels/binary_rows.h"
#include "runtime/cpu/kernels/element_types.h"
#include "runtime/cpu/pieces.h"
#include "runtime/cpu/strided_rows.h"
#include "runtime/status_word.h"

namespace onnxtrain {
namespace {

template <typename T>
BinaryLoop<T> LoopOf(BinaryFunction function) {
  if constexpr (std::is_same_v<T, float>) {
    return ONNXTRAIN_SELECT_ISA(FloatBinaryLoop)(function);
  } else {
    return ONNXTRAIN_SELECT_ISA(DoubleBinaryLoop)(function);
  }
}

// Any number of operands, folded from the left into the output: Max, Min, Sum, Mean; two for the rest.
template <typename T>
class FoldKernel : public Kernel {
 public:
  FoldKernel(const KernelContext& context, BinaryLoop<T> loop, int64_t grain, T scale)
      : loop_(loop), scale_(scale), threads_(context.threads), grain_(grain) {
    const Shape& y = context.output_type(0).shape;
    count_ = context.output_type(0).elements();
    const size_t operands = context.node.inputs().size();
    if (operands == 1) return;
    folds_.push_back(RowsOf(context.input_type(0).shape, context.input_type(1).shape, y));
    for (size_t i = 2; i < operands; ++i) folds_.push_back(RowsOf(y, context.input_type(i).shape, y));
  }

  Status Launch(const LaunchArgs& args) override {
    T* y = args.output<T>(0);
    const T* left = args.input<T>(0);
    for (size_t i = 0; i < folds_.size(); ++i) {
      RunRows(folds_[i], threads_, grain_, left, args.input<T>(i + 1), y, loop_);
      left = y;
    }
    if (folds_.empty() && y != left) std::copy_n(left, count_, y);
    if (scale_ != T(1)) {
      ForEachPiece(threads_, count_, grain_, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) y[i] *= scale_;
      });
    }
    return OkStatus();
  }

 private:
  BinaryLoop<T> loop_;
  T scale_;  // of the result: Mean
  int threads_;
  int64_t grain_;
  int64_t count_;
  std::vector<StridedRows<3>> folds_;
};

// Integers wrap around. Division by zero gives 0 and sets the status word; it truncates towards zero.
template <typename T>
struct IntegerFormulas {
  using U = std::make_unsigned_t<T>;
  static T Add(T a, T b) { return static_cast<T>(static_cast<U>(a) + static_cast<U>(b)); }
  static T Sub(T a, T b) { return static_cast<T>(static_cast<U>(a) - static_cast<U>(b)); }
  static T Mul(T a, T b) { return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b)); }
  static T Div(T a, T b) {
    if (b == T(0)) return 0;
    if (std::is_signed_v<T> && b == static_cast<T>(-1)) return Sub(0, a);
    return static_cast<T>(a / b);
  }
  static T Max(T a, T b) { return a > b ? a : b; }
  static T Min(T a, T b) { return a < b ? a : b; }
  // The sign of b, as Python's %.
  static T Mod(T a, T b) {
    const T rest = Fmod(a, b);
    return rest != T(0) && (rest < T(0)) != (b < T(0)) ? static_cast<T>(rest + b) : rest;
  }
  static T Fmod(T a, T b) {
    if (b == T(0) || (std::is_signed_v<T> && b == static_cast<T>(-1))) return 0;
    return static_cast<T>(a % b);
  }
  static T PRelu(T a, T b) { return a > T(0) ? a : Mul(b, a); }
  static T Power(T a, T b) {
    if (b < T(0))
      return a == T(1) ? T(1) : (std::is_signed_v<T> && a == static_cast<T>(-1) ? (b % 2 != 0 ? a : T(1)) : T(0));
    T result = 1;
    for (; b > T(0); b = static_cast<T>(b / 2)) {
      if (b % 2 != 0) result = Mul(result, a);
      a = Mul(a, a);
    }
    return result;
  }
  static T And(T a, T b) { return static_cast<T>(a & b); }
  static T Or(T a, T b) { return static_cast<T>(a | b); }
  static T Xor(T a, T b) { return static_cast<T>(a ^ b); }
  static T ShiftLeft(T a, T b) { return b >= T(sizeof(T) * 8) ? T(0) : static_cast<T>(static_cast<U>(a) << b); }
  static T ShiftRight(T a, T b) { return b >= T(sizeof(T) * 8) ? T(0) : static_cast<T>(static_cast<U>(a) >> b); }
};

// Which integer loop an operator runs.
template <typename T>
BinaryLoop<T> IntegerLoop(const Node& node) {
  using F = IntegerFormulas<T>;
  const std::string& op = node.op();
  if (op == "Add" || op == "Sum") return &PlainLoop<&F::Add, T, T>;
  if (op == "Sub") return &PlainLoop<&F::Sub, T, T>;
  if (op == "Mul") return &PlainLoop<&F::Mul, T, T>;
  if (op == "Div") return &PlainLoop<&F::Div, T, T>;
  if (op == "Max") return &PlainLoop<&F::Max, T, T>;
  if (op == "Min") return &PlainLoop<&F::Min, T, T>;
  if (op == "Pow") return &PlainLoop<&F::Power, T, T>;
  if (op == "PRelu") return &PlainLoop<&F::PRelu, T, T>;
  if (op == "BitwiseAnd") return &PlainLoop<&F::And, T, T>;
  if (op == "BitwiseOr") return &PlainLoop<&F::Or, T, T>;
  if (op == "BitwiseXor") return &PlainLoop<&F::Xor, T, T>;
  if (op == "BitShift") {
    return node.attributes().String("direction", "") == "LEFT" ? &PlainLoop<&F::ShiftLeft, T, T>
                                                               : &PlainLoop<&F::ShiftRight, T, T>;
  }
  CHECK_WITH(op == "Mod", op);
  return node.attributes().Int("fmod", 0) != 0 ? &PlainLoop<&F::Fmod, T, T> : &PlainLoop<&F::Mod, T, T>;
}

// Integer Div and Mod: looks for zeros in the divisor before the work.
template <typename T>
class CheckedFoldKernel : public Kernel {
 public:
  CheckedFoldKernel(const KernelContext& context, BinaryLoop<T> loop)
      : fold_(context, loop, kMoveGrain, T(1)),
        divisors_(context.input_type(1).elements()),
        node_index_(context.node_index) {}

  Status Launch(const LaunchArgs& args) override {
    const T* divisor = args.input<T>(1);
    if (std::find(divisor, divisor + divisors_, T(0)) != divisor + divisors_) {
      SetStatusWord(args.status_word, DeviceFault::kNonFinite, node_index_);
    }
    return fold_.Launch(args);
  }

 private:
  FoldKernel<T> fold_;
  int64_t divisors_;
  int node_index_;
};

bool AllInputsAre(const KernelContext& context, DType dtype) {
  for (size_t i = 0; i < context.node.inputs().size(); ++i) {
    if (context.node.input(i) == nullptr || context.input_type(i).dtype != dtype) return false;
  }
  return context.output_type(0).dtype == dtype;
}

StatusOr<std::unique_ptr<Kernel>> MakeInteger(const KernelContext& context) {
  const bool divides = context.node.op() == "Div" || context.node.op() == "Mod";
  return ForElementType(IntegerTypes(), context.input_type(0).dtype, context, [&](auto tag) -> std::unique_ptr<Kernel> {
    using T = typename decltype(tag)::type;
    const BinaryLoop<T> loop = IntegerLoop<T>(context.node);
    if (divides) return std::make_unique<CheckedFoldKernel<T>>(context, loop);
    return std::make_unique<FoldKernel<T>>(context, loop, kMoveGrain, T(1));
  });
}

StatusOr<std::unique_ptr<Kernel>> MakeFloat(const KernelContext& context, BinaryFunction function, int64_t grain,
                                            double scale) {
  return ForElementType(FloatTypes(), context.input_type(0).dtype, context, [&](auto tag) -> std::unique_ptr<Kernel> {
    using T = typename decltype(tag)::type;
    return std::make_unique<FoldKernel<T>>(context, LoopOf<T>(function), grain, static_cast<T>(scale));
  });
}

KernelFactory ArithmeticFactory(BinaryFunction function, int64_t grain) {
  return [=](const KernelContext& context) -> StatusOr<std::unique_ptr<Kernel>> {
    const DType dtype = context.input_type(0).dtype;
    if (!AllInputsAre(context, dtype)) return UnsupportedTypes(context);
    if (IsInteger(dtype)) return MakeInteger(context);
    return MakeFloat(context, function, grain, 1);
  };
}

// The remainder with the sign of b, as Python's %.
template <typename T>
T FloorMod(T a, T b) {
  const T rest = std::fmod(a, b);
  if (b == T(0) || std::isnan(rest)) return rest;
  if (rest == T(0)) return std::copysign(T(0), b);
  return (rest < T(0)) != (b < T(0)) ? rest + b : rest;
}

StatusOr<std::unique_ptr<Kernel>> MakeMod(const KernelContext& context) {
  const DType dtype = context.input_type(0).dtype;
  if (!AllInputsAre(context, dtype)) return UnsupportedTypes(context);
  if (IsInteger(dtype)) return MakeInteger(context);
  if (context.node.attributes().Int("fmod", 0) != 0) return MakeFloat(context, BinaryFunction::kFmod, kLibraryGrain, 1);
  return ForElementType(FloatTypes(), dtype, context, [&](auto tag) -> std::unique_ptr<Kernel> {
    using T = typename decltype(tag)::type;
    return std::make_unique<FoldKernel<T>>(context, &PlainLoop<&FloorMod<T>, T, T>, kLibraryGrain, T(1));
  });
}

StatusOr<std::unique_ptr<Kernel>> MakeMean(const KernelContext& context) {
  if (!AllInputsAre(context, context.input_type(0).dtype)) return UnsupportedTypes(context);
  return MakeFloat(context, BinaryFunction::kAdd, kMoveGrain, 1.0 / static_cast<double>(context.node.inputs().size()));
}

StatusOr<std::unique_ptr<Kernel>> MakeIntegersOnly(const KernelContext& context) {
  if (!AllInputsAre(context, context.input_type(0).dtype)) return UnsupportedTypes(context);
  return MakeInteger(context);
}

// Pow takes an exponent of any number type: it is read as the base's type; an integer base with a fractional exponent
// is raised in double.
template <typename Base, typename Exponent>
class MixedPowKernel : public Kernel {
 public:
  explicit MixedPowKernel(const KernelContext& context)
      : rows_(RowsOf(context.input_type(0).shape, context.input_type(1).shape, context.output_type(0).shape)),
        threads_(context.threads) {}

  Status Launch(const LaunchArgs& args) override {
    const Base* a = args.input<Base>(0);
    const Exponent* b = args.input<Exponent>(1);
    Base* y = args.output<Base>(0);
    const auto& steps = rows_.steps();
    rows_.ForEach(threads_, kLibraryGrain, [&](const auto& at, int64_t n) {
      for (int64_t i = 0; i < n; ++i) y[at[2] + i] = Power(a[at[0] + i * steps[0]], b[at[1] + i * steps[1]]);
    });
    return OkStatus();
  }

 private:
  static Base Power(Base a, Exponent b) {
    if constexpr (std::is_integral_v<Base> && std::is_integral_v<Exponent>) {
      return IntegerFormulas<Base>::Power(a, static_cast<Base>(b));
    } else if (b == Exponent(2)) {
      return static_cast<Base>(a * a);
    } else {
      return static_cast<Base>(std::pow(static_cast<double>(a), static_cast<double>(b)));
    }
  }

  StridedRows<3> rows_;
  int threads_;
};

StatusOr<std::unique_ptr<Kernel>> MakePow(const KernelContext& context) {
  if (context.input_type(0).dtype == context.input_type(1).dtype) {
    return ArithmeticFactory(BinaryFunction::kPow, kLibraryGrain)(context);
  }
  using Types = TypeList<float, double, int32_t, int64_t, uint32_t, uint64_t>;
  StatusOr<std::unique_ptr<Kernel>> kernel = UnsupportedTypes(context);
  return ForElementType(Types(), context.input_type(0).dtype, context, [&](auto base) {
    using Base = typename decltype(base)::type;
    kernel =
        ForElementType(Types(), context.input_type(1).dtype, context, [&](auto exponent) -> std::unique_ptr<Kernel> {
          return std::make_unique<MixedPowKernel<Base, typename decltype(exponent)::type>>(context);
        });
    return kernel.ok() ? *std::move(kernel) : nullptr;
  });
}

}  // namespace

void AddElementwiseKernels(KernelRegistry& registry) {
  registry.Add("Add", ArithmeticFactory(BinaryFunction::kAdd, kMoveGrain));
  registry.Add("Sub", ArithmeticFactory(BinaryFunction::kSub, kMoveGrain));
  registry.Add("Mul", ArithmeticFactory(BinaryFunction::kMul, kMoveGrain));
  registry.Add("Div", ArithmeticFactory(BinaryFunction::kDiv, kMoveGrain));
  registry.Add("Max", ArithmeticFactory(BinaryFunction::kMax, kMoveGrain));
  registry.Add("Min", ArithmeticFactory(BinaryFunction::kMin, kMoveGrain));
  registry.Add("Sum", ArithmeticFactory(BinaryFunction::kAdd, kMoveGrain));
  registry.Add("Mod", MakeMod);
  registry.Add("PRelu", ArithmeticFactory(BinaryFunction::kPRelu, kMoveGrain));
  registry.Add("Mean", MakeMean);
  registry.Add("Pow", MakePow);
  for (const char* op : {"BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitShift"}) registry.Add(op, MakeIntegersOnly);
}

}  // namespace onnxtrain
