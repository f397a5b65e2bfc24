// SPDX-License-Identifier: Apache-2.0
#include "runtime/rank_team.h"

namespace onnxtrain {
namespace {

constexpr const char* kStreamNames[] = {"compute", "communication"};
// Commands that a stream may hold before there is a plan.
constexpr size_t kFirstQueueCapacity = 64;

}  // namespace

StatusOr<std::unique_ptr<RankTeam>> RankTeam::Create(const RankTeamOptions& options) {
  CHECK(static_cast<int>(options.communicators.size()) == options.ranks);
  CHECK(static_cast<int>(options.devices.size()) == options.ranks);
  std::unique_ptr<RankTeam> team(new RankTeam(options));
  for (int rank = 0; rank < options.ranks; ++rank) {
    ASSIGN_OR_RETURN(Rank made, team->CreateRank(rank));
    team->ranks_.push_back(std::move(made));
  }
  return team;
}

RankTeam::~RankTeam() { plans_.clear(); }

StatusOr<RankTeam::Rank> RankTeam::CreateRank(int rank) {
  Rank made;
  const int streams = options_.overlap ? 2 : 1;
  for (int i = 0; i < streams; ++i) {
    StreamOptions stream;
    stream.name = kStreamNames[i];
    stream.rank = rank;
    stream.threads = i == 0 ? options_.threads_per_rank : 1;
    stream.queue_capacity = kFirstQueueCapacity;
    stream.on_error = [this, rank](const Status& status) { Abort(rank, status); };
    ASSIGN_OR_RETURN(std::unique_ptr<Stream> created, device(rank).CreateStream(stream));
    made.streams.push_back(std::move(created));
  }
  ASSIGN_OR_RETURN(made.states, device(rank).Allocate(options_.state_bytes));
  ASSIGN_OR_RETURN(made.status_word, device(rank).Allocate(sizeof(uint64_t)));
  ASSIGN_OR_RETURN(made.transient, device(rank).Allocate(0));
  return made;
}

void RankTeam::Abort(int rank, const Status& status) {
  const Status reason = status.Prepend("rank " + std::to_string(rank));
  for (Communicator* communicator : options_.communicators) communicator->Abort(reason);
}

StatusOr<int> RankTeam::AddConstants(const PersistentPlacements& placements) {
  const size_t bytes = placements.bytes - std::min(placements.bytes, options_.state_bytes);
  std::map<Device*, std::unique_ptr<Buffer>> copies;
  for (Device* device : options_.devices) {
    if (copies.contains(device)) continue;
    ASSIGN_OR_RETURN(std::unique_ptr<Buffer> buffer, device->Allocate(bytes));
    for (const auto& [value, placement] : placements.constants) {
      CHECK(placement.offset >= options_.state_bytes);
      const Tensor& tensor = *value->constant();
      RETURN_IF_ERROR(device->CopyToDevice(buffer->data() + (placement.offset - options_.state_bytes), tensor.data(),
                                           tensor.bytes()));
    }
    copies[device] = std::move(buffer);
  }
  constants_.push_back(std::move(copies));
  return static_cast<int>(constants_.size()) - 1;
}

RankResources RankTeam::Resources(int rank, int constants) const {
  const Rank& mine = ranks_[static_cast<size_t>(rank)];
  RankResources resources;
  resources.device = &device(rank);
  for (const std::unique_ptr<Stream>& stream : mine.streams) resources.streams.push_back(stream.get());
  resources.states = mine.states->data();
  resources.state_bytes = options_.state_bytes;
  resources.constants = constants_[static_cast<size_t>(constants)].at(&device(rank))->data();
  resources.transient = mine.transient->data();
  resources.status_word = reinterpret_cast<uint64_t*>(mine.status_word->data());
  resources.communicator = options_.communicators[static_cast<size_t>(rank)];
  resources.layout = options_.layout;
  resources.rank = rank;
  resources.world_size = options_.ranks;
  resources.accumulation = options_.accumulation;
  resources.threads = options_.threads_per_rank;
  resources.seed = options_.seed;
  resources.record = options_.record;
  return resources;
}

StatusOr<int> RankTeam::AddPlan(const Graph& graph, const ExecutionPlan& plan, int constants) {
  RETURN_IF_ERROR(Synchronize());
  RETURN_IF_ERROR(GrowTransient(plan.transient_bytes));
  // All pending runs, stamped at both ends of every step: the host never waits for a queue, and one that submits for
  // several ranks must not.
  const size_t commands = static_cast<size_t>(Executor::kDepth) * (3 * plan.steps.size() + 1);
  for (const Rank& rank : ranks_) {
    for (const std::unique_ptr<Stream>& stream : rank.streams) stream->ReserveQueue(commands);
  }
  std::vector<std::unique_ptr<Executor>> executors;
  for (int rank = 0; rank < size(); ++rank) {
    ASSIGN_OR_RETURN(std::unique_ptr<Executor> executor, Executor::Create(graph, plan, Resources(rank, constants)));
    executors.push_back(std::move(executor));
  }
  plans_.push_back(std::move(executors));
  return static_cast<int>(plans_.size()) - 1;
}

Status RankTeam::GrowTransient(size_t bytes) {
  if (bytes <= transient_bytes_) return OkStatus();
  for (size_t rank = 0; rank < ranks_.size(); ++rank) {
    ASSIGN_OR_RETURN(std::unique_ptr<Buffer> larger, device(static_cast<int>(rank)).Allocate(bytes));
    for (std::vector<std::unique_ptr<Executor>>& executors : plans_) {
      RETURN_IF_ERROR(executors[rank]->Rebind(larger->data()));
    }
    ranks_[rank].transient = std::move(larger);
  }
  transient_bytes_ = bytes;
  return OkStatus();
}

Status RankTeam::Synchronize() {
  Status first;
  for (const Rank& rank : ranks_) {
    for (const std::unique_ptr<Stream>& stream : rank.streams) {
      const Status status = stream->Synchronize();
      // An aborted collective is the echo of another rank's error, which is the one to report.
      const bool echo = first.code() == StatusCode::kCommunication && status.code() != StatusCode::kCommunication;
      if (first.ok() || (echo && !status.ok())) first = status;
    }
  }
  return first;
}

Status RankTeam::ClearStatusWords() {
  constexpr uint64_t kClear = 0;
  for (int rank = 0; rank < size(); ++rank) {
    Buffer& word = *ranks_[static_cast<size_t>(rank)].status_word;
    RETURN_IF_ERROR(device(rank).CopyToDevice(word.data(), &kClear, sizeof(kClear)));
  }
  return OkStatus();
}

Status RankTeam::ReadState(int rank, const Placement& placement, void* host) const {
  CHECK(placement.region == Region::kPersistent && placement.offset + placement.bytes <= options_.state_bytes);
  return device(rank).CopyToHost(host, ranks_[static_cast<size_t>(rank)].states->data() + placement.offset,
                                 placement.bytes);
}

Status RankTeam::WriteState(int rank, const Placement& placement, const void* host) {
  CHECK(placement.region == Region::kPersistent && placement.offset + placement.bytes <= options_.state_bytes);
  return device(rank).CopyToDevice(ranks_[static_cast<size_t>(rank)].states->data() + placement.offset, host,
                                   placement.bytes);
}

}  // namespace onnxtrain
