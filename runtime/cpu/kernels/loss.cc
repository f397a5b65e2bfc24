// SPDX-License-Identifier: Apache-2.0
// SoftmaxCrossEntropyLoss, NegativeLogLikelihoodLoss and their gradients, and the count of labels.
#include <algorithm>
#include <cstddef>

#include "runtime/cpu/axis_rows.h"
#include "runtime/cpu/isa/softmax_loops.h"
#include "runtime/cpu/kernels/all_kernels.h"
#include "runtime/cpu/kernels/binary_loss.h"
#include "runtime/cpu/kernels/class_labels.h"
#include "runtime/cpu/parallel_for.h"
#include "runtime/kernel.h"
#include "runtime/status_word.h"

namespace onnxtrain {
namespace {

using LabelKind = ClassLabels::Kind;

constexpr int64_t kGrainElements = 8192;

enum class Reduction : uint8_t { kNone, kSum, kMean };

Reduction ReductionOf(const Attributes& attributes) {
  const std::string name = attributes.String("reduction", "mean");
  return name == "none" ? Reduction::kNone : name == "sum" ? Reduction::kSum : Reduction::kMean;
}

// What forward and backward of both losses share. The scores are the node's input `first`.
template <typename T>
class ClassLossKernel : public Kernel {
 public:
  ClassLossKernel(const KernelContext& context, size_t first, bool is_softmax)
      : axis_(context.input_type(first).shape, 1),
        labels_(context.input_type(first + 1).dtype, axis_.length, context.node.attributes()),
        reduction_(ReductionOf(context.node.attributes())),
        smoothing_(DecimalValue(context.node.attributes().Float("label_smoothing", 0))),
        is_softmax_(is_softmax),
        weighted_(context.node.input(first + 2) != nullptr),
        first_(first),
        threads_(context.threads),
        node_index_(context.node_index) {}

 protected:
  struct Sums {
    double loss = 0;
    double weight = 0;
  };

  // The label's class, or -1 where the position does not count. A label outside of the classes is reported.
  int64_t ClassAt(const LaunchArgs& args, int64_t position) const {
    const ClassLabels::Label label = labels_.At(args.inputs[first_ + 1], position);
    if (label.kind == LabelKind::kCounted) return label.index;
    if (label.kind == LabelKind::kOutOfRange) {
      SetStatusWord(args.status_word, DeviceFault::kLabelOutOfRange, node_index_);
    }
    return -1;
  }

  const T* WeightsOf(const LaunchArgs& args) const { return weighted_ ? args.input<T>(first_ + 2) : nullptr; }
  static double WeightAt(const T* weights, int64_t index) { return weights == nullptr ? 1.0 : double{weights[index]}; }

  int64_t BlockGrain() const { return 1 + kGrainElements / (std::max<int64_t>(axis_.length, 1) * kAxisRowBlock); }

  const AxisRows axis_;
  const ClassLabels labels_;
  const Reduction reduction_;
  const double smoothing_;
  const bool is_softmax_;
  const bool weighted_;
  const size_t first_;
  const int threads_;
  const int node_index_;
  const SoftmaxLoops<T> loops_;
};

template <typename T>
class ClassLoss : public ClassLossKernel<T> {
  using Base = ClassLossKernel<T>;
  using typename Base::Sums;

 public:
  ClassLoss(const KernelContext& context, bool is_softmax)
      : Base(context, 0, is_softmax), log_probability_(context.node.output(1) != nullptr) {}

  size_t workspace_bytes() const override {
    return this->axis_.blocks() * sizeof(Sums) + this->threads_ * this->axis_.block_elements() * sizeof(T);
  }

  Status Launch(const LaunchArgs& args) override {
    const int64_t blocks = this->axis_.blocks();
    Sums* sums = reinterpret_cast<Sums*>(args.workspace);
    T* scratch = reinterpret_cast<T*>(sums + blocks);
    ParallelPieces(this->threads_, blocks, this->BlockGrain(), [&](int64_t piece, int64_t begin, int64_t end) {
      for (int64_t block = begin; block < end; ++block) {
        sums[block] = RunBlock(args, block, scratch + piece * this->axis_.block_elements());
      }
    });
    if (this->reduction_ != Reduction::kNone) Finish(sums, blocks, args.output<T>(0));
    return OkStatus();
  }

