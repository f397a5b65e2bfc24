// SPDX-License-Identifier: Apache-2.0
// Nodes of the file, one after the other, into a Graph. Shared by the reader and by function inlining.
//
// Names resolve to bindings: a value of the graph, a sequence of values (sequences exist here only), or nothing, with
// the reasons why. A node that cannot be imported does not stop the import: what depends on it has no binding, and
// whoever needs such a name reports the reasons. So nodes in branches not taken, or whose results fold away, never
// matter.
#ifndef ONNXTRAIN_GRAPH_NODE_IMPORTER_H_
#define ONNXTRAIN_GRAPH_NODE_IMPORTER_H_

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "graph/graph.h"
#include "graph/lift.h"

namespace onnx {
class AttributeProto;
class FunctionProto;
class GraphProto;
class NodeProto;
class TensorProto;
}  // namespace onnx

namespace onnxtrain {

struct Binding {
  enum class Kind : uint8_t { kValue, kSequence, kMissing };
  Kind kind = Kind::kValue;
  Value* value = nullptr;        // kValue; null: an omitted optional
  std::vector<Value*> elements;  // kSequence
  std::set<size_t> causes;       // kMissing: indices into NodeImporter::causes()
};

// One level of names: the main graph, a branch, or a function body.
struct Scope {
  // Consulted when a name is not found, for what is made on demand (initializers). May be null.
  std::function<StatusOr<std::optional<Binding>>(const std::string&)> on_demand;
  const Scope* parent = nullptr;  // enclosing graph, for branches
  std::unordered_map<std::string, Binding> names;
  const std::map<std::string, int64_t>* opsets = nullptr;
  // In a function: attributes of the call, by formal name.
  std::map<std::string, const onnx::AttributeProto*> attributes;
  std::string prefix;                // of value names and origins: "" in the main graph
  bool main = false;                 // values take exactly the names of the file
  std::set<std::string> keep_apart;  // names that must be values of their own, though an Identity writes them
  int depth = 0;
};

struct ImporterOptions {
  bool widen_to_double = false;
  int64_t max_constant_elements = 0;
  std::string folder;  // of external data in attributes
};

// All names that nodes read, in sub-graphs too, on the way to `wanted`; these included.
std::unordered_set<std::string> NamesNeededFor(const onnx::GraphProto& body, const std::vector<std::string>& wanted);

class NodeImporter {
 public:
  using FunctionMap = std::map<std::string, const onnx::FunctionProto*>;
  // "domain:name:overload"
  static std::string FunctionKey(const std::string& domain, const std::string& name, const std::string& overload);

  // `graph` is borrowed, `functions` too.
  NodeImporter(Graph& graph, ImporterOptions options, const FunctionMap& functions);
  ~NodeImporter();

  // The nodes of `body` that `wanted` names need. Fails only for what makes the file no valid graph.
  Status ImportGraph(const onnx::GraphProto& body, const std::vector<std::string>& wanted, Scope& scope);
  // The body of a function on these actual inputs; one binding per formal output.
  StatusOr<std::vector<Binding>> ImportFunction(const onnx::FunctionProto& function, const std::vector<Binding>& inputs,
                                                const onnx::NodeProto& call, const Scope& caller);
  StatusOr<Binding> Lookup(const std::string& name, const Scope& scope);

  // No binding, for this reason.
  Binding Missing(const std::string& cause);
  // Makes `name` the name of the value where the value has none of the file's yet.
  void NameValue(Value* value, const std::string& name);
  void MarkNamed(Value* value) { named_.insert(value); }
  DType Widened(DType dtype) const;
  Tensor Widened(Tensor tensor) const;

  // Why names have no binding, in the order found.
  const std::vector<std::string>& causes() const { return causes_; }

 private:
  struct Call;
  using Bindings = StatusOr<std::vector<Binding>>;

  Status ImportNode(const onnx::NodeProto& node, Scope& scope);
  Status BindOutputs(const onnx::NodeProto& node, std::vector<Binding> outputs, Scope& scope);
  Bindings Dispatch(Call& call);
  Bindings ImportConstant(Call& call);
  Bindings ImportIf(Call& call);
  Bindings ImportSequenceOp(Call& call);
  Bindings ImportSequenceUse(Call& call);
  Bindings ImportSplit(Call& call);
  Bindings ImportConcat(Call& call, const std::vector<Value*>& elements);
  Bindings ImportGeneric(Call& call);
  static Status CheckForm(const Call& call);
  Bindings ImportCast(Call& call);
  Bindings FunctionOutputs(const onnx::FunctionProto& function, const onnx::NodeProto& call, const Scope& scope);
  StatusOr<std::optional<std::vector<Binding>>> ImportBody(Call& call);
  StatusOr<ImportedNode> ToImported(const Call& call) const;
  void WidenAttributes(ImportedNode& node) const;
  void KeepScalesNarrow(ImportedNode& node) const;
  StatusOr<std::vector<Value*>> Emit(const Call& call, std::string op, std::vector<Value*> inputs,
                                     Attributes attributes, std::vector<std::string> outputs);
  StatusOr<Value*> EmitOne(const Call& call, std::string op, std::vector<Value*> inputs, Attributes attributes);
  StatusOr<int64_t> ConstantInt(const Call& call, size_t input) const;

  Graph& graph_;
  ImporterOptions options_;
  const FunctionMap& functions_;
  std::unordered_set<const Value*> named_;
  std::vector<std::string> causes_;
  std::vector<std::unique_ptr<onnx::FunctionProto>> bodies_;
  std::vector<std::unique_ptr<onnx::NodeProto>> calls_;
  int64_t imported_ = 0;
  Status fatal_;
};

}  // namespace onnxtrain

#endif  // ONNXTRAIN_GRAPH_NODE_IMPORTER_H_
