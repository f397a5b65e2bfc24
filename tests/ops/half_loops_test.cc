// SPDX-License-Identifier: Apache-2.0
// Every copy of the conversions that this machine can run, against those of single numbers (graph/dtype.h).
#include "runtime/cpu/isa/half_loops.h"

#include <gtest/gtest.h>

#include <bit>
#include <string>
#include <vector>

#include "graph/dtype.h"

namespace onnxtrain {
namespace {

struct Level {
  std::string name;
  void (*widen)(const uint16_t*, float*, int64_t);
  void (*narrow)(const float*, uint16_t*, int64_t);
};

std::vector<Level> Levels() {
  std::vector<Level> levels = {{"v2", &isa_v2::WidenBfloat16, &isa_v2::NarrowToBfloat16}};
#if defined(__x86_64__)
  if (BestIsaLevel() >= IsaLevel::kV3) levels.push_back({"v3", &isa_v3::WidenBfloat16, &isa_v3::NarrowToBfloat16});
  if (BestIsaLevel() >= IsaLevel::kV4) levels.push_back({"v4", &isa_v4::WidenBfloat16, &isa_v4::NarrowToBfloat16});
#endif
  return levels;
}

TEST(HalfLoops, WidenEveryBfloat16) {
  std::vector<uint16_t> bits(65536);
  for (size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<uint16_t>(i);
  for (const Level& level : Levels()) {
    SCOPED_TRACE(level.name);
    std::vector<float> wide(bits.size());
    level.widen(bits.data(), wide.data(), static_cast<int64_t>(bits.size()));
    for (size_t i = 0; i < bits.size(); ++i) {
      ASSERT_EQ(std::bit_cast<uint32_t>(wide[i]), static_cast<uint32_t>(bits[i]) << 16) << i;
    }
  }
}

// Around every bfloat16: the numbers next to it, both sides of the tie, infinities and NaNs.
TEST(HalfLoops, NarrowToTheNearestEven) {
  constexpr uint32_t kBelow[] = {0x0000, 0x0001, 0x7fff, 0x8000, 0x8001, 0xffff};
  std::vector<float> values;
  for (uint32_t high = 0; high < 65536; ++high) {
    for (const uint32_t low : kBelow) values.push_back(std::bit_cast<float>(high << 16 | low));
  }
  for (const Level& level : Levels()) {
    SCOPED_TRACE(level.name);
    for (const int64_t count : {int64_t{1}, int64_t{7}, int64_t{17}, static_cast<int64_t>(values.size())}) {
      std::vector<uint16_t> narrow(static_cast<size_t>(count));
      level.narrow(values.data(), narrow.data(), count);
      for (int64_t i = 0; i < count; ++i) {
        ASSERT_EQ(narrow[static_cast<size_t>(i)], FloatToBfloat16(values[static_cast<size_t>(i)]))
            << std::hex << std::bit_cast<uint32_t>(values[static_cast<size_t>(i)]);
      }
    }
  }
}

}  // namespace
}  // namespace onnxtrain
