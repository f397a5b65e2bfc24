// SPDX-License-Identifier: Apache-2.0
// The user's model file: kept as it came, looked at by `inspect`, specialised into a Graph (graph/onnx_reader.h), and
// written back with new weights and nothing else changed.
#ifndef ONNXTRAIN_GRAPH_ONNX_MODEL_H_
#define ONNXTRAIN_GRAPH_ONNX_MODEL_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/status.h"
#include "graph/tensor.h"

namespace onnx {
class GraphProto;
class ModelProto;
class TensorProto;
}  // namespace onnx

namespace onnxtrain {

// A dimension as declared: a number, a symbol ("batch", "2*batch"), or neither.
struct ModelDim {
  std::optional<int64_t> value;
  std::string symbol;
};

struct ModelValue {
  std::string name;
  std::string type;  // as ONNX text: "float[batch,784]", "seq(float[?])"; "" where the file declares none
  DType dtype = DType::kUndefined;            // of a tensor whose elements we hold
  std::optional<std::vector<ModelDim>> dims;  // none: unknown rank
};

struct ModelInitializer {
  std::string name;
  TensorType type;  // unknown for element types we do not hold; `type_text` has them
  std::string type_text;
  bool external = false;    // its bytes are in another file
  bool also_input = false;  // listed among the graph's inputs too (IR 3, or by choice of the exporter)
  // metadata_props of its value_info and of the tensor: "pkg.torch.export.graph_signature.InputSpec.kind" :
  // "PARAMETER".
  std::map<std::string, std::string> metadata;
};

// A node of the main graph; for looking at only.
struct ModelNode {
  std::string name;
  std::string op;                   // with the domain and a point in front unless it is the default one
  std::vector<std::string> inputs;  // "" where omitted
  std::vector<std::string> outputs;
  std::map<std::string, int64_t> ints;  // its integer attributes
  // "/h.0/attn/MatMul (MatMul, opset 17)": how messages name it.
  std::string Describe(int64_t opset) const;
};

// BatchNormalization or Dropout, in functions and sub-graphs too.
struct ModeNode {
  std::string name;
  std::string op;
  bool training = false;  // exported in training mode
  bool known = true;      // false: training_mode is computed inside the model
};

// Move-only. Holds the parsed file (about its size in memory). Not thread-safe; const members may run concurrently.
class OnnxModel {
 public:
  // Binary .onnx, or ONNX text where the name ends in .onnxtxt or .txt. External data must lie in the model's folder:
  // absolute paths, "..", links of any kind, ranges past the end of the file and lengths that disagree with the
  // dimensions are refused here. Usage when the file does not exist, InvalidModel for what is wrong inside it (with the
  // byte offset where parsing stopped), never a crash.
  static StatusOr<OnnxModel> Load(const std::string& path);
  // From bytes in memory; `folder` is where external data is looked for, "" allows none. `name` is for messages.
  static StatusOr<OnnxModel> Parse(std::string_view bytes, const std::string& folder, const std::string& name);
  static StatusOr<OnnxModel> ParseText(std::string_view text, const std::string& folder, const std::string& name);

  OnnxModel(OnnxModel&&) noexcept;
  OnnxModel& operator=(OnnxModel&&) noexcept;
  ~OnnxModel();

  const std::string& path() const { return path_; }
  int64_t ir_version() const;
  const std::string& producer() const;  // "pytorch 2.6.0"
  // Version of each imported domain; "" is the default one.
  const std::map<std::string, int64_t>& opsets() const;
  // What must be fed: graph inputs that are no initializers.
  const std::vector<ModelValue>& inputs() const;
  const std::vector<ModelValue>& outputs() const;
  const std::vector<ModelInitializer>& initializers() const;
  const ModelInitializer* FindInitializer(std::string_view name) const;
  const std::vector<ModelNode>& nodes() const;
  // Name -> declared type of intermediate values, where the file has one.
  const std::vector<ModelValue>& value_infos() const;
  std::vector<ModeNode> mode_nodes() const;
  bool has_training_info() const;
  int function_count() const;
  // Parts of the file that have no effect here: sharding annotations, quantization annotations.
  std::vector<std::string> ignored() const;

  // Identity nodes on initializers: output name -> initializer. An exporter merged equal tensors; training the file as
  // it is trains them tied.
  const std::map<std::string, std::string>& tied_names() const;
  // Gives each of tied_names() an initializer of its own, under the output's name, and drops the Identity. The names
  // that were made. What Save writes then differs from the file by exactly that.
  std::vector<std::string> Untie();

  // Bytes of an initializer. InvalidModel when unknown or unreadable.
  StatusOr<Tensor> Initializer(std::string_view name) const;

  // Writes the model with new payloads for the named initializers (types must be those of the file). Equal after
  // parsing in every other field. Payloads become raw_data; a tensor that was external stays external, in a file
  // "<name of the model>.data" beside the new one; a model above 2 GiB becomes external as a whole. Appears whole or
  // not at all: written beside and renamed.
  Status Save(const std::string& path, const std::map<std::string, const Tensor*>& updated) const;

  // For sources of this folder. The model without its graph, the graph without its initializers, and these.
  const onnx::ModelProto& shell() const;
  const onnx::GraphProto& graph() const;
  const onnx::TensorProto* FindTensor(std::string_view name) const;
  const std::string& folder() const { return folder_; }

 private:
  struct Contents;
  OnnxModel();
  static StatusOr<OnnxModel> FromProto(std::unique_ptr<onnx::ModelProto> proto, const std::string& folder,
                                       const std::string& path);
  Status CheckStructure() const;
  void Derive();
  void DeriveInitializers();

  std::string path_;
  std::string folder_;
  std::unique_ptr<Contents> contents_;
};

}  // namespace onnxtrain

#endif  // ONNXTRAIN_GRAPH_ONNX_MODEL_H_
