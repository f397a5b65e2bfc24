// SPDX-License-Identifier: Apache-2.0
// From the user's model to a Graph with concrete types.
//
// Only what the wanted values need is read. Functions and constant branches are inlined, sequences disappear, nodes are
// lifted to the canonical form, and everything that follows from constants and known shapes is evaluated. Values keep
// the file's names; nodes keep theirs as origin: "/h.0/attn/MatMul (MatMul, opset 17)".
#ifndef ONNXTRAIN_GRAPH_ONNX_READER_H_
#define ONNXTRAIN_GRAPH_ONNX_READER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "graph/onnx_model.h"
#include "graph/op_registry.h"

namespace onnxtrain {

struct SpecializeOptions {
  // Concrete types of fed inputs, by name: those of the data at hand. An input without an entry takes its declared type
  // with `dims` put in. With widen_to_double the element type is the file's or double.
  std::map<std::string, TensorType> inputs;
  // Values of symbols; more follow from `inputs`.
  std::map<std::string, int64_t> dims;
  // Inputs whose content is part of the model: they become constants, so that shapes may depend on them.
  std::map<std::string, Tensor> constants;
  // Whether an initializer becomes a state of its name; every other one is a constant. Null: none does.
  std::function<bool(const ModelInitializer&)> is_state;
  // What the graph must compute: graph outputs, or any other values of the main graph. Empty: all graph outputs. Each
  // becomes an output of the Graph under this name.
  std::vector<std::string> outputs;
  // Runs everything in double: float, float16 and bfloat16 become double in inputs, states, constants, casts and the
  // attributes that name a type.
  bool widen_to_double = false;
  // Results above this many elements are computed in every run instead of being kept as constants.
  int64_t max_constant_elements = int64_t{1} << 24;
  std::string graph_name = "step";
  const OpRegistry* registry = nullptr;  // null: OpRegistry::Default()
};

// Inputs and states that nothing needs are left out. Fails with
// - Usage: an unbound dimension (named, with its input), an unknown name in `inputs` or `outputs`;
// - InvalidData: a type in `inputs` that the declared one does not allow;
// - InvalidModel: operators that cannot be imported (all of them, with their nodes), shapes that depend on data,
// control
//   flow that depends on data, a file that is not a valid graph.
StatusOr<Graph> Specialize(const OnnxModel& model, const SpecializeOptions& options);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_GRAPH_ONNX_READER_H_
