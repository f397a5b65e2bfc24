// SPDX-License-Identifier: Apache-2.0
// Pad in all modes, negative pads included, and the adjoint of the modes that repeat elements.
#include <string>

#include "graph/ops/op_rules.h"
#include "runtime/cpu/kernels/all_kernels.h"
#include "runtime/cpu/kernels/element_types.h"
#include "runtime/cpu/kernels/strided_copy.h"

namespace onnxtrain {
namespace {

// Elements before the first of each axis; negative where elements are cropped.
StatusOr<std::vector<int64_t>> PadsBefore(const Node& node, int64_t rank) {
  ASSIGN_OR_RETURN(const std::vector<int64_t> pads, ConstantInts(node, 1));
  std::vector<int64_t> axes;
  if (node.input(3) != nullptr) {
    ASSIGN_OR_RETURN(axes, ConstantInts(node, 3));
  } else {
    for (int64_t axis = 0; axis < rank; ++axis) axes.push_back(axis);
  }
  if (pads.size() != 2 * axes.size()) {
    return InvalidModelError("pads of " + node.Describe() + " must be two numbers an axis");
  }
  std::vector<int64_t> before(static_cast<size_t>(rank), 0);
  for (size_t i = 0; i < axes.size(); ++i) before[static_cast<size_t>(NonNegativeAxis(axes[i], rank))] = pads[i];
  return before;
}

int64_t Modulo(int64_t a, int64_t b) { return (a % b + b) % b; }

// Which element of an axis of `size` stands at `position`, counted from its first element.
int64_t SourceOf(int64_t position, int64_t size, const std::string& mode) {
  if (mode == "edge") return std::clamp<int64_t>(position, 0, size - 1);
  if (mode == "wrap") return Modulo(position, size);
  if (size == 1) return 0;
  const int64_t folded = Modulo(position, 2 * size - 2);  // reflect
  return folded < size ? folded : 2 * size - 2 - folded;
}

// For every axis of the padded tensor the place of its elements in the inner one, in elements.
StatusOr<std::vector<std::vector<int64_t>>> SourceTables(const Node& node, const Shape& inner, const Shape& padded) {
  const std::string mode = node.attributes().String("mode", "constant");
  if (mode != "edge" && mode != "wrap" && mode != "reflect") {
    return InvalidModelError("mode '" + mode + "' of " + node.Describe() +
                             "; constant, edge, reflect and wrap are defined");
  }
  ASSIGN_OR_RETURN(const std::vector<int64_t> before, PadsBefore(node, static_cast<int64_t>(inner.size())));
  const Strides strides = DenseStrides(inner);
  std::vector<std::vector<int64_t>> tables(inner.size());
  for (size_t axis = 0; axis < inner.size(); ++axis) {
    if (inner[axis] == 0 && padded[axis] > 0) {
      return InvalidModelError(node.Describe() + " cannot repeat elements of an empty axis");
    }
    for (int64_t i = 0; i < padded[axis]; ++i) {
      tables[axis].push_back(SourceOf(i - before[axis], inner[axis], mode) * strides[axis]);
    }
  }
  return tables;
}

// body(padded index, inner index) for every element of the padded tensor, in order.
template <typename Body>
void ForEachSource(const std::vector<std::vector<int64_t>>& tables, int64_t count, const Body& body) {
  if (tables.empty()) return body(int64_t{0}, int64_t{0});
  const std::vector<int64_t>& last = tables.back();
  const auto length = static_cast<int64_t>(last.size());
  for (int64_t start = 0; start < count; start += length) {
    int64_t offset = 0;
    int64_t row = start / length;
    for (size_t axis = tables.size() - 1; axis-- > 0;) {
      const auto size = static_cast<int64_t>(tables[axis].size());
      offset += tables[axis][static_cast<size_t>(row % size)];
      row /= size;
    }
    for (int64_t i = 0; i < length; ++i) body(start + i, offset + last[static_cast<size_t>(i)]);
  }
}

template <typename Bits>
class RepeatPadKernel : public Kernel {
 public:
  RepeatPadKernel(const KernelContext& context, std::vector<std::vector<int64_t>> tables)
      : tables_(std::move(tables)), count_(context.output_type(0).elements()) {}

