// SPDX-License-Identifier: Apache-2.0
#include "passes/fuse_matmul.h"

#include <algorithm>
#include <numeric>

#include "passes/replace_value.h"

namespace onnxtrain {
namespace {

using Permutation = std::vector<int64_t>;

Permutation IdentityOf(int64_t rank) {
  Permutation identity(static_cast<size_t>(rank));
  std::iota(identity.begin(), identity.end(), 0);
  return identity;
}

bool IsIdentity(const Permutation& permutation) {
  return permutation == IdentityOf(static_cast<int64_t>(permutation.size()));
}

// The attribute, or what its absence means.
Permutation PermutationOf(const Node& node, const char* name, int64_t rank) {
  return node.attributes().Has(name) ? node.attributes().Ints(name) : IdentityOf(rank);
}

Permutation TransposeOf(const Node& node) {
  Permutation reversed = IdentityOf(node.input(0)->type().rank());
  std::reverse(reversed.begin(), reversed.end());
  return node.attributes().Has("perm") ? node.attributes().Ints("perm") : reversed;
}

// First `inner`, then `outer`.
Permutation Composed(const Permutation& inner, const Permutation& outer) {
  Permutation result;
  for (int64_t axis : outer) result.push_back(inner[axis]);
  return result;
}

// Whether one of the two axes of the matrices is the innermost in memory.
bool KeepsUnitStride(const Permutation& read) {
  const int64_t innermost = static_cast<int64_t>(read.size()) - 1;
  return read[read.size() - 1] == innermost || read[read.size() - 2] == innermost;
}

const Value* OtherInput(const Node& node, const Value* value) {
  return node.input(0) == value ? node.input(1) : node.input(0);
}

bool IsOneFloat(const Value* value) {
  return value != nullptr && value->constant() != nullptr && value->type().dtype == DType::kFloat &&
         value->type().elements() == 1;
}

// A product and what has been taken into it. `last` is the node whose output it now is.
class FusedProduct {
 public:
  FusedProduct(const Graph& graph, Node* node) : graph_(graph), last_(node) {
    a_ = {node->input(0), PermutationOf(*node, "perm_a", node->input(0)->type().rank())};
    b_ = {node->input(1), PermutationOf(*node, "perm_b", node->input(1)->type().rank())};
    bias_ = node->input(2);
    perm_y_ = PermutationOf(*node, "perm_y", node->output(0)->type().rank());
    alpha_ = node->attributes().Float("alpha", 1);
    absorbed_ = {node};
  }

  // Whether anything was taken in.
  bool Absorb() {
    bool changed = false;
    while (AbsorbOperand(a_) || AbsorbOperand(b_) || AbsorbConsumer()) changed = true;
    return changed;
  }

  StatusOr<Node*> Insert(Graph& graph) const {
    const bool matrices = a_.permutation.size() == 2 && b_.permutation.size() == 2 && IsIdentity(perm_y_);
    NodeSpec spec{matrices ? "Gemm" : "onnxtrain.MatMul", {a_.value, b_.value}, {}, {}, absorbed_[0]->origin(), {}};
    if (bias_ != nullptr) spec.inputs.push_back(bias_);
    if (alpha_ != 1) spec.attributes.Set("alpha", alpha_);
    if (matrices) {
      if (!IsIdentity(a_.permutation)) spec.attributes.Set("transA", int64_t{1});
      if (!IsIdentity(b_.permutation)) spec.attributes.Set("transB", int64_t{1});
    } else {
      if (!IsIdentity(a_.permutation)) spec.attributes.Set("perm_a", a_.permutation);
      if (!IsIdentity(b_.permutation)) spec.attributes.Set("perm_b", b_.permutation);
      if (!IsIdentity(perm_y_)) spec.attributes.Set("perm_y", perm_y_);
    }
    spec.output_names = {last_->output(0)->name()};
    return graph.Insert(last_, std::move(spec));
  }

  Node* last() const { return last_; }
  // The product and the nodes that were taken in whole, readers before what they read.
  std::vector<Node*> AbsorbedReadersFirst() const {
    std::vector<Node*> nodes(absorbed_.rbegin(), absorbed_.rend());
    nodes.insert(nodes.end(), operand_factors_.begin(), operand_factors_.end());
    return nodes;
  }

 private:
  struct Operand {
    Value* value;
    Permutation permutation;
  };

  // Read by one node and by nothing else.
  bool IsPrivate(const Value* value) const {
    return value->consumers().size() == 1 && !IsGraphOutput(graph_, value) && !IsUpdate(graph_, value) &&
           !HasRole(graph_, value);
  }

  bool AbsorbOperand(Operand& operand) {
    Node* producer = operand.value->producer();
    if (producer == nullptr) return false;
    if (producer->op() == "Transpose") return AbsorbTranspose(operand, *producer);
    float factor;
    if (bias_ != nullptr || !IsPrivate(operand.value) || !FactorOf(*producer, &factor)) return false;
    Value* scaled = producer->input(0);
    if (IsOneFloat(scaled) && !IsOneFloat(producer->input(1))) scaled = producer->input(1);
    if (!(scaled->type() == operand.value->type())) return false;
    operand.value = scaled;
    alpha_ *= factor;
    operand_factors_.push_back(producer);
    return true;
  }

  bool AbsorbTranspose(Operand& operand, const Node& transpose) {
    const Permutation permutation = Composed(TransposeOf(transpose), operand.permutation);
    if (permutation.size() < 2 || !KeepsUnitStride(permutation)) return false;
    operand = {transpose.input(0), permutation};
    return true;
  }

