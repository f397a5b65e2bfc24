// SPDX-License-Identifier: Apache-2.0
// The links that `plan` and `build` simulate a step over.
#ifndef ONNXTRAIN_TOOLS_LINK_OPTIONS_H_
#define ONNXTRAIN_TOOLS_LINK_OPTIONS_H_

#include <vector>

#include "tools/option_set.h"

namespace onnxtrain {

struct TrainingOptions;

struct LinkOptions {
  std::vector<double> gbps{10, 100};  // the first decides how buckets are cut
  double latency_us = 20;

  void Apply(TrainingOptions& training) const;
};

void AddLinkOptions(OptionSet& options, LinkOptions& links);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_TOOLS_LINK_OPTIONS_H_
