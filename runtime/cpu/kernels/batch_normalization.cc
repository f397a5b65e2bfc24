// SPDX-License-Identifier: Apache-2.0
// BatchNormalization of [N, C, ...]: a channel is N runs of contiguous elements. Channels of [N, C] are columns; they
// are copied in blocks, which makes each of them one run.
#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/cpu/axis_rows.h"
#include "runtime/cpu/isa/normalization_loops.h"
#include "runtime/cpu/kernels/normalization_kernels.h"
#include "runtime/cpu/parallel_for.h"
#include "runtime/kernel.h"

namespace onnxtrain {
namespace {

constexpr int64_t kGrainElements = 8192;

// `runs` runs of `length` elements, `stride` apart.
struct Channel {
  int64_t runs, length, stride;
};

template <typename T>
class BatchNormalization : public Kernel {
 public:
  BatchNormalization(const KernelContext& context, size_t x)
      : epsilon_(DecimalValue(context.node.attributes().Float("epsilon", 1e-5f))), threads_(context.threads) {
    const Shape& shape = context.input_type(x).shape;
    samples_ = shape[0];
    channels_ = shape.size() < 2 ? 1 : shape[1];
    inner_ = shape.size() < 3 ? 1 : ElementsOf(std::span(shape).subspan(2));
  }

 protected:
  struct Statistics {
    T mean = 0;
    double variance = 0;
    T factor = 0;
  };

  bool columns() const { return inner_ == 1 && channels_ > 1; }
  int64_t count() const { return samples_ * inner_; }
  size_t ScratchBytes(size_t tensors) const {
    return columns() ? threads_ * tensors * kAxisRowBlock * samples_ * sizeof(T) : 0;
  }

  // body(channel, geometry, a, b, y) with the first elements of the channel in each tensor; b may be null.
  template <typename Body>
  void ForEachChannel(std::byte* workspace, const T* a, const T* b, T* y, const Body& body) const {
    if (!columns()) {
      const Channel geometry{samples_, inner_, channels_ * inner_};
      ParallelFor(threads_, channels_, 1 + kGrainElements / std::max<int64_t>(count(), 1),
                  [&](int64_t begin, int64_t end) {
                    for (int64_t c = begin; c < end; ++c) {
                      body(c, geometry, a + c * inner_, b == nullptr ? nullptr : b + c * inner_, y + c * inner_);
                    }
                  });
      return;
    }
    const AxisRows axis({samples_, channels_}, 0);
    const int64_t block_size = kAxisRowBlock * samples_;
    const size_t tensors = b == nullptr ? 1 : 2;
    ParallelPieces(threads_, axis.blocks(), 1 + kGrainElements / std::max<int64_t>(block_size, 1),
                   [&](int64_t piece, int64_t begin, int64_t end) {
                     T* scratch = reinterpret_cast<T*>(workspace) + piece * tensors * block_size;
                     for (int64_t block = begin; block < end; ++block) {
                       RunColumns(axis, block, a, b, y, scratch, scratch + block_size, body);
                     }
                   });
  }

  Statistics StatisticsOf(const Channel& geometry, const T* x) const {
    const double elements = static_cast<double>(count());
    double sum = 0, squares = 0;
    for (int64_t run = 0; run < geometry.runs; ++run) sum += loops_.sum(x + run * geometry.stride, geometry.length);
    Statistics statistics;
    statistics.mean = static_cast<T>(sum / elements);
    for (int64_t run = 0; run < geometry.runs; ++run) {
      squares += loops_.squares(x + run * geometry.stride, statistics.mean, geometry.length);
    }
    statistics.variance = squares / elements;
    statistics.factor = static_cast<T>(1 / std::sqrt(statistics.variance + epsilon_));
    return statistics;
  }

  Statistics Given(const T* mean, const T* variance, int64_t channel) const {
    const double wide = double{variance[channel]};
    return {mean[channel], wide, static_cast<T>(1 / std::sqrt(wide + epsilon_))};
  }

  const double epsilon_;
  const int threads_;
  int64_t samples_ = 0;
  int64_t channels_ = 0;
  int64_t inner_ = 0;
  const NormalizationLoops<T> loops_;

 private:
  template <typename Body>
  void RunColumns(const AxisRows& axis, int64_t block, const T* a, const T* b, T* y, T* first, T* second,
                  const Body& body) const {
    const int64_t channel = axis.first_row(block);
    const int64_t width = axis.row_count(block);
    const Channel geometry{1, samples_, 0};
    GatherRows(axis, a, channel, width, first);
    if (b != nullptr) GatherRows(axis, b, channel, width, second);
    for (int64_t i = 0; i < width; ++i) {
      T* run = first + i * samples_;
      body(channel + i, geometry, run, b == nullptr ? nullptr : second + i * samples_, run);
    }
    ScatterRows(axis, first, channel, width, y);
  }
};

// x, scale, bias, mean, variance -> y, [mean, variance]
template <typename T>
class Forward : public BatchNormalization<T> {
  using Base = BatchNormalization<T>;

