// SPDX-License-Identifier: Apache-2.0
// Gradient rules against central differences, in double.
//
// The graph's floating-point outputs y are reduced to L = sum of w * y with random weights w. dL/dx of every double
// input x is built by the operators' own rules, run on the CPU kernels, and compared with (L(x+h) - L(x-h)) / 2h
// element by element. Then every subset of the inputs is asked for alone: the rules must give the same numbers.
#ifndef ONNXTRAIN_TESTS_SUPPORT_GRADIENT_CHECK_H_
#define ONNXTRAIN_TESTS_SUPPORT_GRADIENT_CHECK_H_

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "tests/support/op_runner.h"

namespace onnxtrain {

struct GradientCheckOptions {
  uint64_t seed = 20240229;  // of the weights; printed with failures
  double step = 1e-5;        // h, times max(1, |x|)
  double tolerance = 1e-6;   // |a - n| / max(1, |a|, |n|)
  // Inputs whose gradient is not compared, although they are double (a stop by definition).
  std::set<std::string> without_gradient = {};
};

// Reports through GoogleTest. Integer inputs and those of `without_gradient` stay fixed.
void ExpectGradientMatchesFiniteDifference(const Graph& graph, const NamedTensors& feeds,
                                           const GradientCheckOptions& options = {});
// A graph of one node: double inputs are "x0", "x1", ...
void ExpectOpGradient(std::string_view op, const std::vector<OpInput>& inputs, Attributes attributes = {},
                      size_t outputs = 1, const GradientCheckOptions& options = {});

// dL/d x for L = sum of weights * outputs, for known values at kinks and ties. `weights` by output name; an output
// without an entry does not count. The results are named as the inputs; one that gets no contribution is absent.
StatusOr<NamedTensors> GradientsOf(const Graph& graph, const NamedTensors& feeds, const NamedTensors& weights,
                                   const std::vector<std::string>& wanted, const OpRunnerOptions& options = {});
// The same for one node with one output: the gradients of the inputs in order, empty tensors where there is none.
std::vector<Tensor> OpGradients(std::string_view op, const std::vector<OpInput>& inputs, const Tensor& weight,
                                Attributes attributes = {});

}  // namespace onnxtrain

#endif  // ONNXTRAIN_TESTS_SUPPORT_GRADIENT_CHECK_H_
