// SPDX-License-Identifier: Apache-2.0
#include "passes/accumulate_gradients.h"

#include <algorithm>
#include <set>

#include "graph/graph_builder.h"
#include "passes/step_structure.h"

namespace onnxtrain {
namespace {

// A state that carries a value from micro-batch to micro-batch.
struct Carried {
  StateEntry entry;
  std::string value;   // gradients and sums: the value of the micro-batch
  std::string buffer;  // running statistics: the buffer behind a pending state; "" for gradients and sums
};

bool IsReader(const Node& node, const Value* value) {
  return std::find(node.inputs().begin(), node.inputs().end(), value) != node.inputs().end();
}

// Every use of `from` by the node reads `to`.
void Rewire(Graph& graph, Node* node, const Value* from, Value* to) {
  for (size_t i = 0; i < node->inputs().size(); ++i) {
    if (node->input(i) == from) graph.SetInput(node, i, to);
  }
}

class StepSplitter {
 public:
  explicit StepSplitter(Program& program) : program_(program) {}

  Status Run(const Graph& step, int micro_batches) {
    RETURN_IF_ERROR(FindCarried(step));
    Graph first = step.Clone("first");
    Graph middle = step.Clone("middle");
    Graph last = step.Clone("last");
    for (const Carried& carried : carried_) program_.AddState(carried.entry);
    RETURN_IF_ERROR(MakeMicroStep(first, /*first=*/true));
    RETURN_IF_ERROR(MakeMicroStep(middle, /*first=*/false));
    RETURN_IF_ERROR(MakeLast(last));
    program_.AddGraph(std::move(first));
    program_.AddGraph(std::move(middle));
    program_.AddGraph(std::move(last));
    program_.EraseGraph("step");
    program_.accumulation = micro_batches;
    return OkStatus();
  }

 private:
  Status FindCarried(const Graph& step) {
    std::set<std::string> parameters;
    for (const Node* node : OptimizerNodes(step)) {
      const StateEntry* entry = program_.FindState(node->input(kOptimizerWeight)->name());
      const Value* gradient = node->input(kOptimizerGradient);
      if (entry == nullptr || step.FindRole("gradient/" + entry->parameter) != gradient) {
        return InvalidModelError("accumulate_gradients: " + node->Describe() +
                                 " does not read its parameter's own gradient: it comes before insert_all_reduce");
      }
      Carry(entry->name + ".accumulated", gradient, "accumulator", entry->parameter, "");
    }
    const Value* sums = step.FindRole("sums");
    if (carried_.empty() || sums == nullptr) {
      return InvalidModelError("accumulate_gradients: the step has no optimizer: append_optimizer comes first");
    }
    Carry("sums.accumulated", sums, "sum_accumulator", "sums", "");
    for (const Value* state : step.states()) {
      const StateEntry* entry = program_.FindState(state->name());
      if (entry == nullptr || entry->state_class != StateClass::kBuffer || state->update() == nullptr) continue;
      const Node* keep = state->update()->producer();
      if (keep == nullptr || keep->op() != "Where" || keep->input(2) != state) {
        return InvalidModelError("accumulate_gradients: the update of buffer '" + state->name() +
                                 "' is not Where (applied, new, old)");
      }
      Carry(state->name() + ".pending", keep->input(1), "pending", entry->parameter, state->name());
    }
    return OkStatus();
  }

  void Carry(const std::string& wanted, const Value* value, std::string role, std::string parameter,
             std::string buffer) {
    StateEntry entry{.name = UniqueStateName(program_, wanted),
                     .type = value->type(),
                     .state_class = StateClass::kAccumulator,
                     .role = std::move(role),
                     .parameter = std::move(parameter)};
    carried_.push_back({std::move(entry), value->name(), std::move(buffer)});
  }

  // Forward and backward stay; what the micro-batch gives goes into the carried states.
  Status MakeMicroStep(Graph& graph, bool first) {
    for (Value* output : std::vector<Value*>(graph.outputs())) {
      if (output->name() != "status") graph.RemoveOutput(output);
    }
    for (Value* state : graph.states()) graph.SetUpdate(state, nullptr);
    for (const Carried& carried : carried_) {
      Value* state = StateValue(graph, carried.entry);
      Value* value = graph.FindValue(carried.value);
      if (!carried.buffer.empty()) {
        if (!first) ReadPending(graph, carried, state);
        graph.SetUpdate(state, value);
        continue;
      }
      ASSIGN_OR_RETURN(Value * kept, first ? CopyIfShared(graph, value) : AddBehind(graph, state, value));
      graph.SetUpdate(state, kept);
    }
    for (const char* role : {"norm", "totals", "apply"}) graph.EraseRole(role);
    EraseDeadNodes(graph);
    return OkStatus();
  }

