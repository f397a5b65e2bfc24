// SPDX-License-Identifier: Apache-2.0
// One test a file under tests/golden: tests/support/golden.h says what is demanded of it.
#include "tests/support/golden.h"

#include <gtest/gtest.h>

namespace onnxtrain {
namespace {

class Golden : public ::testing::TestWithParam<GoldenCase> {};

TEST_P(Golden, Holds) { CheckGolden(GetParam()); }

INSTANTIATE_TEST_SUITE_P(Passes, Golden, ::testing::ValuesIn(FindGoldens(ONNXTRAIN_SOURCE_DIR "/tests/golden")),
                         [](const auto& info) { return info.param.pass + "_" + info.param.name; });

}  // namespace
}  // namespace onnxtrain
