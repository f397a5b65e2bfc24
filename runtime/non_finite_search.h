// SPDX-License-Identifier: Apache-2.0
// Names the first node of a step whose output is not finite, by running the step node by node.
#ifndef ONNXTRAIN_RUNTIME_NON_FINITE_SEARCH_H_
#define ONNXTRAIN_RUNTIME_NON_FINITE_SEARCH_H_

#include <map>
#include <string>

#include "graph/program.h"
#include "runtime/node_runner.h"

namespace onnxtrain {

// Runs graph "step" of a program for one rank. `states` by canonical name, `feeds` by input name. NonFiniteError naming node,
// tensor and element, OkStatus when everything is finite, or the error of the run. Infinities alone are no fault while no NaN
// follows and the loss is finite: attention masks hold -inf on purpose.
Status SearchNonFinite(const Program& program, const KernelRegistry& kernels, const NodeRunnerOptions& options,
                       const std::map<std::string, Tensor>& states, const std::map<std::string, Tensor>& feeds);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_NON_FINITE_SEARCH_H_
