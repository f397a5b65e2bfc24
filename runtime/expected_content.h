// SPDX-License-Identifier: Apache-2.0
// What the bytes of every value must be when it is read, given where the plan placed it: usually what its producer
// wrote; for a view the bytes of what it views; for a bucket the bytes of its parts and zeros between them.
#ifndef ONNXTRAIN_RUNTIME_EXPECTED_CONTENT_H_
#define ONNXTRAIN_RUNTIME_EXPECTED_CONTENT_H_

#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "graph/graph.h"
#include "graph/op_registry.h"
#include "runtime/byte_ledger.h"
#include "runtime/execution_plan.h"

namespace onnxtrain {

// One input or output of a launch in bytes.
struct LaunchRange {
  const Value* value = nullptr;
  int index = 0;     // position among the node's inputs or outputs
  size_t begin = 0;  // bytes of the value that are touched
  size_t bytes = 0;
};

class ExpectedContent {
 public:
  using Complaint = std::function<void(const std::string& problem)>;

  // `launched`: by node index, whether the plan has a step for it. A node without one is complained of unless all its
  // outputs lie where its rules allow.
  ExpectedContent(const Graph& graph, const ExecutionPlan& plan, const std::vector<bool>& launched,
                  const Complaint& complain);

  // Null when the plan does not place the value.
  const Placement* PlaceOf(const Value* value) const;
  // Number of a value as a content source; unique within the graph.
  int64_t SourceOf(const Value* value) const { return entries_.at(value).source; }
  const std::vector<Content>& Of(const Value* value) const { return entries_.at(value).content; }

  // What a launch of the node really touches: views and packed parts that lie at their place are left out.
  std::vector<LaunchRange> Reads(int node) const;
  std::vector<LaunchRange> Writes(int node) const;
  // Output `output` may be written over input `input`.
  bool MayOverwrite(int node, int input, int output) const;

 private:
  struct Entry {
    int64_t source = 0;
    const Placement* place = nullptr;
    std::vector<Content> content;
  };

  bool IsAtItsPlace(const Node& node, const AliasRule& rule) const;
  std::vector<Content> OutputContent(int node, int output, bool launched, const Complaint& complain) const;
  std::vector<Content> PackedContent(int node, int output, bool launched, const Complaint& complain) const;

  std::vector<const Node*> nodes_;
  std::vector<std::vector<AliasRule>> rules_;
  std::unordered_map<const Value*, Entry> entries_;
};

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_EXPECTED_CONTENT_H_
