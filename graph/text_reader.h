// SPDX-License-Identifier: Apache-2.0
// One graph from ONNX text, through ONNX's own parser: canonical operators, nothing lifted or folded.
#ifndef ONNXTRAIN_GRAPH_TEXT_READER_H_
#define ONNXTRAIN_GRAPH_TEXT_READER_H_

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/graph.h"

namespace onnxtrain {

struct TextGraph {
  Graph graph;
  // Metadata other than updates and roles, in the order of the text.
  std::vector<std::pair<std::string, std::string>> metadata;
  // Tensors behind the signature that belong to a state or to no value of the graph, by name.
  std::vector<std::pair<std::string, Tensor>> initial;
};

// Names that begin so, behind the signature, are no values of the graph: initial values by canonical tensor.
inline constexpr std::string_view kInitialPrefix = "initial:";

// A name behind the signature is a state where it has no tensor, is listed in `states`, or has an update. Types that
// stand with outputs are checked. Fails with InvalidModel and the parser's line, or the node.
StatusOr<TextGraph> ReadGraphText(std::string_view text, const OpRegistry& registry,
                                  const std::set<std::string, std::less<>>& states = {});

// The "key" : "value" pairs of a text's metadata_props without building its graph.
StatusOr<std::vector<std::pair<std::string, std::string>>> ReadTextMetadata(std::string_view text);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_GRAPH_TEXT_READER_H_