 public:
  explicit Forward(const KernelContext& context)
      : Base(context, 0),
        training_(context.node.attributes().Int("training_mode", 0) != 0),
        momentum_(DecimalValue(context.node.attributes().Float("momentum", 0.9f))) {}

  size_t workspace_bytes() const override { return this->ScratchBytes(1); }

  Status Launch(const LaunchArgs& args) override {
    const T* mean = args.input<T>(3);
    const T* variance = args.input<T>(4);
    this->ForEachChannel(
        args.workspace, args.input<T>(0), nullptr, args.output<T>(0),
        [&](int64_t channel, const Channel& geometry, const T* x, const T*, T* y) {
          const auto statistics = training_ ? this->StatisticsOf(geometry, x) : this->Given(mean, variance, channel);
          const T factor = static_cast<T>(double{statistics.factor} * double{args.input<T>(1)[channel]});
          for (int64_t run = 0; run < geometry.runs; ++run) {
            this->loops_.affine(x + run * geometry.stride, statistics.mean, factor, args.input<T>(2)[channel],
                                y + run * geometry.stride, geometry.length);
          }
          if (!training_) return;
          Move(args.output<T>(1), mean, channel, double{statistics.mean});
          Move(args.output<T>(2), variance, channel, statistics.variance);
        });
    return OkStatus();
  }

 private:
  void Move(T* moved, const T* running, int64_t channel, double batch) const {
    if (moved != nullptr)
      moved[channel] = static_cast<T>(double{running[channel]} * momentum_ + batch * (1 - momentum_));
  }

  const bool training_;
  const double momentum_;
};

// dy, x, scale, [mean, variance] -> dx, dscale, dbias
template <typename T>
class Gradient : public BatchNormalization<T> {
  using Base = BatchNormalization<T>;

 public:
  explicit Gradient(const KernelContext& context) : Base(context, 1), batch_(context.node.input(3) == nullptr) {}

  size_t workspace_bytes() const override { return this->ScratchBytes(2); }

  Status Launch(const LaunchArgs& args) override {
    this->ForEachChannel(args.workspace, args.input<T>(0), args.input<T>(1), args.output<T>(0),
                         [&](int64_t channel, const Channel& geometry, const T* dy, const T* x, T* dx) {
                           const auto statistics = batch_ ? this->StatisticsOf(geometry, x)
                                                          : this->Given(args.input<T>(3), args.input<T>(4), channel);
                           RunChannel(args, channel, geometry, dy, x, statistics.mean, double{statistics.factor}, dx);
                         });
    return OkStatus();
  }

 private:
  // With batch statistics dx = scale factor (dy - mean dy - xc factor^2 mean(dy xc)), else dx = scale factor dy.
  void RunChannel(const LaunchArgs& args, int64_t channel, const Channel& geometry, const T* dy, const T* x, T mean,
                  double factor, T* dx) const {
    double sum = 0, dot = 0;
    for (int64_t run = 0; run < geometry.runs; ++run) {
      this->loops_.dot(dy + run * geometry.stride, x + run * geometry.stride, mean, geometry.length, &sum, &dot);
    }
    const double a = double{args.input<T>(2)[channel]} * factor;
    const double share = batch_ ? a / static_cast<double>(this->count()) : 0;
    for (int64_t run = 0; run < geometry.runs; ++run) {
      const int64_t offset = run * geometry.stride;
      this->loops_.gradient(dy + offset, x + offset, mean, static_cast<T>(a), static_cast<T>(share * sum),
                            static_cast<T>(share * factor * factor * dot), dx + offset, geometry.length);
    }
    if (args.output<T>(1) != nullptr) args.output<T>(1)[channel] = static_cast<T>(dot * factor);
    if (args.output<T>(2) != nullptr) args.output<T>(2)[channel] = static_cast<T>(sum);
  }

  const bool batch_;
};

template <template <typename> class KernelOf>
StatusOr<std::unique_ptr<Kernel>> Make(const KernelContext& context) {
  const DType dtype = context.input_type(0).dtype;
  for (const Value* input : context.node.inputs()) {
    if (input != nullptr && input->type().dtype != dtype) return UnsupportedTypes(context);
  }
  switch (dtype) {
    case DType::kFloat:
      return std::unique_ptr<Kernel>(new KernelOf<float>(context));
    case DType::kDouble:
      return std::unique_ptr<Kernel>(new KernelOf<double>(context));
    default:
      return UnsupportedTypes(context);
  }
}

}  // namespace

void AddBatchNormalizationKernels(KernelRegistry& registry) {
  registry.Add("BatchNormalization", Make<Forward>);
  registry.Add("onnxtrain.BatchNormalizationGrad", Make<Gradient>);
}

}  // namespace onnxtrain
