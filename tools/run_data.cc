// SPDX-License-Identifier: Apache-2.0
#include "tools/run_data.h"

#include <algorithm>

#include "graph/nearest_name.h"
#include "graph/tensor_proto_file.h"
#include "runtime/data/array_file.h"
#include "runtime/data/data_spec.h"
#include "runtime/data/file_contents.h"

namespace onnxtrain {
namespace {

bool HasClassLabels(const TrainingOptions& options) { return options.loss == "ce" || options.loss == "nll"; }

ArrayFileOptions ArrayOptions() {
  ArrayFileOptions options;
  options.tensor_proto_reader = [](const std::string& path) { return ReadTensorProtoFile(path); };
  return options;
}

const ModelValue* FindInput(const OnnxModel& model, const std::string& name) {
  for (const ModelValue& input : model.inputs()) {
    if (input.name == name) return &input;
  }
  return nullptr;
}

// The type a feed is given in: that of the graph input in this run's precision; for labels beside the graph int64 or
// float.
DType FedAs(const OnnxModel& model, const TrainingOptions& options, const std::string& name) {
  const ModelValue* input = FindInput(model, name);
  const DType wide = options.dtype == DType::kDouble ? DType::kDouble : DType::kFloat;
  if (input != nullptr) return IsFloating(input->dtype) && options.dtype == DType::kDouble ? wide : input->dtype;
  if (name == options.labels) return HasClassLabels(options) ? DType::kInt64 : wide;
  return DType::kUndefined;
}

Status UnknownFeed(const OnnxModel& model, const TrainingOptions& options, const std::string& name) {
  std::vector<std::string> names;
  for (const ModelValue& input : model.inputs()) names.push_back(input.name);
  if (!options.labels.empty()) names.push_back(options.labels);
  std::string list;
  for (const std::string& known : names) list += (list.empty() ? "" : ", ") + known;
  return UsageError("the model has no input '" + name + "'" + DidYouMean(name, names) + " (inputs: " + list + ")");
}

// Labels of a regression loss are cast to the output's type whatever they are; everything else only where no value
// changes.
Status CastColumn(const OnnxModel& model, const TrainingOptions& options, Column& column) {
  const DType dtype = FedAs(model, options, column.name());
  if (dtype == DType::kUndefined) return UnknownFeed(model, options, column.name());
  const bool targets = column.name() == options.labels && FindInput(model, column.name()) == nullptr;
  if (targets && !HasClassLabels(options)) return column.ForceCast(dtype);
  // A run in double is a run of the float model: its float data is widened like its weights.
  if (options.dtype == DType::kDouble && IsFloating(dtype)) return column.ForceCast(dtype);
  return column.CastTo(dtype);
}

// What a map or file gives beyond the model's inputs is left out of a file without names.
Status AddColumns(const OnnxModel& model, const TrainingOptions& options, const std::string& text,
                  std::vector<std::unique_ptr<Column>>& columns, std::vector<std::string>& notes) {
  ASSIGN_OR_RETURN(const DataSpec spec, ParseDataSpec(text));
  ASSIGN_OR_RETURN(std::vector<std::unique_ptr<Column>> opened, OpenColumns(spec, ArrayOptions()));
  for (std::unique_ptr<Column>& column : opened) {
    if (spec.name.empty() && FedAs(model, options, column->name()) == DType::kUndefined) {
      notes.push_back("'" + column->name() + "' of " + spec.path + " is no input of the model and is left out");
      continue;
    }
    RETURN_IF_ERROR(CastColumn(model, options, *column));
    columns.push_back(std::move(column));
  }
  return OkStatus();
}

// --feed: the same every step. A leading axis of 1 where the model has a symbolic batch is repeated.
Status AddConstants(const OnnxModel& model, const RunOptions& run, std::vector<std::unique_ptr<Column>>& columns) {
  const auto types = [&](const std::string& name) { return FedAs(model, run.training, name); };
  for (const std::string& text : run.feed) {
    ASSIGN_OR_RETURN(const DataSpec spec, ParseDataSpec(text));
    ASSIGN_OR_RETURN(std::vector<NamedTensor> feeds, ReadFeeds(spec, types, ArrayOptions()));
    for (auto& [name, tensor] : feeds) {
      const ModelValue* input = FindInput(model, name);
      if (input == nullptr) return UnknownFeed(model, run.training, name);
      const bool symbolic = input->dims && !input->dims->empty() && !(*input->dims)[0].value;
      const bool repeat = symbolic && !tensor.shape().empty() && tensor.shape()[0] == 1;
      ASSIGN_OR_RETURN(std::unique_ptr<Column> column, MakeConstantColumn(name, std::move(tensor), repeat));
      columns.push_back(std::move(column));
    }
  }
  return OkStatus();
}

StatusOr<std::pair<std::string, std::string>> TokenInputs(const OnnxModel& model, const RunOptions& run) {
  if (!run.tokens_to.empty()) {
    const size_t comma = run.tokens_to.find(',');
    const std::string inputs = run.tokens_to.substr(0, comma);
    const std::string targets = comma == std::string::npos ? "" : run.tokens_to.substr(comma + 1);
    if (FindInput(model, inputs) == nullptr) return UnknownFeed(model, run.training, inputs);
    if (!targets.empty() && FedAs(model, run.training, targets) == DType::kUndefined) {
      return UnknownFeed(model, run.training, targets);
    }
    return std::make_pair(inputs, targets);
  }
  std::vector<std::string> integers;
  for (const ModelValue& input : model.inputs()) {
    if (IsInteger(input.dtype)) integers.push_back(input.name);
  }
  if (integers.size() == 1 && !run.training.labels.empty() && FindInput(model, run.training.labels) == nullptr) {
    return std::make_pair(integers[0], run.training.labels);
  }
  if (integers.size() != 2) {
    return UsageError("--tokens-to IDX[,TARGETS] is needed: the model has " + std::to_string(integers.size()) +
                      " integer inputs, not two");
  }
  return std::make_pair(integers[0], integers[1]);
}

// Rows of the float matrix that a Gather selects from by the tokens themselves; 0 where there is none.
int64_t EmbeddingRows(const OnnxModel& model, const std::string& tokens) {
  for (const ModelNode& node : model.nodes()) {
    if (node.op != "Gather" || node.inputs.size() < 2 || node.inputs[1] != tokens) continue;
    const auto axis = node.ints.find("axis");
    const auto tie = model.tied_names().find(node.inputs[0]);
    const ModelInitializer* table =
        model.FindInitializer(tie == model.tied_names().end() ? node.inputs[0] : tie->second);
    const bool rows = axis == node.ints.end() || axis->second == 0;
    if (rows && table != nullptr && IsFloating(table->type.dtype) && table->type.rank() == 2)
      return table->type.shape[0];
  }
  return 0;
}

StatusOr<Dataset> OpenTokens(const OnnxModel& model, const RunOptions& run, const std::vector<std::string>& globs,
                             std::vector<std::unique_ptr<Column>> further) {
  using Names = std::pair<std::string, std::string>;
  TokenOptions tokens;
  ASSIGN_OR_RETURN(const Names names, TokenInputs(model, run));
  tokens.inputs = names.first;
  tokens.targets = names.second;
  tokens.window = run.seq_len;
  tokens.target_shift = static_cast<int>(run.target_shift);
  tokens.vocabulary = EmbeddingRows(model, names.first);
  for (const std::string& glob : globs) {
    ASSIGN_OR_RETURN(const std::vector<std::string> files, MatchFiles(glob));
    tokens.files.insert(tokens.files.end(), files.begin(), files.end());
  }
  ASSIGN_OR_RETURN(Dataset dataset, OpenTokenDataset(tokens, std::move(further)));
  for (const std::string& name : {names.first, names.second}) {
    Column* column = name.empty() ? nullptr : dataset.Find(name);
    if (column != nullptr) RETURN_IF_ERROR(CastColumn(model, run.training, *column));
  }
  return dataset;
}

StatusOr<std::optional<Dataset>> OpenSet(const OnnxModel& model, const RunOptions& run,
                                         const std::vector<std::string>& specs, const std::vector<std::string>& globs,
                                         std::vector<std::string>& notes) {
  if (specs.empty() && globs.empty()) return std::optional<Dataset>();
  std::vector<std::unique_ptr<Column>> columns;
  for (const std::string& text : specs) RETURN_IF_ERROR(AddColumns(model, run.training, text, columns, notes));
  RETURN_IF_ERROR(AddConstants(model, run, columns));
  StatusOr<Dataset> dataset =
      globs.empty() ? Dataset::Create(std::move(columns)) : OpenTokens(model, run, globs, std::move(columns));
  if (!dataset.ok()) return dataset.status();
  return std::optional<Dataset>(*std::move(dataset));
}

// Every input of the model, and the labels, are fed by the data set.
Status CheckComplete(const OnnxModel& model, const TrainingOptions& options, const Dataset& dataset,
                     const char* option) {
  for (const ModelValue& input : model.inputs()) {
    if (dataset.Find(input.name) == nullptr) {
      return UsageError("input '" + input.name + "' (" + input.type + ") is not fed; add --" + option + " " +
                        input.name + "=FILE");
    }
  }
  if (!options.labels.empty() && dataset.Find(options.labels) == nullptr) {
    return UsageError("the labels '" + options.labels + "' are not fed; add --" + option + " " + options.labels +
                      "=FILE");
  }
  return OkStatus();
}

void DescribeFeeds(const Dataset& dataset, TrainingOptions& options) {
  for (const std::unique_ptr<Column>& column : dataset.columns()) {
    const TensorType two = column->BatchType(2);
    const bool per_sample = column->samples().has_value() || !(column->BatchType(3) == two);
    FeedSpec feed{two.dtype, two.shape, per_sample};
    if (per_sample) feed.sample_shape.erase(feed.sample_shape.begin());
    options.feeds[column->name()] = feed;
  }
}

std::optional<int64_t> FixedBatch(const OnnxModel& model, const TrainingOptions& options) {
  for (const ModelValue& input : model.inputs()) {
    const auto feed = options.feeds.find(input.name);
    const bool per_sample = feed == options.feeds.end() || feed->second.per_sample;
    if (per_sample && input.dims && !input.dims->empty() && (*input.dims)[0].value) return *(*input.dims)[0].value;
  }
  return std::nullopt;
}

Status ApplyFixedBatch(RunOptions& run, RunData& data) {
  if (!data.fixed_batch) return OkStatus();
  if (run.batch_size && *run.batch_size != *data.fixed_batch) {
    return UsageError("--batch-size " + std::to_string(*run.batch_size) +
                      " cannot be had: the export fixes the batch at " + std::to_string(*data.fixed_batch) +
                      "; export with a dynamic batch dimension, or use that size");
  }
  run.training.batch_size = *data.fixed_batch;
  return OkStatus();
}

void AddSymbols(const std::string& symbol, std::vector<std::string>& names) {
  std::string name;
  for (const char c : symbol + " ") {
    const bool part = std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == ':';
    if (part) name += c;
    if (part || name.empty()) continue;
    if (!std::isdigit(static_cast<unsigned char>(name[0]))) names.push_back(name);
    name.clear();
  }
}

// A --dim names a symbol of the model's inputs.
Status CheckDims(const OnnxModel& model, const TrainingOptions& options) {
  std::vector<std::string> names;
  for (const ModelValue& input : model.inputs()) {
    if (!input.dims) continue;
    for (const ModelDim& dim : *input.dims) {
      names.push_back(dim.symbol);
      AddSymbols(dim.symbol, names);
    }
  }
  for (const auto& [name, size] : options.dims) {
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      return UsageError("--dim " + name + "=" + std::to_string(size) + ": no input of the model has a dimension '" +
                        name + "'" + DidYouMean(name, names));
    }
  }
  return OkStatus();
}

// --dim of the batch dimension is another way to say --batch-size.
Status ApplyBatchDim(const OnnxModel& model, RunOptions& run) {
  TrainingOptions& t = run.training;
  for (const ModelValue& input : model.inputs()) {
    const auto feed = t.feeds.find(input.name);
    const bool per_sample = feed == t.feeds.end() || feed->second.per_sample;
    if (!per_sample || !input.dims || input.dims->empty()) continue;
    const auto dim = t.dims.find((*input.dims)[0].symbol);
    if (dim == t.dims.end()) continue;
    if (run.batch_size && *run.batch_size != dim->second) {
      return UsageError("--dim " + dim->first + "=" + std::to_string(dim->second) + " contradicts --batch-size " +
                        std::to_string(*run.batch_size) + ": it is the batch dimension of input '" + input.name + "'");
    }
    run.batch_size = t.batch_size = dim->second;
    t.dims.erase(dim);  // a partial batch has another size
  }
  return OkStatus();
}

// Without data --seq-len is the second dimension of integer inputs.
void BindSequenceLength(const OnnxModel& model, RunOptions& run) {
  for (const ModelValue& input : model.inputs()) {
    const bool unfed = run.training.feeds.count(input.name) == 0;
    if (run.seq_len < 1 || !unfed || !IsInteger(input.dtype) || !input.dims || input.dims->size() < 2) continue;
    const ModelDim& dim = (*input.dims)[1];
    if (dim.value) continue;
    if (!dim.symbol.empty()) {
      run.training.dims.emplace(dim.symbol, run.seq_len);
    } else if (input.dims->size() == 2) {
      run.training.feeds[input.name] = {input.dtype, {run.seq_len}, /*per_sample=*/true};
    }
  }
}

// Both sets go through the same graphs.
Status CheckAlike(const Dataset& train, const Dataset& val) {
  for (const std::unique_ptr<Column>& column : val.columns()) {
    const Column* other = train.Find(column->name());
    if (other == nullptr) continue;
    if (column->BatchType(1) == other->BatchType(1)) continue;
    return InvalidDataError("a sample of '" + column->name() + "' is " + ToString(column->BatchType(1)) +
                            " in the validation data and " + ToString(other->BatchType(1)) + " in the training data");
  }
  return OkStatus();
}

void NotePartialBatch(const Dataset& dataset, int64_t batch, const char* what, std::vector<std::string>& notes) {
  const int64_t rest = dataset.samples() % batch;
  if (rest == 0 || rest == dataset.samples()) return;
  notes.push_back("the export fixes the batch: the last " + std::to_string(rest) + " of " +
                  std::to_string(dataset.samples()) + " " + what + " samples make no whole batch of " +
                  std::to_string(batch) + " and are left out of every epoch");
}

}  // namespace

