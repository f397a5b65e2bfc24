// SPDX-License-Identifier: Apache-2.0
// What is decided by comparing along an axis: ArgMax, ArgMin, TopK; and OneHot, which undoes ArgMax.
#include <algorithm>
#include <numeric>

#include "graph/ops/op_rules.h"
#include "runtime/cpu/kernels/all_kernels.h"
#include "runtime/cpu/kernels/axis_lines.h"
#include "runtime/cpu/kernels/element_types.h"
#include "runtime/cpu/pieces.h"

namespace onnxtrain {
namespace {

// NaN is larger than every number, as in PyTorch.
template <typename T>
bool Less(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (a != a) return false;
    if (b != b) return true;
  }
  return a < b;
}

template <typename T>
class ArgExtremumKernel : public Kernel {
 public:
  explicit ArgExtremumKernel(const KernelContext& context)
      : lines_(context.input_type(0).shape, context.node.attributes().Int("axis", 0)),
        largest_(context.node.op() == "ArgMax"),
        last_(context.node.attributes().Int("select_last_index", 0) != 0),
        threads_(context.threads) {}

  Status Launch(const LaunchArgs& args) override {
    const T* x = args.input<T>(0);
    int64_t* y = args.output<int64_t>(0);
    ParallelFor(threads_, lines_.count, std::max<int64_t>(1, kFunctionGrain / std::max<int64_t>(lines_.length, 1)),
                [&](int64_t begin, int64_t end) {
                  for (int64_t i = begin; i < end; ++i) y[i] = Best(x + lines_.Start(i));
                });
    return OkStatus();
  }

 private:
  int64_t Best(const T* line) const {
    int64_t best = 0;
    for (int64_t i = 1; i < lines_.length; ++i) {
      const T candidate = line[i * lines_.step];
      const T leader = line[best * lines_.step];
      const bool better = largest_ ? Less(leader, candidate) : Less(candidate, leader);
      const bool worse = largest_ ? Less(candidate, leader) : Less(leader, candidate);
      if (better || (last_ && !worse)) best = i;
    }
    return best;
  }

  AxisLines lines_;
  bool largest_;
  bool last_;
  int threads_;
};

// Equal values keep the order of their indices.
template <typename T>
class TopKKernel : public Kernel {
 public:
  explicit TopKKernel(const KernelContext& context)
      : lines_(context.input_type(0).shape, context.node.attributes().Int("axis", -1)),
        kept_(AxisLines(context.node.output(0) != nullptr ? context.output_type(0).shape : context.output_type(1).shape,
                        context.node.attributes().Int("axis", -1))
                  .length),
        largest_(context.node.attributes().Int("largest", 1) != 0) {}

  size_t workspace_bytes() const override { return static_cast<size_t>(lines_.length) * sizeof(int64_t); }

  Status Launch(const LaunchArgs& args) override {
    const T* x = args.input<T>(0);
    auto* order = reinterpret_cast<int64_t*>(args.workspace);
    for (int64_t i = 0; i < lines_.count; ++i) {
      const T* line = x + lines_.Start(i);
      Sort(line, order);
      const int64_t start = lines_.Start(i, kept_);
      for (int64_t k = 0; k < kept_; ++k) {
        if (T* values = args.output<T>(0)) values[start + k * lines_.step] = line[order[k] * lines_.step];
        if (int64_t* indices = args.output<int64_t>(1)) indices[start + k * lines_.step] = order[k];
      }
    }
    return OkStatus();
  }

 private:
  void Sort(const T* line, int64_t* order) const {
    std::iota(order, order + lines_.length, int64_t{0});
    std::partial_sort(order, order + kept_, order + lines_.length, [&](int64_t a, int64_t b) {
      const T left = line[a * lines_.step];
      const T right = line[b * lines_.step];
      if (Less(left, right)) return !largest_;
      if (Less(right, left)) return largest_;
      return a < b;
    });
  }

  AxisLines lines_;
  int64_t kept_;
  bool largest_;
};

// Along a new axis of `depth`: values[1] at the index, values[0] elsewhere, also where the index is out of range.
template <typename Index, typename Bits>
class OneHotKernel : public Kernel {
 public:
  explicit OneHotKernel(const KernelContext& context)
      : lines_(context.output_type(0).shape, context.node.attributes().Int("axis", -1)) {}

  Status Launch(const LaunchArgs& args) override {
    const Index* indices = args.input<Index>(0);
    const Bits* values = args.input<Bits>(2);
    Bits* y = args.output<Bits>(0);
    std::fill_n(y, lines_.count * lines_.length, values[0]);
    for (int64_t i = 0; i < lines_.count; ++i) {
      int64_t index = static_cast<int64_t>(indices[i]);
      if (index < 0) index += lines_.length;
      if (index >= 0 && index < lines_.length) y[lines_.Start(i) + index * lines_.step] = values[1];
    }
    return OkStatus();
  }

 private:
  AxisLines lines_;
};

template <template <typename> class K>
StatusOr<std::unique_ptr<Kernel>> MakeCompared(const KernelContext& context) {
  return ForElementType(NumberTypes(), context.input_type(0).dtype, context, [&](auto tag) -> std::unique_ptr<Kernel> {
    return std::make_unique<K<typename decltype(tag)::type>>(context);
  });
}

StatusOr<std::unique_ptr<Kernel>> MakeOneHot(const KernelContext& context) {
  using Indices = TypeList<int64_t, int32_t, float, double, uint8_t>;
  if (SizeOf(context.input_type(2).dtype) == 0) return UnsupportedTypes(context);
  return ForElementType(Indices(), context.input_type(0).dtype, context, [&](auto index) {
    return *ForElementSize(context.input_type(2).dtype, context, [&](auto tag) {
      return new OneHotKernel<typename decltype(index)::type, typename decltype(tag)::type>(context);
    });
  });
}

}  // namespace

void AddSortKernels(KernelRegistry& registry) {
  registry.Add("ArgMax", MakeCompared<ArgExtremumKernel>);
  registry.Add("ArgMin", MakeCompared<ArgExtremumKernel>);
  registry.Add("TopK", MakeCompared<TopKKernel>);
  registry.Add("OneHot", MakeOneHot);
}

}  // namespace onnxtrain