 private:
  Sums RunBlock(const LaunchArgs& args, int64_t block, T* scratch) const {
    const int64_t row = this->axis_.first_row(block);
    const int64_t count = this->axis_.row_count(block);
    const int64_t length = this->axis_.length;
    const T* scores = args.input<T>(0) + row * length;
    if (!this->axis_.contiguous()) {
      GatherRows(this->axis_, args.input<T>(0), row, count, scratch);
      scores = scratch;
    }
    Sums sums;
    for (int64_t r = 0; r < count; ++r) {
      const Sums one = RunRow(args, scores + r * length, row + r);
      if (this->reduction_ == Reduction::kNone) args.output<T>(0)[row + r] = static_cast<T>(one.loss);
      sums.loss += one.loss;
      sums.weight += one.weight;
      if (log_probability_) WriteLogProbability(args, scores + r * length, row + r, scratch + r * length);
    }
    if (log_probability_ && !this->axis_.contiguous()) {
      ScatterRows(this->axis_, scratch, row, count, args.output<T>(1));
    }
    return sums;
  }

  void WriteLogProbability(const LaunchArgs& args, const T* scores, int64_t row, T* scratch) const {
    T* to = this->axis_.contiguous() ? args.output<T>(1) + row * this->axis_.length : scratch;
    this->loops_.log_softmax(scores, to, this->axis_.length);
  }

  Sums RunRow(const LaunchArgs& args, const T* scores, int64_t row) const {
    const int64_t label = this->ClassAt(args, row);
    if (label < 0) return {};
    const T* weights = this->WeightsOf(args);
    const double weight = this->WeightAt(weights, label);
    if (!this->is_softmax_) return {-double{scores[label]} * weight, weight};
    T largest;
    const double log_sum = this->loops_.log_sum(scores, this->axis_.length, &largest);
    const double loss = (double{largest} - double{scores[label]}) + log_sum;
    if (this->smoothing_ == 0) return {loss * weight, weight};
    double uniform = 0;
    for (int64_t i = 0; i < this->axis_.length; ++i) {
      uniform += this->WeightAt(weights, i) * ((double{largest} - double{scores[i]}) + log_sum);
    }
    const double share = this->smoothing_ / static_cast<double>(this->axis_.length);
    return {(1 - this->smoothing_) * loss * weight + share * uniform, weight};
  }

  void Finish(const Sums* sums, int64_t blocks, T* loss) const {
    Sums total;
    for (int64_t block = 0; block < blocks; ++block) {
      total.loss += sums[block].loss;
      total.weight += sums[block].weight;
    }
    *loss = static_cast<T>(this->reduction_ == Reduction::kMean ? total.loss / total.weight : total.loss);
  }

  const bool log_probability_;
};

template <typename T>
class ClassLossGradient : public ClassLossKernel<T> {
  using Base = ClassLossKernel<T>;

 public:
  ClassLossGradient(const KernelContext& context, bool is_softmax) : Base(context, 1, is_softmax) {}

  size_t workspace_bytes() const override { return this->threads_ * this->axis_.block_elements() * sizeof(T); }

  Status Launch(const LaunchArgs& args) override {
    const double share = this->reduction_ == Reduction::kMean ? ShareOfOne(args) : 1;
    ParallelPieces(this->threads_, this->axis_.blocks(), this->BlockGrain(),
                   [&](int64_t piece, int64_t begin, int64_t end) {
                     T* scratch = reinterpret_cast<T*>(args.workspace) + piece * this->axis_.block_elements();
                     for (int64_t block = begin; block < end; ++block) RunBlock(args, block, share, scratch);
                   });
    return OkStatus();
  }

 private:
  // One over the weights of all counted labels; 0 where nothing counts, so that such a batch adds nothing.
  double ShareOfOne(const LaunchArgs& args) const {
    const T* weights = this->WeightsOf(args);
    double sum = 0;
    for (int64_t row = 0; row < this->axis_.rows(); ++row) {
      const int64_t label = this->ClassAt(args, row);
      if (label >= 0) sum += this->WeightAt(weights, label);
    }
    return sum == 0 ? 0 : 1 / sum;
  }

  void RunBlock(const LaunchArgs& args, int64_t block, double share, T* scratch) const {
    const int64_t row = this->axis_.first_row(block);
    const int64_t count = this->axis_.row_count(block);
    const int64_t length = this->axis_.length;
    const bool contiguous = this->axis_.contiguous();
    const T* scores = contiguous ? args.input<T>(1) + row * length : scratch;
    T* gradient = contiguous ? args.output<T>(0) + row * length : scratch;
    if (!contiguous) GatherRows(this->axis_, args.input<T>(1), row, count, scratch);
    for (int64_t r = 0; r < count; ++r) {
      const int64_t position = this->reduction_ == Reduction::kNone ? row + r : 0;
      RunRow(args, row + r, share * double{args.input<T>(0)[position]}, scores + r * length, gradient + r * length);
    }
    if (!contiguous) ScatterRows(this->axis_, scratch, row, count, args.output<T>(0));
  }

