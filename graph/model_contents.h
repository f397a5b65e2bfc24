// SPDX-License-Identifier: Apache-2.0
// What OnnxModel holds. For the sources that implement it only.
#ifndef ONNXTRAIN_GRAPH_MODEL_CONTENTS_H_
#define ONNXTRAIN_GRAPH_MODEL_CONTENTS_H_

#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "graph/onnx_model.h"

namespace onnxtrain {

// The message is kept in three parts, so that a copy of the structure never copies weights.
struct OnnxModel::Contents {
  Contents();
  ~Contents();

  std::unique_ptr<onnx::ModelProto> shell;                  // without its graph
  std::unique_ptr<onnx::GraphProto> graph;                  // without its initializers
  std::vector<std::unique_ptr<onnx::TensorProto>> tensors;  // its initializers, in order

  // Derived from the parts.
  std::unordered_map<std::string, size_t> tensor_index;
  std::string producer;
  std::map<std::string, int64_t> opsets;
  std::vector<ModelValue> inputs;
  std::vector<ModelValue> outputs;
  std::vector<ModelValue> value_infos;
  std::vector<ModelInitializer> initializers;
  std::vector<ModelNode> nodes;
  std::map<std::string, std::string> tied_names;
};

// What protobuf can hold in one message.
inline constexpr size_t kLargestMessage = 0x7FFFFFFF;

// Writes a model from its three parts, as OnnxModel::Save describes. `folder` is where external data of `tensors` is. A
// file of `largest` bytes or more keeps its large tensors beside it.
Status WriteModelParts(const onnx::ModelProto& shell, const onnx::GraphProto& graph,
                       const std::vector<const onnx::TensorProto*>& tensors, const std::string& folder,
                       const std::map<std::string, const Tensor*>& updates, const std::string& path,
                       size_t largest = kLargestMessage);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_GRAPH_MODEL_CONTENTS_H_
