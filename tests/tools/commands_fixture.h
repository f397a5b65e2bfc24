// SPDX-License-Identifier: Apache-2.0
// What tests of single commands share.
#ifndef ONNXTRAIN_TESTS_TOOLS_COMMANDS_FIXTURE_H_
#define ONNXTRAIN_TESTS_TOOLS_COMMANDS_FIXTURE_H_

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "graph/tensor.h"
#include "tests/tools/command_line.h"

namespace onnxtrain {

class CommandsTest : public ::testing::Test {
 protected:
  using Strings = std::vector<std::string>;

  // Arguments of a loss, of training data and of validation data for the classifiers among the fixtures.
  static const Strings kLoss;
  static const Strings kTrain;
  static const Strings kVal;
  static const Strings kQuiet;  // --quiet --json

  // An initializer of a model file.
  Tensor Weight(const std::string& file, const std::string& name);
  void ExpectSameFile(const std::string& one, const std::string& other);

  CommandLine line_;
};

}  // namespace onnxtrain

#endif  // ONNXTRAIN_TESTS_TOOLS_COMMANDS_FIXTURE_H_
