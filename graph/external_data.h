// SPDX-License-Identifier: Apache-2.0
// Tensor bytes that a model keeps in files beside it. A model is untrusted: it may name nothing but regular files
// inside its own folder, and ranges inside those files.
#ifndef ONNXTRAIN_GRAPH_EXTERNAL_DATA_H_
#define ONNXTRAIN_GRAPH_EXTERNAL_DATA_H_

#include <cstdint>
#include <string>

#include "graph/status.h"
#include "graph/tensor.h"

namespace onnx {
class TensorProto;
}

namespace onnxtrain {

// What a tensor's external_data says.
struct ExternalRange {
  std::string location;  // relative to the model's folder
  int64_t offset = 0;
  int64_t bytes = 0;  // what the tensor's type needs; a stated length must be the same
};

// Fails with InvalidModel on missing, repeated or malformed keys and on a length that disagrees with the dimensions.
StatusOr<ExternalRange> ExternalRangeOf(const onnx::TensorProto& tensor, const TensorType& type);

// Opens `location` under `folder` and checks the range. InvalidModel for absolute paths, "..", symbolic links, files
// with more than one name (hard links), anything but a regular file, and a range past its end. `bytes` may be null:
// then only the checks are made; otherwise it receives range.bytes bytes.
Status ReadExternal(const std::string& folder, const ExternalRange& range, std::byte* bytes);

// The tensor's bytes, wherever they are (graph/onnx_proto.h has the other rules).
StatusOr<Tensor> LoadTensor(const onnx::TensorProto& tensor, const std::string& folder);
// The same checks without reading: type, payload or range. Types that Tensor does not hold pass; they are refused where
// they are used.
Status CheckTensor(const onnx::TensorProto& tensor, const std::string& folder);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_GRAPH_EXTERNAL_DATA_H_
