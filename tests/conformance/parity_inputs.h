// SPDX-License-Identifier: Apache-2.0
// Inputs of parity cases, the same in every run.
#ifndef ONNXTRAIN_TESTS_CONFORMANCE_PARITY_INPUTS_H_
#define ONNXTRAIN_TESTS_CONFORMANCE_PARITY_INPUTS_H_

#include <utility>
#include <vector>

#include "tests/support/op_runner.h"

namespace onnxtrain {

inline Tensor Floats(Shape shape, double low = -2, double high = 2) {
  static uint64_t seed = 0;
  return RandomTensor(DType::kFloat, std::move(shape), ++seed, low, high);
}
inline Tensor Of(DType dtype, Shape shape, double low, double high) {
  return RandomTensor(dtype, std::move(shape), 99, low, high);
}
inline Tensor Bools(Shape shape) { return RandomTensor(DType::kBool, std::move(shape), 5); }
inline Tensor Longs(Shape shape, int64_t low, int64_t high) {
  return Of(DType::kInt64, std::move(shape), static_cast<double>(low), static_cast<double>(high));
}
inline OpInput Axes(std::vector<int64_t> axes) { return Constant(Tensor::Ints(axes)); }

}  // namespace onnxtrain

#endif  // ONNXTRAIN_TESTS_CONFORMANCE_PARITY_INPUTS_H_
