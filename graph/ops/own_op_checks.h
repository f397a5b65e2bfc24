// SPDX-License-Identifier: Apache-2.0
// Checks that the type inference of our own operators shares. The first failure is kept, so an inference reads as a
// list of demands and returns status() once. Messages say which input or attribute, what was expected and what was
// found; the graph puts the operator, the node's origin and its input types before them.
#ifndef ONNXTRAIN_GRAPH_OPS_OWN_OP_CHECKS_H_
#define ONNXTRAIN_GRAPH_OPS_OWN_OP_CHECKS_H_

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "graph/op_registry.h"

namespace onnxtrain {

// In the order of AttributeValue's alternatives.
enum class AttributeKind : uint8_t { kInt, kFloat, kString, kInts, kFloats, kStrings, kTensor };

struct AttributeRule {
  std::string_view name;
  AttributeKind kind;
  bool required = false;
};

class OwnOpChecks {
 public:
  explicit OwnOpChecks(const InferContext& context) : context_(context) {}

  // Number of inputs and outputs.
  void Inputs(size_t fewest, size_t most);
  void Outputs(size_t fewest, size_t most);
  // Every attribute is one of these, has its kind, and the required ones are there.
  void Attributes(std::initializer_list<AttributeRule> rules);
  // Input `index`, called `what`, is there and has this type, or a floating type, or one element.
  void Type(size_t index, std::string_view what, const TensorType& expected);
  void Floating(size_t index, std::string_view what);
  void OneElement(size_t index, std::string_view what);
  void Flat(size_t index, std::string_view what);  // rank 1
  void Demand(bool condition, std::string_view message);

  bool ok() const { return status_.ok(); }
  const Status& status() const { return status_; }

 private:
  bool Present(size_t index, std::string_view what);
  void Fail(std::string message);

  const InferContext& context_;
  Status status_;
};

}  // namespace onnxtrain

#endif  // ONNXTRAIN_GRAPH_OPS_OWN_OP_CHECKS_H_
