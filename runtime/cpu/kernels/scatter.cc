// SPDX-License-Identifier: Apache-2.0
// Writing at indices, in their order on one thread: the last of several writes to one place stands. An index out of
// range sets the status word and writes nothing.
#include "graph/ops/op_rules.h"
#include "runtime/cpu/kernels/all_kernels.h"
#include "runtime/cpu/kernels/element_types.h"
#include "runtime/cpu/kernels/indices.h"
#include "runtime/cpu/kernels/strided_copy.h"
#include "runtime/scatter_reduction.h"

namespace onnxtrain {
namespace {

template <typename T, typename Index>
class ScatterElementsKernel : public Kernel {
 public:
  ScatterElementsKernel(const KernelContext& context, ScatterReduction reduction)
      : reduction_(reduction),
        count_(context.output_type(0).elements()),
        node_index_(context.node_index),
        threads_(context.threads) {
    const Shape& data = context.input_type(0).shape;
    const Shape& indices = context.input_type(1).shape;
    const auto axis = static_cast<size_t>(
        NonNegativeAxis(context.node.attributes().Int("axis", 0), static_cast<int64_t>(data.size())));
    Strides along = DenseStrides(data);
    size_ = data[axis];
    stride_ = along[axis];
    along[axis] = 0;
    rows_ = StridedRows<2>(indices, {DenseStrides(indices), along});
  }

  Status Launch(const LaunchArgs& args) override {
    const IndexReader<Index> indices(args, 1, node_index_);
    const T* updates = args.input<T>(2);
    T* y = args.output<T>(0);
    CopyParallel(threads_, args.input<T>(0), y, count_);
    const auto& steps = rows_.steps();
    rows_.ForEach(1, kMoveGrain, [&](const auto& at, int64_t n) {
      for (int64_t i = 0; i < n; ++i) {
        const int64_t index = indices.At(at[0] + i, size_);
        if (index < 0) continue;
        T& target = y[at[1] + i * steps[1] + index * stride_];
        target = math::Scattered(reduction_, target, updates[at[0] + i]);
      }
    });
    return OkStatus();
  }

 private:
  ScatterReduction reduction_;
  StridedRows<2> rows_;
  int64_t size_;
  int64_t stride_;
  int64_t count_;
  int node_index_;
  int threads_;
};

template <typename T>
class ScatterNDKernel : public Kernel {
 public:
  ScatterNDKernel(const KernelContext& context, ScatterReduction reduction)
      : reduction_(reduction),
        tuples_(context.input_type(0).shape, context.input_type(1).shape, /*batch_axes=*/0),
        count_(context.output_type(0).elements()),
        node_index_(context.node_index),
        threads_(context.threads) {}

  Status Launch(const LaunchArgs& args) override {
    const IndexReader<int64_t> indices(args, 1, node_index_);
    const T* updates = args.input<T>(2);
    T* y = args.output<T>(0);
    CopyParallel(threads_, args.input<T>(0), y, count_);
    for (int64_t i = 0; i < tuples_.count(); ++i) {
      const int64_t offset = tuples_.Offset(indices, i);
      if (offset < 0) continue;
      const T* update = updates + i * tuples_.inner();
      for (int64_t j = 0; j < tuples_.inner(); ++j)
        y[offset + j] = math::Scattered(reduction_, y[offset + j], update[j]);
    }
    return OkStatus();
  }

 private:
  ScatterReduction reduction_;
  IndexTuples tuples_;
  int64_t count_;
  int node_index_;
  int threads_;
};

using ScatteredTypes =
    TypeList<float, double, int32_t, int64_t, bool, uint8_t, int8_t, int16_t, uint16_t, uint32_t, uint64_t>;

StatusOr<std::unique_ptr<Kernel>> MakeScatterElements(const KernelContext& context) {
  ASSIGN_OR_RETURN(const ScatterReduction reduction, ScatterReductionOf(context.node));
  const DType index = context.input_type(1).dtype;
  if (index != DType::kInt32 && index != DType::kInt64) return UnsupportedTypes(context);
  return ForElementType(ScatteredTypes(), context.input_type(0).dtype, context,
                        [&](auto tag) -> std::unique_ptr<Kernel> {
                          using T = typename decltype(tag)::type;
                          if (index == DType::kInt32) {
                            return std::make_unique<ScatterElementsKernel<T, int32_t>>(context, reduction);
                          }
                          return std::make_unique<ScatterElementsKernel<T, int64_t>>(context, reduction);
                        });
}

StatusOr<std::unique_ptr<Kernel>> MakeScatterND(const KernelContext& context) {
  ASSIGN_OR_RETURN(const ScatterReduction reduction, ScatterReductionOf(context.node));
  return ForElementType(ScatteredTypes(), context.input_type(0).dtype, context,
                        [&](auto tag) -> std::unique_ptr<Kernel> {
                          return std::make_unique<ScatterNDKernel<typename decltype(tag)::type>>(context, reduction);
                        });
}

}  // namespace

void AddScatterKernels(KernelRegistry& registry) {
  registry.Add("ScatterElements", MakeScatterElements);
  registry.Add("ScatterND", MakeScatterND);
}

}  // namespace onnxtrain
