// SPDX-License-Identifier: Apache-2.0
#include "runtime/step_times.h"

namespace onnxtrain {

Status StepTimes::Stamp::Launch(const LaunchArgs& args) {
  using Microseconds = std::chrono::duration<double, std::micro>;
  if (before != nullptr) *before = Microseconds(Clock::now() - origin).count();
  if (inner != nullptr) RETURN_IF_ERROR(inner->Launch(args));
  if (after != nullptr) *after = Microseconds(Clock::now() - origin).count();
  return OkStatus();
}

StepTimes::StepTimes(const ExecutionPlan& plan, Clock::time_point origin)
    : start_us_(plan.steps.size(), 0),
      end_us_(plan.steps.size(), 0),
      first_(plan.steps.size()),
      second_(plan.steps.size()) {
  for (Stamp& stamp : first_) stamp.origin = origin;
  for (Stamp& stamp : second_) stamp.origin = origin;
}

Kernel& StepTimes::Timed(size_t step, Kernel& kernel) {
  first_[step].inner = &kernel;
  first_[step].before = &start_us_[step];
  first_[step].after = &end_us_[step];
  return first_[step];
}

void StepTimes::StampStart(size_t step, Stream& stream) {
  first_[step].before = &start_us_[step];
  stream.Launch(first_[step], {});
}

void StepTimes::StampEnd(size_t step, Stream& stream) {
  second_[step].after = &end_us_[step];
  stream.Launch(second_[step], {});
}

}  // namespace onnxtrain
