// SPDX-License-Identifier: Apache-2.0
#include "graph/tensor_proto_file.h"

#include <onnx/onnx_pb.h>

#include <fstream>
#include <sstream>

#include "graph/onnx_proto.h"

namespace onnxtrain {

StatusOr<Tensor> ReadTensorProtoFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return InvalidDataError("cannot read '" + path + "'");
  std::stringstream bytes;
  bytes << file.rdbuf();
  onnx::TensorProto proto;
  if (!proto.ParseFromString(bytes.str())) {
    return InvalidDataError("'" + path + "' is not a serialised TensorProto (sequences and optionals are not read)");
  }
  StatusOr<Tensor> tensor = TensorFromProto(proto);
  if (!tensor.ok()) return InvalidDataError("'" + path + "': " + tensor.status().message());
  return tensor;
}

}  // namespace onnxtrain
