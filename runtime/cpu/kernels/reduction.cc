// SPDX-License-Identifier: Apache-2.0
// Reduce*: vector loops for sums, norms and extrema of floats, a plain fold for products, LogSumExp and integers.
#include <cmath>
#include <limits>
#include <string>

#include "graph/ops/reduction_axes.h"
#include "runtime/cpu/isa/reduction_loops.h"
#include "runtime/cpu/kernels/all_kernels.h"
#include "runtime/cpu/kernels/element_types.h"
#include "runtime/cpu/kernels/reduction_plan.h"
#include "runtime/cpu/pieces.h"

namespace onnxtrain {
namespace {

// What becomes of an accumulated number.
enum class Finish : uint8_t { kNone, kMean, kSqrt, kLog };

struct FloatReduction {
  const char* op;
  Accumulation accumulation;
  Finish finish;
};

constexpr FloatReduction kFloatReductions[] = {
    {"ReduceSum", Accumulation::kSum, Finish::kNone},
    {"ReduceMean", Accumulation::kSum, Finish::kMean},
    {"ReduceSumSquare", Accumulation::kSumSquare, Finish::kNone},
    {"ReduceL1", Accumulation::kSumAbs, Finish::kNone},
    {"ReduceL2", Accumulation::kSumSquare, Finish::kSqrt},
    {"ReduceLogSum", Accumulation::kSum, Finish::kLog},
    {"ReduceMax", Accumulation::kMax, Finish::kNone},
    {"ReduceMin", Accumulation::kMin, Finish::kNone},
};

double Combine(Accumulation accumulation, double a, double b) {
  switch (accumulation) {
    case Accumulation::kMax:
      return a > b || a != a ? a : b;
    case Accumulation::kMin:
      return a < b || a != a ? a : b;
    default:
      return a + b;
  }
}

double StartOf(Accumulation accumulation) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  return accumulation == Accumulation::kMax ? -kInfinity : accumulation == Accumulation::kMin ? kInfinity : 0;
}

template <typename T>
ReductionLoops<T> LoopsOf(Accumulation accumulation) {
  if constexpr (std::is_same_v<T, float>) {
    return ONNXTRAIN_SELECT_ISA(FloatReductionLoops)(accumulation);
  } else {
    return ONNXTRAIN_SELECT_ISA(DoubleReductionLoops)(accumulation);
  }
}

// Output block o (one number, or `inner` columns) is reduced in `parts_` parts whose borders follow from the shape,
// each into its own doubles of the workspace; the parts are then combined in order. So the number of threads changes
// nothing.
template <typename T>
class FloatReductionKernel : public Kernel {
 public:
  FloatReductionKernel(const KernelContext& context, const FloatReduction& reduction, ReductionPlan plan)
      : plan_(std::move(plan)),
        loops_(LoopsOf<T>(reduction.accumulation)),
        accumulation_(reduction.accumulation),
        finish_(reduction.finish),
        start_(StartOf(reduction.accumulation)),
        threads_(context.threads) {
    blocks_ = plan_.kept.count();
    width_ = plan_.inner_reduced ? 1 : plan_.inner;
    // Pieces of work of about 32768 elements; more parts than blocks only where blocks alone are too few.
    units_ = plan_.inner_reduced ? plan_.reduced.count() * RowPieces() : plan_.reduced.count();
    const int64_t per_block = plan_.reduced.count() * plan_.inner;
    const int64_t wanted = blocks_ >= kEnoughBlocks ? 1 : per_block / kPieceElements;
    parts_ = std::clamp<int64_t>(wanted, 1, std::clamp<int64_t>(units_, 1, kMaxParts));
  }

  size_t workspace_bytes() const override { return static_cast<size_t>(blocks_ * parts_ * width_) * sizeof(double); }

  Status Launch(const LaunchArgs& args) override {
    const T* x = args.input<T>(0);
    T* y = args.output<T>(0);
    auto* sums = reinterpret_cast<double*>(args.workspace);
    const int64_t per_part = std::max<int64_t>(1, plan_.reduced.count() * plan_.inner / parts_);
    ParallelFor(threads_, blocks_ * parts_, std::max<int64_t>(1, kMoveGrain / per_part),
                [&](int64_t begin, int64_t end) {
                  for (int64_t i = begin; i < end; ++i) Part(x, i / parts_, i % parts_, sums + i * width_);
                });
    ParallelFor(threads_, blocks_, std::max<int64_t>(1, kFunctionGrain / (parts_ * std::max<int64_t>(width_, 1))),
                [&](int64_t begin, int64_t end) {
                  for (int64_t block = begin; block < end; ++block) Write(sums + block * parts_ * width_, y, block);
                });
    return OkStatus();
  }

 private:
  static constexpr int64_t kPieceElements = 32768;
  static constexpr int64_t kEnoughBlocks = 64;
  static constexpr int64_t kMaxParts = 64;
  static constexpr int64_t kRowPiece = 16384;  // a long row is cut here

