// SPDX-License-Identifier: Apache-2.0
// Runs the cases of our CUDA kernels, for a build under a sanitizer, whose report fails the program.
//
// Usage: device_code_sanitized N: about N cases of each family, which is the first word of a name, evenly picked
#include <cstdio>
#include <cstdlib>
#include <map>

#include "tests/cuda/device_case.h"

int main(int argc, char** argv) {
  const size_t most = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 1;
  std::map<std::string, std::vector<const onnxtrain::DeviceCase*>> families;
  const onnxtrain::DeviceCases cases = onnxtrain::AllDeviceCases();
  for (const onnxtrain::DeviceCase& c : cases) families[c.name.substr(0, c.name.find(' '))].push_back(&c);
  int failures = 0;
  int run = 0;
  for (const auto& [family, same] : families) {
    const size_t step = same.size() <= most ? 1 : same.size() / most;
    for (size_t i = step / 2; i < same.size(); i += step) {
      const std::string disagreement = onnxtrain::Disagreement(same[i]->run());
      ++run;
      if (disagreement.empty()) continue;
      std::printf("%s: %s\n", same[i]->name.c_str(), disagreement.c_str());
      ++failures;
    }
  }
  std::printf("%d cases, %d failures\n", run, failures);
  return failures == 0 ? 0 : 1;
}
