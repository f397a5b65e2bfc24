// SPDX-License-Identifier: Apache-2.0
// The TrainingSession of one process: its ranks are threads. Owns the model, one variant of the Program per batch shape, and
// the team of ranks that all variants share.
#ifndef ONNXTRAIN_RUNTIME_LOCAL_SESSION_H_
#define ONNXTRAIN_RUNTIME_LOCAL_SESSION_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "graph/onnx_model.h"
#include "runtime/backend.h"
#include "runtime/canonical_states.h"
#include "runtime/plan_json.h"
#include "runtime/rank_team.h"
#include "runtime/rank_threads.h"
#include "runtime/step_times.h"
#include "runtime/trace.h"
#include "runtime/training_program.h"
#include "runtime/training_session.h"

namespace onnxtrain {

class LocalSession : public TrainingSession {
 public:
  static StatusOr<std::unique_ptr<LocalSession>> Create(OnnxModel model, const TrainingOptions& options);

  StatusOr<StepResult> Step(const Feeds& feeds, int64_t samples) override;
  StatusOr<EvalResult> Evaluate(const Feeds& feeds, int64_t samples) override;
  std::vector<std::string> StateNames() const override { return states_->names(); }
  StatusOr<Tensor> ReadState(std::string_view canonical_name) override { return states_->Read(canonical_name); }
  Status WriteState(std::string_view canonical_name, const Tensor& tensor) override;
  StatusOr<Tensor> ReadTensor(std::string_view initializer) override;
  Status WriteTensor(std::string_view initializer, const Tensor& tensor) override;
  const std::vector<TensorInfo>& tensors() const override { return tensors_; }
  int64_t step() const override { return step_; }
  Status SaveCheckpoint(const std::string& folder, const std::string& metadata_json) override;
  Status LoadCheckpoint(const std::string& folder) override;
  Status SaveModel(const std::string& path) override;
  Status ExportInference(const std::string& path) override;
  Status ExplainNonFinite(const Feeds& feeds, int64_t samples) override;
  StatusOr<std::string> PlanText(std::string_view graph) const override;
  const std::vector<std::string>& notes() const override { return notes_; }
  int64_t planned_bytes() const override;
  const std::vector<std::string>& decomposed() const override { return decomposed_; }

  const OnnxModel& model() const { return model_; }
  // What a training step runs: "step", or "last" of several micro-batches.
  std::string main_graph() const { return GraphName(options_.accumulation - 1); }
  // Plan, memory and simulated time of a graph for the full batch; borrows from the session. Usage for a graph that the
  // program does not have.
  StatusOr<PlanReport> Report(const std::string& graph, const std::vector<double>& link_gbps);
  // While on, what the streams do in a step or an evaluation, and when, is appended to trace().
  void set_tracing(bool on) { tracing_ = on; }
  const std::vector<TraceEvent>& trace() const { return trace_; }
  std::vector<std::string> stream_names() const;

 private:
  // A plan of one graph of a variant, and its place in the team.
  struct PlannedGraph {
    const Graph* graph = nullptr;
    ExecutionPlan plan;
    int index = -1;
  };
  // The Program for one local batch size.
  struct Variant {
    int64_t local_batch = 0;
    TrainingProgram built;
    PersistentPlacements placements;
    int constants = -1;
    std::map<std::string, PlannedGraph, std::less<>> graphs;
  };
  // A contiguous run of samples of the global batch.
  struct Slice {
    int64_t begin = 0;
    int64_t count = 0;
  };
  // One graph on one rank as part of a step or an evaluation, with everything that running it again needs: nothing is
  // allocated then.
  struct Submission {
    PlannedGraph* planned = nullptr;
    int rank = 0;
    int micro_batch = 0;
    Slice slice;
    std::vector<size_t> offsets;             // of the slice in each feed, bytes
    std::vector<const std::byte*> feeds;     // one per graph input
    std::vector<Tensor> fetched;             // one per graph output
    std::vector<std::byte*> fetches;         // their bytes
    std::unique_ptr<StepTimes> times;        // while tracing
  };
  using Submissions = std::vector<Submission>;

  LocalSession(OnnxModel model, const TrainingOptions& options);
  Status Initialize();
  void Untie();
  StatusOr<Variant*> VariantFor(int64_t local_batch);
  Status AddTeam(const Variant& variant);
  StatusOr<PlannedGraph*> Planned(Variant& variant, const std::string& graph);
  StatusOr<ExecutionPlan> Plan(const Variant& variant, const Graph& graph) const;
  Status LoadInitialStates(Program& program);

  Slice RankSlice(int64_t samples, int rank) const;
  Slice MicroSlice(const Slice& rank_slice, int micro_batch) const;
  std::string GraphName(int micro_batch) const;
  // Plans and buffers for a graph on one rank with the samples of the slice.
  StatusOr<Submission> Prepare(Variant& variant, const std::string& graph, int rank, int micro_batch, const Slice& slice);
  StatusOr<Submissions*> StepFor(int64_t samples);
  StatusOr<Submissions*> EvaluationFor(int64_t samples);
  // Resolves the feeds of all of them first, so that an error leaves no rank waiting for another; then enqueues and waits.
  Status RunAll(Submissions& submissions, const Feeds& feeds);
  void SubmitAll(Submissions& submissions);
  Status CheckFaults(const Submission& submission) const;
  Status Gather();  // what evaluation reads: replicas, and buffers
  // Running statistics come from each rank's own samples in training; those of rank 0 count.
  Status ShareBuffers();
  // Weights and buffers by initializer, in the file's element types.
  StatusOr<std::map<std::string, Tensor>> TrainedTensors();
  void CollectTrace(Submissions& submissions);
  TrainingOptions SingleRankOptions(int64_t local_batch) const;
  StatusOr<const TrainingProgram*> SingleRankProgram(int64_t local_batch);
  Status ExplainSlice(const Feeds& feeds, const Slice& slice, int rank, int micro,
                      const std::map<std::string, Tensor>& states);
  StatusOr<std::string> CanonicalOf(std::string_view initializer) const;

  OnnxModel model_;
  TrainingOptions options_;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<RankThreads> threads_;  // null: the caller's thread submits for all ranks
  Layout layout_;
  std::map<int64_t, std::unique_ptr<Variant>> variants_;
  std::unique_ptr<RankTeam> team_;
  std::unique_ptr<CanonicalStates> states_;
  std::vector<TensorInfo> tensors_;
  std::vector<std::string> notes_;
  std::vector<std::string> decomposed_;
  std::map<int64_t, Submissions> steps_;        // by samples of the global batch
  std::map<int64_t, Submissions> evaluations_;  // by samples
  Submissions gather_;
  std::map<int64_t, TrainingProgram> single_rank_;  // by local batch: for the search for what is not finite
  int64_t step_ = 0;
  bool replicas_stale_ = true;
  bool tracing_ = false;
  const StepTimes::Clock::time_point trace_origin_ = StepTimes::Clock::now();
  std::vector<TraceEvent> trace_;
};

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_LOCAL_SESSION_H_
