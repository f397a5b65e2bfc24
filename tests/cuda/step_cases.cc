// SPDX-License-Identifier: Apache-2.0
// Optimizers, the scalars of a step, and the progress of collectives.
#include <algorithm>
#include <array>
#include <cmath>

#include "cuda_ops/kernels/collective_progress.h"
#include "cuda_ops/kernels/host_fault.h"
#include "cuda_ops/kernels/optimizer.h"
#include "cuda_ops/kernels/step_control.h"
#include "runtime/math/optimizer.h"
#include "tests/cuda/device_case.h"

namespace onnxtrain {
namespace {

// What the host reports joins an empty word and does not replace another.
CaseResult RunMergeFault(double host, double device) {
  Array host_word(DType::kInt64, std::vector<double>{host});
  CaseResult result;
  Array& word = result.outputs.emplace_back(DType::kInt64, std::vector<double>{device});
  LaunchMergeFault(host_word.as<uint64_t>(), word.as<uint64_t>(), nullptr);
  result.expected.push_back({device != 0 ? device : host});
  return result;
}

void AddMergeFaults(DeviceCases& cases) {
  for (const double host : {0.0, 4294967299.0}) {
    for (const double device : {0.0, 8589934593.0}) {
      cases.push_back({"MergeFault", [=] { return RunMergeFault(host, device); }});
    }
  }
}

struct OptimizerCase {
  OptimizerRule rule;
  int64_t count;
  bool apply, nesterov;
  int64_t shift;  // elements by which all tensors are off their alignment
};

// One element by the formula in double: weight, state 1, state 2.
std::array<double, 3> Updated(const OptimizerCase& c, const OptimizerArguments& a, double w, double g, double m,
                              double v) {
  const double rate = 0.01 * a.learning_rate_multiplier, scale = 0.5;
  std::array<double, 3> to{w, m, v};
  if (!c.apply) return to;
  switch (c.rule) {
    case OptimizerRule::kSgd: {
      const math::SgdScalars<double> s{scale, a.weight_decay, a.beta1, rate};
      c.nesterov ? math::SgdElement<double, true>(s, w, g, m, &to[0], &to[1])
                 : math::SgdElement<double, false>(s, w, g, m, &to[0], &to[1]);
      break;
    }
    case OptimizerRule::kAdam:
    case OptimizerRule::kAdamW:
      math::AdamElement(math::MakeAdamScalars<double>(c.rule == OptimizerRule::kAdamW, rate, a.weight_decay, a.beta1,
                                                      a.beta2, a.epsilon, scale, 3),
                        w, g, m, v, &to[0], &to[1], &to[2]);
      break;
    case OptimizerRule::kAdagrad:
      math::AdagradElement(math::AdagradScalars<double>{scale, a.weight_decay, rate, a.epsilon}, w, g, m, &to[0],
                           &to[1]);
      break;
    case OptimizerRule::kLion:
      math::LionElement(
          math::LionScalars<double>{scale, 1 - rate * a.weight_decay, rate, a.beta1, 1 - a.beta1, a.beta2, 1 - a.beta2},
          w, g, m, &to[0], &to[1]);
      break;
  }
  return to;
}

CaseResult RunOptimizer(const OptimizerCase& c) {
  const int64_t size = c.count + c.shift;
  const Array w = Uniform(DType::kFloat, size, 1), m = Uniform(DType::kFloat, size, 3, 0.1, 1);
  const Array v = Uniform(DType::kFloat, size, 4, 0.1, 1);
  Array g = Uniform(DType::kFloat, size, 2), rate(DType::kDouble, std::vector<double>{0.01});
  Array scale(DType::kDouble, std::vector<double>{0.5}), step(DType::kInt64, std::vector<double>{3});
  Array apply(DType::kBool, std::vector<double>{c.apply ? 1.0 : 0.0});
  const bool two = c.rule == OptimizerRule::kAdam || c.rule == OptimizerRule::kAdamW;
  CaseResult result;  // in place
  result.outputs.emplace_back(DType::kFloat, w.Values());
  result.outputs.emplace_back(DType::kFloat, m.Values());
  result.outputs.emplace_back(DType::kFloat, v.Values());
  OptimizerArguments a;
  a.weight = a.weight_new = result.outputs[0].as<float>() + c.shift;
  a.state1 = a.state1_new = result.outputs[1].as<float>() + c.shift;
  a.state2 = a.state2_new = two ? result.outputs[2].as<float>() + c.shift : nullptr;
  a.gradient = g.as<float>() + c.shift;
  a.count = c.count;
  a.learning_rate = rate.as<double>();
  a.grad_scale = scale.as<double>();
  a.step = step.as<int64_t>();
  a.apply = apply.as<bool>();
  a.learning_rate_multiplier = 0.5;
  a.weight_decay = 0.125;
  a.beta1 = 0.875;
  a.beta2 = 0.96875;
  a.epsilon = 1e-8;
  a.nesterov = c.nesterov;
  LaunchOptimizer(c.rule, a, nullptr);
  result.expected.resize(3);
  for (int64_t i = 0; i < size; ++i) {
    const std::array<double, 3> to = i < c.shift ? std::array<double, 3>{w.At(i), m.At(i), v.At(i)}
                                                 : Updated(c, a, w.At(i), g.At(i), m.At(i), v.At(i));
    for (size_t k = 0; k < 3; ++k) result.expected[k].push_back(to[k]);
  }
  result.tolerance = 2e-6;
  return result;
}

void AddOptimizers(DeviceCases& cases) {
  const std::pair<const char*, OptimizerRule> rules[] = {{"SGD", OptimizerRule::kSgd},
                                                         {"Adam", OptimizerRule::kAdam},
                                                         {"AdamW", OptimizerRule::kAdamW},
                                                         {"Adagrad", OptimizerRule::kAdagrad},
                                                         {"Lion", OptimizerRule::kLion}};
  for (const auto& [name, rule] : rules) {
    for (const int64_t count : {1, 4, 259, 1025}) {
      for (const int64_t shift : {0, 1, 4}) {
        cases.push_back({name, [=, rule = rule] { return RunOptimizer({rule, count, true, false, shift}); }});
      }
    }
    cases.push_back({std::string(name) + " skipped", [rule = rule] {
                       return RunOptimizer({rule, 37, false, false, 0});
                     }});
  }
  cases.push_back({"SGD with Nesterov", [] { return RunOptimizer({OptimizerRule::kSgd, 263, true, true, 0}); }});
}

CaseResult RunNorm(int64_t count) {
  Array x = Uniform(DType::kFloat, count, 1);
  Array partial(DType::kDouble, NormBlocks(count));
  CaseResult result;
  Array& sum = result.outputs.emplace_back(DType::kDouble, 1);
  LaunchNormPartials(x.as<float>(), count, partial.as<double>(), nullptr);
  LaunchSumPartials(partial.as<double>(), partial.count(), sum.as<double>(), nullptr);
  double expected = 0;
  for (const double value : x.Values()) expected += value * value;
  result.expected.push_back({expected});
  result.tolerance = 1e-10;
  return result;
}

CaseResult RunStepSums(double weight, double word) {
  Array loss(DType::kFloat, std::vector<double>{2.5}), weights(DType::kFloat, std::vector<double>{weight});
  CaseResult result;
  result.outputs.emplace_back(DType::kDouble, 3);
  result.outputs.emplace_back(DType::kInt64, 1);
  Array& status_word = result.outputs.emplace_back(DType::kInt64, std::vector<double>{word});
  LaunchStepSums({loss.as<float>(), weights.as<float>(), status_word.as<uint64_t>(), result.outputs[0].as<double>(),
                  result.outputs[1].as<int64_t>()},
                 nullptr);
  result.expected = {{weight == 0 ? 0 : 2.5 * weight, weight, word == 0 ? 0.0 : 1.0}, {word}, {0}};
  return result;
}

// A step that is not finite, saw a fault or has no weight is not applied.
CaseResult RunStepControl(std::vector<double> totals, double clip) {
  Array given(DType::kDouble, totals);
  CaseResult result;
  for (int i = 0; i < 3; ++i) result.outputs.emplace_back(DType::kDouble, 1);
  result.outputs.emplace_back(DType::kBool, 1);
  LaunchStepControl({given.as<double>(), result.outputs[0].as<double>(), result.outputs[1].as<double>(),
                     result.outputs[2].as<double>(), result.outputs[3].as<bool>(), clip, 2.0},
                    nullptr);
  const double loss = totals[0] / totals[1], norm = std::sqrt(totals[3]) / totals[1];
  const double factor = clip > 0 ? std::min(1.0, clip / (2 * norm + 1e-6)) : 1;
  const bool apply = std::isfinite(loss) && std::isfinite(norm) && totals[2] == 0 && totals[1] > 0;
  result.expected = {{loss}, {norm}, {2 / totals[1] * factor}, {apply ? 1.0 : 0.0}};
  return result;
}

void AddStep(DeviceCases& cases) {
  for (const int64_t count : {1, 1000, 32768, 70001}) cases.push_back({"SquaredNorm", [=] { return RunNorm(count); }});
  cases.push_back({"StepSums", [] { return RunStepSums(4, 0); }});
  cases.push_back({"StepSums", [] { return RunStepSums(0, 4294967301.0); }});
  for (const std::vector<double>& totals : std::vector<std::vector<double>>{
           {12, 4, 0, 90}, {12, 4, 1, 90}, {INFINITY, 4, 0, 90}, {12, 4, 0, NAN}, {12, 4, 0, 0.25}}) {
    for (const double clip : {0.0, 1.0}) cases.push_back({"StepControl", [=] { return RunStepControl(totals, clip); }});
  }
  for (const int64_t at : {0, 2, 7, 99}) {
    cases.push_back({"LearningRate", [=] {
                       math::LearningRateOptions options;
                       options.schedule = math::Schedule::kCosine;
                       options.lr = 0.5;
                       options.min_lr = 0.25;
                       options.warmup_steps = 3;
                       options.max_steps = 11;
                       Array step(DType::kInt64, std::vector<double>{static_cast<double>(at)});
                       CaseResult result;
                       Array& rate = result.outputs.emplace_back(DType::kDouble, 1);
                       LaunchLearningRate(options, step.as<int64_t>(), rate.as<double>(), nullptr);
                       const double t = std::min(1.0, static_cast<double>(at - 3) / 8);
                       result.expected.push_back(
                           {at < 3 ? 0.5 * static_cast<double>(at + 1) / 3 : 0.25 + 0.125 * (1 + std::cos(M_PI * t))});
                       return result;
                     }});
  }
  for (const double apply : {0.0, 1.0}) {
    cases.push_back({"AdvanceStep", [=] {
                       Array step(DType::kInt64, std::vector<double>{41});
                       Array applied(DType::kBool, std::vector<double>{apply});
                       CaseResult result;
                       Array& next = result.outputs.emplace_back(DType::kInt64, 1);
                       LaunchAdvanceStep(step.as<int64_t>(), applied.as<bool>(), next.as<int64_t>(), nullptr);
                       result.expected.push_back({41 + apply});
                       return result;
                     }});
  }
  cases.push_back({"CollectiveProgress", [] {
                     ProgressCounters counters;
                     ProgressPage page;
                     for (uint64_t call = 1; call <= 34; ++call) {
                       MarkCollectiveStarted(&counters, &page, call, nullptr);
                       if (call < 34) MarkCollectiveCompleted(&counters, &page, nullptr);
                     }
                     CaseResult result;
                     const std::vector<double> found{static_cast<double>(page.started),
                                                     static_cast<double>(page.completed),
                                                     static_cast<double>(page.calls[34 % kProgressCalls])};
                     result.outputs.emplace_back(DType::kInt64, found);
                     result.expected.push_back({34, 33, 34});
                     return result;
                   }});
}

}  // namespace

void AddStepCases(DeviceCases& cases) {
  AddMergeFaults(cases);
  AddOptimizers(cases);
  AddStep(cases);
}

}  // namespace onnxtrain
