// SPDX-License-Identifier: Apache-2.0
// metrics.jsonl: one JSON object a line, complete lines only, readable while the run goes on.
#ifndef ONNXTRAIN_RUNTIME_METRICS_H_
#define ONNXTRAIN_RUNTIME_METRICS_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "graph/status.h"
#include "runtime/file_system.h"

namespace onnxtrain {

// Numbers that are not finite become the strings "NaN", "Infinity" and "-Infinity"; floats are the shortest text that
// reads back to the same value.
using MetricValue = std::variant<bool, int64_t, float, double, std::string>;

struct Metric {
  std::string name;
  MetricValue value;
};

// {"step":0,"loss":2.5} in the order given.
std::string MetricsLine(std::span<const Metric> metrics);

// One thread at a time.
class MetricsWriter {
 public:
  // Appends to the file, or makes it.
  static StatusOr<MetricsWriter> Open(FileSystem& files, const std::string& path);
  // The line reaches the operating system at once, with a single write where that succeeds as a whole.
  Status Write(std::span<const Metric> metrics);
  // Ends with every line on the storage device.
  Status Close();

 private:
  explicit MetricsWriter(std::unique_ptr<WritableFile> file) : file_(std::move(file)) {}
  std::unique_ptr<WritableFile> file_;
};

// For a resumed run: keeps the lines whose "step" is below `step`; a last line cut short by an interruption goes too.
// The file is replaced whole or not at all; a missing one is no error. kInvalidData names a line that is not an object
// with a step.
Status CutMetrics(FileSystem& files, const std::string& path, int64_t step);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_METRICS_H_
