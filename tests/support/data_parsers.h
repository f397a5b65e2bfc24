// SPDX-License-Identifier: Apache-2.0
// Every parser of foreign bytes in runtime/data as one table, with small valid inputs: truncation, mutation and
// coverage-guided fuzzing all walk it.
#ifndef ONNXTRAIN_TESTS_SUPPORT_DATA_PARSERS_H_
#define ONNXTRAIN_TESTS_SUPPORT_DATA_PARSERS_H_

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "graph/status.h"

namespace onnxtrain {

struct DataParser {
  std::string name;
  // Reads all it can find in the bytes; what it reads is thrown away.
  std::function<Status(std::span<const std::byte>)> parse;
  std::vector<std::vector<std::byte>> samples;  // valid inputs
  // Any proper prefix of a sample is an error. Not so for texts and headerless files.
  bool refuses_prefixes = true;
};

std::vector<DataParser> DataParsers();

}  // namespace onnxtrain

#endif  // ONNXTRAIN_TESTS_SUPPORT_DATA_PARSERS_H_
