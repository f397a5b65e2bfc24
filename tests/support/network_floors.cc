// SPDX-License-Identifier: Apache-2.0
#include "tests/support/network_floors.h"

namespace onnxtrain {
namespace {

double MillisecondsOfFlops(double flops) { return flops / 790e12 * 1e3; }
double MillisecondsOfBytes(double bytes) { return bytes / 4.3e12 * 1e3; }

}  // namespace

std::vector<FloorTerm> Gpt2Floor(int64_t batch, int shards) {
  constexpr double kLayers = 12, kWidth = 768, kTokens = 1024, kVocabulary = 50304, kParameters = 124475904;
  const double tokens = static_cast<double>(batch) * kTokens;
  // Forward, and both gradients, of four products a layer and of the head.
  const double products = 6 * tokens * (kLayers * 12 * kWidth * kWidth + kVocabulary * kWidth);
  // Two products forward and five backward, of half of the scores.
  const double attention = 7 * tokens * kLayers * kWidth * kTokens;
  // Each pair of residual and normalization: four tensors forward, four backward.
  const double norms = 2 * kLayers * 8 * tokens * kWidth * 2;
  // Logits are read once, their gradient is written over them.
  const double loss = 2 * tokens * kVocabulary * 2;
  // Parameter, master, two moments and gradient; the gradient once more for the norm.
  const double optimizer = 30 * kParameters / shards;
  return {{"GEMM", "matrix products", MillisecondsOfFlops(products)},
          {"attention", "matrix products", MillisecondsOfFlops(attention)},
          {"norms and residuals", "normalizations", MillisecondsOfBytes(norms)},
          {"cross-entropy", "loss", MillisecondsOfBytes(loss)},
          {"optimizer", "optimizer and norm", MillisecondsOfBytes(optimizer)}};
}

std::vector<FloorTerm> ResNet50Floor(int64_t batch, int shards) {
  constexpr double kFlops = 24.3e9, kBytes = 316e6, kParameters = 25557032;  // the first two: of one image, trained
  const double images = static_cast<double>(batch);
  // Parameter and momentum are read and written, the gradient is read.
  const double optimizer = 20 * kParameters / shards;
  return {{"convolutions", "convolutions", MillisecondsOfFlops(images * kFlops), /*hidden=*/true},
          {"activations", "", MillisecondsOfBytes(images * kBytes)},
          {"optimizer", "optimizer and norm", MillisecondsOfBytes(optimizer)}};
}

double TotalMilliseconds(const std::vector<FloorTerm>& terms) {
  double total = 0;
  for (const FloorTerm& term : terms) total += term.hidden ? 0 : term.ms;
  return total;
}

}  // namespace onnxtrain
