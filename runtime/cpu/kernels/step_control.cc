// SPDX-License-Identifier: Apache-2.0
// The scalars of a step: sums, norm, control, learning rate, counter (passes/README.md).
#include <atomic>
#include <cmath>

#include "graph/attributes.h"
#include "runtime/cpu/isa/optimizer_loops.h"
#include "runtime/cpu/kernels/all_kernels.h"
#include "runtime/cpu/parallel_for.h"
#include "runtime/kernel.h"
#include "runtime/learning_rate_options.h"

namespace onnxtrain {
namespace {

double ReadScalar(const std::byte* bytes, DType dtype) {
  return dtype == DType::kDouble ? *reinterpret_cast<const double*>(bytes)
                                 : static_cast<double>(*reinterpret_cast<const float*>(bytes));
}

bool IsFloatOrDouble(DType dtype) { return dtype == DType::kFloat || dtype == DType::kDouble; }

class StepSumsKernel : public Kernel {
 public:
  explicit StepSumsKernel(const KernelContext& context)
      : loss_(context.input_type(0).dtype), weight_(context.input_type(1).dtype) {}

  Status Launch(const LaunchArgs& args) override {
    const double weight = ReadScalar(args.inputs[1], weight_);
    const uint64_t word = std::atomic_ref<uint64_t>(*args.status_word).exchange(0);
    double* sums = args.output<double>(0);
    // A micro-batch without counted labels has a mean of 0/0; it adds nothing.
    sums[0] = weight == 0 ? 0 : ReadScalar(args.inputs[0], loss_) * weight;
    sums[1] = weight;
    sums[2] = word == 0 ? 0 : 1;
    if (int64_t* status = args.output<int64_t>(1)) *status = static_cast<int64_t>(word);
    return OkStatus();
  }

 private:
  const DType loss_;
  const DType weight_;
};

// Partial sums over blocks of a fixed size, added in order: the same bits for every number of threads.
class SquaredNormKernel : public Kernel {
 public:
  static constexpr int64_t kBlock = 32768;

  explicit SquaredNormKernel(const KernelContext& context) : threads_(context.threads) {
    for (size_t i = 0; i < context.node.inputs().size(); ++i) {
      const TensorType& type = context.input_type(i);
      for (int64_t begin = 0; begin < type.elements(); begin += kBlock) {
        blocks_.push_back({i, type.dtype, begin, std::min(kBlock, type.elements() - begin)});
      }
    }
  }

  size_t workspace_bytes() const override { return blocks_.size() * sizeof(double); }

  Status Launch(const LaunchArgs& args) override {
    double* partial = reinterpret_cast<double*>(args.workspace);
    ParallelFor(threads_, static_cast<int64_t>(blocks_.size()), 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) partial[i] = OfBlock(args, blocks_[static_cast<size_t>(i)]);
    });
    double sum = 0;
    for (size_t i = 0; i < blocks_.size(); ++i) sum += partial[i];
    *args.output<double>(0) = sum;
    return OkStatus();
  }

 private:
  struct Block {
    size_t input;
    DType dtype;
    int64_t begin;
    int64_t count;
  };
  using FloatLoop = double (*)(const float*, int64_t);
  using DoubleLoop = double (*)(const double*, int64_t);

  double OfBlock(const LaunchArgs& args, const Block& block) const {
    if (block.dtype == DType::kDouble) return double_loop_(args.input<double>(block.input) + block.begin, block.count);
    return float_loop_(args.input<float>(block.input) + block.begin, block.count);
  }

  const int threads_;
  std::vector<Block> blocks_;
  FloatLoop float_loop_ = ONNXTRAIN_SELECT_ISA_AS(FloatLoop, SumOfSquares);
  DoubleLoop double_loop_ = ONNXTRAIN_SELECT_ISA_AS(DoubleLoop, SumOfSquares);
};

class StepControlKernel : public Kernel {
 public:
  explicit StepControlKernel(const KernelContext& context)
      : clip_(DecimalValue(context.node.attributes().Float("clip", 0))),
        multiplier_(DecimalValue(context.node.attributes().Float("gradient_multiplier", 1))) {}

  Status Launch(const LaunchArgs& args) override {
    const double* totals = args.input<double>(0);
    const double weight = totals[1];
    const double loss = totals[0] / weight;
    const double norm = std::sqrt(totals[3]) / weight;
    double scale = multiplier_ / weight;
    if (clip_ > 0) scale *= std::min(1.0, clip_ / (multiplier_ * norm + 1e-6));
    *args.output<double>(0) = loss;
    *args.output<double>(1) = norm;
    *args.output<double>(2) = scale;
    *args.output<bool>(3) = std::isfinite(loss) && std::isfinite(norm) && totals[2] == 0 && weight > 0;
    return OkStatus();
  }

 private:
  const double clip_;
  const double multiplier_;
};

class LearningRateKernel : public Kernel {
 public:
  explicit LearningRateKernel(const math::LearningRateOptions& options) : options_(options) {}
  Status Launch(const LaunchArgs& args) override {
    *args.output<double>(0) = math::LearningRateAt(options_, *args.input<int64_t>(0));
    return OkStatus();
  }

 private:
  const math::LearningRateOptions options_;
};

class AdvanceStepKernel : public Kernel {
 public:
  Status Launch(const LaunchArgs& args) override {
    *args.output<int64_t>(0) = *args.input<int64_t>(0) + (*args.input<bool>(1) ? 1 : 0);
    return OkStatus();
  }
};

StatusOr<std::unique_ptr<Kernel>> MakeStepSums(const KernelContext& context) {
  if (!IsFloatOrDouble(context.input_type(0).dtype) || !IsFloatOrDouble(context.input_type(1).dtype)) {
    return UnsupportedTypes(context);
  }
  return std::unique_ptr<Kernel>(std::make_unique<StepSumsKernel>(context));
}

StatusOr<std::unique_ptr<Kernel>> MakeSquaredNorm(const KernelContext& context) {
  for (const Value* input : context.node.inputs()) {
    if (!IsFloatOrDouble(input->type().dtype)) return UnsupportedTypes(context);
  }
  return std::unique_ptr<Kernel>(std::make_unique<SquaredNormKernel>(context));
}

StatusOr<std::unique_ptr<Kernel>> MakeStepControl(const KernelContext& context) {
  return std::unique_ptr<Kernel>(std::make_unique<StepControlKernel>(context));
}

StatusOr<std::unique_ptr<Kernel>> MakeLearningRate(const KernelContext& context) {
  ASSIGN_OR_RETURN(const math::LearningRateOptions options, LearningRateOptionsOf(context));
  return std::unique_ptr<Kernel>(std::make_unique<LearningRateKernel>(options));
}

StatusOr<std::unique_ptr<Kernel>> MakeAdvanceStep(const KernelContext&) {
  return std::unique_ptr<Kernel>(std::make_unique<AdvanceStepKernel>());
}

}  // namespace

void AddStepControlKernels(KernelRegistry& registry) {
  registry.Add("onnxtrain.StepSums", MakeStepSums);
  registry.Add("onnxtrain.SquaredNorm", MakeSquaredNorm);
  registry.Add("onnxtrain.StepControl", MakeStepControl);
  registry.Add("onnxtrain.LearningRate", MakeLearningRate);
  registry.Add("onnxtrain.AdvanceStep", MakeAdvanceStep);
}

}  // namespace onnxtrain
