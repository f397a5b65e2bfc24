// SPDX-License-Identifier: Apache-2.0
#include "passes/eliminate_dead_nodes.h"

#include "passes/step_structure.h"

namespace onnxtrain {
namespace {

size_t SizeOf(const Graph& graph) { return graph.nodes().size() + graph.constants().size() + graph.states().size(); }

class EliminateDeadNodesPass : public Pass {
 public:
  std::string_view name() const override { return "eliminate_dead_nodes"; }

  StatusOr<bool> Run(Program& program) const override {
    bool changed = false;
    for (const auto& [name, unused] : program.graphs()) {
      Graph& graph = *program.FindGraph(name);
      const size_t before = SizeOf(graph);
      EraseDeadNodes(graph);
      changed = changed || SizeOf(graph) != before;
    }
    return changed;
  }
};

}  // namespace

std::unique_ptr<Pass> EliminateDeadNodes() { return std::make_unique<EliminateDeadNodesPass>(); }

}  // namespace onnxtrain
