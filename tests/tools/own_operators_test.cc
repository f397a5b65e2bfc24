// SPDX-License-Identifier: Apache-2.0
#include "tools/own_operators.h"

#include <gtest/gtest.h>

#include <set>

#include "graph/op_registry.h"

namespace onnxtrain {
namespace {

TEST(OwnOperators, AreAllDescribed) {
  std::set<std::string> described;
  for (const OwnOperator& op : OwnOperators()) described.emplace(op.name);
  for (const std::string& name : GradientOperators()) described.insert(name);
  std::set<std::string> registered;
  for (const std::string& name : OpRegistry::Default().Names()) {
    if (IsOwnOp(name)) registered.insert(name.substr(kOwnPrefix.size()));
  }
  EXPECT_EQ(described, registered);
}

}  // namespace
}  // namespace onnxtrain
