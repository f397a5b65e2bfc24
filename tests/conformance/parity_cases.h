// SPDX-License-Identifier: Apache-2.0
// One call of an operator, for comparison of a backend with the CPU: cases for every operator that any backend has.
#ifndef ONNXTRAIN_TESTS_CONFORMANCE_PARITY_CASES_H_
#define ONNXTRAIN_TESTS_CONFORMANCE_PARITY_CASES_H_

#include <string>
#include <vector>

#include "tests/support/op_runner.h"

namespace onnxtrain {

struct ParityCase {
  std::string op;
  std::vector<OpInput> inputs;  // floating ones are float and take each type in turn
  Attributes attributes;
  size_t outputs = 1;
  bool float_only = false;
  double tolerance = 2e-6;  // of float, relative to the larger of 1 and the value
};

// Normalization of groups, pools of means, interpolation: what networks of images have beside convolutions.
void AddImageParityCases(std::vector<ParityCase>& cases);

// Reading and writing at indices, sorting, comparing along an axis.
void AddIndexParityCases(std::vector<ParityCase>& cases);

// Reductions and cumulative sums.
void AddReductionParityCases(std::vector<ParityCase>& cases);

// Moves, casts, pads, what is made from shapes and numbers, bits.
void AddShapeParityCases(std::vector<ParityCase>& cases);

std::vector<ParityCase> AllParityCases();

}  // namespace onnxtrain

#endif  // ONNXTRAIN_TESTS_CONFORMANCE_PARITY_CASES_H_
