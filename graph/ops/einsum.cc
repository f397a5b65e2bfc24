// SPDX-License-Identifier: Apache-2.0
// Einsum, lifted into transposes, sums and matrix products: operands are contracted from the left, two at a time.
#include <algorithm>
#include <map>
#include <string>

#include "graph/op_registry.h"
#include "graph/ops/all_ops.h"
#include "graph/ops/op_rules.h"

namespace onnxtrain {
namespace {

// An axis label is a letter, or for the axes of an ellipsis a number below 0 counted from the last.
using Labels = std::vector<int>;

struct Term {
  Value* value = nullptr;
  Labels labels;  // one per axis
};

bool Contains(const Labels& labels, int label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

std::vector<std::string> SplitAt(const std::string& text, char separator) {
  std::vector<std::string> parts(1);
  for (char c : text) {
    if (c == separator) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

class Einsum {
 public:
  explicit Einsum(LiftContext& lift) : build_(lift.build), lift_(lift) {}

  Status Run() {
    RETURN_IF_ERROR(Parse());
    for (Term& term : terms_) TakeDiagonals(term);
    RETURN_IF_ERROR(CollectSizes());
    Term sum = terms_[0];
    if (terms_.size() == 1) SumAway(sum, {});
    for (size_t i = 1; i < terms_.size(); ++i) {
      Labels later = result_;
      for (size_t j = i + 1; j < terms_.size(); ++j) {
        later.insert(later.end(), terms_[j].labels.begin(), terms_[j].labels.end());
      }
      sum = Contract(sum, terms_[i], later);
    }
    Permute(sum, result_);
    lift_.ReplaceOutputs({sum.value});
    return build_.status();
  }

 private:
  Status Parse() {
    std::string equation = lift_.node.attributes.String("equation", "");
    equation.erase(std::remove(equation.begin(), equation.end(), ' '), equation.end());
    const size_t arrow = equation.find("->");
    const std::vector<std::string> left = SplitAt(equation.substr(0, arrow), ',');
    if (left.size() != lift_.node.inputs.size()) {
      return InvalidModelError("equation '" + equation + "' names " + std::to_string(left.size()) +
                               " operands, found " + std::to_string(lift_.node.inputs.size()));
    }
    int64_t longest = 0;
    for (size_t i = 0; i < left.size(); ++i) {
      Value* input = lift_.node.inputs[i];
      if (input == nullptr) return InvalidModelError("operand " + std::to_string(i) + " of Einsum is missing");
      ASSIGN_OR_RETURN(Labels labels, LabelsOf(left[i], input->type().rank(), longest));
      terms_.push_back({input, std::move(labels)});
    }
    if (arrow == std::string::npos) return ImplicitResult(longest);
    const std::string right = equation.substr(arrow + 2);
    const int64_t letters = std::count_if(right.begin(), right.end(), [](char c) { return c != '.'; });
    const bool dots = right.find("...") != std::string::npos;
    int64_t unused = 0;
    ASSIGN_OR_RETURN(result_, LabelsOf(right, letters + (dots ? longest : 0), unused));
    return OkStatus();
  }

  // `longest` becomes the largest number of axes that an ellipsis stands for.
  StatusOr<Labels> LabelsOf(const std::string& text, int64_t rank, int64_t& longest) const {
    Labels labels;
    const int64_t letters = std::count_if(text.begin(), text.end(), [](char c) { return c != '.'; });
    const int64_t hidden = rank - letters;
    for (size_t i = 0; i < text.size(); ++i) {
      if (text.compare(i, 3, "...") == 0) {
        for (int64_t axis = hidden; axis > 0; --axis) labels.push_back(static_cast<int>(-axis));
        longest = std::max(longest, hidden);
        i += 2;
      } else if (std::isalpha(static_cast<unsigned char>(text[i])) != 0) {
        labels.push_back(text[i]);
      } else {
        return InvalidModelError("unexpected '" + std::string(1, text[i]) + "' in the equation of Einsum");
      }
    }
    if (static_cast<int64_t>(labels.size()) != rank) {
      return InvalidModelError("'" + text + "' of Einsum does not fit " + std::to_string(rank) + " axes");
    }
    return labels;
  }

  // Without an arrow: the ellipsis, then the letters that occur once, in alphabetical order.
  Status ImplicitResult(int64_t longest) {
    std::map<int, int> uses;
    for (const Term& term : terms_) {
      for (int label : term.labels) ++uses[label];
    }
    for (int64_t axis = longest; axis > 0; --axis) result_.push_back(static_cast<int>(-axis));
    for (const auto& [label, count] : uses) {
      if (label > 0 && count == 1) result_.push_back(label);
    }
    return OkStatus();
  }

  // "ii": both axes are brought to the end, joined, and every (n+1)-th element is taken.
  void TakeDiagonals(Term& term) {
    for (size_t i = 0; i < term.labels.size() && build_.ok(); ++i) {
      const auto second =
          std::find(term.labels.begin() + static_cast<int64_t>(i) + 1, term.labels.end(), term.labels[i]);
      if (second == term.labels.end()) continue;
      const auto j = static_cast<size_t>(second - term.labels.begin());
      std::vector<int64_t> order;
      Labels labels;
      Shape shape;
      for (size_t axis = 0; axis < term.labels.size(); ++axis) {
        if (axis == i || axis == j) continue;
        order.push_back(static_cast<int64_t>(axis));
        labels.push_back(term.labels[axis]);
        shape.push_back(term.value->type().shape[axis]);
      }
      const int64_t n = term.value->type().shape[i];
      if (term.value->type().shape[j] != n)
        return build_.Fail(InvalidModelError("Einsum: a diagonal needs equal sizes"));
      labels.push_back(term.labels[i]);
      order.insert(order.end(), {static_cast<int64_t>(i), static_cast<int64_t>(j)});
      shape.push_back(n * n);
      Value* joined = build_.Reshape(build_.Transpose(term.value, order), shape);
      const auto last = static_cast<int64_t>(shape.size()) - 1;
      term.value = build_.Op(
          "Slice", {joined, build_.Ints({0}), build_.Ints({n * n}), build_.Ints({last}), build_.Ints({n + 1})});
      term.labels = std::move(labels);
      --i;
    }
  }

  Status CollectSizes() {
    RETURN_IF_ERROR(build_.status());
    for (const Term& term : terms_) {
      for (size_t axis = 0; axis < term.labels.size(); ++axis) {
        const int64_t size = term.value->type().shape[axis];
        int64_t& known = sizes_.emplace(term.labels[axis], size).first->second;
        if (known != size && known != 1 && size != 1) {
          return InvalidModelError("Einsum: one label stands for sizes " + std::to_string(known) + " and " +
                                   std::to_string(size));
        }
        known = std::max(known, size);
        if (size == 0) known = 0;
      }
    }
    for (int label : result_) {
      if (!sizes_.contains(label)) return InvalidModelError("Einsum: the result has a label that no operand has");
    }
    return OkStatus();
  }

  // Sums over labels that neither the other operand nor anything later wants.
  void SumAway(Term& term, const Labels& others) {
    std::vector<int64_t> axes;
    Labels kept;
    for (size_t axis = 0; axis < term.labels.size(); ++axis) {
      const int label = term.labels[axis];
      if (Contains(others, label) || Contains(result_, label)) {
        kept.push_back(label);
      } else {
        axes.push_back(static_cast<int64_t>(axis));
      }
    }
    term.value = build_.ReduceSum(term.value, axes, /*keepdims=*/false);
    term.labels = std::move(kept);
  }

  void Permute(Term& term, const Labels& order) {
    std::vector<int64_t> permutation;
    for (int label : order) {
      const auto place = std::find(term.labels.begin(), term.labels.end(), label);
      permutation.push_back(place - term.labels.begin());
    }
    term.value = build_.Transpose(term.value, permutation);
    term.labels = order;
  }

  int64_t Product(const Labels& labels) const {
    int64_t product = 1;
    for (int label : labels) product *= sizes_.at(label);
    return product;
  }

  // In the order of three groups of labels, one axis each; axes of size 1 that others have longer are stretched.
  Value* Grouped(Term term, const Labels& first, const Labels& second, const Labels& third) {
    Labels order = first;
    order.insert(order.end(), second.begin(), second.end());
    order.insert(order.end(), third.begin(), third.end());
    Permute(term, order);
    if (!build_.ok()) return nullptr;
    Shape shape;
    for (int label : order) shape.push_back(sizes_.at(label));
    if (term.value->type().shape != shape) term.value = build_.Op("Expand", {term.value, build_.Ints(shape)});
    return build_.Reshape(term.value, {Product(first), Product(second), Product(third)});
  }

  Term Contract(Term a, Term b, const Labels& later) {
    Labels wanted_by_b = later, wanted_by_a = later;
    wanted_by_b.insert(wanted_by_b.end(), b.labels.begin(), b.labels.end());
    wanted_by_a.insert(wanted_by_a.end(), a.labels.begin(), a.labels.end());
    SumAway(a, wanted_by_b);
    SumAway(b, wanted_by_a);
    Labels batch, left, right, summed;
    for (int label : a.labels) {
      if (!Contains(b.labels, label)) {
        left.push_back(label);
      } else {
        (Contains(later, label) ? batch : summed).push_back(label);
      }
    }
    for (int label : b.labels) {
      if (!Contains(a.labels, label)) right.push_back(label);
    }
    Value* product = build_.Op("MatMul", {Grouped(a, batch, left, summed), Grouped(b, batch, summed, right)});
    Term term{product, batch};
    term.labels.insert(term.labels.end(), left.begin(), left.end());
    term.labels.insert(term.labels.end(), right.begin(), right.end());
    Shape shape;
    for (int label : term.labels) shape.push_back(sizes_.at(label));
    term.value = build_.Reshape(product, shape);
    return term;
  }

  GraphBuilder& build_;
  LiftContext& lift_;
  std::vector<Term> terms_;
  Labels result_;
  std::map<int, int64_t> sizes_;
};

Status LiftEinsum(LiftContext& lift) { return Einsum(lift).Run(); }

}  // namespace

void AddEinsumOps(OpRegistry& registry) { registry.Add({.name = "Einsum", .lift = LiftEinsum}); }

}  // namespace onnxtrain
