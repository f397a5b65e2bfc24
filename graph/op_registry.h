// SPDX-License-Identifier: Apache-2.0
// What an operator means, by name: how old forms are lifted, the types of its outputs, its gradient, and which of its
// outputs may share bytes with its inputs. How to run it is the device's business (runtime/kernel.h).
//
// The canonical form is the standard operator of opset kCanonicalOpset with constant shape-role inputs (axes, starts,
// repeats, ...) as constants of the graph. Kernels and gradients know only that form.
#ifndef ONNXTRAIN_GRAPH_OP_REGISTRY_H_
#define ONNXTRAIN_GRAPH_OP_REGISTRY_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"

namespace onnxtrain {

// Opset of the default domain in which canonical nodes are written, inferred and printed.
inline constexpr int kCanonicalOpset = 24;
// Prefix of our own operators in Node::op(); the ONNX domain is "onnxtrain", version 1.
inline constexpr std::string_view kOwnPrefix = "onnxtrain.";

class GradientContext;  // graph/gradient.h
class LiftContext;      // graph/lift.h

// Inputs of type inference: a type per input (unknown for an omitted one) and the constant bytes where known.
struct InferContext {
  std::string_view op;
  const Attributes& attributes;
  std::vector<TensorType> inputs;
  std::vector<const Tensor*> constants;  // as long as inputs; null: not known
  std::vector<bool> wanted;              // one per output: false where it is omitted
};
using InferFn = std::function<StatusOr<std::vector<TensorType>>(const InferContext&)>;

// Emits the nodes that compute the gradients of the node's inputs (graph/gradient.h).
using GradientFn = std::function<Status(GradientContext&)>;
// Rewrites a node of an older opset into the canonical form (graph/lift.h).
using LiftFn = std::function<Status(LiftContext&)>;

// A permission to share bytes. The planner may use it, the kernel must work with and without it.
struct AliasRule {
  enum class Kind : uint8_t {
    kView,     // output may be exactly the bytes of the input (Reshape), `offset` bytes in (BucketUnpack)
    kInPlace,  // output may overwrite the input if nobody reads the input later (Relu, AdamW)
    kPack,     // input may be written by its producer straight into the output at `offset` bytes (BucketPack)
  };
  Kind kind;
  int output;
  int input;
  int64_t offset = 0;
};
using AliasFn = std::function<std::vector<AliasRule>(const Node&)>;

struct OpDef {
  std::string name;
  LiftFn lift = nullptr;          // null: every opset that the reader accepts already has the canonical form
  InferFn infer = nullptr;        // null: ONNX's own schema at kCanonicalOpset
  GradientFn gradient = nullptr;  // null: no rule (the reader may still have an ONNX function body to differentiate)
  AliasFn aliases = nullptr;      // null: outputs share no bytes with inputs
  // Inputs (by position) whose gradient is always zero or that only give shapes: Gather 1, Reshape 1, Clip 1 and 2, ...
  // Integer and bool inputs stop gradients anyway.
  std::vector<int> stop_gradient_inputs = {};
  bool collective = false;    // runs on the communication stream; all ranks must issue it in the same order
  bool random = false;        // draws numbers: reads the step counter, never merged, never folded
  bool side_effect = false;   // kept although nothing reads its outputs
  bool schema_only = false;   // no family defines it: only the types of its outputs are known, from ONNX's schema
};

class OpRegistry {
 public:
  OpRegistry() = default;
  // CHECKs that the name is new.
  void Add(OpDef def);
  // Null when unknown.
  const OpDef* Find(std::string_view name) const;
  std::vector<std::string> Names() const;  // sorted

  // All families of graph/ops, from the one explicit list in graph/ops/all_ops.cc. Constant, made on first use.
  static const OpRegistry& Default();

 private:
  std::map<std::string, OpDef, std::less<>> defs_;
};

// True for operators of the onnxtrain domain.
inline bool IsOwnOp(std::string_view op) { return op.substr(0, kOwnPrefix.size()) == kOwnPrefix; }

}  // namespace onnxtrain

#endif  // ONNXTRAIN_GRAPH_OP_REGISTRY_H_
