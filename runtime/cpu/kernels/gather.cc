// SPDX-License-Identifier: Apache-2.0
// Reading at indices. A negative index counts from the end; one out of range sets the status word, reads nothing and
// gives zeros. Gradients add rows in the order of the indices, whatever the number of threads.
#include "graph/ops/op_rules.h"
#include "runtime/cpu/isa/binary_loops.h"
#include "runtime/cpu/kernels/all_kernels.h"
#include "runtime/cpu/kernels/element_types.h"
#include "runtime/cpu/kernels/indices.h"
#include "runtime/cpu/kernels/strided_copy.h"

namespace onnxtrain {
namespace {

// data [outer, size, inner] read along its middle axis.
struct GatherShape {
  int64_t outer;
  int64_t size;
  int64_t inner;
  int64_t count;  // of the indices

  GatherShape(const Shape& data, int64_t axis, int64_t index_count) : outer(1), inner(1), count(index_count) {
    const auto middle = static_cast<size_t>(NonNegativeAxis(axis, static_cast<int64_t>(data.size())));
    size = data[middle];
    for (size_t i = 0; i < middle; ++i) outer *= data[i];
    for (size_t i = middle + 1; i < data.size(); ++i) inner *= data[i];
  }
};

template <typename Bits, typename Index>
class GatherKernel : public Kernel {
 public:
  explicit GatherKernel(const KernelContext& context)
      : shape_(context.input_type(0).shape, context.node.attributes().Int("axis", 0), context.input_type(1).elements()),
        node_index_(context.node_index),
        threads_(context.threads) {}

  Status Launch(const LaunchArgs& args) override {
    const Bits* data = args.input<Bits>(0);
    const IndexReader<Index> indices(args, 1, node_index_);
    Bits* y = args.output<Bits>(0);
    ParallelFor(threads_, shape_.outer * shape_.count,
                std::max<int64_t>(1, kMoveGrain / std::max<int64_t>(shape_.inner, 1)), [&](int64_t begin, int64_t end) {
                  for (int64_t row = begin; row < end; ++row) {
                    CopyRow(data + row / shape_.count * shape_.size * shape_.inner,
                            indices.At(row % shape_.count, shape_.size), y + row * shape_.inner);
                  }
                });
    return OkStatus();
  }

 private:
  void CopyRow(const Bits* data, int64_t index, Bits* y) const {
    if (index < 0) {
      std::fill_n(y, shape_.inner, Bits(0));
    } else {
      std::memcpy(y, data + index * shape_.inner, static_cast<size_t>(shape_.inner) * sizeof(Bits));
    }
  }

  GatherShape shape_;
  int node_index_;
  int threads_;
};

template <typename T>
BinaryLoop<T> AddLoop() {
  if constexpr (std::is_same_v<T, float>) {
    return ONNXTRAIN_SELECT_ISA(FloatBinaryLoop)(BinaryFunction::kAdd);
  } else {
    return ONNXTRAIN_SELECT_ISA(DoubleBinaryLoop)(BinaryFunction::kAdd);
  }
}

// Each piece of work owns some destination rows: it clears them and adds what belongs there, in order.
template <typename T, typename Index>
class GatherGradKernel : public Kernel {
 public:
  explicit GatherGradKernel(const KernelContext& context)
      : shape_(context.output_type(0).shape, context.node.attributes().Int("axis", 0),
               context.input_type(0).elements()),
        node_index_(context.node_index),
        threads_(context.threads) {}

  Status Launch(const LaunchArgs& args) override {
    const IndexReader<Index> indices(args, 0, node_index_);
    const T* dy = args.input<T>(1);
    T* dx = args.output<T>(0);
    ParallelFor(threads_, shape_.outer * shape_.size,
                std::max<int64_t>(1, kMoveGrain / std::max<int64_t>(shape_.inner, 1)),
                [&](int64_t begin, int64_t end) { FillRows(indices, dy, dx, begin, end); });
    return OkStatus();
  }

 private:
  void FillRows(const IndexReader<Index>& indices, const T* dy, T* dx, int64_t begin, int64_t end) const {
    std::fill(dx + begin * shape_.inner, dx + end * shape_.inner, T(0));
    for (int64_t outer = begin / shape_.size; outer * shape_.size < end; ++outer) {
      for (int64_t i = 0; i < shape_.count; ++i) {
        const int64_t index = indices.At(i, shape_.size);
        const int64_t row = outer * shape_.size + index;
        if (index < 0 || row < begin || row >= end) continue;
        T* to = dx + row * shape_.inner;
        add_(to, 1, dy + (outer * shape_.count + i) * shape_.inner, 1, to, shape_.inner);
      }
    }
  }

  GatherShape shape_;
  BinaryLoop<T> add_ = AddLoop<T>();
  int node_index_;
  int threads_;
};

// y[i] = data[i with the axis' coordinate replaced by indices[i]]
template <typename Bits, typename Index>
class GatherElementsKernel : public Kernel {
 public:
  explicit GatherElementsKernel(const KernelContext& context)
      : node_index_(context.node_index), threads_(context.threads) {
    const Shape& data = context.input_type(0).shape;
    const Shape& y = context.output_type(0).shape;
    const auto axis = static_cast<size_t>(
        NonNegativeAxis(context.node.attributes().Int("axis", 0), static_cast<int64_t>(data.size())));
    Strides along = DenseStrides(data);
    size_ = data[axis];
    stride_ = along[axis];
    along[axis] = 0;
    rows_ = StridedRows<2>(y, {DenseStrides(y), along});
  }

