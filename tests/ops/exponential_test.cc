// SPDX-License-Identifier: Apache-2.0
#include "runtime/math/exponential.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

namespace onnxtrain {
namespace {

// Distance to the exact value in units of the last place of the nearest float.
double UlpsOff(float x) {
  const double exact = std::exp(double{x});
  const float nearest = static_cast<float>(exact);
  const double ulp = double{std::nextafterf(nearest, std::numeric_limits<float>::infinity())} - double{nearest};
  return std::fabs(double{math::Exp(x)} - exact) / ulp;
}

TEST(Exponential, FloatIsWithinAboutOneUlpInItsRange) {
  double worst = 0;
  for (uint32_t bits = 0; bits < 0x7f800000u; bits += 4099) {
    for (const float x : {std::bit_cast<float>(bits), std::bit_cast<float>(bits | 0x80000000u)}) {
      if (x >= -87.3f && x <= 88.7f) worst = std::max(worst, UlpsOff(x));
    }
  }
  EXPECT_LE(worst, 1.1);
}

TEST(Exponential, EndsOfTheRange) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(math::Exp(0.0f), 1.0f);
  EXPECT_EQ(math::Exp(-0.0f), 1.0f);
  EXPECT_EQ(math::Exp(-infinity), 0.0f);
  EXPECT_EQ(math::Exp(-1e9f), 0.0f);
  EXPECT_EQ(math::Exp(infinity), infinity);
  EXPECT_EQ(math::Exp(89.0f), infinity);
  EXPECT_TRUE(std::isfinite(math::Exp(88.7f)));
  EXPECT_TRUE(std::isnan(math::Exp(std::numeric_limits<float>::quiet_NaN())));
}

TEST(Exponential, DoubleIsTheLibrarys) { EXPECT_EQ(math::Exp(1.5), std::exp(1.5)); }

}  // namespace
}  // namespace onnxtrain