  // Multiplication with a constant, or division by one.
  static bool FactorOf(const Node& node, float* factor) {
    if (node.op() == "Mul" && (IsOneFloat(node.input(0)) || IsOneFloat(node.input(1)))) {
      *factor =
          static_cast<float>((IsOneFloat(node.input(1)) ? node.input(1) : node.input(0))->constant()->DoubleAt(0));
      return true;
    }
    if (node.op() != "Div" || !IsOneFloat(node.input(1))) return false;
    *factor = static_cast<float>(1 / node.input(1)->constant()->DoubleAt(0));
    return true;
  }

  bool AbsorbConsumer() {
    Value* y = last_->output(0);
    if (!IsPrivate(y)) return false;
    Node* consumer = y->consumers()[0];
    if (consumer->op() == "Transpose") return AbsorbFollowingTranspose(consumer);
    if (!(consumer->output(0)->type() == y->type())) return false;
    float factor;
    if (consumer->op() == "Add") return AbsorbBias(consumer);
    if (bias_ != nullptr || !FactorOf(*consumer, &factor) || !IsOneFloat(OtherInput(*consumer, y))) return false;
    alpha_ *= factor;
    Take(consumer);
    return true;
  }

  bool AbsorbFollowingTranspose(Node* transpose) {
    const Permutation permutation = Composed(perm_y_, TransposeOf(*transpose));
    const int64_t innermost = permutation.empty() ? -1 : permutation.back();
    if (innermost < static_cast<int64_t>(permutation.size()) - 2 || permutation.size() < 2) return false;
    perm_y_ = permutation;
    Take(transpose);
    return true;
  }

  bool AbsorbBias(Node* add) {
    Value* y = last_->output(0);
    Value* bias = add->input(0) == y ? add->input(1) : add->input(0);
    if (bias_ != nullptr || bias == y || !IsIdentity(perm_y_) || bias->type().rank() != 1) return false;
    if (bias->type().shape[0] != y->type().shape.back()) return false;
    bias_ = bias;
    Take(add);
    return true;
  }

  void Take(Node* consumer) {
    last_ = consumer;
    absorbed_.push_back(consumer);
  }

  const Graph& graph_;
  Node* last_;
  Operand a_, b_;
  Value* bias_ = nullptr;
  Permutation perm_y_;
  float alpha_ = 1;
  std::vector<Node*> absorbed_;         // the product and its consumers, in order
  std::vector<Node*> operand_factors_;  // readers before what they read
};

bool IsProduct(const Node& node) {
  if (node.op() != "MatMul" && node.op() != "onnxtrain.MatMul") return false;
  return node.input(0)->type().rank() >= 2 && node.input(1)->type().rank() >= 2;
}

class FuseMatMulPass : public Pass {
 public:
  std::string_view name() const override { return "fuse_matmul"; }

  StatusOr<bool> Run(Program& program) const override {
    bool changed = false;
    for (const auto& [name, unused] : program.graphs()) {
      Graph& graph = *program.FindGraph(name);
      for (Node* node : Products(graph)) {
        ASSIGN_OR_RETURN(const bool fused, Fuse(graph, node));
        changed = changed || fused;
      }
    }
    return changed;
  }

 private:
  static std::vector<Node*> Products(const Graph& graph) {
    std::vector<Node*> products;
    for (const auto& node : graph.nodes()) {
      if (IsProduct(*node)) products.push_back(node.get());
    }
    return products;
  }

  static StatusOr<bool> Fuse(Graph& graph, Node* node) {
    FusedProduct product(graph, node);
    if (!product.Absorb()) return false;
    ASSIGN_OR_RETURN(Node * fused, product.Insert(graph));
    const std::string name = product.last()->output(0)->name();
    RETURN_IF_ERROR(ReplaceValue(graph, product.last()->output(0), fused->output(0)));
    const std::vector<Node*> absorbed = product.AbsorbedReadersFirst();
    std::vector<Value*> inputs = InputsFromOutside(absorbed);
    for (Node* one : absorbed) graph.Erase(one);
    EraseUnusedTransposes(graph, inputs);
    EraseUnusedConstants(graph, inputs);
    if (graph.FindValue(name) == nullptr) graph.Rename(fused->output(0), name);
    return true;
  }

  static std::vector<Value*> InputsFromOutside(const std::vector<Node*>& nodes) {
    std::vector<Value*> inputs;
    for (const Node* node : nodes) {
      for (Value* input : node->inputs()) {
        if (input == nullptr || std::find(nodes.begin(), nodes.end(), input->producer()) != nodes.end()) continue;
        inputs.push_back(input);
      }
    }
    return inputs;
  }

  // Chains of transposes that nobody reads any more.
  static void EraseUnusedTransposes(Graph& graph, std::vector<Value*>& values) {
    for (size_t i = 0; i < values.size(); ++i) {
      Value* value = values[i];
      if (value == nullptr ||
          std::find(values.begin() + static_cast<std::ptrdiff_t>(i) + 1, values.end(), value) != values.end()) {
        continue;
      }
      Node* producer = value->producer();
      if (producer == nullptr || producer->op() != "Transpose" || !value->consumers().empty()) continue;
      if (IsGraphOutput(graph, value) || IsUpdate(graph, value) || HasRole(graph, value)) continue;
      values.push_back(producer->input(0));
      values[i] = nullptr;
      graph.Erase(producer);
    }
  }
};

}  // namespace

std::unique_ptr<Pass> FuseMatMul() { return std::make_unique<FuseMatMulPass>(); }

}  // namespace onnxtrain
