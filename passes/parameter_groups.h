// SPDX-License-Identifier: Apache-2.0
// Which weight decay and which multiple of the learning rate each parameter gets.
#ifndef ONNXTRAIN_PASSES_PARAMETER_GROUPS_H_
#define ONNXTRAIN_PASSES_PARAMETER_GROUPS_H_

#include <map>
#include <string>
#include <vector>

#include "passes/append_optimizer.h"

namespace onnxtrain {

struct ParameterSettings {
  double weight_decay = 0;
  double lr_multiplier = 1;
};

struct NamedParameter {
  std::string name;
  TensorType type;
};

// By parameter name. `weight_decay` is that of parameters no rule speaks of. Fails with Usage when a pattern matches no
// parameter, naming the closest, and when a group's rate is given while the main rate is zero.
StatusOr<std::map<std::string, ParameterSettings>> AssignGroups(const std::vector<NamedParameter>& parameters,
                                                                const AppendOptimizerOptions& options,
                                                                double weight_decay);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_PASSES_PARAMETER_GROUPS_H_
