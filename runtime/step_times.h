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

  StepTimes(const ExecutionPlan& plan, Clock::time_point origin);
  StepTimes(const StepTimes&) = delete;
  StepTimes& operator=(const StepTimes&) = delete;

  // `kernel` with a stamp before and behind it, to be launched in its place. Borrows it.
  Kernel& Timed(size_t step, Kernel& kernel);
  // The same for work that is no kernel.
  void StampStart(size_t step, Stream& stream);
  void StampEnd(size_t step, Stream& stream);
  // Microseconds since the origin; valid when the run is over.
  double start_us(size_t step) const { return start_us_[step]; }
  double end_us(size_t step) const { return end_us_[step]; }

 private:
  // Stamps where a target is set, and launches the inner kernel between, if there is one.
  class Stamp : public Kernel {
   public:
    Status Launch(const LaunchArgs& args) override;
    Clock::time_point origin;
    Kernel* inner = nullptr;
    double* before = nullptr;
    double* after = nullptr;
  };

  std::vector<double> start_us_;
  std::vector<double> end_us_;
  std::vector<Stamp> first_;
  std::vector<Stamp> second_;
};

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_STEP_TIMES_H_
