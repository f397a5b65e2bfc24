// SPDX-License-Identifier: Apache-2.0
// A graph of a Program as an ONNX file: what `build` writes beside the text. It holds what the text holds
// (graph/program_text.h), in the same metadata; tensors are always whole.
#ifndef ONNXTRAIN_GRAPH_ONNX_WRITER_H_
#define ONNXTRAIN_GRAPH_ONNX_WRITER_H_

#include <string>
#include <string_view>

#include "graph/program.h"

namespace onnxtrain {

// States are initializers where their initial value is known or zero by definition, else inputs of the graph (parts of
// many tensors that Layout names; their values stand as "initial:<role>/<parameter>"). Appears whole or not at all;
// large tensors go to "<file>.data" when the file would exceed 2 GiB. CHECKs that the graph exists.
Status WriteOnnx(const Program& program, std::string_view graph, const std::string& path);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_GRAPH_ONNX_WRITER_H_
