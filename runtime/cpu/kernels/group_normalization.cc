// SPDX-License-Identifier: Apache-2.0
// GroupNormalization of [N, C, ...], and InstanceNormalization as its case of one channel a group. A group of one
// sample is one contiguous run, made of a run for each channel.
#include <algorithm>
#include <cmath>

#include "runtime/cpu/isa/normalization_loops.h"
#include "runtime/cpu/kernels/normalization_kernels.h"
#include "runtime/cpu/parallel_for.h"
#include "runtime/kernel.h"

namespace onnxtrain {
namespace {

constexpr int64_t kGrainElements = 8192;

template <typename T>
class GroupNormalization : public Kernel {
 public:
  GroupNormalization(const KernelContext& context, size_t x, int64_t groups)
      : epsilon_(DecimalValue(context.node.attributes().Float("epsilon", 1e-5f))), threads_(context.threads) {
    const Shape& shape = context.input_type(x).shape;
    samples_ = shape[0];
    channels_ = shape[1];
    groups_ = groups;
    inner_ = ElementsOf(std::span(shape).subspan(2));
  }

 protected:
  struct Statistics {
    T mean;
    double factor;
  };

  int64_t per_group() const { return channels_ / groups_; }
  int64_t count() const { return per_group() * inner_; }

  // body(sample, group) over all of them.
  template <typename Body>
  void ForEachGroup(const Body& body) const {
    if (count() == 0) return;
    ParallelFor(threads_, samples_ * groups_, 1 + kGrainElements / count(), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) body(i / groups_, i % groups_);
    });
  }

  int64_t Offset(int64_t sample, int64_t channel) const { return (sample * channels_ + channel) * inner_; }

  Statistics StatisticsOf(const T* x) const {
    const double elements = static_cast<double>(count());
    const T mean = static_cast<T>(loops_.sum(x, count()) / elements);
    return {mean, 1 / std::sqrt(loops_.squares(x, mean, count()) / elements + epsilon_)};
  }

  const double epsilon_;
  const int threads_;
  int64_t samples_ = 0;
  int64_t channels_ = 0;
  int64_t groups_ = 0;
  int64_t inner_ = 0;
  const NormalizationLoops<T> loops_;
};

// x, scale, bias -> y
template <typename T>
class Forward : public GroupNormalization<T> {
 public:
  Forward(const KernelContext& context, int64_t groups) : GroupNormalization<T>(context, 0, groups) {}

  Status Launch(const LaunchArgs& args) override {
    this->ForEachGroup([&](int64_t sample, int64_t group) {
      const int64_t first = group * this->per_group();
      const auto statistics = this->StatisticsOf(args.input<T>(0) + this->Offset(sample, first));
      for (int64_t channel = first; channel < first + this->per_group(); ++channel) {
        const int64_t offset = this->Offset(sample, channel);
        const T factor = static_cast<T>(statistics.factor * double{args.input<T>(1)[channel]});
        this->loops_.affine(args.input<T>(0) + offset, statistics.mean, factor, args.input<T>(2)[channel],
                            args.output<T>(0) + offset, this->inner_);
      }
    });
    return OkStatus();
  }
};

// dy, x, scale -> dx, dscale, dbias. Sums of a channel are kept a sample each and added in order of samples.
template <typename T>
class Gradient : public GroupNormalization<T> {
 public:
  Gradient(const KernelContext& context, int64_t groups) : GroupNormalization<T>(context, 1, groups) {}

  size_t workspace_bytes() const override { return this->samples_ * this->channels_ * sizeof(Sums); }

  Status Launch(const LaunchArgs& args) override {
    Sums* sums = reinterpret_cast<Sums*>(args.workspace);
    std::fill_n(sums, this->samples_ * this->channels_, Sums{});
    this->ForEachGroup([&](int64_t sample, int64_t group) { RunGroup(args, sample, group, sums); });
    for (int64_t channel = 0; channel < this->channels_; ++channel) {
      Sums total;
      for (int64_t sample = 0; sample < this->samples_; ++sample) {
        total.dscale += sums[sample * this->channels_ + channel].dscale;
        total.dbias += sums[sample * this->channels_ + channel].dbias;
      }
      if (args.output<T>(1) != nullptr) args.output<T>(1)[channel] = static_cast<T>(total.dscale);
      if (args.output<T>(2) != nullptr) args.output<T>(2)[channel] = static_cast<T>(total.dbias);
    }
    return OkStatus();
  }

 private:
  struct Sums {
    double dscale = 0;
    double dbias = 0;
  };

  // dx = factor (g - mean g - xc factor^2 mean(g xc)) for g = dy scale, over the whole group
  void RunGroup(const LaunchArgs& args, int64_t sample, int64_t group, Sums* sums) const {
    const int64_t first = group * this->per_group();
    const T* dy = args.input<T>(0);
    const T* x = args.input<T>(1);
    const T* scale = args.input<T>(2);
    const auto [mean, factor] = this->StatisticsOf(x + this->Offset(sample, first));
    double sum = 0, dot = 0;
    for (int64_t channel = first; channel < first + this->per_group(); ++channel) {
      const int64_t offset = this->Offset(sample, channel);
      double sum_of_channel = 0, dot_of_channel = 0;
      this->loops_.dot(dy + offset, x + offset, mean, this->inner_, &sum_of_channel, &dot_of_channel);
      sums[sample * this->channels_ + channel] = {dot_of_channel * factor, sum_of_channel};
      sum += sum_of_channel * double{scale[channel]};
      dot += dot_of_channel * double{scale[channel]};
    }
    const double share = factor / static_cast<double>(this->count());
    for (int64_t channel = first; channel < first + this->per_group(); ++channel) {
      const int64_t offset = this->Offset(sample, channel);
      this->loops_.gradient(dy + offset, x + offset, mean, static_cast<T>(factor * double{scale[channel]}),
                            static_cast<T>(share * sum), static_cast<T>(share * factor * factor * dot),
                            args.output<T>(0) + offset, this->inner_);
    }
  }
};

template <template <typename> class KernelOf>
StatusOr<std::unique_ptr<Kernel>> Make(const KernelContext& context, int64_t groups) {
  const DType dtype = context.input_type(0).dtype;
  for (const Value* input : context.node.inputs()) {
    if (input->type().dtype != dtype) return UnsupportedTypes(context);
  }
  switch (dtype) {
    case DType::kFloat:
      return std::unique_ptr<Kernel>(new KernelOf<float>(context, groups));
    case DType::kDouble:
      return std::unique_ptr<Kernel>(new KernelOf<double>(context, groups));
    default:
      return UnsupportedTypes(context);
  }
}

int64_t GroupsOf(const KernelContext& context) { return context.node.attributes().Int("num_groups", 1); }

}  // namespace

void AddGroupNormalizationKernels(KernelRegistry& registry) {
  registry.Add("GroupNormalization",
               [](const KernelContext& context) { return Make<Forward>(context, GroupsOf(context)); });
  registry.Add("InstanceNormalization",
               [](const KernelContext& context) { return Make<Forward>(context, context.input_type(0).shape[1]); });
  registry.Add("onnxtrain.GroupNormalizationGrad",
               [](const KernelContext& context) { return Make<Gradient>(context, GroupsOf(context)); });
}

}  // namespace onnxtrain