  void RunRow(const LaunchArgs& args, int64_t row, double scale, const T* scores, T* gradient) const {
    const int64_t label = this->ClassAt(args, row);
    const T* weights = this->WeightsOf(args);
    if (label < 0 || !this->is_softmax_) std::fill_n(gradient, this->axis_.length, T{0});
    if (label < 0) return;
    const double of_label = (1 - this->smoothing_) * scale * this->WeightAt(weights, label);
    if (this->is_softmax_) SpreadRow(weights, of_label, scale * this->smoothing_, scores, gradient);
    gradient[label] -= static_cast<T>(of_label);
  }

  // of_label softmax + smoothed / C (sum of weights * softmax - weights)
  void SpreadRow(const T* weights, double of_label, double smoothed, const T* scores, T* gradient) const {
    const int64_t length = this->axis_.length;
    const double each = smoothed / static_cast<double>(length);
    if (weights == nullptr || smoothed == 0) {
      const double factor = of_label + smoothed;
      this->loops_.scaled_softmax(scores, static_cast<T>(factor), static_cast<T>(each), gradient, length);
      return;
    }
    double sum = 0;
    for (int64_t i = 0; i < length; ++i) sum += double{weights[i]};
    this->loops_.scaled_softmax(scores, static_cast<T>(of_label + each * sum), T{0}, gradient, length);
    for (int64_t i = 0; i < length; ++i) gradient[i] -= static_cast<T>(each * double{weights[i]});
  }
};

template <template <typename> class KernelOf, bool kSoftmax, size_t kScores>
StatusOr<std::unique_ptr<Kernel>> Make(const KernelContext& context) {
  switch (context.input_type(kScores).dtype) {
    case DType::kFloat:
      return std::unique_ptr<Kernel>(new KernelOf<float>(context, kSoftmax));
    case DType::kDouble:
      return std::unique_ptr<Kernel>(new KernelOf<double>(context, kSoftmax));
    default:
      return UnsupportedTypes(context);
  }
}

// The weight of a loss: how many labels count, or the sum of their class weights.
template <typename To, typename Weight>
class CountLabels : public Kernel {
 public:
  explicit CountLabels(const KernelContext& context)
      : labels_(context.input_type(0).dtype,
                context.node.input(1) == nullptr ? INT64_MAX : context.input_type(1).elements(),
                context.node.attributes()),
        count_(context.input_type(0).elements()) {}

  Status Launch(const LaunchArgs& args) override {
    double sum = 0;
    for (int64_t i = 0; i < count_; ++i) {
      const ClassLabels::Label label = labels_.At(args.inputs[0], i);
      if (label.kind == LabelKind::kCounted) sum += args.inputs.size() > 1 ? WeightAt(args, label.index) : 1;
    }
    *args.output<To>(0) = static_cast<To>(sum);
    return OkStatus();
  }

 private:
  static double WeightAt(const LaunchArgs& args, int64_t index) {
    const Weight* weights = args.input<Weight>(1);
    return weights == nullptr ? 1.0 : double{weights[index]};
  }

  const ClassLabels labels_;
  const int64_t count_;
};

template <typename To>
StatusOr<std::unique_ptr<Kernel>> MakeCountTo(const KernelContext& context) {
  if (context.node.input(1) != nullptr && context.input_type(1).dtype == DType::kDouble) {
    return std::unique_ptr<Kernel>(new CountLabels<To, double>(context));
  }
  if (context.node.input(1) != nullptr && context.input_type(1).dtype != DType::kFloat) {
    return UnsupportedTypes(context);
  }
  return std::unique_ptr<Kernel>(new CountLabels<To, float>(context));
}

StatusOr<std::unique_ptr<Kernel>> MakeCountLabels(const KernelContext& context) {
  return context.output_type(0).dtype == DType::kDouble ? MakeCountTo<double>(context) : MakeCountTo<float>(context);
}

}  // namespace

void AddLossKernels(KernelRegistry& registry) {
  registry.Add("SoftmaxCrossEntropyLoss", Make<ClassLoss, true, 0>);
  registry.Add("NegativeLogLikelihoodLoss", Make<ClassLoss, false, 0>);
  registry.Add("onnxtrain.SoftmaxCrossEntropyLoss", Make<ClassLoss, true, 0>);
  registry.Add("onnxtrain.SoftmaxCrossEntropyLossGrad", Make<ClassLossGradient, true, 1>);
  registry.Add("onnxtrain.NegativeLogLikelihoodLossGrad", Make<ClassLossGradient, false, 1>);
  registry.Add("onnxtrain.CountLabels", MakeCountLabels);
  AddBinaryLossKernels(registry);
}

}  // namespace onnxtrain
