// SPDX-License-Identifier: Apache-2.0
#include "runtime/cpu/kernels/binary_loss.h"

#include <algorithm>

#include "runtime/cpu/parallel_for.h"
#include "runtime/kernel.h"
#include "runtime/math/binary_cross_entropy.h"

namespace onnxtrain {
namespace {

constexpr int64_t kChunk = 4096;  // one partial sum each, whatever the number of threads

int64_t ChunksOf(int64_t count) { return (count + kChunk - 1) / kChunk; }

template <typename T>
class BinaryLoss : public Kernel {
 public:
  explicit BinaryLoss(const KernelContext& context)
      : count_(context.input_type(0).elements()),
        whole_(context.node.attributes().String("reduction", "mean") == "none"),
        divisor_(context.node.attributes().String("reduction", "mean") == "mean" ? static_cast<double>(count_) : 1.0),
        threads_(context.threads) {}

  size_t workspace_bytes() const override { return whole_ ? 0 : ChunksOf(count_) * sizeof(double); }

  Status Launch(const LaunchArgs& args) override {
    double* sums = reinterpret_cast<double*>(args.workspace);
    ParallelFor(threads_, ChunksOf(count_), 1, [&](int64_t begin, int64_t end) {
      for (int64_t chunk = begin; chunk < end; ++chunk) {
        const double sum = RunChunk(args, chunk * kChunk, std::min(count_, (chunk + 1) * kChunk));
        if (!whole_) sums[chunk] = sum;
      }
    });
    if (whole_) return OkStatus();
    double total = 0;
    for (int64_t chunk = 0; chunk < ChunksOf(count_); ++chunk) total += sums[chunk];
    *args.output<T>(0) = static_cast<T>(total / divisor_);
    return OkStatus();
  }

 private:
  double RunChunk(const LaunchArgs& args, int64_t begin, int64_t end) const {
    double sum = 0;
    for (int64_t i = begin; i < end; ++i) {
      const T loss = math::BinaryCrossEntropy(args.input<T>(0)[i], args.input<T>(1)[i]);
      if (whole_) args.output<T>(0)[i] = loss;
      sum += double{loss};
    }
    return sum;
  }

  const int64_t count_;
  const bool whole_;
  const double divisor_;
  const int threads_;
};

// dL/dloss, x, target -> dL/dx
template <typename T>
class BinaryLossGradient : public Kernel {
 public:
  explicit BinaryLossGradient(const KernelContext& context)
      : count_(context.input_type(1).elements()),
        whole_(context.node.attributes().String("reduction", "mean") == "none"),
        divisor_(context.node.attributes().String("reduction", "mean") == "mean" ? static_cast<double>(count_) : 1.0),
        threads_(context.threads) {}

  Status Launch(const LaunchArgs& args) override {
    const T* dloss = args.input<T>(0);
    const T scale = whole_ || count_ == 0 ? T{1} : static_cast<T>(double{*dloss} / divisor_);
    ParallelFor(threads_, count_, kChunk, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const T gradient = math::BinaryCrossEntropyGradient(args.input<T>(1)[i], args.input<T>(2)[i]);
        args.output<T>(0)[i] = gradient * (whole_ ? dloss[i] : scale);
      }
    });
    return OkStatus();
  }

 private:
  const int64_t count_;
  const bool whole_;
  const double divisor_;
  const int threads_;
};

template <template <typename> class KernelOf>
StatusOr<std::unique_ptr<Kernel>> Make(const KernelContext& context) {
  switch (context.output_type(0).dtype) {
    case DType::kFloat:
      return std::unique_ptr<Kernel>(new KernelOf<float>(context));
    case DType::kDouble:
      return std::unique_ptr<Kernel>(new KernelOf<double>(context));
    default:
      return UnsupportedTypes(context);
  }
}

}  // namespace

void AddBinaryLossKernels(KernelRegistry& registry) {
  registry.Add("onnxtrain.BinaryCrossEntropyWithLogits", Make<BinaryLoss>);
  registry.Add("onnxtrain.BinaryCrossEntropyWithLogitsGrad", Make<BinaryLossGradient>);
}

}  // namespace onnxtrain