StatusOr<RunData> OpenRunData(const OnnxModel& model, RunOptions& run) {
  RunData data;
  TrainingOptions& t = run.training;
  RETURN_IF_ERROR(CheckDims(model, t));
  ASSIGN_OR_RETURN(data.train, OpenSet(model, run, run.train, run.tokens, data.notes));
  ASSIGN_OR_RETURN(data.val, OpenSet(model, run, run.val, run.val_tokens, data.notes));
  if (data.train) RETURN_IF_ERROR(CheckComplete(model, t, *data.train, "train"));
  if (data.val) RETURN_IF_ERROR(CheckComplete(model, t, *data.val, "val"));
  if (data.train && data.val) RETURN_IF_ERROR(CheckAlike(*data.train, *data.val));
  if (data.train || data.val) DescribeFeeds(data.train ? *data.train : *data.val, t);
  BindSequenceLength(model, run);
  RETURN_IF_ERROR(ApplyBatchDim(model, run));
  data.fixed_batch = FixedBatch(model, t);
  RETURN_IF_ERROR(ApplyFixedBatch(run, data));
  if (data.fixed_batch && data.train) NotePartialBatch(*data.train, t.global_batch(), "training", data.notes);
  if (data.fixed_batch && data.val) NotePartialBatch(*data.val, t.batch_size * t.ranks, "validation", data.notes);
  return data;
}

