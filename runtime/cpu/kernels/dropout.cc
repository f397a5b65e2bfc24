// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "runtime/cpu/isa/dropout_loops.h"
#include "runtime/cpu/kernels/all_kernels.h"
#include "runtime/cpu/parallel_for.h"
#include "runtime/kernel.h"

namespace onnxtrain {
namespace {

constexpr int64_t kGrainElements = 8192;

double RatioOf(const KernelContext& context) { return DecimalValue(context.node.attributes().Float("ratio", 0.5f)); }

// x, attempt -> y, mask
template <typename T>
class Draw : public Kernel {
 public:
  explicit Draw(const KernelContext& context)
      : count_(context.input_type(0).elements()),
        scale_(static_cast<T>(1 / (1 - RatioOf(context)))),
        first_slice_(static_cast<uint32_t>(context.rank * context.accumulation)),
        threads_(context.threads) {
    const Attributes& attributes = context.node.attributes();
    draw_.seed = attributes.Has("seed") ? static_cast<uint64_t>(attributes.Int("seed", 0)) : context.seed;
    draw_.draw_id = static_cast<uint32_t>(attributes.Int("draw_id", 0));
    draw_.threshold = static_cast<uint32_t>(std::min(RatioOf(context) * 4294967296.0, 4294967295.0));
  }

  Status Launch(const LaunchArgs& args) override {
    DropoutDraw draw = draw_;
    draw.attempt = static_cast<uint32_t>(*args.input<int64_t>(1));
    draw.slice = first_slice_ + static_cast<uint32_t>(args.run == nullptr ? 0 : args.run->micro_batch);
    const int64_t blocks = (count_ + kDropoutBlock - 1) / kDropoutBlock;
    ParallelFor(threads_, blocks, kGrainElements / kDropoutBlock, [&](int64_t begin, int64_t end) {
      run_(draw, args.input<T>(0), scale_, begin * kDropoutBlock, std::min(count_, end * kDropoutBlock),
           args.output<T>(0), args.output<uint8_t>(1));
    });
    return OkStatus();
  }

 private:
  using Run = void (*)(const DropoutDraw&, const T*, T, int64_t, int64_t, T*, uint8_t*);

  const int64_t count_;
  const T scale_;
  const uint32_t first_slice_;
  const int threads_;
  DropoutDraw draw_{};
  const Run run_ = ONNXTRAIN_SELECT_ISA_AS(Run, DropoutRun);
};

// dy, mask -> dx
template <typename T>
class DrawGradient : public Kernel {
 public:
  explicit DrawGradient(const KernelContext& context)
      : count_(context.input_type(0).elements()),
        scale_(static_cast<T>(1 / (1 - RatioOf(context)))),
        threads_(context.threads) {}

  Status Launch(const LaunchArgs& args) override {
    ParallelFor(threads_, count_, kGrainElements, [&](int64_t begin, int64_t end) {
      run_(args.input<T>(0), args.input<uint8_t>(1), scale_, begin, end, args.output<T>(0));
    });
    return OkStatus();
  }

 private:
  using Run = void (*)(const T*, const uint8_t*, T, int64_t, int64_t, T*);

  const int64_t count_;
  const T scale_;
  const int threads_;
  const Run run_ = ONNXTRAIN_SELECT_ISA_AS(Run, MaskRun);
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

// The standard operator where it drops nothing.
class Keep : public Kernel {
 public:
  explicit Keep(const KernelContext& context)
      : bytes_(context.input_type(0).bytes()), count_(context.input_type(0).elements()) {}
  Status Launch(const LaunchArgs& args) override {
    if (args.outputs[0] != args.inputs[0] && bytes_ != 0) std::memcpy(args.outputs[0], args.inputs[0], bytes_);
    if (bool* mask = args.output<bool>(1)) std::fill_n(mask, count_, true);
    return OkStatus();
  }

 private:
  const size_t bytes_;
  const int64_t count_;
};

bool IsConstantZero(const Value* value) {
  return value != nullptr && value->constant() != nullptr && value->constant()->DoubleAt(0) == 0;
}

StatusOr<std::unique_ptr<Kernel>> MakeKeep(const KernelContext& context) {
  const Value* training = context.node.input(2);
  if (training != nullptr && !IsConstantZero(training) && !IsConstantZero(context.node.input(1))) {
    return InvalidModelError(context.node.Describe() +
                             ": a Dropout that trains must be made onnxtrain.Dropout by set_mode before it can run");
  }
  return std::unique_ptr<Kernel>(new Keep(context));
}

}  // namespace

void AddDropoutKernels(KernelRegistry& registry) {
  registry.Add("Dropout", MakeKeep);
  registry.Add("onnxtrain.Dropout", Make<Draw>);
  registry.Add("onnxtrain.DropoutGrad", Make<DrawGradient>);
}

}  // namespace onnxtrain
