// SPDX-License-Identifier: Apache-2.0
// onnx-train eval: loss and metrics over a data set, nothing updated.
#include <cmath>
#include <nlohmann/json.hpp>

#include "tools/command.h"
#include "tools/evaluation.h"
#include "tools/number_text.h"
#include "tools/run_session.h"

namespace onnxtrain {
namespace {

using Json = nlohmann::ordered_json;

void Print(const EvalResult& result, const RunOptions& run) {
  const double loss = result.loss_sum / result.weight;
  const double accuracy =
      static_cast<double>(result.correct) / static_cast<double>(std::max<int64_t>(1, result.counted));
  const bool tokens = !run.val_tokens.empty();
  if (run.json) {
    Json json;
    json["loss"] = NumberJson<Json>(loss);
    if (result.counted > 0) json["accuracy"] = accuracy;
    json["samples"] = result.samples;
    if (tokens) json["perplexity"] = NumberJson<Json>(std::exp(loss));
    Console::Print(JsonText(json));
    return;
  }
  std::vector<std::vector<std::string>> rows{{"loss", NumberText(loss)}};
  if (result.counted > 0) rows.push_back({"accuracy", NumberText(accuracy)});
  rows.push_back({"samples", std::to_string(result.samples)});
  if (tokens) rows.push_back({"perplexity", NumberText(std::exp(loss))});
  Console::Print(Table(rows));
}

}  // namespace

StatusOr<int> RunEval(const std::vector<std::string>& arguments) {
  RunOptions run;
  OptionSet options;
  AddTrainingOptions(options, run);
  AddOutputOptions(options, run);
  RETURN_IF_ERROR(options.Parse(arguments));
  if (options.help_wanted()) {
    Console::Print(options.Help("eval", "loss and metrics over a data set in the inference form"));
    return 0;
  }
  RETURN_IF_ERROR(CheckTogether(options, run));
  if (run.val.empty() && run.val_tokens.empty()) return UsageError("--val NAME=FILE or --val-tokens GLOB is needed");
  Console console(run.quiet);
  ASSIGN_OR_RETURN(OpenedRun opened, OpenRun(run, console));
  run.training.accumulation = 1;
  run.training.evaluation_only = true;
  ASSIGN_OR_RETURN(std::unique_ptr<LocalSession> session, CreateSession(std::move(opened.model), run));
  ASSIGN_OR_RETURN(Evaluation evaluation,
                   Evaluation::Create(*opened.data.val, run.training.batch_size * run.training.ranks,
                                      opened.data.fixed_batch.has_value()));
  ASSIGN_OR_RETURN(const EvalResult result, evaluation.Run(*session));
  Print(result, run);
  return 0;
}

}  // namespace onnxtrain
