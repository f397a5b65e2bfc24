// SPDX-License-Identifier: Apache-2.0
// Feeds each parser of data files what libFuzzer finds; the first byte chooses the parser. Needs no corpus: now and
// then a mutation starts from one of the valid inputs that the seeded tests use.
//   cmake --preset fuzz && ninja -C build/fuzz data_parsers_fuzzer && build/fuzz/bin/data_parsers_fuzzer
//   -max_total_time=60
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <vector>

#include "graph/status.h"
#include "tests/support/data_parsers.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace {

const std::vector<onnxtrain::DataParser>& Parsers() {
  static const std::vector<onnxtrain::DataParser> parsers = onnxtrain::DataParsers();
  return parsers;
}

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned int seed) {
  std::minstd_rand random(seed);
  if (size < 2 || random() % 64 == 0) {
    const size_t index = random() % Parsers().size();
    const auto& samples = Parsers()[index].samples;
    const std::vector<std::byte>& sample = samples[random() % samples.size()];
    size = std::min(sample.size() + 1, max_size);
    data[0] = static_cast<uint8_t>(index);
    std::memcpy(data + 1, sample.data(), size - 1);
  }
  return LLVMFuzzerMutate(data, size, max_size);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const auto bytes = std::as_bytes(std::span(data, size));
  // An error is as good as success: only a crash, a leak or undefined behaviour is found here.
  const onnxtrain::Status parsed = Parsers()[data[0] % Parsers().size()].parse(bytes.subspan(1));
  (void)parsed.ok();
  return 0;
}
