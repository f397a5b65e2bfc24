// SPDX-License-Identifier: Apache-2.0
// Runs a graph node by node on a device's kernels, in one stream, every value in a buffer of its own: what RunGraph of
// op_runner.h is for the CPU.
#ifndef ONNXTRAIN_TESTS_SUPPORT_DEVICE_RUNNER_H_
#define ONNXTRAIN_TESTS_SUPPORT_DEVICE_RUNNER_H_

#include "runtime/device.h"
#include "tests/support/op_runner.h"

namespace onnxtrain {

// `feeds` names every input and state. Outputs of the graph, and the status word.
StatusOr<OpRunnerResult> RunGraphOn(Device& device, const Graph& graph, const NamedTensors& feeds,
                                    const OpRunnerOptions& options = {});

}  // namespace onnxtrain

#endif  // ONNXTRAIN_TESTS_SUPPORT_DEVICE_RUNNER_H_
