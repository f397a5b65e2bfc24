// SPDX-License-Identifier: Apache-2.0
#include "runtime/learning_rate_options.h"

#include "graph/attributes.h"

namespace onnxtrain {

StatusOr<math::LearningRateOptions> LearningRateOptionsOf(const KernelContext& context) {
  const Attributes& a = context.node.attributes();
  const std::string schedule = a.String("schedule", "constant");
  math::LearningRateOptions options;
  if (schedule == "constant")
    options.schedule = math::Schedule::kConstant;
  else if (schedule == "linear")
    options.schedule = math::Schedule::kLinear;
  else if (schedule == "cosine")
    options.schedule = math::Schedule::kCosine;
  else if (schedule == "step")
    options.schedule = math::Schedule::kStep;
  else if (schedule == "wsd")
    options.schedule = math::Schedule::kWsd;
  else
    return InvalidModelError("schedule \"" + schedule + "\" of " + context.node.Describe() + " is unknown");
  options.lr = DecimalValue(a.Float("lr", 0));
  options.min_lr = DecimalValue(a.Float("min_lr", 0));
  options.warmup_steps = a.Int("warmup_steps", 0);
  options.max_steps = a.Int("max_steps", 0);
  options.step_size = a.Int("step_size", 1);
  options.gamma = DecimalValue(a.Float("gamma", 0.1f));
  options.decay_steps = a.Int("decay_steps", 0);
  return options;
}

}  // namespace onnxtrain
