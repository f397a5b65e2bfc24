// SPDX-License-Identifier: Apache-2.0
// Views, and tensors made from shapes and numbers.
#include <cmath>

#include "runtime/cpu/kernels/all_kernels.h"
#include "runtime/cpu/kernels/element_types.h"
#include "runtime/cpu/kernels/strided_copy.h"

namespace onnxtrain {
namespace {

// Reshape and its kin: nothing to do where the planner gave input and output the same bytes.
class ViewKernel : public Kernel {
 public:
  explicit ViewKernel(const KernelContext& context)
      : bytes_(static_cast<int64_t>(context.output_type(0).bytes())), threads_(context.threads) {}

  Status Launch(const LaunchArgs& args) override {
    CopyParallel(threads_, args.input<std::byte>(0), args.output<std::byte>(0), bytes_);
    return OkStatus();
  }

 private:
  int64_t bytes_;
  int threads_;
};

StatusOr<std::unique_ptr<Kernel>> MakeView(const KernelContext& context) {
  if (SizeOf(context.output_type(0).dtype) == 0) return UnsupportedTypes(context);
  return std::unique_ptr<Kernel>(new ViewKernel(context));
}

// Numbers that are known at creation: Shape, Size.
class KnownIntsKernel : public Kernel {
 public:
  explicit KnownIntsKernel(std::vector<int64_t> values) : values_(std::move(values)) {}

  Status Launch(const LaunchArgs& args) override {
    std::copy(values_.begin(), values_.end(), args.output<int64_t>(0));
    return OkStatus();
  }

 private:
  std::vector<int64_t> values_;
};

StatusOr<std::unique_ptr<Kernel>> MakeShape(const KernelContext& context) {
  const Shape& shape = context.input_type(0).shape;
  const int64_t rank = context.input_type(0).rank();
  const auto bound = [rank](int64_t index) { return std::clamp<int64_t>(index < 0 ? index + rank : index, 0, rank); };
  const int64_t start = bound(context.node.attributes().Int("start", 0));
  const int64_t end = std::max(start, bound(context.node.attributes().Int("end", rank)));
  return std::unique_ptr<Kernel>(new KnownIntsKernel({shape.begin() + start, shape.begin() + end}));
}

StatusOr<std::unique_ptr<Kernel>> MakeSize(const KernelContext& context) {
  return std::unique_ptr<Kernel>(new KnownIntsKernel({context.input_type(0).elements()}));
}

template <typename Bits>
class FillKernel : public Kernel {
 public:
  FillKernel(const KernelContext& context, Bits value)
      : value_(value), count_(context.output_type(0).elements()), threads_(context.threads) {}

  Status Launch(const LaunchArgs& args) override {
    FillParallel(threads_, args.output<Bits>(0), count_, value_);
    return OkStatus();
  }

 private:
  Bits value_;
  int64_t count_;
  int threads_;
};

StatusOr<std::unique_ptr<Kernel>> MakeConstantOfShape(const KernelContext& context) {
  const AttributeValue* attribute = context.node.attributes().Find("value");
  const Tensor* value = attribute == nullptr ? nullptr : std::get_if<Tensor>(attribute);
  return ForElementSize(context.output_type(0).dtype, context, [&](auto tag) {
    using Bits = typename decltype(tag)::type;
    Bits bits = 0;
    if (value != nullptr) std::memcpy(&bits, value->data(), sizeof(Bits));
    return new FillKernel<Bits>(context, bits);
  });
}

template <typename T>
class RangeKernel : public Kernel {
 public:
  explicit RangeKernel(const KernelContext& context) : count_(context.output_type(0).elements()) {}

  Status Launch(const LaunchArgs& args) override {
    const T start = *args.input<T>(0);
    const T delta = *args.input<T>(2);
    T* y = args.output<T>(0);
    for (int64_t i = 0; i < count_; ++i) y[i] = static_cast<T>(start + static_cast<T>(i) * delta);
    return OkStatus();
  }

