// SPDX-License-Identifier: Apache-2.0
// onnx-train eval: loss and metrics over a data set, nothing updated.
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "tools/command.h"
#include "tools/console.h"
#include "tools/evaluation.h"
#include "tools/model_argument.h"
#include "tools/run_data.h"

namespace onnxtrain {
namespace {

std::string Number(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.6g", value);
  return text;
}

void Print(const EvalResult& result, const RunOptions& run) {
  const double loss = result.loss_sum / result.weight;
  const bool tokens = !run.val_tokens.empty();
  if (run.json) {
    nlohmann::ordered_json json;
    json["loss"] = loss;
    if (result.counted > 0) json["accuracy"] = static_cast<double>(result.correct) / static_cast<double>(result.counted);
    json["samples"] = result.samples;
    if (tokens) json["perplexity"] = std::exp(loss);
    Console::Print(json.dump(2));
    return;
  }
  std::vector<std::vector<std::string>> rows{{"loss", Number(loss)}};
  if (result.counted > 0) {
    rows.push_back({"accuracy", Number(static_cast<double>(result.correct) / static_cast<double>(result.counted))});
  }
  rows.push_back({"samples", std::to_string(result.samples)});
  if (tokens) rows.push_back({"perplexity", Number(std::exp(loss))});
  Console::Print(Table(rows));
}

}  // namespace

StatusOr<int> RunEval(const std::vector<std::string>& arguments) {
  RunOptions run;
  OptionSet options;
  AddModelOptions(options, run);
  AddOptimizerOptions(options, run);
  AddBatchOptions(options, run);
  AddDataOptions(options, run);
  AddOutputOptions(options, run);
  RETURN_IF_ERROR(options.Parse(arguments));
  if (options.help_wanted()) {
    Console::Print(options.Help("eval", "loss and metrics over a data set in the inference form"));
    return 0;
  }
  RETURN_IF_ERROR(CheckTogether(options, run));
  if (run.val.empty() && run.val_tokens.empty()) return UsageError("--val NAME=FILE or --val-tokens GLOB is needed");
  Console console(run.quiet);
  ASSIGN_OR_RETURN(const std::string file, ModelFile(run.model[0]));
  ASSIGN_OR_RETURN(const OnnxModel model, OnnxModel::Load(file));
  ASSIGN_OR_RETURN(const RunData data, OpenRunData(model, run));
  for (const std::string& note : data.notes) console.Note(note);
  run.training.accumulation = 1;
  run.training.evaluation_only = true;
  ASSIGN_OR_RETURN(std::unique_ptr<TrainingSession> session, TrainingSession::Create(file, run.training));
  ASSIGN_OR_RETURN(Evaluation evaluation, Evaluation::Create(*data.val, run.training.batch_size * run.training.ranks,
                                                             data.fixed_batch.has_value()));
  ASSIGN_OR_RETURN(const EvalResult result, evaluation.Run(*session));
  Print(result, run);
  return 0;
}

}  // namespace onnxtrain
