// SPDX-License-Identifier: Apache-2.0
#include "tools/option_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/status_matchers.h"
#include "tests/support/temporary_folder.h"

namespace onnxtrain {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

struct Targets {
  bool flag = false;
  int64_t count = 1;
  double rate = 0.5;
  std::optional<double> limit;
  std::string kind = "plain";
  std::vector<std::string> globs;
  std::vector<std::string> model;
};

class OptionSetTest : public ::testing::Test {
 protected:
  OptionSetTest() {
    options_.Positional("MODEL", &targets_.model, 1, 1);
    options_.Flag("some-flag", &targets_.flag, "a flag");
    options_.Int("count", &targets_.count, "N", "a number", 1);
    options_.Double("rate", &targets_.rate, "X", "a rate", {0, false, 1});
    options_.Double("limit", &targets_.limit, "X", "a limit", {0, true, 1, true});
    options_.Choice("kind", &targets_.kind, {"plain", "fancy"}, "a kind", {"future"});
    options_.Strings("glob", &targets_.globs, "GLOB", "globs");
    options_.IgnoreInConfig("derived");
  }

  OptionSet options_;
  Targets targets_;
};

TEST_F(OptionSetTest, ReadsEveryWayToWriteAnOption) {
  ASSERT_OK(options_.Parse({"model.onnx", "--some_flag", "--count=3", "--rate", "0", "--limit", "inf", "--kind",
                            "fancy", "--glob", "a*", "--glob=b=c"}));
  EXPECT_TRUE(targets_.flag);
  EXPECT_EQ(targets_.count, 3);
  EXPECT_EQ(targets_.rate, 0);
  EXPECT_TRUE(std::isinf(*targets_.limit));
  EXPECT_EQ(targets_.kind, "fancy");
  EXPECT_EQ(targets_.globs, (std::vector<std::string>{"a*", "b=c"}));
  EXPECT_EQ(targets_.model, std::vector<std::string>{"model.onnx"});
  EXPECT_TRUE(options_.given("some-flag") && options_.typed("count"));
  EXPECT_EQ(options_.GivenTexts().at("glob"), "a*;b=c");
}

TEST_F(OptionSetTest, RefusesWhatItDoesNotKnow) {
  const std::pair<std::vector<std::string>, const char*> cases[] = {
      {{"m", "--cuont", "3"}, "did you mean --count?"},
      {{"m", "--nothing-like-it"}, "--help lists them"},
      {{"m", "-x"}, "unknown option -x"},
      {{"m", "n"}, "unexpected argument 'n'"},
      {{}, "missing argument MODEL"},
      {{"m", "--count"}, "--count needs a value"},
      {{"m", "--count", "1", "--count", "2"}, "--count is given twice"},
      {{"m", "--count", "0"}, "must be at least 1"},
      {{"m", "--count", "1.5"}, "expected an integer"},
      {{"m", "--count", "99999999999999999999"}, "expected an integer"},
      {{"m", "--rate", "1"}, "at least 0 and below 1"},
      {{"m", "--rate", "nan"}, "expected a number"},
      {{"m", "--rate", "0.5x"}, "expected a number"},
      {{"m", "--limit", "0"}, "must be above 0"},
      {{"m", "--kind", "fancier"}, "did you mean 'fancy'?"},
      {{"m", "--kind", "future"}, "not part of this build"},
      {{"m", "--some-flag=maybe"}, "takes no value"},
      {{"m", "--config", "/nowhere.json"}, "cannot read '/nowhere.json'"},
  };
  for (const auto& [arguments, part] : cases) {
    targets_.model.clear();
    OptionSet fresh = options_;
    EXPECT_USAGE_ERROR(fresh.Parse(arguments), part);
  }
}

TEST_F(OptionSetTest, CommandLineWinsOverConfiguration) {
  const TemporaryFolder folder;
  const std::string file = folder.Write(
      "run.json",
      R"({"model": "of-file", "derived": 7, "count": 5, "some_flag": true, "rate": 0.25, "glob": ["x", "y"], "kind": null})");
  ASSERT_OK(options_.Parse({"--config", file, "--count", "9"}));
  EXPECT_EQ(targets_.model, std::vector<std::string>{"of-file"});
  EXPECT_EQ(targets_.count, 9);
  EXPECT_TRUE(targets_.flag);
  EXPECT_EQ(targets_.rate, 0.25);
  EXPECT_EQ(targets_.globs, (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(targets_.kind, "plain");
  EXPECT_TRUE(options_.given("rate"));
  EXPECT_FALSE(options_.typed("rate"));
}

TEST_F(OptionSetTest, ConfigurationIsCheckedLikeTheCommandLine) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"conut": 5})", "did you mean --count?"}, {R"({"count": 0})", "must be at least 1"},
      {R"({"count": [1, 2]})", "takes one value"},  {R"([1])", "not a JSON object"},
      {R"({"count")", "not a JSON object"},
  };
  for (const auto& [json, part] : cases) EXPECT_USAGE_ERROR(options_.ApplyConfig(json, "run.json"), part);
}

TEST_F(OptionSetTest, HelpStaysInside100Columns) {
  options_.Flag(
      "long", &targets_.flag,
      "a description that goes on and on, well behind the place where a line of a terminal ends, so that it is broken");
  ASSERT_OK(options_.Parse({"--help"}));
  EXPECT_TRUE(options_.help_wanted());
  const std::string help = options_.Help("train", "trains");
  EXPECT_NE(help.find("onnx-train train MODEL [options]"), std::string::npos);
  for (size_t begin = 0; begin < help.size();) {
    const size_t end = std::min(help.find('\n', begin), help.size());
    EXPECT_LE(end - begin, 100u) << help.substr(begin, end - begin);
    begin = end + 1;
  }
}

TEST_F(OptionSetTest, RareOptionsAreShownUnderTheirTopic) {
  bool often = false;
  bool seldom = false;
  options_.Section("Length and order");
  options_.Flag("often", &often, "wanted often");
  options_.Flag("seldom", &seldom, "wanted seldom");
  options_.ShowOnly({"often"});
  const auto help = [&](const std::vector<std::string>& arguments) {
    EXPECT_OK(options_.Parse(arguments));
    return options_.Help("train", "trains");
  };
  EXPECT_THAT(help({"--help"}), AllOf(HasSubstr("--often"), Not(HasSubstr("--seldom")), HasSubstr("length, all")));
  EXPECT_THAT(help({"--help", "length"}), HasSubstr("--seldom"));
  EXPECT_THAT(help({"--help", "all"}), HasSubstr("--seldom"));
  EXPECT_USAGE_ERROR(options_.Parse({"--help", "widths"}), "no topic 'widths'");
}

}  // namespace
}  // namespace onnxtrain