  int64_t RowPieces() const { return std::max<int64_t>(1, (plan_.inner + kRowPiece - 1) / kRowPiece); }

  void Part(const T* x, int64_t block, int64_t part, double* sums) const {
    const int64_t begin = units_ * part / parts_;
    const int64_t end = units_ * (part + 1) / parts_;
    x += plan_.kept.Offset(block);
    std::fill_n(sums, width_, start_);
    if (plan_.inner_reduced) {
      *sums = Rows(x, begin, end);
    } else {
      Columns(x, begin, end, sums);
    }
  }

  double Rows(const T* x, int64_t begin, int64_t end) const {
    const int64_t pieces = RowPieces();
    double total = start_;
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t first = unit % pieces * kRowPiece;
      const int64_t length = std::min(kRowPiece, plan_.inner - first);
      const T* row = x + plan_.reduced.Offset(unit / pieces) + first;
      total = Combine(accumulation_, total, loops_.row(row, length));
    }
    return total;
  }

  // Rows a fixed stride apart go into one call.
  void Columns(const T* x, int64_t begin, int64_t end, double* sums) const {
    const int64_t run = plan_.reduced.last_size();
    for (int64_t row = begin; row < end;) {
      const int64_t length = std::min(run - row % run, end - row);
      loops_.columns(x + plan_.reduced.Offset(row), plan_.reduced.last_stride(), length, plan_.inner, sums);
      row += length;
    }
  }

  void Write(double* sums, T* y, int64_t block) const {
    for (int64_t part = 1; part < parts_; ++part) {
      const double* other = sums + part * width_;
      for (int64_t c = 0; c < width_; ++c) sums[c] = Combine(accumulation_, sums[c], other[c]);
    }
    for (int64_t c = 0; c < width_; ++c) y[block * width_ + c] = static_cast<T>(Finished(sums[c]));
  }

  double Finished(double sum) const {
    switch (finish_) {
      case Finish::kMean:
        return sum / static_cast<double>(plan_.reduced_count);
      case Finish::kSqrt:
        return std::sqrt(sum);
      case Finish::kLog:
        return std::log(sum);
      case Finish::kNone:
        break;
    }
    return sum;
  }

  ReductionPlan plan_;
  ReductionLoops<T> loops_;
  Accumulation accumulation_;
  Finish finish_;
  double start_;
  int threads_;
  int64_t blocks_;
  int64_t width_;
  int64_t units_;
  int64_t parts_;
};

// Accumulators of the plain fold. Integers wrap around; their means truncate towards zero.
template <typename T>
struct Fold {
  using Sum = std::conditional_t<std::is_floating_point_v<T>, double, uint64_t>;

  struct Add {
    Sum sum = 0;
    void Take(T x) { sum += static_cast<Sum>(x); }
    T Result(int64_t) const { return static_cast<T>(sum); }
  };
  struct Mean : Add {
    T Result(int64_t count) const {
      if constexpr (std::is_floating_point_v<T>) return static_cast<T>(this->sum / static_cast<double>(count));
      if (count == 0) return T(0);
      if constexpr (std::is_signed_v<T>) return static_cast<T>(static_cast<int64_t>(this->sum) / count);
      return static_cast<T>(this->sum / static_cast<uint64_t>(count));
    }
  };
  struct SumSquare : Add {
    void Take(T x) { this->sum += static_cast<Sum>(x) * static_cast<Sum>(x); }
  };
  struct L1 : Add {
    void Take(T x) { this->sum += x < T(0) ? Sum(0) - static_cast<Sum>(x) : static_cast<Sum>(x); }
  };
  struct L2 : SumSquare {
    T Result(int64_t) const { return static_cast<T>(std::sqrt(static_cast<double>(this->sum))); }
  };
  struct LogSum : Add {
    T Result(int64_t) const { return static_cast<T>(std::log(static_cast<double>(this->sum))); }
  };
  struct Product {
    Sum product = 1;
    void Take(T x) { product *= static_cast<Sum>(x); }
    T Result(int64_t) const { return static_cast<T>(product); }
  };
  struct Max {
    T largest = std::numeric_limits<T>::lowest();
    void Take(T x) { largest = x > largest ? x : largest; }
    T Result(int64_t) const { return largest; }
  };
  struct Min {
    T smallest = std::numeric_limits<T>::max();
    void Take(T x) { smallest = x < smallest ? x : smallest; }
    T Result(int64_t) const { return smallest; }
  };
  // Terms are relative to the largest so far, so that none overflows.
  struct LogSumExp {
    double largest = -std::numeric_limits<double>::infinity();
    double sum = 0;
    void Take(T value) {
      const double x = static_cast<double>(value);
      if (x == -std::numeric_limits<double>::infinity()) return;
      if (x > largest) {
        sum = sum * std::exp(largest - x) + 1;
        largest = x;
      } else {
        sum += x == largest ? 1 : std::exp(x - largest);
      }
    }
    T Result(int64_t) const { return static_cast<T>(largest + std::log(sum)); }
  };
};

