// SPDX-License-Identifier: Apache-2.0
// LayerNormalization and RMSNormalization: rows of contiguous elements, each with its own statistics.
#include <algorithm>
#include <cmath>

#include "runtime/cpu/isa/normalization_loops.h"
#include "runtime/cpu/kernels/all_kernels.h"
#include "runtime/cpu/kernels/normalization_kernels.h"
#include "runtime/cpu/parallel_for.h"
#include "runtime/kernel.h"

namespace onnxtrain {
namespace {

constexpr int64_t kGrainElements = 8192;

// What both directions share. RMSNormalization is the same with a mean of zero.
template <typename T>
class RowNormalization : public Kernel {
 public:
  RowNormalization(const KernelContext& context, size_t x, bool rms)
      : epsilon_(DecimalValue(context.node.attributes().Float("epsilon", 1e-5f))),
        rms_(rms),
        threads_(context.threads) {
    const Shape& shape = context.input_type(x).shape;
    int64_t axis = context.node.attributes().Int("axis", -1);
    if (axis < 0) axis += static_cast<int64_t>(shape.size());
    const std::span<const int64_t> sizes(shape);
    rows_ = ElementsOf(sizes.first(axis));
    length_ = ElementsOf(sizes.subspan(axis));
  }

 protected:
  struct Statistics {
    T mean;
    T factor;  // 1 / standard deviation
  };

  Statistics StatisticsOf(const T* row) const {
    const double count = static_cast<double>(length_);
    const T mean = rms_ ? T{0} : static_cast<T>(loops_.sum(row, length_) / count);
    const double variance = loops_.squares(row, mean, length_) / count;
    return {mean, static_cast<T>(1 / std::sqrt(variance + epsilon_))};
  }

  const double epsilon_;
  const bool rms_;
  const int threads_;
  int64_t rows_ = 0;
  int64_t length_ = 0;
  const NormalizationLoops<T> loops_;
};

template <typename T>
class RowForward : public RowNormalization<T> {
  using Base = RowNormalization<T>;

 public:
  RowForward(const KernelContext& context, bool rms) : Base(context, 0, rms) {
    for (size_t index : {1, 2}) {
      if (context.node.output(index) == nullptr) continue;
      statistics_are_double_ = context.output_type(index).dtype == DType::kDouble;
    }
  }

  Status Launch(const LaunchArgs& args) override {
    if (this->length_ == 0) return OkStatus();
    const T* bias = args.input<T>(2);
    ParallelFor(this->threads_, this->rows_, 1 + kGrainElements / this->length_, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const T* x = args.input<T>(0) + row * this->length_;
        const auto statistics = this->StatisticsOf(x);
        this->loops_.scale(x, statistics.mean, statistics.factor, args.input<T>(1), bias,
                           args.output<T>(0) + row * this->length_, this->length_);
        Store(args, 1, row, statistics.mean);
        Store(args, 2, row, statistics.factor);
      }
    });
    return OkStatus();
  }

 private:
  void Store(const LaunchArgs& args, size_t index, int64_t row, T value) const {
    if (args.output<std::byte>(index) == nullptr) return;
    if (statistics_are_double_) {
      args.output<double>(index)[row] = double{value};
    } else {
      args.output<float>(index)[row] = static_cast<float>(value);
    }
  }

  bool statistics_are_double_ = false;
};

// Rows are taken in chunks of a number that no thread count changes; each chunk sums dscale and dbias for itself.
template <typename T>
class RowGradient : public RowNormalization<T> {
  using Base = RowNormalization<T>;
  static constexpr int64_t kChunks = 32;
  static constexpr int64_t kLongestChunk = 256;

 public:
  explicit RowGradient(const KernelContext& context)
      : Base(context, 1, context.node.attributes().Int("rms", 0) != 0),
        chunk_(std::clamp<int64_t>((this->rows_ + kChunks - 1) / kChunks, 1, kLongestChunk)),
        chunks_((this->rows_ + chunk_ - 1) / chunk_) {}

  size_t workspace_bytes() const override { return chunks_ * 2 * this->length_ * sizeof(T); }

