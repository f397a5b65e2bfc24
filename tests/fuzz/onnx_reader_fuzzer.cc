// SPDX-License-Identifier: Apache-2.0
// Feeds the ONNX reader what libFuzzer finds. Needs no corpus: now and then a mutation starts from one of the models
// that the seeded tests use.
//   cmake --preset fuzz && ninja -C build/fuzz onnx_reader_fuzzer && build/fuzz/bin/onnx_reader_fuzzer
//   -max_total_time=60
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "graph/status.h"
#include "tests/graph/reader_corpus.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned int seed) {
  static const std::vector<std::string> corpus = onnxtrain::ReaderCorpus();
  std::minstd_rand random(seed);
  if (size < 2 || random() % 64 == 0) {
    const std::string& sample = corpus[random() % corpus.size()];
    size = std::min(sample.size(), max_size);
    std::memcpy(data, sample.data(), size);
  }
  return LLVMFuzzerMutate(data, size, max_size);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const onnxtrain::Status status = onnxtrain::ReadHostileModel(bytes);
  // An error is as good as success, but for a graph that the reader itself should not have made.
  CHECK_WITH(status.code() != onnxtrain::StatusCode::kInternal, status.message());
  return 0;
}