  Status Launch(const LaunchArgs& args) override {
    const Bits* data = args.input<Bits>(0);
    const IndexReader<Index> indices(args, 1, node_index_);
    Bits* y = args.output<Bits>(0);
    const auto& steps = rows_.steps();
    rows_.ForEach(threads_, kMoveGrain, [&](const auto& at, int64_t n) {
      for (int64_t i = 0; i < n; ++i) {
        const int64_t index = indices.At(at[0] + i, size_);
        y[at[0] + i] = index < 0 ? Bits(0) : data[at[1] + i * steps[1] + index * stride_];
      }
    });
    return OkStatus();
  }

 private:
  StridedRows<2> rows_;
  int64_t size_;
  int64_t stride_;
  int node_index_;
  int threads_;
};

template <typename Bits>
class GatherNDKernel : public Kernel {
 public:
  explicit GatherNDKernel(const KernelContext& context)
      : tuples_(context.input_type(0).shape, context.input_type(1).shape,
                context.node.attributes().Int("batch_dims", 0)),
        node_index_(context.node_index),
        threads_(context.threads) {}

  Status Launch(const LaunchArgs& args) override {
    const Bits* data = args.input<Bits>(0);
    const IndexReader<int64_t> indices(args, 1, node_index_);
    Bits* y = args.output<Bits>(0);
    const int64_t inner = tuples_.inner();
    ParallelFor(threads_, tuples_.count(), std::max<int64_t>(1, kMoveGrain / std::max<int64_t>(inner, 1)),
                [&](int64_t begin, int64_t end) {
                  for (int64_t i = begin; i < end; ++i) {
                    const int64_t offset = tuples_.Offset(indices, i);
                    if (offset < 0) {
                      std::fill_n(y + i * inner, inner, Bits(0));
                    } else {
                      std::memcpy(y + i * inner, data + offset, static_cast<size_t>(inner) * sizeof(Bits));
                    }
                  }
                });
    return OkStatus();
  }

 private:
  IndexTuples tuples_;
  int node_index_;
  int threads_;
};

template <typename T>
class GatherNDGradKernel : public Kernel {
 public:
  explicit GatherNDGradKernel(const KernelContext& context)
      : tuples_(context.output_type(0).shape, context.input_type(0).shape,
                context.node.attributes().Int("batch_dims", 0)),
        count_(context.output_type(0).elements()),
        node_index_(context.node_index),
        threads_(context.threads) {}

  Status Launch(const LaunchArgs& args) override {
    const IndexReader<int64_t> indices(args, 0, node_index_);
    const T* dy = args.input<T>(1);
    T* dx = args.output<T>(0);
    FillParallel(threads_, dx, count_, T(0));
    for (int64_t i = 0; i < tuples_.count(); ++i) {
      const int64_t offset = tuples_.Offset(indices, i);
      if (offset < 0) continue;
      add_(dx + offset, 1, dy + i * tuples_.inner(), 1, dx + offset, tuples_.inner());
    }
    return OkStatus();
  }

 private:
  IndexTuples tuples_;
  BinaryLoop<T> add_ = AddLoop<T>();
  int64_t count_;
  int node_index_;
  int threads_;
};

// Kernels of an element type and of an index type, int32 or int64.
template <template <typename, typename> class K>
StatusOr<std::unique_ptr<Kernel>> MakeMoving(const KernelContext& context) {
  const DType index = context.input_type(1).dtype;
  if (index != DType::kInt32 && index != DType::kInt64) return UnsupportedTypes(context);
  return ForElementSize(context.input_type(0).dtype, context, [&](auto tag) -> Kernel* {
    using Bits = typename decltype(tag)::type;
    if (index == DType::kInt32) return new K<Bits, int32_t>(context);
    return new K<Bits, int64_t>(context);
  });
}

StatusOr<std::unique_ptr<Kernel>> MakeGatherGrad(const KernelContext& context) {
  const DType index = context.input_type(0).dtype;
  if (index != DType::kInt32 && index != DType::kInt64) return UnsupportedTypes(context);
  return ForElementType(FloatTypes(), context.input_type(1).dtype, context, [&](auto tag) -> std::unique_ptr<Kernel> {
    using T = typename decltype(tag)::type;
    if (index == DType::kInt32) return std::make_unique<GatherGradKernel<T, int32_t>>(context);
    return std::make_unique<GatherGradKernel<T, int64_t>>(context);
  });
}

StatusOr<std::unique_ptr<Kernel>> MakeGatherND(const KernelContext& context) {
  return ForElementSize(context.input_type(0).dtype, context,
                        [&](auto tag) { return new GatherNDKernel<typename decltype(tag)::type>(context); });
}

StatusOr<std::unique_ptr<Kernel>> MakeGatherNDGrad(const KernelContext& context) {
  return ForElementType(FloatTypes(), context.input_type(1).dtype, context, [&](auto tag) -> std::unique_ptr<Kernel> {
    return std::make_unique<GatherNDGradKernel<typename decltype(tag)::type>>(context);
  });
}

}  // namespace

void AddGatherKernels(KernelRegistry& registry) {
  registry.Add("Gather", MakeMoving<GatherKernel>);
  registry.Add("onnxtrain.GatherGrad", MakeGatherGrad);
  registry.Add("GatherElements", MakeMoving<GatherElementsKernel>);
  registry.Add("GatherND", MakeGatherND);
  registry.Add("onnxtrain.GatherNDGrad", MakeGatherNDGrad);
}

}  // namespace onnxtrain