  Status Launch(const LaunchArgs& args) override {
    T* partial = reinterpret_cast<T*>(args.workspace);
    ParallelFor(this->threads_, chunks_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t chunk = begin; chunk < end; ++chunk) RunChunk(args, chunk, partial + chunk * 2 * this->length_);
    });
    ParallelFor(this->threads_, this->length_, 1 + kGrainElements / std::max<int64_t>(chunks_, 1),
                [&](int64_t begin, int64_t end) {
                  SumChunks(partial, begin, end, args.output<T>(1));
                  SumChunks(partial + this->length_, begin, end, args.output<T>(2));
                });
    return OkStatus();
  }

 private:
  void RunChunk(const LaunchArgs& args, int64_t chunk, T* partial) const {
    T* dscale = partial;
    T* dbias = partial + this->length_;
    std::fill_n(partial, 2 * this->length_, T{0});
    for (int64_t row = chunk * chunk_; row < std::min(this->rows_, (chunk + 1) * chunk_); ++row) {
      const int64_t offset = row * this->length_;
      RunRow(args.input<T>(0) + offset, args.input<T>(1) + offset, args.input<T>(2), args.output<T>(0) + offset, dscale,
             dbias);
    }
  }

  // dx = factor (g - mean g - xc factor^2 mean(g xc)) for g = dy scale
  void RunRow(const T* dy, const T* x, const T* scale, T* dx, T* dscale, T* dbias) const {
    const auto [mean, factor] = this->StatisticsOf(x);
    double sum, dot;
    this->loops_.scaled_dot(dy, x, scale, mean, factor, this->length_, &sum, &dot, dscale, dbias);
    const double count = static_cast<double>(this->length_);
    const double wide = double{factor};
    const T shift = this->rms_ ? T{0} : static_cast<T>(wide * sum / count);
    this->loops_.scaled_gradient(dy, x, scale, mean, factor, shift, static_cast<T>(wide * wide * wide * dot / count),
                                 dx, this->length_);
  }

  void SumChunks(const T* partial, int64_t begin, int64_t end, T* result) const {
    constexpr int64_t kBlock = 64;
    if (result == nullptr) return;
    for (int64_t first = begin; first < end; first += kBlock) {
      const int64_t width = std::min(kBlock, end - first);
      double sums[kBlock] = {};
      for (int64_t chunk = 0; chunk < chunks_; ++chunk) {
        const T* from = partial + chunk * 2 * this->length_ + first;
        for (int64_t i = 0; i < width; ++i) sums[i] += double{from[i]};
      }
      for (int64_t i = 0; i < width; ++i) result[first + i] = static_cast<T>(sums[i]);
    }
  }

  const int64_t chunk_;  // rows
  const int64_t chunks_;
};

bool AllOf(const KernelContext& context, DType dtype) {
  return std::all_of(context.node.inputs().begin(), context.node.inputs().end(),
                     [&](const Value* input) { return input == nullptr || input->type().dtype == dtype; });
}

StatusOr<std::unique_ptr<Kernel>> MakeForward(const KernelContext& context, bool rms) {
  if (AllOf(context, DType::kFloat)) return std::unique_ptr<Kernel>(new RowForward<float>(context, rms));
  if (AllOf(context, DType::kDouble)) return std::unique_ptr<Kernel>(new RowForward<double>(context, rms));
  return UnsupportedTypes(context);
}

StatusOr<std::unique_ptr<Kernel>> MakeGradient(const KernelContext& context) {
  if (AllOf(context, DType::kFloat)) return std::unique_ptr<Kernel>(new RowGradient<float>(context));
  if (AllOf(context, DType::kDouble)) return std::unique_ptr<Kernel>(new RowGradient<double>(context));
  return UnsupportedTypes(context);
}

}  // namespace

void AddNormalizationKernels(KernelRegistry& registry) {
  registry.Add("LayerNormalization", [](const KernelContext& context) { return MakeForward(context, false); });
  registry.Add("RMSNormalization", [](const KernelContext& context) { return MakeForward(context, true); });
  registry.Add("onnxtrain.LayerNormalizationGrad", MakeGradient);
  AddBatchNormalizationKernels(registry);
  AddGroupNormalizationKernels(registry);
}

}  // namespace onnxtrain
