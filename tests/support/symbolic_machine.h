// SPDX-License-Identifier: Apache-2.0
// Runs a plan, step by step in any order, on real memory but with symbolic arithmetic: what a node writes is a hash of
// all that it read. Two runs leave equal bytes exactly when every node saw equal inputs.
#ifndef ONNXTRAIN_TESTS_SUPPORT_SYMBOLIC_MACHINE_H_
#define ONNXTRAIN_TESTS_SUPPORT_SYMBOLIC_MACHINE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runtime/execution_plan.h"

namespace onnxtrain {

class SymbolicMachine {
 public:
  // Both borrowed. Memory begins as noise; states and constants as functions of their names.
  SymbolicMachine(const Graph& graph, const ExecutionPlan& plan);

  // Runs the steps with these indices, in this order.
  void Run(const std::vector<size_t>& order);
  // By name: what was fetched, and every state.
  std::map<std::string, std::vector<std::byte>> Results() const;

 private:
  using Bytes = std::vector<std::byte>;
  std::byte* At(const Placement& place);
  const std::byte* At(const Placement& place) const;
  Bytes Read(const Placement& place) const;
  void Write(const Placement& place, const Bytes& bytes);
  void RunStep(const PlanStep& step);
  void Launch(int index);

  const Graph& graph_;
  const ExecutionPlan& plan_;
  std::vector<const Node*> nodes_;
  std::map<const Value*, Placement> places_;
  Bytes regions_[2];
  std::map<std::string, Bytes> fetched_;
};

}  // namespace onnxtrain

#endif  // ONNXTRAIN_TESTS_SUPPORT_SYMBOLIC_MACHINE_H_
