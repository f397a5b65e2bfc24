// SPDX-License-Identifier: Apache-2.0
#include "passes/fuse_gelu.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "passes/replace_value.h"

namespace onnxtrain {
namespace {

constexpr double kSqrtOf2OverPi = 0.79788456080286535588;
constexpr double kOneOverSqrtOf2 = 0.70710678118654752440;
constexpr double kCubic = 0.044715;

bool Near(double value, double expected) { return std::fabs(value - expected) <= 1e-6 * std::fabs(expected); }

std::optional<double> ScalarOf(const Value* value) {
  if (value == nullptr || value->constant() == nullptr || value->type().elements() != 1) return std::nullopt;
  if (!IsFloating(value->type().dtype) && !IsInteger(value->type().dtype)) return std::nullopt;
  return value->constant()->DoubleAt(0);
}

// A product taken apart: a number, and values with their multiplicity.
struct Product {
  double factor = 1;
  std::vector<const Value*> values;

  bool Is(double expected, std::vector<const Value*> wanted) const {
    std::vector<const Value*> mine = values;
    std::sort(mine.begin(), mine.end());
    std::sort(wanted.begin(), wanted.end());
    return Near(factor, expected) && mine == wanted;
  }
};

// Goes through Mul, Div by a number and Pow by a small whole number; `stop` is a factor as it is.
void Multiply(const Value* value, const Value* stop, Product& product) {
  constexpr size_t kMostFactors = 8;
  const Node* node = value->producer();
  if (const auto number = ScalarOf(value)) {
    product.factor *= *number;
    return;
  }
  if (value == stop || node == nullptr || product.values.size() > kMostFactors) {
    product.values.push_back(value);
    return;
  }
  if (node->op() == "Mul") {
    Multiply(node->input(0), stop, product);
    Multiply(node->input(1), stop, product);
    return;
  }
  const auto second = ScalarOf(node->input(1));
  if (node->op() == "Div" && second && *second != 0) {
    product.factor /= *second;
    Multiply(node->input(0), stop, product);
    return;
  }
  if (node->op() == "Pow" && second && (*second == 2 || *second == 3)) {
    for (int i = 0; i < static_cast<int>(*second); ++i) Multiply(node->input(0), stop, product);
    return;
  }
  product.values.push_back(value);
}

Product ProductOf(const Value* value, const Value* stop) {
  Product product;
  Multiply(value, stop, product);
  return product;
}

bool IsPrivate(const Graph& graph, const Value* value) {
  return value->consumers().size() == 1 && !IsGraphOutput(graph, value) && !IsUpdate(graph, value) &&
         !HasRole(graph, value);
}

// The two operands of a sum, in both orders.
bool IsSumOf(const Value* sum, const auto& matches) {
  const Node* node = sum->producer();
  if (node == nullptr || node->op() != "Add") return false;
  return matches(node->input(0), node->input(1)) || matches(node->input(1), node->input(0));
}

// The x of sqrt(2 / pi) (x + 0.044715 x^3); null where `argument` is something else.
const Value* ArgumentOfTanh(const Value* argument) {
  const Value* found = nullptr;
  const auto with_cube = [&](const Value* x, const Value* cube) {
    if (!ProductOf(cube, x).Is(kCubic, {x, x, x})) return false;
    found = x;
    return true;
  };
  const Product outer = ProductOf(argument, nullptr);
  if (!Near(outer.factor, kSqrtOf2OverPi)) return nullptr;
  if (outer.values.size() == 1 && IsSumOf(outer.values[0], with_cube)) return found;
  if (outer.values.size() != 2) return nullptr;
  for (size_t i : {0, 1}) {  // x (1 + 0.044715 x^2)
    const Value* x = outer.values[i];
    const auto with_square = [&](const Value* one, const Value* square) {
      return ScalarOf(one) == 1.0 && ProductOf(square, x).Is(kCubic, {x, x});
    };
    if (IsSumOf(outer.values[1 - i], with_square)) return x;
  }
  return nullptr;
}

const Value* ArgumentOfErf(const Value* argument) {
  const Product product = ProductOf(argument, nullptr);
  const bool matches = product.values.size() == 1 && Near(product.factor, kOneOverSqrtOf2);
  return matches ? product.values[0] : nullptr;
}

struct Match {
  Value* x;
  Value* y;
};

class FuseGeluPass : public Pass {
 public:
  std::string_view name() const override { return "fuse_gelu"; }

