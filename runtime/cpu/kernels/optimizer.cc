// SPDX-License-Identifier: Apache-2.0
// Optimizers on whole parameters and on bucket shards. A node without attribute `bucket` is one segment; with it, the
// Layout's segments of this rank are walked with the hyper-parameters of their groups, and padding stays as it is: zero.
#include <cstring>

#include "graph/attributes.h"
#include "runtime/cpu/isa/optimizer_loops.h"
#include "runtime/cpu/kernels/all_kernels.h"
#include "runtime/cpu/parallel_for.h"
#include "runtime/kernel.h"
#include "runtime/optimizer_segments.h"

namespace onnxtrain {
namespace {

// Elements a thread takes at least: below, a parallel region costs more than it saves.
constexpr int64_t kGrain = 16384;

// Where an optimizer node keeps what; `moments` states follow weight and gradient.
template <typename T>
struct OptimizerInputs {
  OptimizerInputs(const LaunchArgs& args, size_t moments)
      : arrays{args.input<T>(0),
               args.input<T>(1),
               args.input<T>(2),
               moments == 2 ? args.input<T>(3) : nullptr,
               args.output<T>(0),
               args.output<T>(1),
               moments == 2 ? args.output<T>(2) : nullptr},
        rate(*args.input<double>(2 + moments)),
        grad_scale(*args.input<double>(3 + moments)),
        step(*args.input<int64_t>(4 + moments)),
        apply(*args.input<bool>(5 + moments)) {}

  OptimizerArrays<T> arrays;
  double rate;
  double grad_scale;
  int64_t step;
  bool apply;
};

// A step that must not be applied leaves the old state in the outputs.
template <typename T>
void KeepState(const OptimizerArrays<T>& arrays, int64_t count) {
  const size_t bytes = static_cast<size_t>(count) * sizeof(T);
  const auto keep = [&](T* to, const T* from) {
    if (to != nullptr && from != nullptr && to != from) std::memcpy(to, from, bytes);
  };
  keep(arrays.weight_out, arrays.weight);
  keep(arrays.moment1_out, arrays.moment1);
  keep(arrays.moment2_out, arrays.moment2);
}

// Rule: `void operator()(const OptimizerInputs<T>&, const OptimizerSegment&, int64_t begin, int64_t end) const`, `kMoments`.
template <typename T, typename Rule>
class OptimizerKernel : public Kernel {
 public:
  OptimizerKernel(const KernelContext& context, std::vector<OptimizerSegment> segments)
      : rule_(context.node.attributes()),
        segments_(std::move(segments)),
        elements_(context.input_type(0).elements()),
        threads_(context.threads) {}

  Status Launch(const LaunchArgs& args) override {
    const OptimizerInputs<T> inputs(args, Rule::kMoments);
    if (!inputs.apply) {
      KeepState(inputs.arrays, elements_);
      return OkStatus();
    }
    for (const OptimizerSegment& segment : segments_) {
      ParallelFor(threads_, segment.end - segment.begin, kGrain, [&](int64_t begin, int64_t end) {
        rule_(inputs, segment, segment.begin + begin, segment.begin + end);
      });
    }
    return OkStatus();
  }

 private:
  const Rule rule_;
  const std::vector<OptimizerSegment> segments_;
  const int64_t elements_;
  const int threads_;
};

template <typename T, bool kDecoupled>
struct AdamRule {
  static constexpr size_t kMoments = 2;
  using Loop = void (*)(const math::AdamScalars<T>&, const OptimizerArrays<T>&, int64_t, int64_t);

  explicit AdamRule(const Attributes& attributes)
      : beta1(DecimalValue(attributes.Float("beta1", 0.9f))),
        beta2(DecimalValue(attributes.Float("beta2", 0.999f))),
        epsilon(DecimalValue(attributes.Float("epsilon", 1e-8f))),
        loop(ONNXTRAIN_SELECT_ISA_AS(Loop, Adam)) {}

  void operator()(const OptimizerInputs<T>& in, const OptimizerSegment& segment, int64_t begin, int64_t end) const {
    loop(math::MakeAdamScalars<T>(kDecoupled, in.rate * segment.lr_multiplier, segment.weight_decay, beta1, beta2,
                                  epsilon, in.grad_scale, in.step),
         in.arrays, begin, end);
  }

