// SPDX-License-Identifier: Apache-2.0
// Learning-rate schedules as functions of the step counter, shared by all backends. Formulas: docs/training.md.
#ifndef ONNXTRAIN_RUNTIME_MATH_LEARNING_RATE_H_
#define ONNXTRAIN_RUNTIME_MATH_LEARNING_RATE_H_

#include <cmath>
#include <cstdint>

#include "runtime/math/host_device.h"

namespace onnxtrain::math {

enum class Schedule : uint8_t { kConstant, kLinear, kCosine, kStep, kWsd };

struct LearningRateOptions {
  Schedule schedule = Schedule::kConstant;
  double lr = 0;
  double min_lr = 0;
  int64_t warmup_steps = 0;
  int64_t max_steps = 0;    // linear, cosine, wsd
  int64_t step_size = 1;    // step
  double gamma = 0.1;       // step
  int64_t decay_steps = 0;  // wsd
};

// The rate of step k, counted from 0: linear warm-up lr * (k + 1) / W for k < W, then the schedule. Past max_steps the
// rate stays at min_lr.
ONNXTRAIN_HOST_DEVICE inline double LearningRateAt(const LearningRateOptions& o, int64_t k) {
  if (k < o.warmup_steps) return o.lr * static_cast<double>(k + 1) / static_cast<double>(o.warmup_steps);
  const double span = static_cast<double>(o.max_steps - o.warmup_steps);
  double t = span > 0 ? static_cast<double>(k - o.warmup_steps) / span : 1.0;
  t = t > 1.0 ? 1.0 : t;
  switch (o.schedule) {
    case Schedule::kConstant: return o.lr;
    case Schedule::kLinear: return o.min_lr + (o.lr - o.min_lr) * (1.0 - t);
    case Schedule::kCosine: return o.min_lr + (o.lr - o.min_lr) * (1.0 + std::cos(3.14159265358979323846 * t)) / 2.0;
    case Schedule::kStep: {
      const int64_t drops = (k - o.warmup_steps) / o.step_size;
      return o.lr * std::pow(o.gamma, static_cast<double>(drops));
    }
    case Schedule::kWsd: {
      const int64_t begin = o.max_steps - o.decay_steps;
      if (k < begin) return o.lr;
      double down = static_cast<double>(k - begin) / static_cast<double>(o.decay_steps);
      down = down > 1.0 ? 1.0 : down;
      return o.lr + (o.min_lr - o.lr) * down;
    }
  }
  return o.lr;
}

}  // namespace onnxtrain::math

#endif  // ONNXTRAIN_RUNTIME_MATH_LEARNING_RATE_H_
