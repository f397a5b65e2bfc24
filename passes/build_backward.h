// SPDX-License-Identifier: Apache-2.0
// Appends the nodes that compute gradients of the loss.
//
// Before:  y = MatMul(x, w);  loss = ...(y)                       roles: loss, loss_weight
// After:   y = MatMul(x, w);  loss = ...(y)
//          dy = ...Grad(loss_weight);  w_grad = MatMul(x^T, dy)   roles: loss, loss_weight, gradient/w
//
// The walk goes from the loss backwards and takes only nodes that lie on a differentiable path from a target to the
// loss: an edge counts when both ends are of a floating type and the operator's definition does not stop gradients
// there. Among the nodes whose output gradients are complete, those that depend on parameters alone (a transposed
// weight) come first, then the one that stands last in the graph; in the end the nodes of each gradient are put before
// those that only go on backwards. So each gradient is released as early as it can be, which the overlap of bucket
// reduction lives from. Contributions to one value are added in the order in which they come.
//
// Without the role loss the graph's own scalar loss is taken, as append_loss does it.
//
// A node on the path without a gradient rule is replaced by its ONNX function body where it has one. All others are
// named in one InvalidModel error.
#ifndef ONNXTRAIN_PASSES_BUILD_BACKWARD_H_
#define ONNXTRAIN_PASSES_BUILD_BACKWARD_H_

#include <memory>
#include <string>
#include <vector>

#include "passes/pass.h"

namespace onnxtrain {

// What the walk found out beside the gradients, for `check` and for messages.
struct BackwardReport {
  std::vector<std::string> decomposed;    // nodes that were replaced by their function body
  std::vector<std::string> without_path;  // targets that the loss does not depend on: they get no gradient role
};

struct BuildBackwardOptions {
  std::string graph = "step";
  // Names of states, inputs or intermediate values. Empty: the program's states of class parameter.
  std::vector<std::string> with_respect_to;
  // Seed: the role loss_weight, so that gradients are sums over samples; false: 1.
  bool weighted = true;
  BackwardReport* report = nullptr;  // borrowed; may be null
};

// Sets the role gradient/<parameter>, or gradient/<name> for targets that were named. Fails with InvalidModel when
// there is no loss, when it is not one floating-point number, or when no target has a path to it; with Usage when a
// named target does not exist.
std::unique_ptr<Pass> BuildBackward(const BuildBackwardOptions& options);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_PASSES_BUILD_BACKWARD_H_
