// SPDX-License-Identifier: Apache-2.0
#include "runtime/activation_ops.h"

#include <algorithm>

namespace onnxtrain {
namespace {

struct Entry {
  const char* op;
  UnaryFunction function;
  double alpha = 0;  // the schema's defaults, Selu's in the precision of its paper
  double beta = 0;
  const char* beta_name = "beta";
};

constexpr Entry kActivations[] = {
    {"Celu", UnaryFunction::kCelu, 1.0},
    {"Elu", UnaryFunction::kElu, 1.0},
    {"Erf", UnaryFunction::kErf},
    {"Gelu", UnaryFunction::kGeluErf},
    {"HardSigmoid", UnaryFunction::kHardSigmoid, 0.2, 0.5},
    {"HardSwish", UnaryFunction::kHardSwish},
    {"LeakyRelu", UnaryFunction::kLeakyRelu, 0.01},
    {"Mish", UnaryFunction::kMish},
    {"Relu", UnaryFunction::kRelu},
    {"Selu", UnaryFunction::kSelu, 1.6732632423543772, 1.0507009873554805, "gamma"},
    {"Sigmoid", UnaryFunction::kSigmoid},
    {"Softplus", UnaryFunction::kSoftplus},
    {"Softsign", UnaryFunction::kSoftsign},
    {"Swish", UnaryFunction::kSwish, 1.0},
    {"Tanh", UnaryFunction::kTanh},
    {"ThresholdedRelu", UnaryFunction::kThresholdedRelu, 1.0},
};

double FloatOr(const Attributes& attributes, const char* name, double fallback) {
  return attributes.Has(name) ? DecimalValue(attributes.Float(name, 0)) : fallback;
}

}  // namespace

const std::vector<std::string>& ActivationOps() {
  static const std::vector<std::string> ops = [] {
    std::vector<std::string> names;
    for (const Entry& entry : kActivations) names.emplace_back(entry.op);
    return names;
  }();
  return ops;
}

Activation ActivationOf(const std::string& op, const Attributes& attributes) {
  const auto* const entry =
      std::find_if(std::begin(kActivations), std::end(kActivations), [&](const Entry& each) { return op == each.op; });
  CHECK_WITH(entry != std::end(kActivations), op + " is no activation");
  if (op == "Gelu" && attributes.String("approximate", "none") == "tanh") return {UnaryFunction::kGeluTanh};
  return {entry->function, FloatOr(attributes, "alpha", entry->alpha),
          FloatOr(attributes, entry->beta_name, entry->beta)};
}

}  // namespace onnxtrain
