// SPDX-License-Identifier: Apache-2.0
// The data of a run: opens what --train, --val, --tokens and --feed name, casts it to what the model takes, and tells
// the session what will be fed.
#ifndef ONNXTRAIN_TOOLS_RUN_DATA_H_
#define ONNXTRAIN_TOOLS_RUN_DATA_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "graph/onnx_model.h"
#include "runtime/data/dataset.h"
#include "tools/run_options.h"

namespace onnxtrain {

struct RunData {
  std::optional<Dataset> train;
  std::optional<Dataset> val;
  // Sizes the export has baked into axis 0 of its data inputs; none when it is symbolic.
  std::optional<int64_t> fixed_batch;
  std::vector<std::string> notes;
};

// Opens everything that is named. Fills run.training.feeds and, from the export's fixed batch, run.training.batch_size.
// Usage for names that are no input, inputs that nothing feeds, and a batch size that contradicts the export;
// InvalidData for what is wrong with the files.
StatusOr<RunData> OpenRunData(const OnnxModel& model, RunOptions& run);

// One batch given whole by --feed: the tensors by name, for `grad`. Fills run.training.feeds with whole shapes and
// batch_size with axis 0. Entries of an npz that are neither input nor labels are left out with a note.
struct FeedBatch {
  std::vector<std::pair<std::string, Tensor>> tensors;
  std::vector<std::string> notes;
};
StatusOr<FeedBatch> ReadFeedBatch(const OnnxModel& model, RunOptions& run);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_TOOLS_RUN_DATA_H_
