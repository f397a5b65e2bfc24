// SPDX-License-Identifier: Apache-2.0
// Appends what turns gradients into new parameters: sums, norm, step control, learning rate and one optimizer node per
// parameter (structure in passes/README.md).
//
// Before:  g = ...                                             role gradient/w
// After:   sums, status = onnxtrain.StepSums (loss, loss_weight)
//          norm = onnxtrain.SquaredNorm (g);  totals = Concat (sums, norm)
//          loss, grad_norm, grad_scale, applied = onnxtrain.StepControl <clip> (totals)
//          learning_rate = onnxtrain.LearningRate <schedule, lr> (step)
//          w_new, m_new, v_new = onnxtrain.AdamW (w, g, w.moment1, w.moment2, learning_rate, grad_scale, step, applied)
//          step_new = onnxtrain.AdvanceStep (step, applied);  attempt_new = Add (attempt, 1)
//
// Only parameters with a gradient are updated: no path to the loss means no moment and no decay. Optimizer nodes stand
// in the order in which the forward pass first reads their parameters. Updates of buffers become Where (applied, new,
// old). The outputs of the graph become loss, grad_norm, learning_rate, status, applied.
#ifndef ONNXTRAIN_PASSES_APPEND_OPTIMIZER_H_
#define ONNXTRAIN_PASSES_APPEND_OPTIMIZER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "passes/pass.h"

namespace onnxtrain {

enum class OptimizerMethod : uint8_t { kSgd, kAdam, kAdamW, kAdagrad, kLion };
// "sgd", "adam", "adamw", "adagrad", "lion".
std::optional<OptimizerMethod> OptimizerMethodFromName(std::string_view name);
std::string_view NameOf(OptimizerMethod method);
// 1e-3; adagrad 1e-2, lion 1e-4.
double DefaultLearningRate(OptimizerMethod method);

// What differs for the parameters that a glob matches; the first matching group counts.
struct OptimizerGroup {
  std::string pattern;
  std::optional<double> lr;  // follows the schedule by the same factor as the main rate
  std::optional<double> weight_decay;
};

struct LearningRateSchedule {
  std::string kind = "constant";  // or "linear", "cosine", "step", "wsd": formulas in cli.md and runtime/math
  double lr = 1e-3;
  double min_lr = 0;
  int64_t warmup_steps = 0;
  int64_t max_steps = 0;
  int64_t step_size = 0;
  double gamma = 0.1;
  int64_t decay_steps = 0;
};

// Unset numbers take the method's default (cli.md, 'Defaults'); a number that the method does not use is a Usage error.
struct AppendOptimizerOptions {
  std::string graph = "step";
  OptimizerMethod method = OptimizerMethod::kAdamW;
  LearningRateSchedule schedule;
  std::optional<double> momentum;
  std::optional<double> dampening;
  bool nesterov = false;
  std::optional<double> beta1;
  std::optional<double> beta2;
  std::optional<double> epsilon;
  std::optional<double> weight_decay;
  std::vector<std::string> no_decay;  // globs, or "rank<2": these get weight decay 0
  std::vector<OptimizerGroup> groups;
  double clip = 0;                 // largest global norm of the mean gradient; 0: none
  double gradient_multiplier = 1;  // the number of ranks for --reduce sum
};

// Fails with InvalidModel without gradients, with Usage for options that do not fit the method, the schedule or the
// model (a glob that matches nothing).
std::unique_ptr<Pass> AppendOptimizer(const AppendOptimizerOptions& options);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_PASSES_APPEND_OPTIMIZER_H_