  Status Launch(const LaunchArgs& args) override {
    const Bits* x = args.input<Bits>(0);
    Bits* y = args.output<Bits>(0);
    ForEachSource(tables_, count_, [&](int64_t padded, int64_t inner) { y[padded] = x[inner]; });
    return OkStatus();
  }

 private:
  std::vector<std::vector<int64_t>> tables_;
  int64_t count_;
};

template <typename T>
class PadGradKernel : public Kernel {
 public:
  PadGradKernel(const KernelContext& context, std::vector<std::vector<int64_t>> tables)
      : tables_(std::move(tables)),
        padded_count_(context.input_type(0).elements()),
        inner_count_(context.output_type(0).elements()),
        threads_(context.threads) {}

  Status Launch(const LaunchArgs& args) override {
    const T* dy = args.input<T>(0);
    T* dx = args.output<T>(0);
    FillParallel(threads_, dx, inner_count_, T(0));
    ForEachSource(tables_, padded_count_, [&](int64_t padded, int64_t inner) { dx[inner] += dy[padded]; });
    return OkStatus();
  }

 private:
  std::vector<std::vector<int64_t>> tables_;
  int64_t padded_count_;
  int64_t inner_count_;
  int threads_;
};

// The whole is filled with the value of input 2, then what both tensors have in common is copied.
template <typename Bits>
class ConstantPadKernel : public Kernel {
 public:
  ConstantPadKernel(const KernelContext& context, const std::vector<int64_t>& before)
      : count_(context.output_type(0).elements()), threads_(context.threads) {
    const Shape& x = context.input_type(0).shape;
    const Shape& y = context.output_type(0).shape;
    const Strides from = DenseStrides(x);
    const Strides to = DenseStrides(y);
    Shape common(x.size());
    std::array<int64_t, 2> start = {};
    for (size_t axis = 0; axis < x.size(); ++axis) {
      const int64_t first = std::max<int64_t>(0, -before[axis]);  // of x
      const int64_t last = std::min(x[axis], y[axis] - before[axis]);
      common[axis] = std::max<int64_t>(0, last - first);
      start[0] += first * from[axis];
      start[1] += (first + before[axis]) * to[axis];
    }
    rows_ = StridedRows<2>(common, {from, to}, start);
  }

  Status Launch(const LaunchArgs& args) override {
    const Bits* value = args.input<Bits>(2);
    FillParallel(threads_, args.output<Bits>(0), count_, value == nullptr ? Bits(0) : *value);
    CopyStrided(rows_, threads_, args.input<Bits>(0), args.output<Bits>(0));
    return OkStatus();
  }

 private:
  StridedRows<2> rows_;
  int64_t count_;
  int threads_;
};

StatusOr<std::unique_ptr<Kernel>> MakePad(const KernelContext& context) {
  const TensorType& x = context.input_type(0);
  if (context.node.attributes().String("mode", "constant") == "constant") {
    ASSIGN_OR_RETURN(const std::vector<int64_t> before, PadsBefore(context.node, x.rank()));
    return ForElementSize(x.dtype, context, [&](auto tag) {
      return new ConstantPadKernel<typename decltype(tag)::type>(context, before);
    });
  }
  ASSIGN_OR_RETURN(auto tables, SourceTables(context.node, x.shape, context.output_type(0).shape));
  return ForElementSize(x.dtype, context,
                        [&](auto tag) { return new RepeatPadKernel<typename decltype(tag)::type>(context, tables); });
}

StatusOr<std::unique_ptr<Kernel>> MakePadGrad(const KernelContext& context) {
  ASSIGN_OR_RETURN(auto tables, SourceTables(context.node, context.output_type(0).shape, context.input_type(0).shape));
  return ForElementType(FloatTypes(), context.input_type(0).dtype, context, [&](auto tag) -> std::unique_ptr<Kernel> {
    return std::make_unique<PadGradKernel<typename decltype(tag)::type>>(context, tables);
  });
}

}  // namespace

void AddPadKernels(KernelRegistry& registry) {
  registry.Add("Pad", MakePad);
  registry.Add("onnxtrain.PadGrad", MakePadGrad);
}

}  // namespace onnxtrain
