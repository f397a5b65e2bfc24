// SPDX-License-Identifier: Apache-2.0
#include "runtime/memory_planner.h"

#include <gtest/gtest.h>

#include <random>

namespace onnxtrain {
namespace {

// A block on one stream, alive over steps [first, last].
Lifetime Alive(size_t bytes, int first, int last) {
  Lifetime life;
  life.bytes = bytes;
  life.first_step = first;
  life.last_step = last;
  life.last[0] = last;
  life.over_before[0] = first - 1;
  return life;
}

bool Overlap(const MemoryPlan& plan, const std::vector<Lifetime>& lives, size_t a, size_t b) {
  return plan.offsets[a] < plan.offsets[b] + lives[b].bytes && plan.offsets[b] < plan.offsets[a] + lives[a].bytes;
}

TEST(MemoryPlanner, NothingNeedsNothing) {
  EXPECT_EQ(PlanMemory({}).bytes, 0u);
  EXPECT_EQ(PlanMemory({Alive(0, 0, 3)}).bytes, 0u);
}

TEST(MemoryPlanner, ReusesWhatIsOver) {
  const MemoryPlan plan = PlanMemory({Alive(100, 0, 1), Alive(300, 1, 2), Alive(100, 2, 3)});
  EXPECT_EQ(plan.bytes, 256u + 512u);
  EXPECT_EQ(plan.offsets[0], plan.offsets[2]);
}

// Later in the order of issue is not enough: the other stream must be known to be past.
TEST(MemoryPlanner, DoesNotReuseAcrossStreamsWithoutAnEvent) {
  Lifetime collective = Alive(256, 0, 1);
  collective.last[1] = 0;  // read by stream 1
  Lifetime later = Alive(256, 2, 3);
  EXPECT_EQ(PlanMemory({collective, later}).bytes, 512u);
  later.over_before[1] = 0;  // an event says so
  EXPECT_EQ(PlanMemory({collective, later}).bytes, 256u);
}

TEST(MemoryPlanner, NeverOverlapsAndStaysCloseToTheBound) {
  std::mt19937_64 random(7);
  double worst = 1;
  for (int round = 0; round < 100; ++round) {
    std::vector<Lifetime> lives;
    for (int i = 0; i < 150; ++i) {
      const int first = static_cast<int>(random() % 200);
      lives.push_back(Alive(random() % 5000, first, first + static_cast<int>(random() % 30)));
    }
    const MemoryPlan plan = PlanMemory(lives);
    for (size_t a = 0; a < lives.size(); ++a) {
      for (size_t b = 0; b < a; ++b) {
        const bool over = EndsBefore(lives[a], lives[b]) || EndsBefore(lives[b], lives[a]);
        ASSERT_TRUE(over || !Overlap(plan, lives, a, b)) << "round " << round;
      }
      ASSERT_LE(plan.offsets[a] + lives[a].bytes, plan.bytes);
    }
    ASSERT_GE(plan.bytes, plan.lower_bound);
    worst = std::max(worst, static_cast<double>(plan.bytes) / static_cast<double>(plan.lower_bound));
  }
  EXPECT_LE(worst, 1.25);
}

}  // namespace
}  // namespace onnxtrain
