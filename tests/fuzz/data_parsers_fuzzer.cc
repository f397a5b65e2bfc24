// SPDX-License-Identifier: Apache-2.0
// Feeds each parser of data files what libFuzzer finds; the first byte chooses the parser.
//   cmake --preset fuzz && ninja -C build/fuzz data_parsers_fuzzer && build/fuzz/bin/data_parsers_fuzzer -max_total_time=60
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "graph/status.h"
#include "tests/support/data_parsers.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::vector<onnxtrain::DataParser> parsers = onnxtrain::DataParsers();
  if (size == 0) return 0;
  const auto bytes = std::as_bytes(std::span(data, size));
  // An error is as good as success: only a crash, a leak or undefined behaviour is found here.
  const onnxtrain::Status parsed = parsers[data[0] % parsers.size()].parse(bytes.subspan(1));
  (void)parsed.ok();
  return 0;
}
