// SPDX-License-Identifier: Apache-2.0
#include "runtime/metrics.h"

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "runtime/data/file_contents.h"

namespace onnxtrain {
namespace {

std::string Quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

template <typename T>
std::string NumberText(T value) {
  if (std::isnan(value)) return "\"NaN\"";
  if (std::isinf(value)) return value > 0 ? "\"Infinity\"" : "\"-Infinity\"";
  char text[64];
  const auto [end, error] = std::to_chars(text, text + sizeof(text), value);
  CHECK(error == std::errc());
  return std::string(text, end);
}

std::string ValueText(const MetricValue& value) {
  if (const bool* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  if (const int64_t* whole = std::get_if<int64_t>(&value)) return std::to_string(*whole);
  if (const float* number = std::get_if<float>(&value)) return NumberText(*number);
  if (const double* number = std::get_if<double>(&value)) return NumberText(*number);
  return Quoted(std::get<std::string>(value));
}

// The step of a line; kInvalidData where it has none.
StatusOr<int64_t> StepOf(std::string_view line, const std::string& path, int64_t number) {
  const nlohmann::json json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (json.is_object() && json.contains("step") && json["step"].is_number_integer()) {
    return json["step"].get<int64_t>();
  }
  return InvalidDataError("'" + path + "', line " + std::to_string(number) +
                          ": not a JSON object with a \"step\"; repair or remove the file");
}

}  // namespace

std::string MetricsLine(std::span<const Metric> metrics) {
  std::string line = "{";
  for (const Metric& metric : metrics) {
    if (line.size() > 1) line += ",";
    line += Quoted(metric.name) + ":" + ValueText(metric.value);
  }
  return line + "}";
}

StatusOr<MetricsWriter> MetricsWriter::Open(FileSystem& files, const std::string& path) {
  ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file, files.OpenForAppend(path));
  return MetricsWriter(std::move(file));
}

Status MetricsWriter::Write(std::span<const Metric> metrics) { return file_->Append(MetricsLine(metrics) + "\n"); }

Status MetricsWriter::Close() {
  RETURN_IF_ERROR(file_->Sync());
  return file_->Close();
}

Status CutMetrics(FileSystem& files, const std::string& path, int64_t step) {
  if (!files.Exists(path)) return OkStatus();
  std::string kept;
  {
    ASSIGN_OR_RETURN(const FileContents contents, FileContents::Open(path));
    const std::string_view text(reinterpret_cast<const char*>(contents.bytes().data()), contents.bytes().size());
    int64_t number = 0;
    for (size_t at = 0; at < text.size();) {
      const size_t end = text.find('\n', at);
      if (end == std::string_view::npos) break;  // cut short
      const std::string_view line = text.substr(at, end - at);
      ASSIGN_OR_RETURN(const int64_t line_step, StepOf(line, path, ++number));
      if (line_step < step) kept += std::string(line) + "\n";
      at = end + 1;
    }
    if (kept.size() == text.size()) return OkStatus();
  }
  return WriteFileAtomically(files, path, [&](WritableFile& file) { return file.Append(kept); });
}

}  // namespace onnxtrain
