// SPDX-License-Identifier: Apache-2.0
#include "runtime/local_session.h"

#include <algorithm>
#include <thread>

#include "runtime/node_runner.h"
#include "runtime/persistent_placements.h"
#include "runtime/plan_verifier.h"
#include "runtime/scheduler.h"

namespace onnxtrain {
namespace {

int ThreadsPerRank(const TrainingOptions& options) {
  const int threads = options.threads > 0 ? options.threads : static_cast<int>(std::thread::hardware_concurrency());
  return std::max(1, threads / options.ranks);
}

double Scalar(const Tensor& tensor) { return tensor.DoubleAt(0); }

}  // namespace

StatusOr<std::unique_ptr<TrainingSession>> TrainingSession::Create(const std::string& model_path,
                                                                   const TrainingOptions& options) {
  ASSIGN_OR_RETURN(OnnxModel model, OnnxModel::Load(model_path));
  ASSIGN_OR_RETURN(std::unique_ptr<LocalSession> session, LocalSession::Create(std::move(model), options));
  return std::unique_ptr<TrainingSession>(std::move(session));
}

void EvalResult::Add(const EvalResult& other) {
  loss_sum += other.loss_sum;
  weight += other.weight;
  correct += other.correct;
  counted += other.counted;
  samples += other.samples;
}

LocalSession::LocalSession(OnnxModel model, const TrainingOptions& options)
    : model_(std::move(model)), options_(options) {}

StatusOr<std::unique_ptr<LocalSession>> LocalSession::Create(OnnxModel model, const TrainingOptions& options) {
  std::unique_ptr<LocalSession> session(new LocalSession(std::move(model), options));
  RETURN_IF_ERROR(session->Initialize());
  return session;
}

Status LocalSession::Initialize() {
  group_ = std::make_unique<LocalGroup>(options_.ranks, std::chrono::seconds(options_.timeout_seconds));
  fetched_.assign(static_cast<size_t>(options_.accumulation), std::vector<Fetched>(static_cast<size_t>(options_.ranks)));
  ASSIGN_OR_RETURN(Variant* full, VariantFor(options_.batch_size));
  tensors_ = full->built.tensors;
  notes_ = full->built.notes;
  decomposed_ = full->built.decomposed;
  for (int micro = 0; micro < options_.accumulation && !options_.evaluation_only; ++micro) {
    RETURN_IF_ERROR(Planned(*full, GraphName(micro)).status());
  }
  return LoadInitialStates(full->built.program);
}

StatusOr<LocalSession::Variant*> LocalSession::VariantFor(int64_t local_batch) {
  const auto found = variants_.find(local_batch);
  if (found != variants_.end()) return found->second.get();
  auto variant = std::make_unique<Variant>();
  variant->local_batch = local_batch;
  TrainingProgramOptions build;
  build.local_batch = local_batch;
  build.layout = team_ == nullptr ? nullptr : &layout_;
  ASSIGN_OR_RETURN(variant->built, BuildTrainingProgram(model_, options_, build));
  variant->placements = PlacePersistent(variant->built.program);
  if (team_ == nullptr) RETURN_IF_ERROR(AddTeam(*variant));
  ASSIGN_OR_RETURN(variant->constants, team_->AddConstants(variant->placements));
  Variant* made = variant.get();
  variants_[local_batch] = std::move(variant);
  return made;
}

// The first variant decides what all share: Layout, states, streams.
Status LocalSession::AddTeam(const Variant& variant) {
  layout_ = variant.built.program.layout();
  RankTeamOptions team;
  team.ranks = options_.ranks;
  team.threads_per_rank = ThreadsPerRank(options_);
  team.accumulation = options_.accumulation;
  team.seed = options_.seed;
  team.overlap = options_.overlap;
  team.layout = &layout_;
  for (int rank = 0; rank < options_.ranks; ++rank) team.communicators.push_back(&group_->communicator(rank));
  for (const auto& [name, placement] : variant.placements.states) {
    team.state_bytes = std::max(team.state_bytes, (placement.offset + placement.bytes + 255) / 256 * 256);
  }
  ASSIGN_OR_RETURN(team_, RankTeam::Create(device_, team));
  states_ = std::make_unique<CanonicalStates>(variant.built.program, variant.placements, *team_);
  return OkStatus();
}

StatusOr<ExecutionPlan> LocalSession::Plan(const Variant& variant, const Graph& graph) const {
  ASSIGN_OR_RETURN(const std::vector<size_t> workspace, WorkspaceBytes(graph, team_->Resources(0, variant.constants)));
  ScheduleOptions schedule;
  schedule.overlap = options_.overlap;
  schedule.persistent = &variant.placements;
  schedule.workspace_bytes = [&](const Node&, int index) { return workspace[static_cast<size_t>(index)]; };
  schedule.memory_limit = static_cast<size_t>(options_.memory_limit);
  schedule.buckets_in_flight = options_.zero == 2 ? 2 : 0;
  ASSIGN_OR_RETURN(ExecutionPlan plan, Schedule(graph, schedule));
  PlanVerifierOptions verify;
  verify.memory_limit = schedule.memory_limit;
  verify.workspace_bytes = schedule.workspace_bytes;
  RETURN_IF_ERROR(VerifyPlan(graph, plan, verify));
  return plan;
}

StatusOr<LocalSession::PlannedGraph*> LocalSession::Planned(Variant& variant, const std::string& name) {
  const auto found = variant.graphs.find(name);
  if (found != variant.graphs.end()) return &found->second;
  const Graph* graph = variant.built.program.FindGraph(name);
  CHECK_WITH(graph != nullptr, "the program has no graph " + name);
  PlannedGraph planned;
  planned.graph = graph;
  ASSIGN_OR_RETURN(planned.plan, Plan(variant, *graph));
  // What one plan leaves behind must be what any other may find.
  std::vector<SessionPlan> together{{graph, &planned.plan}};
  for (const auto& [other, entry] : variant.graphs) together.push_back({entry.graph, &entry.plan});
  RETURN_IF_ERROR(VerifySession(together));
  ASSIGN_OR_RETURN(planned.index, team_->AddPlan(*graph, planned.plan, variant.constants));
  return &variant.graphs.emplace(name, std::move(planned)).first->second;
}

Status LocalSession::LoadInitialStates(const Program& program) {
  for (const std::string& name : states_->names()) {
    const auto initial = program.initial.find(name);
    if (initial != program.initial.end()) RETURN_IF_ERROR(states_->Write(name, initial->second));
  }
  return OkStatus();
}

LocalSession::Slice LocalSession::RankSlice(int64_t samples, int rank) const {
  const int64_t base = samples / options_.ranks;
  const int64_t more = samples % options_.ranks;
  return {base * rank + std::min<int64_t>(rank, more), base + (rank < more ? 1 : 0)};
}

LocalSession::Slice LocalSession::MicroSlice(const Slice& rank_slice, int micro_batch) const {
  const int64_t base = rank_slice.count / options_.accumulation;
  const int64_t more = rank_slice.count % options_.accumulation;
  return {rank_slice.begin + base * micro_batch + std::min<int64_t>(micro_batch, more),
          base + (micro_batch < more ? 1 : 0)};
}

std::string LocalSession::GraphName(int micro_batch) const {
  if (options_.accumulation == 1) return "step";
  if (micro_batch == 0) return "first";
  return micro_batch + 1 == options_.accumulation ? "last" : "middle";
}

StatusOr<std::vector<const std::byte*>> LocalSession::FeedPointers(const Graph& graph, const Feeds& feeds,
                                                                   const Slice& slice) const {
  std::vector<const std::byte*> pointers;
  for (const Value* input : graph.inputs()) {
    const auto feed = feeds.find(input->name());
    if (feed == feeds.end() || feed->second == nullptr) {
      return UsageError("input '" + input->name() + "' (" + ToString(input->type()) + ") is not fed");
    }
    const auto spec = options_.feeds.find(input->name());
    const bool per_sample = spec == options_.feeds.end() || spec->second.per_sample;
    const size_t sample_bytes =
        slice.count == 0 ? 0 : input->type().bytes() / static_cast<size_t>(std::max<int64_t>(slice.count, 1));
    const size_t offset = per_sample ? sample_bytes * static_cast<size_t>(slice.begin) : 0;
    pointers.push_back(static_cast<const std::byte*>(feed->second) + offset);
  }
  return pointers;
}

Status LocalSession::Submit(PlannedGraph& planned, int rank, int micro_batch, const Feeds& feeds, const Slice& slice,
                            Fetched& fetched) {
  const Graph& graph = *planned.graph;
  ASSIGN_OR_RETURN(const std::vector<const std::byte*> inputs, FeedPointers(graph, feeds, slice));
  const bool fits = fetched.tensors.size() == graph.outputs().size() &&
                    std::equal(fetched.tensors.begin(), fetched.tensors.end(), graph.outputs().begin(),
                               [](const Tensor& slot, const Value* output) { return slot.type() == output->type(); });
  if (!fits) {
    fetched = {};
    for (const Value* output : graph.outputs()) fetched.tensors.emplace_back(output->type());
    for (Tensor& tensor : fetched.tensors) fetched.pointers.push_back(tensor.data());
  }
  team_->executor(planned.index, rank).Submit({micro_batch}, inputs, fetched.pointers);
  return OkStatus();
}

namespace {

// The fetched tensor of an output; null when the graph has none of the name.
const Tensor* FindFetched(const Graph& graph, const std::vector<Tensor>& tensors, std::string_view name) {
  for (size_t i = 0; i < graph.outputs().size() && i < tensors.size(); ++i) {
    if (graph.outputs()[i]->name() == name) return &tensors[i];
  }
  return nullptr;
}

}  // namespace

Status LocalSession::CheckFaults(const Graph& graph, const Fetched& fetched, int rank) const {
  const Tensor* status = FindFetched(graph, fetched.tensors, "status");
  if (status == nullptr || status->IntAt(0) == 0) return OkStatus();
  const Status fault = DescribeFault(static_cast<uint64_t>(status->IntAt(0)), graph);
  return options_.ranks == 1 ? fault : fault.Prepend("[rank " + std::to_string(rank) + "]");
}

StatusOr<StepResult> LocalSession::Step(const Feeds& feeds, int64_t samples) {
  if (options_.evaluation_only) return UsageError("the session was made for evaluation only");
  if (samples < 1 || samples > options_.global_batch()) {
    return UsageError("a step takes 1 to " + std::to_string(options_.global_batch()) + " samples, found " +
                      std::to_string(samples));
  }
  // Plans first, so that an error leaves no rank waiting for another.
  std::vector<std::vector<PlannedGraph*>> planned(static_cast<size_t>(options_.accumulation));
  for (int micro = 0; micro < options_.accumulation; ++micro) {
    for (int rank = 0; rank < options_.ranks; ++rank) {
      const Slice slice = MicroSlice(RankSlice(samples, rank), micro);
      ASSIGN_OR_RETURN(Variant* variant, VariantFor(slice.count == 0 ? options_.batch_size : slice.count));
      const std::string name = (slice.count == 0 ? "zero_" : "") + GraphName(micro);
      ASSIGN_OR_RETURN(PlannedGraph* graph, Planned(*variant, name));
      RETURN_IF_ERROR(FeedPointers(*graph->graph, feeds, slice).status());
      planned[static_cast<size_t>(micro)].push_back(graph);
    }
  }
  for (int micro = 0; micro < options_.accumulation; ++micro) {
    for (int rank = 0; rank < options_.ranks; ++rank) {
      RETURN_IF_ERROR(Submit(*planned[static_cast<size_t>(micro)][static_cast<size_t>(rank)], rank, micro, feeds,
                             MicroSlice(RankSlice(samples, rank), micro),
                             fetched_[static_cast<size_t>(micro)][static_cast<size_t>(rank)]));
    }
  }
  replicas_stale_ = true;
  RETURN_IF_ERROR(team_->Synchronize());
  for (size_t micro = 0; micro < planned.size(); ++micro) {
    for (size_t rank = 0; rank < planned[micro].size(); ++rank) {
      RETURN_IF_ERROR(CheckFaults(*planned[micro][rank]->graph, fetched_[micro][rank], static_cast<int>(rank)));
    }
  }
  const Graph& last = *planned.back()[0]->graph;
  const std::vector<Tensor>& tensors = fetched_.back()[0].tensors;
  StepResult result;
  result.step = step_;
  result.loss = Scalar(*FindFetched(last, tensors, "loss"));
  result.grad_norm = Scalar(*FindFetched(last, tensors, "grad_norm"));
  result.learning_rate = Scalar(*FindFetched(last, tensors, "learning_rate"));
  result.applied = FindFetched(last, tensors, "applied")->IntAt(0) != 0;
  if (result.applied) ++step_;
  return result;
}

Status LocalSession::Gather() {
  if (!replicas_stale_) return OkStatus();
  Variant& full = *variants_.at(options_.batch_size);
  if (full.built.program.FindGraph("gather") != nullptr) {
    ASSIGN_OR_RETURN(PlannedGraph* gather, Planned(full, "gather"));
    std::vector<Fetched> nothing(static_cast<size_t>(options_.ranks));
    for (int rank = 0; rank < options_.ranks; ++rank) {
      RETURN_IF_ERROR(Submit(*gather, rank, 0, {}, {}, nothing[static_cast<size_t>(rank)]));
    }
    RETURN_IF_ERROR(team_->Synchronize());
  }
  RETURN_IF_ERROR(ShareBuffers());
  replicas_stale_ = false;
  return OkStatus();
}

Status LocalSession::ShareBuffers() {
  if (options_.ranks == 1) return OkStatus();
  for (const std::string& name : states_->names()) {
    if (!name.starts_with("buffer/")) continue;
    ASSIGN_OR_RETURN(const Tensor of_rank_0, states_->Read(name));
    RETURN_IF_ERROR(states_->Write(name, of_rank_0));
  }
  return OkStatus();
}

StatusOr<EvalResult> LocalSession::Evaluate(const Feeds& feeds, int64_t samples) {
  const int64_t most = options_.batch_size * options_.ranks;
  if (samples < 1 || samples > most) {
    return UsageError("an evaluation takes 1 to " + std::to_string(most) + " samples, found " + std::to_string(samples));
  }
  RETURN_IF_ERROR(Gather());
  std::vector<PlannedGraph*> planned;
  for (int rank = 0; rank < options_.ranks; ++rank) {
    const Slice slice = RankSlice(samples, rank);
    if (slice.count == 0) break;
    ASSIGN_OR_RETURN(Variant* variant, VariantFor(slice.count));
    ASSIGN_OR_RETURN(PlannedGraph* eval, Planned(*variant, "eval"));
    planned.push_back(eval);
  }
  std::vector<Fetched> fetched(planned.size());
  for (size_t rank = 0; rank < planned.size(); ++rank) {
    RETURN_IF_ERROR(Submit(*planned[rank], static_cast<int>(rank), 0, feeds, RankSlice(samples, static_cast<int>(rank)),
                           fetched[rank]));
  }
  RETURN_IF_ERROR(team_->Synchronize());
  EvalResult result;
  for (size_t rank = 0; rank < planned.size(); ++rank) {
    const Graph& graph = *planned[rank]->graph;
    RETURN_IF_ERROR(CheckFaults(graph, fetched[rank], static_cast<int>(rank)));
    result.loss_sum += Scalar(*FindFetched(graph, fetched[rank].tensors, "loss_sum"));
    result.weight += Scalar(*FindFetched(graph, fetched[rank].tensors, "loss_weight"));
    const Tensor* counted = FindFetched(graph, fetched[rank].tensors, "counted");
    if (counted == nullptr) continue;
    result.counted += counted->IntAt(0);
    result.correct += FindFetched(graph, fetched[rank].tensors, "correct")->IntAt(0);
  }
  result.samples = samples;
  return result;
}

Status LocalSession::WriteState(std::string_view canonical_name, const Tensor& tensor) {
  RETURN_IF_ERROR(states_->Write(canonical_name, tensor));
  if (canonical_name == "counter/step") step_ = tensor.IntAt(0);
  replicas_stale_ = true;
  return OkStatus();
}

StatusOr<std::string> LocalSession::CanonicalOf(std::string_view initializer) const {
  for (const char* role : {"parameter", "frozen", "buffer"}) {
    std::string name = std::string(role) + "/" + std::string(initializer);
    if (states_->Find(name) != nullptr) return name;
  }
  return UsageError("'" + std::string(initializer) + "' is no weight or buffer of this run");
}

StatusOr<Tensor> LocalSession::ReadTensor(std::string_view initializer) {
  ASSIGN_OR_RETURN(const std::string name, CanonicalOf(initializer));
  return states_->Read(name);
}

Status LocalSession::WriteTensor(std::string_view initializer, const Tensor& tensor) {
  ASSIGN_OR_RETURN(const std::string name, CanonicalOf(initializer));
  return WriteState(name, tensor);
}

int64_t LocalSession::planned_bytes() const {
  size_t persistent = 0;
  for (const auto& [local_batch, variant] : variants_) persistent = std::max(persistent, variant->placements.bytes);
  return static_cast<int64_t>(persistent + team_->transient_bytes());
}

StatusOr<std::string> LocalSession::PlanText(std::string_view graph) const {
  const Variant& full = *variants_.at(options_.batch_size);
  const auto found = full.graphs.find(graph);
  if (found == full.graphs.end()) return UsageError("no plan of a graph '" + std::string(graph) + "'");
  return ToString(found->second.plan, *found->second.graph);
}

}  // namespace onnxtrain
