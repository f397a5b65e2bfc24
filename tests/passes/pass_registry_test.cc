// SPDX-License-Identifier: Apache-2.0
#include "passes/pass_registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace onnxtrain {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class NamedPass : public Pass {
 public:
  explicit NamedPass(std::string name) : name_(std::move(name)) {}
  std::string_view name() const override { return name_; }
  StatusOr<bool> Run(Program&) const override { return false; }

 private:
  std::string name_;
};

// A registry of two passes; what `wide` read is kept in `read`.
class PassRegistryTest : public ::testing::Test {
 protected:
  PassRegistryTest() {
    registry_.Add({"plain", "", [](PassOptions&) { return std::make_unique<NamedPass>("plain"); }});
    registry_.Add({"wide", "", [this](PassOptions& options) {
                     number = options.Number("number", 1.5);
                     count = options.Int("count", 7);
                     text = options.Text("text", "none");
                     flag = options.Flag("flag", true);
                     list = options.List("list");
                     return std::make_unique<NamedPass>("wide");
                   }});
  }
  std::string ErrorOf(std::string_view text) {
    StatusOr<PassPipeline> pipeline = registry_.MakePipeline(text);
    EXPECT_FALSE(pipeline.ok()) << text;
    EXPECT_EQ(pipeline.status().code(), StatusCode::kUsage);
    return pipeline.status().message();
  }

  PassRegistry registry_;
  double number = 0;
  int64_t count = 0;
  std::string text;
  bool flag = false;
  std::vector<std::string> list;
};

TEST_F(PassRegistryTest, ReadsLists) {
  StatusOr<PassPipeline> pipeline = registry_.MakePipeline(R"( plain, wide < count = -3 , text="a, >b" ,
      number=inf,flag=off,list="x;y;" > ,plain<>)");
  ASSERT_TRUE(pipeline.ok()) << pipeline.status().message();
  std::vector<std::string> names;
  for (const auto& pass : pipeline->passes()) names.emplace_back(pass->name());
  EXPECT_THAT(names, ElementsAre("plain", "wide", "plain"));
  EXPECT_EQ(count, -3);
  EXPECT_EQ(text, "a, >b");
  EXPECT_GT(number, 1e300);
  EXPECT_FALSE(flag);
  EXPECT_THAT(list, ElementsAre("x", "y", ""));
  EXPECT_TRUE(registry_.MakePipeline("  ")->passes().empty());
}

TEST_F(PassRegistryTest, FallsBackToDefaults) {
  const OptionTexts defaults = {{"count", "5"}, {"elsewhere", "?"}};
  ASSERT_TRUE(registry_.MakePipeline("wide<text=b>", &defaults).ok());
  EXPECT_EQ(count, 5);
  EXPECT_EQ(text, "b");
  EXPECT_EQ(number, 1.5);
  EXPECT_TRUE(flag);
  ASSERT_TRUE(registry_.MakePipeline("wide<count=6>", &defaults).ok());
  EXPECT_EQ(count, 6);
}

TEST_F(PassRegistryTest, RefusesMistakes) {
  EXPECT_THAT(ErrorOf("plan"), HasSubstr("did you mean 'plain'?"));
  EXPECT_THAT(ErrorOf("wide<cuont=1>"), HasSubstr("did you mean 'count'?"));
  EXPECT_THAT(ErrorOf("plain<a=1>"), HasSubstr("it has none"));
  EXPECT_THAT(ErrorOf("wide<count=x>"), HasSubstr("expected an integer"));
  EXPECT_THAT(ErrorOf("wide<count=1.5>"), HasSubstr("expected an integer"));
  EXPECT_THAT(ErrorOf("wide<count=99999999999999999999>"), HasSubstr("expected an integer"));
  EXPECT_THAT(ErrorOf("wide<number=>"), HasSubstr("expected a number"));
  EXPECT_THAT(ErrorOf("wide<flag=maybe>"), HasSubstr("expected true or false"));
  EXPECT_THAT(ErrorOf("wide<count=1,count=2>"), HasSubstr("'count' came twice"));
  EXPECT_THAT(ErrorOf("plain,"), HasSubstr("expected the name of a pass"));
  EXPECT_THAT(ErrorOf("plain plain"), HasSubstr("expected ',' or the end at 'plain' (character 7)"));
  EXPECT_THAT(ErrorOf("wide<count"), HasSubstr("expected '='"));
  EXPECT_THAT(ErrorOf("wide<count=1"), HasSubstr("expected a value"));
  EXPECT_THAT(ErrorOf("wide<text=\"1"), HasSubstr("expected a value"));
  EXPECT_THAT(ErrorOf("wide<text=\"1\" 2>"), HasSubstr("expected ',' or '>'"));
  EXPECT_THAT(ErrorOf("<>"), HasSubstr("expected the name of a pass"));
}

TEST(PassRegistryDefault, MakesEveryPassWithoutOptions) {
  EXPECT_GT(PassRegistry::Default().entries().size(), 0u);
  for (const auto& [name, entry] : PassRegistry::Default().entries()) {
    StatusOr<std::unique_ptr<Pass>> pass = PassRegistry::Default().Make(name, {});
    ASSERT_TRUE(pass.ok()) << pass.status().message();
    EXPECT_EQ((*pass)->name(), name);
    EXPECT_FALSE(entry.summary.empty());
  }
}

TEST(PassRegistryDefault, RefusesValuesOutOfRange) {
  EXPECT_THAT(PassRegistry::Default().MakePipeline("fold_constants<max_bytes=-1>").status().message(),
              HasSubstr("option 'max_bytes' is '-1', expected 0 or more"));
}

}  // namespace
}  // namespace onnxtrain
