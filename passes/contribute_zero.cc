// SPDX-License-Identifier: Apache-2.0
#include "passes/contribute_zero.h"

#include <algorithm>

#include "graph/graph_builder.h"
#include "passes/step_structure.h"

namespace onnxtrain {
namespace {

constexpr std::string_view kGradientRole = "gradient/";

// What running statistics were before the micro-batch: the input that the BatchNormalization (or a chain of them that
// share statistics) goes on from.
Value* StatisticsBefore(Value* updated) {
  while (updated->producer() != nullptr && updated->producer()->op() == "BatchNormalization") {
    const Node* node = updated->producer();
    updated = node->input(updated == node->output(1) ? 3 : 4);
  }
  return updated;
}

class ZeroContributor {
 public:
  ZeroContributor(const Program& program, Graph& graph)
      : program_(program), graph_(graph), build_(graph, NodeOrder(graph).Behind(-1), "contribute_zero") {}

  Status Run() {
    KeepStatistics();
    RETURN_IF_ERROR(ZeroGradients());
    ZeroSums();
    RETURN_IF_ERROR(build_.status());
    for (const char* role : {"loss", "loss_weight", "loss_sum", "accuracy_logits", "labels"}) graph_.EraseRole(role);
    EraseDeadNodes(graph_);
    for (Value* input : std::vector<Value*>(graph_.inputs())) {
      if (!input->consumers().empty()) {
        return InternalError("contribute_zero: input '" + input->name() + "' is still read in '" + graph_.name() + "'");
      }
      graph_.EraseValue(input);
    }
    return OkStatus();
  }

 private:
  Status ZeroGradients() {
    const std::map<std::string, Value*, std::less<>> roles = graph_.roles();
    for (const auto& [role, gradient] : roles) {
      if (role.substr(0, kGradientRole.size()) != kGradientRole) continue;
      Value* zeros = build_.Zeros(gradient->type(), gradient->name() + "_zero");
      RETURN_IF_ERROR(build_.status());
      RETURN_IF_ERROR(graph_.ReplaceUses(gradient, zeros));
      graph_.SetRole(role, zeros);
    }
    return OkStatus();
  }

  void ZeroSums() {
    for (const auto& node : graph_.nodes()) {
      if (node->op() != "onnxtrain.StepSums") continue;
      Value* zero = build_.Scalar(0, node->input(1)->type().dtype);
      graph_.SetInput(node.get(), 0, zero);
      graph_.SetInput(node.get(), 1, zero);
    }
  }

  bool IsState(const Value* value, StateClass state_class) const {
    const StateEntry* entry = program_.FindState(value->name());
    return entry != nullptr && entry->state_class == state_class;
  }

  // buffer := Where (applied, before, buffer); pending := before, or stays.
  void KeepStatistics() {
    for (Value* state : std::vector<Value*>(graph_.states())) {
      if (state->update() == nullptr) continue;
      Node* keep = state->update()->producer();
      if (IsState(state, StateClass::kBuffer) && keep != nullptr && keep->op() == "Where") {
        Value* before = StatisticsBefore(keep->input(1));
        if (before == state) {
          graph_.SetUpdate(state, nullptr);
        } else {
          graph_.SetInput(keep, 1, before);
        }
      } else if (IsState(state, StateClass::kAccumulator) && program_.FindState(state->name())->role == "pending") {
        Value* before = StatisticsBefore(state->update());
        graph_.SetUpdate(state,
                         before == state ? nullptr : build_.Op("Identity", {before}, {}, state->name() + "_kept"));
      }
    }
  }

  const Program& program_;
  Graph& graph_;
  GraphBuilder build_;
};

class ContributeZeroPass : public Pass {
 public:
  std::string_view name() const override { return "contribute_zero"; }

  StatusOr<bool> Run(Program& program) const override {
    if (program.world_size == 1 && program.accumulation == 1) return false;
    bool changed = false;
    for (Graph* graph : TrainingGraphs(program)) {
      const std::string name = "zero_" + graph->name();
      if (program.FindGraph(name) != nullptr) continue;
      Graph zero = graph->Clone(name);
      RETURN_IF_ERROR(ZeroContributor(program, zero).Run());
      program.AddGraph(std::move(zero));
      changed = true;
    }
    return changed;
  }
};

}  // namespace

std::unique_ptr<Pass> ContributeZero() { return std::make_unique<ContributeZeroPass>(); }

}  // namespace onnxtrain