  double beta1, beta2, epsilon;
  Loop loop;
};

template <typename T>
struct SgdRule {
  static constexpr size_t kMoments = 1;
  using Loop = void (*)(const math::SgdScalars<T>&, bool, const OptimizerArrays<T>&, int64_t, int64_t);

  explicit SgdRule(const Attributes& attributes)
      : momentum(DecimalValue(attributes.Float("momentum", 0))),
        nesterov(attributes.Int("nesterov", 0) != 0),
        loop(ONNXTRAIN_SELECT_ISA_AS(Loop, Sgd)) {}

  void operator()(const OptimizerInputs<T>& in, const OptimizerSegment& segment, int64_t begin, int64_t end) const {
    const math::SgdScalars<T> scalars{static_cast<T>(in.grad_scale), static_cast<T>(segment.weight_decay),
                                      static_cast<T>(momentum), static_cast<T>(in.rate * segment.lr_multiplier)};
    loop(scalars, nesterov, in.arrays, begin, end);
  }

  double momentum;
  bool nesterov;
  Loop loop;
};

template <typename T>
struct AdagradRule {
  static constexpr size_t kMoments = 1;
  using Loop = void (*)(const math::AdagradScalars<T>&, const OptimizerArrays<T>&, int64_t, int64_t);

  explicit AdagradRule(const Attributes& attributes)
      : epsilon(DecimalValue(attributes.Float("epsilon", 1e-10f))),
        loop(ONNXTRAIN_SELECT_ISA_AS(Loop, Adagrad)) {}

  void operator()(const OptimizerInputs<T>& in, const OptimizerSegment& segment, int64_t begin, int64_t end) const {
    loop({static_cast<T>(in.grad_scale), static_cast<T>(segment.weight_decay),
          static_cast<T>(in.rate * segment.lr_multiplier), static_cast<T>(epsilon)},
         in.arrays, begin, end);
  }

  double epsilon;
  Loop loop;
};

template <typename T>
struct LionRule {
  static constexpr size_t kMoments = 1;
  using Loop = void (*)(const math::LionScalars<T>&, const OptimizerArrays<T>&, int64_t, int64_t);

  explicit LionRule(const Attributes& attributes)
      : beta1(DecimalValue(attributes.Float("beta1", 0.9f))),
        beta2(DecimalValue(attributes.Float("beta2", 0.99f))),
        loop(ONNXTRAIN_SELECT_ISA_AS(Loop, Lion)) {}

  void operator()(const OptimizerInputs<T>& in, const OptimizerSegment& segment, int64_t begin, int64_t end) const {
    const double lr = in.rate * segment.lr_multiplier;
    loop({static_cast<T>(in.grad_scale), static_cast<T>(1.0 - lr * segment.weight_decay), static_cast<T>(lr),
          static_cast<T>(beta1), static_cast<T>(1.0 - beta1), static_cast<T>(beta2), static_cast<T>(1.0 - beta2)},
         in.arrays, begin, end);
  }

  double beta1, beta2;
  Loop loop;
};

template <typename T, template <typename> typename Rule>
StatusOr<std::unique_ptr<Kernel>> MakeTyped(const KernelContext& context) {
  ASSIGN_OR_RETURN(std::vector<OptimizerSegment> segments, OptimizerSegmentsOf(context));
  return std::unique_ptr<Kernel>(std::make_unique<OptimizerKernel<T, Rule<T>>>(context, std::move(segments)));
}

template <template <typename> typename Rule>
StatusOr<std::unique_ptr<Kernel>> Make(const KernelContext& context) {
  switch (context.input_type(0).dtype) {
    case DType::kFloat: return MakeTyped<float, Rule>(context);
    case DType::kDouble: return MakeTyped<double, Rule>(context);
    default: return UnsupportedTypes(context);
  }
}

template <typename T>
using CoupledAdam = AdamRule<T, false>;
template <typename T>
using DecoupledAdam = AdamRule<T, true>;

}  // namespace

void AddStepControlKernels(KernelRegistry& registry);  // step_control.cc

void AddOptimizerKernels(KernelRegistry& registry) {
  registry.Add("onnxtrain.SGD", Make<SgdRule>);
  registry.Add("onnxtrain.Adam", Make<CoupledAdam>);
  registry.Add("onnxtrain.AdamW", Make<DecoupledAdam>);
  registry.Add("onnxtrain.Adagrad", Make<AdagradRule>);
  registry.Add("onnxtrain.Lion", Make<LionRule>);
  AddStepControlKernels(registry);
}

}  // namespace onnxtrain
