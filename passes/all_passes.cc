// SPDX-License-Identifier: Apache-2.0
// The one list of passes that text can name.
#include "passes/build_backward.h"
#include "passes/eliminate_dead_nodes.h"
#include "passes/fold_constants.h"
#include "passes/fuse_gelu.h"
#include "passes/fuse_matmul.h"
#include "passes/merge_equal_nodes.h"
#include "passes/pass_registry.h"
#include "passes/training_pass_options.h"

namespace onnxtrain {
namespace {

std::unique_ptr<Pass> MakeBuildBackward(PassOptions& options) {
  BuildBackwardOptions chosen;
  chosen.graph = options.Text("graph", chosen.graph);
  chosen.with_respect_to = options.List("wrt");
  chosen.weighted = options.Flag("weighted", chosen.weighted);
  return BuildBackward(chosen);
}

std::unique_ptr<Pass> MakeFoldConstants(PassOptions& options) {
  FoldConstantsOptions chosen;
  chosen.max_bytes = options.Int("max_bytes", chosen.max_bytes);
  if (chosen.max_bytes < 0) options.Reject("max_bytes", "0 or more");
  return FoldConstants(chosen);
}

PassRegistry MakeRegistry() {
  PassRegistry registry;
  registry.Add({"build_backward", "append the nodes that compute gradients of the loss", MakeBuildBackward});
  registry.Add({"eliminate_dead_nodes", "take out what no output and no update needs",
                [](PassOptions&) { return EliminateDeadNodes(); }});
  registry.Add({"fold_constants", "compute ahead of time what does not depend on inputs or states", MakeFoldConstants});
  registry.Add({"fuse_gelu", "make one Gelu of the products and sums that exporters write for it",
                [](PassOptions&) { return FuseGelu(); }});
  registry.Add({"fuse_matmul", "take transposes, factors and biases around a matrix product into it",
                [](PassOptions&) { return FuseMatMul(); }});
  registry.Add({"merge_equal_nodes", "make one value of values that are equal by construction",
                [](PassOptions&) { return MergeEqualNodes(); }});
  AddTrainingPasses(registry);
  return registry;
}

}  // namespace

const PassRegistry& PassRegistry::Default() {
  static const PassRegistry registry = MakeRegistry();
  return registry;
}

}  // namespace onnxtrain
