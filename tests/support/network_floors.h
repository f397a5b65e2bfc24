// SPDX-License-Identifier: Apache-2.0
// The least that a training step in 16 bits of a reference network can take on an H200, by term: arithmetic at 790
// TFLOP/s, bytes at 4.3 TB/s, everything fused that can be, nothing of a launch. Communication is not in it.
#ifndef ONNXTRAIN_TESTS_SUPPORT_NETWORK_FLOORS_H_
#define ONNXTRAIN_TESTS_SUPPORT_NETWORK_FLOORS_H_

#include <cstdint>
#include <string>
#include <vector>

namespace onnxtrain {

struct FloorTerm {
  std::string name;
  std::string kind;  // the kind of node that cannot take less than its terms together; empty: of no one kind
  double ms = 0;
  bool hidden = false;  // arithmetic during which the bytes of another term move: not added
};

// `shards`: ranks that share the optimizer's work, 1 with ZeRO-0. AdamW with a gradient norm, causal attention in one
// kernel.
std::vector<FloorTerm> Gpt2Floor(int64_t batch, int shards);
// SGD with momentum, normalization by kernels of its own.
std::vector<FloorTerm> ResNet50Floor(int64_t batch, int shards);

double TotalMilliseconds(const std::vector<FloorTerm>& terms);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_TESTS_SUPPORT_NETWORK_FLOORS_H_
