// SPDX-License-Identifier: Apache-2.0
#include "tools/link_options.h"

#include <cmath>

#include "runtime/training_options.h"
#include "tools/machine_file.h"

namespace onnxtrain {

std::vector<double> LinkOptions::Apply(TrainingOptions& training) const {
  if (training.tf32) training.machine = WithTf32(training.machine);
  // Planned for another machine than the CPU that makes the plan, runs nothing and would refuse TF32.
  if (machine_given && training.device == "cpu") training.tf32 = false;
  std::vector<double> links = gbps;
  if (links.empty() && machine_given) links = {training.machine.link_gbps};
  if (links.empty()) links = {10, 100};
  training.machine.link_gbps = links[0];
  if (latency_us) training.machine.link_latency_us = *latency_us;
  return links;
}

void AddLinkOptions(OptionSet& options, LinkOptions& links, TrainingOptions& training) {
  options.Custom("machine", "cpu|h200|FILE", "what the plan is made for and simulated on (cpu); docs/plan.md",
                 [&links, &training](const std::string& value) -> Status {
                   ASSIGN_OR_RETURN(training.machine, ReadMachine(value));
                   links.machine_given = true;
                   return OkStatus();
                 });
  options.Custom(
      "link-gbps", "X", "gigabits a second of a simulated link (10 and 100); buckets are cut for the first",
      [&links](const std::string& value) -> Status {
        ASSIGN_OR_RETURN(const double gbps, ParseDouble(value));
        if (!std::isfinite(gbps) || gbps <= 0) return UsageError("must be above 0, found " + value);
        links.gbps.push_back(gbps);
        return OkStatus();
      },
      /*repeats=*/true);
  options.Custom("link-latency-us", "X", "of every collective (20)", [&links](const std::string& value) -> Status {
    ASSIGN_OR_RETURN(links.latency_us, ParseDouble(value));
    return OkStatus();
  });
}

}  // namespace onnxtrain