  // An update is a value of its own: one that a node of this graph writes, and of one state only.
  StatusOr<Value*> CopyIfShared(Graph& graph, Value* value) {
    const bool taken = std::any_of(graph.states().begin(), graph.states().end(),
                                   [&](const Value* state) { return state->update() == value; });
    if (value->kind() == ValueKind::kIntermediate && !taken) return value;
    GraphBuilder build(graph, nullptr, "accumulate_gradients");
    Value* copy = build.Op("Identity", {value}, {}, value->name() + "_copy");
    RETURN_IF_ERROR(build.status());
    return copy;
  }

  // Right where the value is released, so that the micro-batch's own part lives no longer than needed.
  StatusOr<Value*> AddBehind(Graph& graph, Value* state, Value* value) {
    const NodeOrder order(graph);
    GraphBuilder build(graph, order.Behind(order.ReleaseOf(value)), "accumulate_gradients");
    Value* total = build.Op("Add", {state, value}, {}, value->name() + "_total");
    RETURN_IF_ERROR(build.status());
    return total;
  }

  // What read the buffer reads what the micro-batch before made of it.
  void ReadPending(Graph& graph, const Carried& carried, Value* pending) {
    Value* buffer = graph.FindValue(carried.buffer);
    const std::vector<Node*> readers = buffer->consumers();
    for (Node* node : readers) {
      const bool keeps = node->op() == "Where" && node->input(2) == buffer;
      if (!keeps) Rewire(graph, node, buffer, pending);
    }
  }

  Status MakeLast(Graph& graph) {
    for (const Carried& carried : carried_) {
      Value* state = StateValue(graph, carried.entry);
      if (!carried.buffer.empty()) {
        ReadPending(graph, carried, state);
        continue;
      }
      Value* value = graph.FindValue(carried.value);
      ASSIGN_OR_RETURN(Value * total, AddBehind(graph, state, value));
      if (carried.entry.role == "sum_accumulator") {
        for (Node* node : std::vector<Node*>(value->consumers())) {
          if (node->op() == "Concat") Rewire(graph, node, value, total);
        }
        graph.SetRole("sums", total);
        continue;
      }
      UseTotal(graph, carried, value, total);
    }
    return OkStatus();
  }

  // The parameter's optimizer node, and one place of the norm (a gradient that two parameters share stands there
  // twice).
  void UseTotal(Graph& graph, const Carried& carried, Value* value, Value* total) {
    for (Node* node : OptimizerNodes(graph)) {
      const StateEntry* entry = program_.FindState(node->input(kOptimizerWeight)->name());
      if (entry->parameter == carried.entry.parameter) graph.SetInput(node, kOptimizerGradient, total);
    }
    Node* norm = FindNode(graph, "onnxtrain.SquaredNorm");
    if (norm == nullptr || !IsReader(*norm, value)) return;
    const auto place = std::find(norm->inputs().begin(), norm->inputs().end(), value);
    graph.SetInput(norm, static_cast<size_t>(place - norm->inputs().begin()), total);
  }

  Program& program_;
  std::vector<Carried> carried_;
};

class AccumulateGradientsPass : public Pass {
 public:
  explicit AccumulateGradientsPass(AccumulateGradientsOptions options) : options_(options) {}

  std::string_view name() const override { return "accumulate_gradients"; }

  StatusOr<bool> Run(Program& program) const override {
    if (options_.micro_batches < 1) return UsageError("--accum must be at least 1");
    const Graph* step = program.FindGraph("step");
    if (options_.micro_batches == 1 || step == nullptr) return false;
    RETURN_IF_ERROR(StepSplitter(program).Run(*step, options_.micro_batches));
    return true;
  }

 private:
  AccumulateGradientsOptions options_;
};

}  // namespace

std::unique_ptr<Pass> AccumulateGradients(const AccumulateGradientsOptions& options) {
  return std::make_unique<AccumulateGradientsPass>(options);
}

}  // namespace onnxtrain
