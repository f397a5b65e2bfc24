// SPDX-License-Identifier: Apache-2.0
// What a file of a Program says beside its nodes: the same in text (graph/program_text.h) and in ONNX files
// (graph/onnx_writer.h).
#ifndef ONNXTRAIN_GRAPH_PROGRAM_METADATA_H_
#define ONNXTRAIN_GRAPH_PROGRAM_METADATA_H_

#include <string>
#include <utility>
#include <vector>

#include "graph/program.h"

namespace onnxtrain {

using ProgramFacts = std::vector<std::pair<std::string, std::string>>;

// World size, accumulation, state table and Layout as metadata entries.
ProgramFacts ProgramMetadata(const Program& program);
// Initial values under the name of the state of `graph` that is that tensor, or else under "initial:<canonical>".
std::vector<std::pair<std::string, const Tensor*>> InitialValues(const Program& program, const Graph& graph);
// The graph's states as the table lists them; then those that it lacks.
std::vector<const Value*> StatesInTableOrder(const Program& program, const Graph& graph);
// The type that some graph gives a state of that name; null when none has it.
const TensorType* StateTypeInGraphs(const Program& program, const std::string& state);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_GRAPH_PROGRAM_METADATA_H_
