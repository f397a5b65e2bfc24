// SPDX-License-Identifier: Apache-2.0
#include "runtime/metrics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/faulty_file_system.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temporary_folder.h"

namespace onnxtrain {
namespace {

TEST(MetricsTest, LinesKeepTheirOrderAndShortestNumbers) {
  const std::vector<Metric> line = {
      {"step", int64_t{3}}, {"loss", 0.1f}, {"lr", 1e-3}, {"skipped", true}, {"note", "a\"b"}};
  EXPECT_EQ(MetricsLine(line), R"({"step":3,"loss":0.1,"lr":0.001,"skipped":true,"note":"a\"b"})");
  EXPECT_EQ(MetricsLine({}), "{}");
}

TEST(MetricsTest, EveryFiniteNumberReadsBackTheSame) {
  for (double value : {0.0, -0.0, 1e-300, 1.0 / 3, 123456789.125, 5e-324, std::numeric_limits<double>::max()}) {
    const std::vector<Metric> line = {{"x", value}};
    EXPECT_EQ(nlohmann::json::parse(MetricsLine(line))["x"].get<double>(), value);
  }
}

TEST(MetricsTest, NumbersThatAreNotFiniteAreStrings) {
  const double infinity = std::numeric_limits<double>::infinity();
  const std::vector<Metric> line = {{"a", std::nan("")}, {"b", infinity}, {"c", -infinity}, {"d", std::nanf("")}};
  EXPECT_EQ(MetricsLine(line), R"({"a":"NaN","b":"Infinity","c":"-Infinity","d":"NaN"})");
}

TEST(MetricsTest, LinesAppearAtOnceAndAreAppended) {
  const TemporaryFolder folder;
  PosixFileSystem files;
  const std::string path = folder.Path("metrics.jsonl");
  for (int64_t step : {0, 1}) {
    auto writer = MetricsWriter::Open(files, path);
    ASSERT_OK(writer);
    ASSERT_OK(writer->Write(std::vector<Metric>{{"step", step}}));
    EXPECT_TRUE(ReadText(path).ends_with("{\"step\":" + std::to_string(step) + "}\n"));
    ASSERT_OK(writer->Close());
  }
  EXPECT_EQ(ReadText(path), "{\"step\":0}\n{\"step\":1}\n");
}

TEST(MetricsTest, ResumingCutsLinesFromTheStepOn) {
  const TemporaryFolder folder;
  PosixFileSystem files;
  const std::string text =
      "{\"step\":0}\n{\"loss\":\"NaN\",\"step\":1}\n{\"step\":1,\"val_loss\":2}\n{\"step\":2}\n{\"st";
  const std::vector<std::string> expected = {
      "", "{\"step\":0}\n", "{\"step\":0}\n{\"loss\":\"NaN\",\"step\":1}\n{\"step\":1,\"val_loss\":2}\n"};
  for (int64_t step = 0; step < 3; ++step) {
    const std::string path = folder.Write("metrics.jsonl", text);
    ASSERT_OK(CutMetrics(files, path, step));
    EXPECT_EQ(ReadText(path), expected[static_cast<size_t>(step)]);
  }
  EXPECT_OK(CutMetrics(files, folder.Path("none"), 3));
  EXPECT_DATA_ERROR(CutMetrics(files, folder.Write("bad", "{\"step\":0}\n{\"loss\":1}\n"), 1),
                    "line 2: not a JSON object");
}

TEST(MetricsTest, AFailedCutLeavesTheFile) {
  for (int64_t at = 0;; ++at) {
    const TemporaryFolder folder;
    FaultyFileSystem files(Fault::kError, at);
    const std::string path = folder.Write("m", "{\"step\":0}\n{\"step\":1}\n");
    const Status status = CutMetrics(files, path, 1);
    const std::string content = ReadText(path);
    if (files.operations() <= at) {
      EXPECT_OK(status);
      EXPECT_EQ(content, "{\"step\":0}\n");
      break;
    }
    EXPECT_TRUE(content == "{\"step\":0}\n" || content == "{\"step\":0}\n{\"step\":1}\n") << content;
  }
}

}  // namespace
}  // namespace onnxtrain
