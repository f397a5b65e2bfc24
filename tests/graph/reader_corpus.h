// SPDX-License-Identifier: Apache-2.0
// What the reader's fuzzers, seeded and coverage-guided, start from and run.
#ifndef ONNXTRAIN_TESTS_GRAPH_READER_CORPUS_H_
#define ONNXTRAIN_TESTS_GRAPH_READER_CORPUS_H_

#include <string>
#include <string_view>
#include <vector>

#include "graph/status.h"

namespace onnxtrain {

// Small serialised models that between them hold every kind of message the reader looks into.
std::vector<std::string> ReaderCorpus();

// Parses bytes as a model, looks at all of it, specialises it, verifies the graph, and writes and reads its text. Any
// Status is fine but Internal, which means that the reader has made something invalid.
Status ReadHostileModel(std::string_view bytes);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_TESTS_GRAPH_READER_CORPUS_H_