template <typename T, typename Accumulator>
class FoldKernel : public Kernel {
 public:
  FoldKernel(const KernelContext& context, ReductionPlan plan) : plan_(std::move(plan)), threads_(context.threads) {}

  Status Launch(const LaunchArgs& args) override {
    const T* x = args.input<T>(0);
    T* y = args.output<T>(0);
    const int64_t outputs = plan_.kept.count() * (plan_.inner_reduced ? 1 : plan_.inner);
    ParallelFor(threads_, outputs, std::max<int64_t>(1, kLibraryGrain / std::max<int64_t>(plan_.reduced_count, 1)),
                [&](int64_t begin, int64_t end) {
                  for (int64_t i = begin; i < end; ++i) y[i] = One(x, i);
                });
    return OkStatus();
  }

 private:
  T One(const T* x, int64_t output) const {
    const int64_t columns = plan_.inner_reduced ? 1 : plan_.inner;
    const int64_t length = plan_.inner_reduced ? plan_.inner : 1;
    x += plan_.kept.Offset(output / columns) + output % columns;
    Accumulator accumulator;
    for (int64_t row = 0; row < plan_.reduced.count(); ++row) {
      const T* from = x + plan_.reduced.Offset(row);
      for (int64_t i = 0; i < length; ++i) accumulator.Take(from[i]);
    }
    return accumulator.Result(plan_.reduced_count);
  }

  ReductionPlan plan_;
  int threads_;
};

template <typename T>
std::unique_ptr<Kernel> MakeFold(const KernelContext& context, const ReductionPlan& plan) {
  using F = Fold<T>;
  const std::string& op = context.node.op();
  if (op == "ReduceProd") return std::make_unique<FoldKernel<T, typename F::Product>>(context, plan);
  if (op == "ReduceLogSumExp") return std::make_unique<FoldKernel<T, typename F::LogSumExp>>(context, plan);
  if constexpr (std::is_integral_v<T>) {
    if (op == "ReduceSum") return std::make_unique<FoldKernel<T, typename F::Add>>(context, plan);
    if (op == "ReduceMean") return std::make_unique<FoldKernel<T, typename F::Mean>>(context, plan);
    if (op == "ReduceSumSquare") return std::make_unique<FoldKernel<T, typename F::SumSquare>>(context, plan);
    if (op == "ReduceL1") return std::make_unique<FoldKernel<T, typename F::L1>>(context, plan);
    if (op == "ReduceL2") return std::make_unique<FoldKernel<T, typename F::L2>>(context, plan);
    if (op == "ReduceLogSum") return std::make_unique<FoldKernel<T, typename F::LogSum>>(context, plan);
    if (op == "ReduceMax") return std::make_unique<FoldKernel<T, typename F::Max>>(context, plan);
    if (op == "ReduceMin") return std::make_unique<FoldKernel<T, typename F::Min>>(context, plan);
  }
  return nullptr;
}

// Max is "any", Min is "all".
StatusOr<std::unique_ptr<Kernel>> MakeBool(const KernelContext& context, const ReductionPlan& plan) {
  using F = Fold<bool>;
  if (context.node.op() == "ReduceMax") {
    return std::unique_ptr<Kernel>(new FoldKernel<bool, typename F::Max>(context, plan));
  }
  if (context.node.op() == "ReduceMin") {
    return std::unique_ptr<Kernel>(new FoldKernel<bool, typename F::Min>(context, plan));
  }
  return UnsupportedTypes(context);
}

StatusOr<std::unique_ptr<Kernel>> MakePlain(const KernelContext& context) {
  ASSIGN_OR_RETURN(const std::vector<int64_t> axes, ReducedAxes(context.node));
  const ReductionPlan plan(context.input_type(0).shape, axes);
  if (context.input_type(0).dtype == DType::kBool) return MakeBool(context, plan);
  return ForElementType(NumberTypes(), context.input_type(0).dtype, context,
                        [&](auto tag) { return MakeFold<typename decltype(tag)::type>(context, plan); });
}

StatusOr<std::unique_ptr<Kernel>> MakeFloat(const KernelContext& context, const FloatReduction& reduction) {
  if (!IsFloating(context.input_type(0).dtype)) return MakePlain(context);
  ASSIGN_OR_RETURN(const std::vector<int64_t> axes, ReducedAxes(context.node));
  const ReductionPlan plan(context.input_type(0).shape, axes);
  return ForElementType(FloatTypes(), context.input_type(0).dtype, context, [&](auto tag) -> std::unique_ptr<Kernel> {
    return std::make_unique<FloatReductionKernel<typename decltype(tag)::type>>(context, reduction, plan);
  });
}

}  // namespace

void AddReductionKernels(KernelRegistry& registry) {
  for (const FloatReduction& reduction : kFloatReductions) {
    registry.Add(reduction.op, [reduction](const KernelContext& context) { return MakeFloat(context, reduction); });
  }
  for (const char* op : {"ReduceProd", "ReduceLogSumExp"}) registry.Add(op, MakePlain);
}

}  // namespace onnxtrain
