// SPDX-License-Identifier: Apache-2.0
// Finds where the bytes of an ONNX model stop being a protobuf message, for a message that says more than "cannot be
// parsed".
#ifndef ONNXTRAIN_GRAPH_WIRE_FORMAT_H_
#define ONNXTRAIN_GRAPH_WIRE_FORMAT_H_

#include <string>
#include <string_view>

namespace onnxtrain {

// "byte 1234, in graph.node[12].attribute[0]: a length of 99 runs past the end at byte 1300", or "" where the structure
// is sound.
std::string FindWireError(std::string_view bytes);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_GRAPH_WIRE_FORMAT_H_