StatusOr<FeedBatch> ReadFeedBatch(const OnnxModel& model, RunOptions& run) {
  FeedBatch batch;
  const auto types = [&](const std::string& name) { return FedAs(model, run.training, name); };
  for (const std::string& text : run.feed) {
    ASSIGN_OR_RETURN(const DataSpec spec, ParseDataSpec(text));
    ASSIGN_OR_RETURN(std::vector<NamedTensor> feeds, ReadFeeds(spec, types, ArrayOptions()));
    for (auto& [name, tensor] : feeds) {
      if (types(name) == DType::kUndefined) {
        if (!spec.name.empty()) return UnknownFeed(model, run.training, name);
        batch.notes.push_back("'" + name + "' of " + spec.path + " is neither input nor label and is left out");
        continue;
      }
      run.training.feeds[name] = {tensor.dtype(), tensor.shape(), /*per_sample=*/false};
      batch.tensors.emplace_back(name, std::move(tensor));
    }
  }
  for (const ModelValue& input : model.inputs()) {
    const auto feed = run.training.feeds.find(input.name);
    if (feed == run.training.feeds.end()) {
      return UsageError("input '" + input.name + "' (" + input.type + ") is not fed; add --feed " + input.name +
                        "=FILE");
    }
    if (!feed->second.sample_shape.empty() && !run.batch_size) run.training.batch_size = feed->second.sample_shape[0];
  }
  if (!run.training.labels.empty() && run.training.feeds.count(run.training.labels) == 0) {
    return UsageError("the labels '" + run.training.labels + "' are not fed; add --feed " + run.training.labels +
                      "=FILE");
  }
  return batch;
}

}  // namespace onnxtrain
