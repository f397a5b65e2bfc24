// SPDX-License-Identifier: Apache-2.0
// The links that `plan` and `build` simulate a step over.
#ifndef ONNXTRAIN_TOOLS_LINK_OPTIONS_H_
#define ONNXTRAIN_TOOLS_LINK_OPTIONS_H_

#include <optional>
#include <vector>

#include "tools/option_set.h"

namespace onnxtrain {

struct TrainingOptions;

struct LinkOptions {
  std::vector<double> gbps;  // as given; the first decides how buckets are cut
  std::optional<double> latency_us;

  // The links to simulate: those given, else the machine's, and without a machine 10 and 100. Sets training.machine to
  // the first of them, and to its rate of TF32 where training.tf32 allows that; then with --machine clears
  // training.tf32 on the device "cpu", which has none.
  std::vector<double> Apply(TrainingOptions& training) const;
  bool machine_given = false;
};

// --link-gbps, --link-latency-us, and --machine, which sets training.machine.
void AddLinkOptions(OptionSet& options, LinkOptions& links, TrainingOptions& training);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_TOOLS_LINK_OPTIONS_H_
