// SPDX-License-Identifier: Apache-2.0
#include "tools/link_options.h"

#include <cmath>
#include <memory>

#include "runtime/training_options.h"

namespace onnxtrain {

void LinkOptions::Apply(TrainingOptions& training) const {
  training.link_gbps = gbps[0];
  training.link_latency_us = latency_us;
}

void AddLinkOptions(OptionSet& options, LinkOptions& links) {
  const auto first = std::make_shared<bool>(true);  // values given take the place of the default ones
  options.Custom(
      "link-gbps", "X", "gigabits a second of a simulated link (10 and 100); buckets are cut for the first",
      [&links, first](const std::string& value) -> Status {
        ASSIGN_OR_RETURN(const double gbps, ParseDouble(value));
        if (!std::isfinite(gbps) || gbps <= 0) return UsageError("must be above 0, found " + value);
        if (*first) links.gbps.clear();
        *first = false;
        links.gbps.push_back(gbps);
        return OkStatus();
      },
      /*repeats=*/true);
  options.Double("link-latency-us", &links.latency_us, "X", "of every collective (20)");
}

}  // namespace onnxtrain