  StatusOr<bool> Run(Program& program) const override {
    bool changed = false;
    for (const auto& [name, unused] : program.graphs()) {
      Graph& graph = *program.FindGraph(name);
      for (Node* node : Candidates(graph)) {
        const std::optional<Match> match = Find(graph, node);
        if (!match) continue;
        RETURN_IF_ERROR(Replace(graph, *match, node->op() == "Tanh"));
        changed = true;
      }
    }
    return changed;
  }

 private:
  static std::vector<Node*> Candidates(const Graph& graph) {
    std::vector<Node*> candidates;
    for (const auto& node : graph.nodes()) {
      if (node->op() == "Tanh" || node->op() == "Erf") candidates.push_back(node.get());
    }
    return candidates;
  }

  // From the Tanh or Erf on: its sum with one, and the product y = 0.5 x (1 + ...) that reads the sum.
  static std::optional<Match> Find(const Graph& graph, const Node* function) {
    const Value* x = function->op() == "Tanh" ? ArgumentOfTanh(function->input(0)) : ArgumentOfErf(function->input(0));
    Value* value = function->output(0);
    if (x == nullptr || !(x->type() == value->type()) || !IsPrivate(graph, value)) return std::nullopt;
    const Node* add = value->consumers()[0];
    if (add->op() != "Add" || ScalarOf(add->input(0) == value ? add->input(1) : add->input(0)) != 1.0) {
      return std::nullopt;
    }
    const Value* sum = add->output(0);
    constexpr int kMostProducts = 3;
    value = add->output(0);
    for (int i = 0; i < kMostProducts && IsPrivate(graph, value); ++i) {
      const Node* product = value->consumers()[0];
      if (product->op() != "Mul" && product->op() != "Div") return std::nullopt;
      value = product->output(0);
      if (value->type() == x->type() && HalfOf(value, x, sum)) return Match{const_cast<Value*>(x), value};
    }
    return std::nullopt;
  }

  static bool HalfOf(const Value* value, const Value* x, const Value* sum) {
    Product product;
    Multiply(value, x, product);
    return product.Is(0.5, {x, sum});
  }

  static Status Replace(Graph& graph, const Match& match, bool tanh) {
    Node* last = match.y->producer();
    NodeSpec spec{"Gelu", {match.x}, {}, {match.y->name()}, last->origin(), {}};
    if (tanh) spec.attributes.Set("approximate", std::string("tanh"));
    ASSIGN_OR_RETURN(Node * gelu, graph.Insert(last, std::move(spec)));
    const std::string name = match.y->name();
    RETURN_IF_ERROR(ReplaceValue(graph, match.y, gelu->output(0)));
    EraseUnread(graph, last->output(0));
    if (graph.FindValue(name) == nullptr) graph.Rename(gelu->output(0), name);
    return OkStatus();
  }

  // `value` and what only it read, as far as one-output arithmetic goes. By name, since erasing one may erase another.
  static void EraseUnread(Graph& graph, const Value* value) {
    std::vector<std::string> unread = {value->name()};
    while (!unread.empty()) {
      const Value* candidate = graph.FindValue(unread.back());
      unread.pop_back();
      if (candidate == nullptr || !IsPart(candidate) || IsNamed(graph, candidate)) continue;
      const std::vector<Value*> inputs = candidate->producer()->inputs();
      graph.Erase(candidate->producer());
      for (const Value* input : inputs) unread.push_back(input->name());
      EraseUnusedConstants(graph, inputs);
    }
  }

  static bool IsNamed(const Graph& graph, const Value* value) {
    return !value->consumers().empty() || IsGraphOutput(graph, value) || IsUpdate(graph, value) ||
           HasRole(graph, value);
  }

  static bool IsPart(const Value* value) {
    constexpr std::string_view kPart[] = {"Mul", "Div", "Pow", "Add", "Tanh", "Erf"};
    return value->producer() != nullptr &&
           std::find(std::begin(kPart), std::end(kPart), value->producer()->op()) != std::end(kPart);
  }
};

}  // namespace

std::unique_ptr<Pass> FuseGelu() { return std::make_unique<FuseGeluPass>(); }

}  // namespace onnxtrain
