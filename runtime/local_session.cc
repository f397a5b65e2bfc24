// SPDX-License-Identifier: Apache-2.0
#include "runtime/local_session.h"

#include <malloc.h>

#include <algorithm>
#include <thread>

#include "graph/cost.h"
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

// To the system. The allocator would keep what the weights' first copies took, since later blocks of their size may
// come; none do.
void ReturnFreeMemory() {
#if defined(__GLIBC__)
  malloc_trim(0);
#endif
}

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
  if (options_.untie) Untie();
  BackendOptions backend;
  backend.ranks = options_.ranks;
  backend.timeout = std::chrono::seconds(options_.timeout_seconds);
  backend.tf32 = options_.tf32;
  backend.cache_folder = options_.cache_folder;
  if (options_.fallback_to_cpu) backend.fallback = CpuKernels();
  ASSIGN_OR_RETURN(backend_, OpenBackend(options_.device, backend));
  if (options_.cuda_graphs && !backend_->device(0).can_record()) {
    return UsageError("--cuda-graphs: --device " + options_.device + " has none");
  }
  if (backend_->wants_thread_per_rank() && options_.ranks > 1) threads_ = std::make_unique<RankThreads>(options_.ranks);
  ASSIGN_OR_RETURN(Variant * full, VariantFor(options_.batch_size));
  tensors_ = full->built.tensors;
  notes_.insert(notes_.end(), full->built.notes.begin(), full->built.notes.end());
  decomposed_ = full->built.decomposed;
  RETURN_IF_ERROR(LoadInitialStates(full->built.program));
  for (int micro = 0; micro < options_.accumulation && !options_.evaluation_only; ++micro) {
    RETURN_IF_ERROR(Planned(*full, GraphName(micro)).status());
  }
  const std::vector<std::string> of_backend = backend_->notes();
  notes_.insert(notes_.end(), of_backend.begin(), of_backend.end());
  return OkStatus();
}

void LocalSession::Untie() {
  const std::map<std::string, std::string> ties = model_.tied_names();
  for (const std::string& name : model_.Untie()) {
    notes_.push_back("--untie changes the model: '" + name + "' is a tensor of its own, no longer that of '" +
                     ties.at(name) + "'");
  }
  if (ties.empty()) notes_.push_back("--untie changes nothing: no tensor of the model is tied by an Identity");
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
  if (team_ == nullptr) {
    RETURN_IF_ERROR(AddTeam(*variant));
  } else {
    variant->built.program.initial.clear();
  }
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
  team.record = options_.cuda_graphs;
  team.layout = &layout_;
  for (int rank = 0; rank < options_.ranks; ++rank) {
    team.devices.push_back(&backend_->device(rank));
    team.communicators.push_back(&backend_->communicator(rank));
  }
  for (const auto& [name, placement] : variant.placements.states) {
    team.state_bytes = std::max(team.state_bytes, (placement.offset + placement.bytes + 255) / 256 * 256);
  }
  ASSIGN_OR_RETURN(team_, RankTeam::Create(team));
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
  CostModel cost = options_.machine;
  cost.world_size = options_.ranks;
  schedule.cost_us = [cost](const Node& node) { return NodeMicroseconds(node, cost); };
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

Status LocalSession::LoadInitialStates(Program& program) {
  for (const std::string& name : states_->names()) {
    const auto initial = program.initial.find(name);
    if (initial != program.initial.end()) RETURN_IF_ERROR(states_->Write(name, initial->second));
  }
  program.initial.clear();  // the ranks hold them now
  ReturnFreeMemory();       // before the transient region is touched: the two are never in memory together
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

StatusOr<LocalSession::Submission> LocalSession::Prepare(Variant& variant, const std::string& name, int rank,
                                                         int micro_batch, const Slice& slice) {
  Submission made;
  ASSIGN_OR_RETURN(made.planned, Planned(variant, name));
  made.rank = rank;
  made.micro_batch = micro_batch;
  made.slice = slice;
  const Graph& graph = *made.planned->graph;
  for (const Value* input : graph.inputs()) {
    const auto spec = options_.feeds.find(input->name());
    const bool per_sample = spec == options_.feeds.end() || spec->second.per_sample;
    const size_t sample_bytes = slice.count == 0 ? 0 : input->type().bytes() / static_cast<size_t>(slice.count);
    made.offsets.push_back(per_sample ? sample_bytes * static_cast<size_t>(slice.begin) : 0);
  }
  made.feeds.resize(graph.inputs().size());
  for (const Value* output : graph.outputs()) made.fetched.emplace_back(output->type());
  for (Tensor& tensor : made.fetched) made.fetches.push_back(tensor.data());
  return made;
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

}  // namespace onnxtrain
