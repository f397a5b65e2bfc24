// SPDX-License-Identifier: Apache-2.0
#include "runtime/cpu/axis_rows.h"
#include "runtime/cpu/isa/softmax_loops.h"
#include "runtime/cpu/kernels/all_kernels.h"
#include "runtime/cpu/parallel_for.h"
#include "runtime/kernel.h"

namespace onnxtrain {
namespace {

// Work of less than this many elements stays on one thread.
constexpr int64_t kGrainElements = 8192;

// Runs `row_loop(a, b, y, length)` over all rows: b is null for operators of one tensor.
template <typename T>
class RowKernel : public Kernel {
 public:
  using RowLoop = void (*)(const SoftmaxLoops<T>&, const T* a, const T* b, T* y, int64_t length);

  RowKernel(const KernelContext& context, RowLoop loop)
      : axis_(context.output_type(0).shape, context.node.attributes().Int("axis", -1)),
        operands_(context.node.inputs().size()),
        threads_(context.threads),
        loop_(loop) {}

  size_t workspace_bytes() const override { return threads_ * 2 * axis_.block_elements() * sizeof(T); }

  Status Launch(const LaunchArgs& args) override {
    if (axis_.length == 0) return OkStatus();
    const int64_t grain = 1 + kGrainElements / (axis_.length * kAxisRowBlock);
    ParallelPieces(threads_, axis_.blocks(), grain, [&](int64_t piece, int64_t begin, int64_t end) {
      T* scratch = reinterpret_cast<T*>(args.workspace) + piece * 2 * axis_.block_elements();
      for (int64_t block = begin; block < end; ++block) RunBlock(args, block, scratch);
    });
    return OkStatus();
  }

 private:
  void RunBlock(const LaunchArgs& args, int64_t block, T* scratch) const {
    const int64_t row = axis_.first_row(block);
    const int64_t count = axis_.row_count(block);
    const T* a = args.input<T>(0);
    const T* b = operands_ > 1 ? args.input<T>(1) : nullptr;
    if (axis_.contiguous()) {
      const int64_t offset = row * axis_.length;
      return RunRows(a + offset, b == nullptr ? nullptr : b + offset, args.output<T>(0) + offset, count);
    }
    GatherRows(axis_, a, row, count, scratch);
    T* second = b == nullptr ? nullptr : scratch + axis_.block_elements();
    if (b != nullptr) GatherRows(axis_, b, row, count, second);
    RunRows(scratch, second, scratch, count);
    ScatterRows(axis_, scratch, row, count, args.output<T>(0));
  }

  void RunRows(const T* a, const T* b, T* y, int64_t count) const {
    for (int64_t r = 0; r < count; ++r) {
      const int64_t offset = r * axis_.length;
      loop_(loops_, a + offset, b == nullptr ? nullptr : b + offset, y + offset, axis_.length);
    }
  }

  const AxisRows axis_;
  const size_t operands_;
  const int threads_;
  const RowLoop loop_;
  const SoftmaxLoops<T> loops_;
};

template <template <typename> class Loop>
StatusOr<std::unique_ptr<Kernel>> Make(const KernelContext& context) {
  switch (context.output_type(0).dtype) {
    case DType::kFloat:
      return std::unique_ptr<Kernel>(new RowKernel<float>(context, Loop<float>::Run));
    case DType::kDouble:
      return std::unique_ptr<Kernel>(new RowKernel<double>(context, Loop<double>::Run));
    default:
      return UnsupportedTypes(context);
  }
}

template <typename T>
struct Softmax {
  static void Run(const SoftmaxLoops<T>& loops, const T* x, const T*, T* y, int64_t n) { loops.softmax(x, y, n); }
};
template <typename T>
struct LogSoftmax {
  static void Run(const SoftmaxLoops<T>& loops, const T* x, const T*, T* y, int64_t n) { loops.log_softmax(x, y, n); }
};
template <typename T>
struct SoftmaxGradient {
  static void Run(const SoftmaxLoops<T>& loops, const T* dy, const T* y, T* dx, int64_t n) {
    loops.softmax_gradient(dy, y, dx, n);
  }
};
template <typename T>
struct LogSoftmaxGradient {
  static void Run(const SoftmaxLoops<T>& loops, const T* dy, const T* y, T* dx, int64_t n) {
    loops.log_softmax_gradient(dy, y, dx, n);
  }
};

}  // namespace

void AddSoftmaxKernels(KernelRegistry& registry) {
  registry.Add("Softmax", Make<Softmax>);
  registry.Add("LogSoftmax", Make<LogSoftmax>);
  registry.Add("onnxtrain.SoftmaxGrad", Make<SoftmaxGradient>);
  registry.Add("onnxtrain.LogSoftmaxGrad", Make<LogSoftmaxGradient>);
}

}  // namespace onnxtrain
