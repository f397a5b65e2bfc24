// SPDX-License-Identifier: Apache-2.0
#include "passes/insert_all_reduce.h"

#include <map>

#include "passes/step_structure.h"

namespace onnxtrain {
namespace {

constexpr std::string_view kAllReduce = "onnxtrain.AllReduce";

bool IsReduced(const Value* value) { return value->producer() != nullptr && value->producer()->op() == kAllReduce; }

class AllReduceInserter {
 public:
  explicit AllReduceInserter(Graph& graph) : graph_(graph), order_(graph) {}

  // Input `index` of the node becomes the reduced value.
  Status Reduce(Node* node, size_t index) {
    Value* local = node->input(index);
    if (IsReduced(local)) return OkStatus();
    Value*& sum = sums_[local];
    if (sum == nullptr) {
      NodeSpec spec{std::string(kAllReduce), {local}, {{"op", "sum"}}, {local->name() + "_sum"},
                    "insert_all_reduce",     {}};
      ASSIGN_OR_RETURN(Node * reduce, graph_.Insert(order_.Behind(order_.ReleaseOf(local)), std::move(spec)));
      sum = reduce->output(0);
    }
    graph_.SetInput(node, index, sum);
    return OkStatus();
  }

  bool changed() const { return !sums_.empty(); }

 private:
  Graph& graph_;
  const NodeOrder order_;
  std::map<Value*, Value*> sums_;  // by local value
};

class InsertAllReducePass : public Pass {
 public:
  explicit InsertAllReducePass(InsertAllReduceOptions options) : options_(options) {}

  std::string_view name() const override { return "insert_all_reduce"; }

  StatusOr<bool> Run(Program& program) const override {
    if (options_.world_size < 1) return UsageError("the number of ranks must be at least 1");
    if (options_.world_size == 1 || program.world_size == options_.world_size) return false;
    if (program.world_size != 1) {
      return InvalidModelError("insert_all_reduce: the program is already for " + std::to_string(program.world_size) +
                               " ranks");
    }
    Graph* graph = UpdatingGraph(program);
    Node* norm = graph == nullptr ? nullptr : FindNode(*graph, "onnxtrain.SquaredNorm");
    Value* totals = graph == nullptr ? nullptr : graph->FindRole("totals");
    if (norm == nullptr || totals == nullptr) {
      return InvalidModelError("insert_all_reduce: the program has no optimizer: append_optimizer comes first");
    }
    AllReduceInserter inserter(*graph);
    for (size_t i = 0; i < norm->inputs().size(); ++i) RETURN_IF_ERROR(inserter.Reduce(norm, i));
    for (Node* node : OptimizerNodes(*graph)) RETURN_IF_ERROR(inserter.Reduce(node, kOptimizerGradient));
    RETURN_IF_ERROR(inserter.Reduce(totals->producer(), 0));
    program.world_size = options_.world_size;
    return true;
  }

 private:
  InsertAllReduceOptions options_;
};

}  // namespace

std::unique_ptr<Pass> InsertAllReduce(const InsertAllReduceOptions& options) {
  return std::make_unique<InsertAllReducePass>(options);
}

}  // namespace onnxtrain
