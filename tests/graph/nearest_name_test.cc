// SPDX-License-Identifier: Apache-2.0
#include "graph/nearest_name.h"

#include <gtest/gtest.h>

namespace onnxtrain {
namespace {

TEST(NearestName, FindsTypingMistakes) {
  const std::vector<std::string> names = {"momentum", "nesterov", "lr"};
  EXPECT_EQ(NearestName("momentun", names), "momentum");
  EXPECT_EQ(NearestName("nestrov", names), "nesterov");
  EXPECT_EQ(NearestName("lt", names), "lr");
  EXPECT_EQ(NearestName("completely", names), "");
  EXPECT_EQ(NearestName("", names), "");
  EXPECT_EQ(NearestName("lr", {}), "");
  EXPECT_EQ(DidYouMean("momentun", names), ", did you mean 'momentum'?");
  EXPECT_EQ(DidYouMean("xyz", {"abc"}), "");
}

TEST(NearestName, FindsWhatAGlobNearlyMatches) {
  const std::vector<std::string> names = {"embedding", "fc1.weight", "h.0.attn.bias"};
  EXPECT_EQ(NearestName("fc2*", names), "fc1.weight");
  EXPECT_EQ(NearestName("*.atn.*", names), "h.0.attn.bias");
  EXPECT_EQ(NearestName("embed*", names), "embedding");
  EXPECT_EQ(NearestName("conv*", names), "");
}

}  // namespace
}  // namespace onnxtrain
