// SPDX-License-Identifier: Apache-2.0
#include "graph/layout.h"

#include <gtest/gtest.h>

#include <numeric>

namespace onnxtrain {
namespace {

std::vector<LayoutParameter> Parameters(const std::vector<int64_t>& sizes, DType dtype = DType::kFloat) {
  std::vector<LayoutParameter> parameters;
  for (size_t i = 0; i < sizes.size(); ++i) {
    LayoutParameter parameter;
    parameter.name = "p" + std::to_string(i);
    parameter.type = {dtype, {sizes[i]}};
    parameter.group = static_cast<int>(i % 3);
    parameters.push_back(parameter);
  }
  return parameters;
}

// All parameters in one bucket, in reverse order, as gradients are released.
Layout OneBucket(const std::vector<int64_t>& sizes, int world_size, DType dtype = DType::kFloat) {
  std::vector<int> members(sizes.size());
  std::iota(members.rbegin(), members.rend(), 0);
  return Layout::Make(Parameters(sizes, dtype), {members}, world_size);
}

// Every element of every parameter lies in exactly one shard, where the whole bucket says.
void ExpectShardsCoverWhole(const Layout& layout) {
  for (int bucket = 0; bucket < static_cast<int>(layout.buckets().size()); ++bucket) {
    const int64_t length = layout.shard_elements(bucket);
    std::vector<std::vector<int>> seen;
    for (const LayoutParameter& p : layout.parameters()) seen.emplace_back(p.type.elements(), 0);
    for (int rank = 0; rank < layout.world_size(); ++rank) {
      int64_t end_of_previous = 0;
      for (const LayoutSegment& s : layout.Segments(bucket, rank)) {
        const LayoutParameter& p = layout.parameters()[s.parameter];
        EXPECT_GT(s.count, 0);
        EXPECT_GE(s.shard_begin, end_of_previous);
        end_of_previous = s.shard_begin + s.count;
        EXPECT_LE(end_of_previous, length);
        EXPECT_EQ(rank * length + s.shard_begin, p.offset + s.parameter_begin);
        for (int64_t i = 0; i < s.count; ++i) ++seen[s.parameter][s.parameter_begin + i];
      }
    }
    for (size_t i = 0; i < seen.size(); ++i) {
      const int expected = layout.parameters()[i].bucket == bucket ? 1 : 0;
      for (const int times : seen[i]) ASSERT_EQ(times, expected) << "parameter " << i << " bucket " << bucket;
    }
  }
}

const std::vector<std::vector<int64_t>> kSizes = {{1},          {30},
                                                  {63},         {64},
                                                  {65},         {127},
                                                  {128},        {0},
                                                  {129},        {1, 1, 1},
                                                  {65, 1, 128}, {30, 0, 63, 64},
                                                  {100003},     {1, 100003, 63, 127, 30, 65}};

TEST(Layout, ShardsCoverTheWholeOnce) {
  for (const auto& sizes : kSizes) {
    for (int world_size = 1; world_size <= 8; ++world_size) {
      for (DType dtype : {DType::kFloat, DType::kDouble, DType::kBfloat16}) {
        SCOPED_TRACE(::testing::Message() << sizes.size() << " parameters, first " << sizes[0] << ", ranks "
                                          << world_size << " " << NameOf(dtype));
        ExpectShardsCoverWhole(OneBucket(sizes, world_size, dtype));
      }
    }
  }
}

TEST(Layout, AlignsParametersAndPadsBuckets) {
  for (const auto& sizes : kSizes) {
    for (int world_size = 1; world_size <= 8; ++world_size) {
      for (DType dtype : {DType::kFloat, DType::kDouble, DType::kBfloat16}) {
        const Layout layout = OneBucket(sizes, world_size, dtype);
        for (const LayoutParameter& p : layout.parameters()) EXPECT_EQ(p.offset * SizeOf(dtype) % 256, 0u);
        EXPECT_EQ(layout.buckets()[0].elements % (world_size * 128), 0);
        EXPECT_GT(layout.buckets()[0].elements, 0);
        const LayoutParameter& last = layout.parameters()[layout.buckets()[0].parameters.back()];
        EXPECT_LT(layout.buckets()[0].elements - last.offset - last.type.elements(), world_size * 128 + 1);
      }
    }
  }
}

TEST(Layout, PlacesByHand) {
  // 65 floats end at 65; the next multiple of 64 floats is 128; 128 + 30 = 158, padded to 2 * 128.
  const Layout layout = Layout::Make(Parameters({30, 65}), {{1, 0}}, 2);
  EXPECT_EQ(layout.parameters()[1].offset, 0);
  EXPECT_EQ(layout.parameters()[0].offset, 128);
  EXPECT_EQ(layout.buckets()[0].elements, 256);
  EXPECT_EQ(layout.shard_elements(0), 128);
  ASSERT_EQ(layout.Segments(0, 0).size(), 1u);
  EXPECT_EQ(layout.Segments(0, 0)[0].parameter, 1);
  ASSERT_EQ(layout.Segments(0, 1).size(), 1u);
  EXPECT_EQ(layout.Segments(0, 1)[0].shard_begin, 0);
  ASSERT_EQ(layout.Segments(0).size(), 2u);
  EXPECT_EQ(layout.Segments(0)[1].shard_begin, 128);
  EXPECT_DOUBLE_EQ(layout.padding_fraction(), (256.0 - 95.0) / 95.0);
}

TEST(Layout, RankMayOwnNothing) {
  const Layout layout = OneBucket({3}, 8);
  EXPECT_EQ(layout.Segments(0, 0).size(), 1u);
  for (int rank = 1; rank < 8; ++rank) EXPECT_TRUE(layout.Segments(0, rank).empty()) << rank;
}

TEST(Layout, ParameterCrossesShardBorder) {
  const Layout layout = OneBucket({300}, 3);
  for (int rank = 0; rank < 3; ++rank) {
    const std::vector<LayoutSegment> segments = layout.Segments(0, rank);
    ASSERT_EQ(segments.size(), 1u);
    EXPECT_EQ(segments[0].parameter_begin, rank * 128);
    EXPECT_EQ(segments[0].count, rank == 2 ? 44 : 128);
  }
}

TEST(Layout, FindsParameters) {
  const Layout layout = OneBucket({1, 2}, 1);
  EXPECT_EQ(layout.FindParameter("p1"), 1);
  EXPECT_EQ(layout.FindParameter("q"), -1);
  EXPECT_TRUE(Layout().empty());
  EXPECT_EQ(Layout().padding_fraction(), 0.0);
}

TEST(Layout, TextIsExact) {
  std::vector<LayoutParameter> parameters = Parameters({30, 65});
  parameters[0].name = "fc \"x\",\n%1";
  parameters[1].type.shape = {5, 13};
  const Layout layout = Layout::Make(parameters, {{1}, {0}}, 2);
  EXPECT_EQ(layout.ToString(),
            "world_size 2\nbucket float[256] 1=p1[5,13]g1@0\nbucket float[256] 0=fc%20%22x%22%2C%0A%251[30]g0@0");
}

TEST(Layout, TextRoundTrip) {
  std::vector<Layout> layouts = {Layout(), Layout::Make({}, {}, 5)};
  for (const auto& sizes : kSizes) layouts.push_back(OneBucket(sizes, 3, DType::kBfloat16));
  std::vector<LayoutParameter> odd = Parameters({7, 13, 5, 1});
  odd[0].name = std::string("\0\xff é/.:", 8);
  odd[2].type.shape = {};
  layouts.push_back(Layout::Make(odd, {{3, 0}, {2}, {1}}, 7));
  for (const Layout& layout : layouts) {
    StatusOr<Layout> parsed = Layout::Parse(layout.ToString());
    ASSERT_TRUE(parsed.ok()) << parsed.status().message();
    EXPECT_EQ(parsed->ToString(), layout.ToString());
    EXPECT_EQ(parsed->Digest(), layout.Digest());
    ASSERT_EQ(parsed->parameters().size(), layout.parameters().size());
    for (size_t i = 0; i < layout.parameters().size(); ++i) {
      EXPECT_EQ(parsed->parameters()[i].name, layout.parameters()[i].name);
      EXPECT_EQ(parsed->parameters()[i].type, layout.parameters()[i].type);
      EXPECT_EQ(parsed->parameters()[i].offset, layout.parameters()[i].offset);
      EXPECT_EQ(parsed->parameters()[i].bucket, layout.parameters()[i].bucket);
      EXPECT_EQ(parsed->parameters()[i].group, layout.parameters()[i].group);
    }
  }
}

TEST(Layout, DigestSeesEveryField) {
  const uint64_t digest = OneBucket({30, 65}, 2).Digest();
  EXPECT_NE(OneBucket({30, 65}, 3).Digest(), digest);
  EXPECT_NE(OneBucket({30, 64}, 2).Digest(), digest);
  EXPECT_NE(OneBucket({30, 65}, 2, DType::kDouble).Digest(), digest);
  std::vector<LayoutParameter> regrouped = Parameters({30, 65});
  regrouped[0].group = 7;
  EXPECT_NE(Layout::Make(regrouped, {{1, 0}}, 2).Digest(), digest);
  EXPECT_EQ(OneBucket({30, 65}, 2).Digest(), digest);
}

TEST(Layout, RefusesHostileText) {
  const std::vector<std::string> texts = {"",
                                          "world_size",
                                          "world_size 0",
                                          "world_size -1",
                                          "world_size 99999999999999999999",
                                          "world_size 2 ",
                                          "world_size 2\n",
                                          "world_size 2\nbucket",
                                          "world_size 2\nbucket float[256]",
                                          "world_size 2\nbucket string[256] 0=a[1]g0@0",
                                          "world_size 2\nbucket float[256,1] 0=a[1]g0@0",
                                          "world_size 2\nbucket float[256] 0=a[1]g0",
                                          "world_size 2\nbucket float[256] 0=a[1]g0@0 ",
                                          "world_size 2\nbucket float[256] 0=a[1]g0@0 0=b[1]g0@64",
                                          "world_size 2\nbucket float[256] 1=a[1]g0@0",
                                          "world_size 2\nbucket float[256] 0=[1]g0@0",
                                          "world_size 2\nbucket float[256] 0=a%[1]g0@0",
                                          "world_size 2\nbucket float[256] 0=a%4",
                                          "world_size 2\nbucket float[256] 0=a%zz[1]g0@0",
                                          "world_size 2\nbucket float[256] 0=%61[1]g0@0",
                                          "world_size 2\nbucket float[256] 0=a[-1]g0@0",
                                          "world_size 2\nbucket float[256] 0=a[1]g-1@0",
                                          "world_size 2\nbucket float[256] 0=a[1]g0@64",
                                          "world_size 2\nbucket float[128] 0=a[1]g0@0",
                                          "world_size 2\nbucket float[256] 0=a[257]g0@0",
                                          "world_size 2\nbucket float[256] 0=a[1]g0@0 1=b[1]g0@0",
                                          "world_size 2\nbucket float[256] 0=a[4294967296,4294967296]g0@0",
                                          "world_size 2\nbucket float[256] 0=a[9223372036854775807]g0@0",
                                          "world_size 2\nbucket float[256] 2147483647=a[1]g0@0",
                                          "world_size 2\nbucket float[256] 0=a[1]g0@0\n\n"};
  for (const std::string& text : texts) {
    StatusOr<Layout> parsed = Layout::Parse(text);
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_EQ(parsed.status().code(), StatusCode::kInvalidModel);
    EXPECT_FALSE(parsed.status().message().empty());
  }
}

// Every single-byte change of a valid text is either refused or parses to a layout that prints as that text.
TEST(Layout, SurvivesMutatedText) {
  const std::string text = Layout::Make(Parameters({30, 65, 7}), {{1, 0}, {2}}, 2).ToString();
  for (size_t at = 0; at < text.size(); ++at) {
    for (int byte = 0; byte < 256; ++byte) {
      std::string mutated = text;
      mutated[at] = static_cast<char>(byte);
      StatusOr<Layout> parsed = Layout::Parse(mutated);
      EXPECT_TRUE(!parsed.ok() || parsed->ToString() == mutated) << mutated;
    }
    // Cut at a line's end it is a layout of fewer buckets.
    EXPECT_EQ(Layout::Parse(text.substr(0, at)).ok(), text[at] == '\n') << at;
  }
}

TEST(LayoutDeathTest, ChecksItsPromises) {
  EXPECT_DEATH(Layout::Make(Parameters({1, 2}), {{0}}, 1), "in no bucket");
  EXPECT_DEATH(Layout::Make(Parameters({1, 2}), {{0, 1}, {0}}, 1), "in two buckets");
  std::vector<LayoutParameter> mixed = Parameters({1, 2});
  mixed[1].type.dtype = DType::kDouble;
  EXPECT_DEATH(Layout::Make(mixed, {{0, 1}}, 1), "another element type");
}

}  // namespace
}  // namespace onnxtrain