 private:
  int64_t count_;
};

StatusOr<std::unique_ptr<Kernel>> MakeRange(const KernelContext& context) {
  using Types = TypeList<float, double, int16_t, int32_t, int64_t>;
  return ForElementType(Types(), context.output_type(0).dtype, context, [&](auto tag) -> std::unique_ptr<Kernel> {
    return std::make_unique<RangeKernel<typename decltype(tag)::type>>(context);
  });
}

// Ones on diagonal k, which is column - row.
template <typename T>
class EyeKernel : public Kernel {
 public:
  explicit EyeKernel(const KernelContext& context)
      : rows_(context.output_type(0).shape[0]),
        columns_(context.output_type(0).shape[1]),
        diagonal_(context.node.attributes().Int("k", 0)) {}

  Status Launch(const LaunchArgs& args) override {
    T* y = args.output<T>(0);
    std::fill_n(y, rows_ * columns_, T(0));
    for (int64_t row = 0; row < rows_; ++row) {
      const int64_t column = row + diagonal_;
      if (column >= 0 && column < columns_) y[row * columns_ + column] = T(1);
    }
    return OkStatus();
  }

 private:
  int64_t rows_;
  int64_t columns_;
  int64_t diagonal_;
};

StatusOr<std::unique_ptr<Kernel>> MakeEye(const KernelContext& context) {
  using Types = TypeList<float, double, bool, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t>;
  return ForElementType(Types(), context.output_type(0).dtype, context, [&](auto tag) -> std::unique_ptr<Kernel> {
    return std::make_unique<EyeKernel<typename decltype(tag)::type>>(context);
  });
}

// Keeps the part of each matrix on one side of diagonal k (input 1, default 0); the rest becomes zero.
template <typename Bits>
class TriluKernel : public Kernel {
 public:
  explicit TriluKernel(const KernelContext& context)
      : upper_(context.node.attributes().Int("upper", 1) != 0), threads_(context.threads) {
    const Shape& shape = context.output_type(0).shape;
    height_ = shape[shape.size() - 2];
    width_ = shape.back();
    rows_ = width_ == 0 ? 0 : context.output_type(0).elements() / width_;
  }

  Status Launch(const LaunchArgs& args) override {
    const int64_t* k = args.input<int64_t>(1);
    const int64_t diagonal = k == nullptr ? 0 : *k;
    const Bits* x = args.input<Bits>(0);
    Bits* y = args.output<Bits>(0);
    ParallelFor(threads_, rows_, std::max<int64_t>(1, kMoveGrain / std::max<int64_t>(width_, 1)),
                [&](int64_t begin, int64_t end) {
                  for (int64_t row = begin; row < end; ++row) {
                    Row(row % height_ + diagonal, x + row * width_, y + row * width_);
                  }
                });
    return OkStatus();
  }

 private:
  // `column` is where the diagonal meets the row; it belongs to both sides.
  void Row(int64_t column, const Bits* x, Bits* y) const {
    const int64_t first = upper_ ? std::clamp<int64_t>(column, 0, width_) : 0;
    const int64_t last = upper_ ? width_ : std::clamp<int64_t>(column + 1, 0, width_);
    if (x != y) std::copy(x + first, x + last, y + first);
    std::fill(y, y + first, Bits(0));
    std::fill(y + last, y + width_, Bits(0));
  }

  bool upper_;
  int threads_;
  int64_t height_;
  int64_t width_;
  int64_t rows_;
};

StatusOr<std::unique_ptr<Kernel>> MakeTrilu(const KernelContext& context) {
  return ForElementSize(context.input_type(0).dtype, context,
                        [&](auto tag) { return new TriluKernel<typename decltype(tag)::type>(context); });
}

}  // namespace

void AddShapeKernels(KernelRegistry& registry) {
  for (const char* op : {"Identity", "Reshape", "Flatten", "Squeeze", "Unsqueeze"}) registry.Add(op, MakeView);
  registry.Add("Shape", MakeShape);
  registry.Add("Size", MakeSize);
  registry.Add("ConstantOfShape", MakeConstantOfShape);
  registry.Add("Range", MakeRange);
  registry.Add("EyeLike", MakeEye);
  registry.Add("Trilu", MakeTrilu);
}

}  // namespace onnxtrain
