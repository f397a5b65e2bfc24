// SPDX-License-Identifier: Apache-2.0
// Two networks that everybody measures, as Program text without weights: for plans, which need types alone.
#ifndef ONNXTRAIN_TESTS_SUPPORT_REFERENCE_NETWORKS_H_
#define ONNXTRAIN_TESTS_SUPPORT_REFERENCE_NETWORKS_H_

#include <cstdint>
#include <string>

namespace onnxtrain {

// Makes a model of the text: its weights are the bytes of a file of this name beside it, one behind the other.
struct WeightFile {
  std::string name;
  int64_t bytes = 0;  // of all weights, afterwards
};

// GPT-2 of 12 layers, 12 heads and width 768 on 1024 tokens, vocabulary padded to 50304, head tied to the embedding,
// attention as exporters write it: inputs idx int64[batch,1024] and mask bool[1024,1024], output logits. 124,475,904
// parameters.
std::string Gpt2Text(int64_t batch, WeightFile* weights = nullptr);

// ResNet-50 v1.5 (stride in the 3x3 convolution) on 224x224: input image, output logits[batch,1000]. 25,557,032
// parameters.
std::string ResNet50Text(int64_t batch, WeightFile* weights = nullptr);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_TESTS_SUPPORT_REFERENCE_NETWORKS_H_
