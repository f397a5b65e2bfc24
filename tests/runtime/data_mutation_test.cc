// SPDX-License-Identifier: Apache-2.0
// No input, however damaged, makes a parser crash, hang or claim memory it has no use for: it parses or is refused
// with a message. The asan preset gives these tests their teeth.
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "tests/support/byte_edits.h"
#include "tests/support/data_parsers.h"
#include "tests/support/status_matchers.h"

namespace onnxtrain {
namespace {

constexpr uint64_t kSeed = 20240520;
constexpr int kMutations = 1500;  // of each sample

bool Explains(const Status& status) {
  const bool expected_code = status.code() == StatusCode::kInvalidData || status.code() == StatusCode::kUsage;
  return status.ok() || (expected_code && status.message().size() > 10);
}

TEST(DataMutationTest, SamplesAreValid) {
  for (const DataParser& parser : DataParsers()) {
    for (const auto& sample : parser.samples) EXPECT_OK(parser.parse(sample)) << parser.name;
  }
}

TEST(DataMutationTest, EveryProperPrefixIsRefused) {
  for (const DataParser& parser : DataParsers()) {
    for (const auto& sample : parser.samples) {
      for (size_t length = 0; length < sample.size(); ++length) {
        // A copy of exactly this size, so that a read behind it is found.
        const std::vector<std::byte> prefix(sample.begin(), sample.begin() + static_cast<std::ptrdiff_t>(length));
        const Status status = parser.parse(prefix);
        EXPECT_TRUE(Explains(status)) << parser.name << " at " << length << ": " << status.message();
        EXPECT_FALSE(parser.refuses_prefixes && status.ok()) << parser.name << " accepts " << length << " bytes";
      }
    }
  }
}

TEST(DataMutationTest, SeededMutationsParseOrAreExplained) {
  for (const DataParser& parser : DataParsers()) {
    std::mt19937_64 random(kSeed);
    SCOPED_TRACE(parser.name + ", seed " + std::to_string(kSeed));
    int refused = 0;
    for (const auto& sample : parser.samples) {
      for (int i = 0; i < kMutations; ++i) {
        const Status status = parser.parse(Mutate(sample, random));
        ASSERT_TRUE(Explains(status)) << "mutation " << i << ": " << status.message();
        refused += status.ok() ? 0 : 1;
      }
    }
    EXPECT_GT(refused, kMutations / 10);
  }
}

}  // namespace
}  // namespace onnxtrain
