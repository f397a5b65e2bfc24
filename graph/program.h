// SPDX-License-Identifier: Apache-2.0
// A Program is what passes map to a Program: a state table, the Layout, and named graphs that share them.
//
// Graph names: "step" (one whole training step), or "first", "middle", "last" with accumulation; "eval" (inference form,
// nothing updated); "gather" (refreshes the replicas of sharded parameters); "zero_<name>" (what a rank without samples
// runs in place of <name>: the same collectives, gradients of zero).
#ifndef ONNXTRAIN_GRAPH_PROGRAM_H_
#define ONNXTRAIN_GRAPH_PROGRAM_H_

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "graph/layout.h"

namespace onnxtrain {

enum class StateClass : uint8_t {
  kParameter,       // trained
  kFrozen,          // a weight that this run leaves alone; saved with the model
  kBuffer,          // running statistics: updated without a gradient
  kOptimizerState,  // moments
  kCounter,         // step counter, attempted-step counter, loss scale: replicated scalars
  kAccumulator,     // lives from the first micro-batch to the last; never saved
  kReplica,         // gathered copy of sharded parameters: a cache, never saved
};
std::string_view NameOf(StateClass state_class);  // "parameter", "frozen", "buffer", "optimizer_state", ...

// One value that is carried between runs. `type` is what one rank holds.
//
// Canonical tensors are what checkpoints and comparisons see: role + "/" + parameter, whole and unsharded, for example
// "parameter/fc.weight", "moment1/fc.weight", "buffer/bn.running_mean", "counter/step". A state either *is* one canonical
// tensor (bucket < 0) or holds the parts of many that Layout names (bucket >= 0).
struct StateEntry {
  std::string name;  // of the state value in every graph that uses it
  TensorType type;
  StateClass state_class = StateClass::kParameter;
  std::string role;       // "parameter", "frozen", "buffer", "moment1", "moment2", "momentum", "counter", "accumulator", ...
  std::string parameter;  // canonical parameter or buffer; "step" for a counter; "" when bucket >= 0
  int bucket = -1;
  bool sharded = false;   // with bucket >= 0: this rank's shard; false: the whole bucket
};

class Program {
 public:
  Program() = default;
  Program(Program&&) noexcept = default;
  Program& operator=(Program&&) noexcept = default;
  Program Clone() const;

  // In a fixed order that is the same on every rank: it decides persistent placement.
  const std::vector<StateEntry>& states() const { return states_; }
  const StateEntry* FindState(std::string_view name) const;
  void AddState(StateEntry entry);  // CHECKs that the name is new
  void ReplaceState(std::string_view name, StateEntry entry);
  // CHECKs that no graph holds a state value of the name.
  void EraseState(std::string_view name);

  const Layout& layout() const { return layout_; }
  void set_layout(Layout layout) { layout_ = std::move(layout); }
  int world_size = 1;
  int accumulation = 1;

  // By name; graphs live as long as the program.
  const std::map<std::string, Graph, std::less<>>& graphs() const { return graphs_; }
  Graph* FindGraph(std::string_view name);
  const Graph* FindGraph(std::string_view name) const;
  Graph& AddGraph(Graph graph);  // under graph.name(); replaces one of that name
  void EraseGraph(std::string_view name);

  // Initial values by canonical tensor ("parameter/fc.weight"); a canonical tensor without one starts as zero.
  std::map<std::string, Tensor, std::less<>> initial;

 private:
  std::vector<StateEntry> states_;
  Layout layout_;
  std::map<std::string, Graph, std::less<>> graphs_;
};

// Canonical name of a state that is one whole tensor.
std::string CanonicalName(const StateEntry& entry);

// FNV-1a over state table, Layout, world size, accumulation and the sequence of collectives of every graph; the same
// for every batch shape. Compared between ranks before the first step.
uint64_t Digest(const Program& program);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_GRAPH_PROGRAM_H_
