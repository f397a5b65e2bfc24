// SPDX-License-Identifier: Apache-2.0
// Comparison, logic and Where.
#include <string>

#include "runtime/cpu/isa/binary_loops.h"
#include "runtime/cpu/kernels/all_kernels.h"
#include "runtime/cpu/kernels/binary_rows.h"
#include "runtime/cpu/kernels/element_types.h"
#include "runtime/cpu/pieces.h"

namespace onnxtrain {
namespace {

template <typename T>
struct Comparisons {
  static bool Equal(T a, T b) { return a == b; }
  static bool Less(T a, T b) { return a < b; }
  static bool LessOrEqual(T a, T b) { return a <= b; }
  static bool Greater(T a, T b) { return a > b; }
  static bool GreaterOrEqual(T a, T b) { return a >= b; }
  static bool And(T a, T b) { return a && b; }
  static bool Or(T a, T b) { return a || b; }
  static bool Xor(T a, T b) { return !a != !b; }
};

template <typename T>
using CompareLoop = void (*)(const T*, int64_t, const T*, int64_t, bool*, int64_t);

template <typename T>
class CompareKernel : public Kernel {
 public:
  CompareKernel(const KernelContext& context, CompareLoop<T> loop)
      : rows_(RowsOf(context.input_type(0).shape, context.input_type(1).shape, context.output_type(0).shape)),
        loop_(loop),
        threads_(context.threads) {}

  Status Launch(const LaunchArgs& args) override {
    RunRows(rows_, threads_, kMoveGrain, args.input<T>(0), args.input<T>(1), args.output<bool>(0), loop_);
    return OkStatus();
  }

 private:
  StridedRows<3> rows_;
  CompareLoop<T> loop_;
  int threads_;
};

template <typename T>
CompareLoop<T> CompareLoopOf(const std::string& op) {
  using F = Comparisons<T>;
  if (op == "Equal") return &PlainLoop<&F::Equal, T, bool>;
  if (op == "Less") return &PlainLoop<&F::Less, T, bool>;
  if (op == "LessOrEqual") return &PlainLoop<&F::LessOrEqual, T, bool>;
  if (op == "Greater") return &PlainLoop<&F::Greater, T, bool>;
  if (op == "GreaterOrEqual") return &PlainLoop<&F::GreaterOrEqual, T, bool>;
  if (op == "And") return &PlainLoop<&F::And, T, bool>;
  if (op == "Or") return &PlainLoop<&F::Or, T, bool>;
  CHECK_WITH(op == "Xor", op);
  return &PlainLoop<&F::Xor, T, bool>;
}

template <typename Types>
StatusOr<std::unique_ptr<Kernel>> MakeCompare(const KernelContext& context) {
  const DType dtype = context.input_type(0).dtype;
  if (context.input_type(1).dtype != dtype) return UnsupportedTypes(context);
  return ForElementType(Types(), dtype, context, [&](auto tag) -> std::unique_ptr<Kernel> {
    using T = typename decltype(tag)::type;
    return std::make_unique<CompareKernel<T>>(context, CompareLoopOf<T>(context.node.op()));
  });
}

template <typename Bits>
SelectLoop<Bits> SelectLoopOf() {
  if constexpr (sizeof(Bits) == 1) return ONNXTRAIN_SELECT_ISA(Select1);
  if constexpr (sizeof(Bits) == 2) return ONNXTRAIN_SELECT_ISA(Select2);
  if constexpr (sizeof(Bits) == 4) return ONNXTRAIN_SELECT_ISA(Select4);
  if constexpr (sizeof(Bits) == 8) return ONNXTRAIN_SELECT_ISA(Select8);
}

template <typename Bits>
class WhereKernel : public Kernel {
 public:
  explicit WhereKernel(const KernelContext& context) : threads_(context.threads) {
    const Shape& y = context.output_type(0).shape;
    rows_ = StridedRows<4>(
        y, {BroadcastStrides(context.input_type(0).shape, y), BroadcastStrides(context.input_type(1).shape, y),
            BroadcastStrides(context.input_type(2).shape, y), DenseStrides(y)});
  }

  Status Launch(const LaunchArgs& args) override {
    const uint8_t* condition = args.input<uint8_t>(0);
    const Bits* a = args.input<Bits>(1);
    const Bits* b = args.input<Bits>(2);
    Bits* y = args.output<Bits>(0);
    const auto& steps = rows_.steps();
    rows_.ForEach(threads_, kMoveGrain, [&](const auto& at, int64_t n) {
      loop_(condition + at[0], steps[0], a + at[1], steps[1], b + at[2], steps[2], y + at[3], n);
    });
    return OkStatus();
  }

 private:
  StridedRows<4> rows_;
  SelectLoop<Bits> loop_ = SelectLoopOf<Bits>();
  int threads_;
};

StatusOr<std::unique_ptr<Kernel>> MakeWhere(const KernelContext& context) {
  return ForElementSize(context.input_type(1).dtype, context,
                        [&](auto tag) { return new WhereKernel<typename decltype(tag)::type>(context); });
}

using ComparedTypes =
    TypeList<float, double, int32_t, int64_t, bool, uint8_t, int8_t, int16_t, uint16_t, uint32_t, uint64_t>;

}  // namespace

void AddComparisonKernels(KernelRegistry& registry) {
  registry.Add("Equal", MakeCompare<ComparedTypes>);
  for (const char* op : {"Less", "LessOrEqual", "Greater", "GreaterOrEqual"}) {
    registry.Add(op, MakeCompare<NumberTypes>);
  }
  for (const char* op : {"And", "Or", "Xor"}) registry.Add(op, MakeCompare<TypeList<bool>>);
  registry.Add("Where", MakeWhere);
}

}  // namespace onnxtrain
