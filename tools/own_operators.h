// SPDX-License-Identifier: Apache-2.0
// The operators of the domain `onnxtrain` for people who read a built graph: `inspect --ops`.
#ifndef ONNXTRAIN_TOOLS_OWN_OPERATORS_H_
#define ONNXTRAIN_TOOLS_OWN_OPERATORS_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace onnxtrain {

struct OwnOperator {
  std::string_view name;  // without the domain
  std::string_view signature;
  std::string_view attributes;
};

// All but the gradient operators, which are named <Op>Grad or <Op><Input>Grad and have the attributes of <Op>.
std::span<const OwnOperator> OwnOperators();
// Gradient operators of the registry, sorted, without the domain.
std::vector<std::string> GradientOperators();
// Both as a table.
std::string OwnOperatorTable();

}  // namespace onnxtrain

#endif  // ONNXTRAIN_TOOLS_OWN_OPERATORS_H_
