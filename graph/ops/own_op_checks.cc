// SPDX-License-Identifier: Apache-2.0
#include "graph/ops/own_op_checks.h"

#include <algorithm>
#include <limits>

namespace onnxtrain {
namespace {

std::string Count(size_t fewest, size_t most) {
  if (fewest == most) return std::to_string(fewest);
  if (most == std::numeric_limits<size_t>::max()) return "at least " + std::to_string(fewest);
  return std::to_string(fewest) + " to " + std::to_string(most);
}

std::string_view NameOfKind(size_t kind) {
  constexpr std::string_view kNames[] = {"int", "float", "string", "ints", "floats", "strings", "tensor"};
  return kNames[kind];
}

std::string InputName(size_t index, std::string_view what) {
  return "input " + std::to_string(index) + " (" + std::string(what) + ")";
}

}  // namespace

void OwnOpChecks::Fail(std::string message) {
  if (status_.ok()) status_ = InvalidModelError(std::move(message));
}

void OwnOpChecks::Demand(bool condition, std::string_view message) {
  if (!condition) Fail(std::string(message));
}

void OwnOpChecks::Inputs(size_t fewest, size_t most) {
  const size_t found = context_.inputs.size();
  if (found < fewest || found > most) Fail("takes " + Count(fewest, most) + " inputs, found " + std::to_string(found));
}

void OwnOpChecks::Outputs(size_t fewest, size_t most) {
  const size_t found = context_.wanted.size();
  if (found < fewest || found > most) Fail("gives " + Count(fewest, most) + " outputs, found " + std::to_string(found));
}

void OwnOpChecks::Attributes(std::initializer_list<AttributeRule> rules) {
  for (const auto& attribute : context_.attributes.entries()) {
    const auto& name = attribute.first;  // not a structured binding: clang 14 lets no lambda capture one
    const auto& value = attribute.second;
    auto rule = std::find_if(rules.begin(), rules.end(), [&](const AttributeRule& r) { return r.name == name; });
    if (rule == rules.end()) {
      Fail("has no attribute '" + name + "'");
    } else if (static_cast<size_t>(rule->kind) != value.index()) {
      Fail("attribute '" + name + "' is of kind " + std::string(NameOfKind(static_cast<size_t>(rule->kind))) +
           ", found " + std::string(NameOfKind(value.index())));
    }
  }
  for (const AttributeRule& rule : rules) {
    if (rule.required && !context_.attributes.Has(rule.name)) Fail("needs attribute '" + std::string(rule.name) + "'");
  }
}

bool OwnOpChecks::Present(size_t index, std::string_view what) {
  if (index < context_.inputs.size() && context_.inputs[index].known()) return true;
  Fail(InputName(index, what) + " is missing");
  return false;
}

void OwnOpChecks::Type(size_t index, std::string_view what, const TensorType& expected) {
  if (!Present(index, what) || context_.inputs[index] == expected) return;
  Fail(InputName(index, what) + " must be " + ToString(expected) + ", found " + ToString(context_.inputs[index]));
}

void OwnOpChecks::Floating(size_t index, std::string_view what) {
  if (!Present(index, what) || IsFloating(context_.inputs[index].dtype)) return;
  Fail(InputName(index, what) + " must be of a floating type, found " + ToString(context_.inputs[index]));
}

void OwnOpChecks::OneElement(size_t index, std::string_view what) {
  if (!Present(index, what) || context_.inputs[index].elements() == 1) return;
  Fail(InputName(index, what) + " must have one element, found " + ToString(context_.inputs[index]));
}

void OwnOpChecks::Flat(size_t index, std::string_view what) {
  if (!Present(index, what) || context_.inputs[index].rank() == 1) return;
  Fail(InputName(index, what) + " must be of rank 1, found " + ToString(context_.inputs[index]));
}

}  // namespace onnxtrain
