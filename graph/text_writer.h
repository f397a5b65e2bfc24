// SPDX-License-Identifier: Apache-2.0
// One graph as canonical ONNX text (graph/program_text.h). Equal graphs give equal text.
#ifndef ONNXTRAIN_GRAPH_TEXT_WRITER_H_
#define ONNXTRAIN_GRAPH_TEXT_WRITER_H_

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/graph.h"
#include "graph/program_text.h"

namespace onnxtrain {

// What a Program adds to the text of one of its graphs.
struct TextContext {
  // Metadata before the graph's own, in this order.
  std::vector<std::pair<std::string, std::string>> metadata;
  // The graph's states in the order of printing; empty: the graph's own order.
  std::vector<const Value*> states;
  // Tensors behind the signature that are no values of the graph, or initial values of its states, by printed name.
  std::vector<std::pair<std::string, const Tensor*>> initial;
};

std::string WriteGraphText(const Graph& graph, const TextOptions& options = {}, const TextContext& context = {});

// The shortest decimal that reads back as `value`, always with a point or an exponent: "1.0", "0.1", "1e-05", "-inf".
std::string FloatText(float value);
std::string FloatText(double value);
// ONNX's spelling: "float" for a scalar, "float[2,3]".
std::string TypeText(const TensorType& type);
// The name as it is where it is a plain identifier, else quoted.
std::string NameText(std::string_view name);
// In double quotes, with '"' and '\' escaped.
std::string QuotedText(std::string_view text);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_GRAPH_TEXT_WRITER_H_
