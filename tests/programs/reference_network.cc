// SPDX-License-Identifier: Apache-2.0
// reference_network gpt2|resnet50 BATCH FOLDER: writes FOLDER/NAME.onnxtxt, a network of
// tests/support/reference_networks.h, and FOLDER/NAME.weights, a file without blocks, so that all weights are zero: for
// timing.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/support/reference_networks.h"

int main(int argc, char** argv) {
  const std::string name = argc > 1 ? argv[1] : "";
  const long batch = argc > 2 ? std::strtol(argv[2], nullptr, 10) : 0;
  if (argc != 4 || (name != "gpt2" && name != "resnet50") || batch < 1) {
    std::fprintf(stderr, "usage: reference_network gpt2|resnet50 BATCH FOLDER\n");
    return 2;
  }
  const std::filesystem::path folder = argv[3];
  onnxtrain::WeightFile weights{name + ".weights"};
  const std::string text =
      name == "gpt2" ? onnxtrain::Gpt2Text(batch, &weights) : onnxtrain::ResNet50Text(batch, &weights);
  std::ofstream(folder / weights.name).flush();
  std::error_code error;
  std::filesystem::resize_file(folder / weights.name, static_cast<uintmax_t>(weights.bytes), error);
  std::ofstream file(folder / (name + ".onnxtxt"));
  file << text;
  file.close();
  if (!error && file) return 0;
  std::fprintf(stderr, "reference_network: cannot write into '%s'\n", argv[3]);
  return 1;
}
