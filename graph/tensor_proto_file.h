// SPDX-License-Identifier: Apache-2.0
// A tensor stored as a serialised TensorProto: input_N.pb and output_N.pb of ONNX's test data sets.
#ifndef ONNXTRAIN_GRAPH_TENSOR_PROTO_FILE_H_
#define ONNXTRAIN_GRAPH_TENSOR_PROTO_FILE_H_

#include <string>

#include "graph/tensor.h"

namespace onnxtrain {

// InvalidData for a file that is missing, damaged, or of an element type that is not held.
StatusOr<Tensor> ReadTensorProtoFile(const std::string& path);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_GRAPH_TENSOR_PROTO_FILE_H_
