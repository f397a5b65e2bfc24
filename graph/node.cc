// SPDX-License-Identifier: Apache-2.0
// Apart from the Graph: shared objects of backends read nodes, and must not carry the operators' rules with them.
#include "graph/graph.h"
#include "graph/op_registry.h"

namespace onnxtrain {

const std::string& Node::op() const { return def_->name; }

std::string Node::Describe() const {
  for (const Value* output : outputs_) {
    if (output != nullptr) {
      return op() + " node of '" + output->name() + "'" + (origin_.empty() ? "" : " from " + origin_);
    }
  }
  return op() + " node" + (origin_.empty() ? "" : " from " + origin_);
}

}  // namespace onnxtrain
