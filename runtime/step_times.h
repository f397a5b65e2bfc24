// SPDX-License-Identifier: Apache-2.0
// When each step of a plan began and ended in one run: stamps that the streams themselves take, for traces.
#ifndef ONNXTRAIN_RUNTIME_STEP_TIMES_H_
#define ONNXTRAIN_RUNTIME_STEP_TIMES_H_

#include <chrono>
#include <vector>

#include "runtime/device.h"
#include "runtime/execution_plan.h"

namespace onnxtrain {

// Room for the stamps of one run of a plan. Stays where it is while the run writes into it.
class StepTimes {
 public:
  using Clock = std::chrono::steady_clock;

  StepTimes(const ExecutionPlan& plan, Clock::time_point origin)
      : origin_(origin), start_us_(plan.steps.size(), 0), end_us_(plan.steps.size(), 0) {}
  StepTimes(const StepTimes&) = delete;
  StepTimes& operator=(const StepTimes&) = delete;

  // Around the work of a step on its stream.
  void StampStart(size_t step, Stream& stream) { stream.Stamp(origin_, &start_us_[step]); }
  void StampEnd(size_t step, Stream& stream) { stream.Stamp(origin_, &end_us_[step]); }
  // Microseconds since the origin; valid when the run is over.
  double start_us(size_t step) const { return start_us_[step]; }
  double end_us(size_t step) const { return end_us_[step]; }

 private:
  const Clock::time_point origin_;
  std::vector<double> start_us_;
  std::vector<double> end_us_;
};

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_STEP_TIMES_H_
