// SPDX-License-Identifier: Apache-2.0
// A reference model with the run that PyTorch made of it: case.json, data, reference*.npz. Read from tests/data/models,
// or from
// ../shared/models beside the project.
#ifndef ONNXTRAIN_TESTS_END_TO_END_REFERENCE_CASE_H_
#define ONNXTRAIN_TESTS_END_TO_END_REFERENCE_CASE_H_

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/training_session.h"
#include "tools/evaluation.h"
#include "tools/run_data.h"

namespace onnxtrain {

struct Tolerances {
  double loss_abs = 0;
  double grad_rel = 0;
  double param_abs = 0;
  double param_rms = 0;
  double buffer_abs = 0;
  double grad_norm_abs = 0;
};

struct ReferenceRun {
  std::string name;   // "gpt_tiny/model.onnx/reference.npz"
  std::string model;  // path
  RunOptions run;     // data and training options of the case, one rank, the global batch as batch size
  int64_t global_batch = 0;
  int64_t steps = 0;
  int reference_ranks = 0;  // 0: holds for any number of ranks
  bool batch_statistics = false;
  std::vector<std::string> no_gradient;  // stay as they are
  Tolerances tolerances;
  std::map<std::string, Tensor> reference;     // the npz
  std::map<std::string, std::string> renamed;  // name in model.onnx -> name in this variant
};

// Every variant with every reference of a case; empty when the folder is absent.
std::vector<ReferenceRun> LoadReferenceCase(const std::string& name);
// Folder of the case, "" when absent.
std::string CaseFolder(const std::string& name);

// How a run is cut: over ranks, stages, micro-batches and buckets.
struct Cut {
  int ranks = 1;
  int zero = 0;
  int accumulation = 1;
  std::optional<double> bucket_mb;
  bool overlap = true;
  std::string device = "cpu";
  bool cuda_graphs = false;
  DType reduce_dtype = DType::kFloat;
  std::string ToString() const;
};

struct RunResult {
  std::vector<StepResult> steps;
  std::map<std::string, Tensor> states;  // canonical, after the last step
};

// Trains the case cut so. Failures are reported through GoogleTest.
RunResult TrainCase(const ReferenceRun& reference, const Cut& cut, DType dtype = DType::kFloat);
// The same step by step: `after` is called with the session and what the step gave.
RunResult TrainCase(const ReferenceRun& reference, const Cut& cut, DType dtype,
                    const std::function<void(TrainingSession&, const StepResult&)>& after);
// Losses of all steps, gradient norms, final parameters and buffers against the reference, within the case's
// tolerances.
void ExpectReference(const ReferenceRun& reference, const RunResult& result);
// First gradients of the whole global batch on one rank.
void ExpectFirstGradients(const ReferenceRun& reference);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_TESTS_END_TO_END_REFERENCE_CASE_H_
