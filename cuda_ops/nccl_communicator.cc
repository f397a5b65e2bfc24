// SPDX-License-Identifier: Apache-2.0
#include "cuda_ops/nccl_communicator.h"

#include <algorithm>
#include <cstring>
#include <thread>

#include "cuda_ops/collective_watchdog.h"
#include "cuda_ops/nccl_rank.h"

namespace onnxtrain {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

Status CheckOptions(const NcclGroupOptions& options) {
  const int local = static_cast<int>(options.devices.size());
  if (local < 1) return UsageError("an NCCL group needs at least one rank in this process");
  if (options.first_rank < 0 || options.first_rank + local > options.world_size) {
    return UsageError("ranks " + std::to_string(options.first_rank) + " to " +
                      std::to_string(options.first_rank + local - 1) + " do not fit a world of " +
                      std::to_string(options.world_size));
  }
  if (options.id.empty() ? local < options.world_size : options.id.size() != NCCL_UNIQUE_ID_BYTES) {
    return UsageError("a group of several processes needs NCCL's id of " + std::to_string(NCCL_UNIQUE_ID_BYTES) +
                      " bytes, this one has " + std::to_string(options.id.size()));
  }
  for (int r = 1; r < local; ++r) {
    const auto same = std::find(options.devices.begin(), options.devices.begin() + r, options.devices[r]);
    if (same == options.devices.begin() + r) continue;
    return UsageError("ranks " + std::to_string(options.first_rank + (same - options.devices.begin())) + " and " +
                      std::to_string(options.first_rank + r) + " share GPU " + std::to_string(*same) +
                      ": NCCL needs one GPU for each rank; use fewer ranks");
  }
  return OkStatus();
}

}  // namespace

class NcclGroup::State {
 public:
  explicit State(const NcclGroupOptions& options)
      : options_(options), order_(options.first_rank, static_cast<int>(options.devices.size())) {}
  ~State();

  Status CreateRanks();
  Status Join();
  void StartWatchdog();
  void Abort(const Status& reason);
  bool WaitForAborts(milliseconds limit);
  NcclRank& rank(int local_rank) { return *ranks_[static_cast<size_t>(local_rank)]; }
  int size() const { return static_cast<int>(ranks_.size()); }
  Status status() const { return failure_.reason(); }

 private:
  Status BeginJoin(const ncclUniqueId& id);
  Status Leave();
  // Until NCCL reports success for every rank.
  Status WaitForAll(const char* what);

  const NcclGroupOptions options_;
  CollectiveOrder order_;
  FirstFailure failure_;
  std::vector<std::unique_ptr<NcclRank>> ranks_;
  bool joined_ = false;
  std::unique_ptr<CollectiveWatchdog> watchdog_;
};

Status NcclGroup::State::CreateRanks() {
  const NcclRank::Group shared = {options_.world_size, options_.timeout, &order_, &failure_,
                                  [this](const Status& reason) { Abort(reason); }};
  for (int r = 0; r < static_cast<int>(options_.devices.size()); ++r) {
    ASSIGN_OR_RETURN(std::unique_ptr<NcclRank> rank,
                     NcclRank::Create(shared, r, options_.first_rank + r, options_.devices[static_cast<size_t>(r)]));
    ranks_.push_back(std::move(rank));
  }
  return OkStatus();
}

// One thread joins for all ranks of the process, so the calls form a group.
Status NcclGroup::State::BeginJoin(const ncclUniqueId& id) {
  if (ncclResult_t result = ncclGroupStart(); result != ncclSuccess) {
    return NcclError(result, "ncclGroupStart", options_.first_rank, nullptr);
  }
  Status begun;
  for (const auto& rank : ranks_) {
    if (begun.ok()) begun = rank->BeginJoin(id);
  }
  const ncclResult_t result = ncclGroupEnd();
  if (!begun.ok() || result == ncclSuccess || result == ncclInProgress) return begun;
  return NcclError(result, "ncclGroupEnd", options_.first_rank, nullptr);
}

Status NcclGroup::State::WaitForAll(const char* what) {
  const steady_clock::time_point deadline = steady_clock::now() + options_.create_timeout;
  for (const auto& rank : ranks_) {
    for (bool ready = false;;) {
      RETURN_IF_ERROR(rank->Look(what, &ready));
      if (ready) break;
      if (steady_clock::now() > deadline) {
        return CommunicationError("rank " + std::to_string(rank->rank()) + " of " +
                                  std::to_string(options_.world_size) + ": " + what + " did not end within " +
                                  std::to_string(options_.create_timeout.count()) + " ms: another rank did not come");
      }
      std::this_thread::sleep_for(milliseconds(1));
    }
  }
  return OkStatus();
}

Status NcclGroup::State::Join() {
  ncclUniqueId id;
  if (options_.id.empty()) {
    const ncclResult_t result = ncclGetUniqueId(&id);
    if (result != ncclSuccess) return NcclError(result, "ncclGetUniqueId", options_.first_rank, nullptr);
  } else {
    std::memcpy(&id, options_.id.data(), sizeof(id));
  }
  RETURN_IF_ERROR(BeginJoin(id));
  RETURN_IF_ERROR(WaitForAll("joining the NCCL communicator"));
  joined_ = true;
  return OkStatus();
}

void NcclGroup::State::StartWatchdog() {
  if (options_.world_size == 1) return;
  WatchdogOptions watch;
  watch.first_rank = options_.first_rank;
  watch.world_size = options_.world_size;
  for (const auto& rank : ranks_) watch.pages.push_back(rank->progress());
  watch.timeout = options_.timeout;
  watch.look = [this] {
    Status first = failure_.reason();
    for (const auto& rank : ranks_) {
      bool ready = false;
      if (first.ok()) first = rank->Look("a collective", &ready);
    }
    return first;
  };
  watch.on_failure = [this](const Status& reason) {
    Abort(reason);
    if (!WaitForAborts(options_.abort_timeout) && options_.on_stuck) options_.on_stuck(failure_.reason());
  };
  watchdog_ = std::make_unique<CollectiveWatchdog>(std::move(watch));
}

void NcclGroup::State::Abort(const Status& reason) {
  if (!failure_.Keep(reason)) return;
  if (joined_ && options_.on_failure) options_.on_failure(reason);
  for (const auto& rank : ranks_) rank->BeginAbort();
}

// They go on side by side, so one limit serves all.
bool NcclGroup::State::WaitForAborts(milliseconds limit) {
  const steady_clock::time_point deadline = steady_clock::now() + limit;
  bool ended = true;
  for (const auto& rank : ranks_) {
    ended &= rank->WaitForAbort(std::chrono::ceil<milliseconds>(deadline - steady_clock::now()));
  }
  return ended;
}

// NCCL's order: all finalize, all are quiet, all are destroyed.
Status NcclGroup::State::Leave() {
  for (const auto& rank : ranks_) RETURN_IF_ERROR(rank->Drain());
  for (const auto& rank : ranks_) RETURN_IF_ERROR(rank->BeginLeave());
  RETURN_IF_ERROR(WaitForAll("leaving the NCCL communicator"));
  for (const auto& rank : ranks_) RETURN_IF_ERROR(rank->Destroy());
  return OkStatus();
}

NcclGroup::State::~State() {
  watchdog_.reset();
  if (!failure_.failed()) {
    Status left = joined_ ? Leave() : CommunicationError("the group was not joined");
    if (!left.ok()) Abort(left);
  }
  if (failure_.failed()) (void)WaitForAborts(options_.abort_timeout);
}

StatusOr<std::string> NcclGroup::NewId() {
  ncclUniqueId id;
  const ncclResult_t result = ncclGetUniqueId(&id);
  if (result != ncclSuccess) return NcclError(result, "ncclGetUniqueId", 0, nullptr);
  return std::string(id.internal, sizeof(id.internal));
}

std::string NcclGroup::LibraryVersion() {
  int code = 0;
  if (ncclGetVersion(&code) != ncclSuccess) return "unknown";
  return std::to_string(code / 10000) + "." + std::to_string(code / 100 % 100) + "." + std::to_string(code % 100);
}

StatusOr<std::unique_ptr<NcclGroup>> NcclGroup::Create(const NcclGroupOptions& options) {
  NcclGroupOptions complete = options;
  if (complete.world_size == 0) complete.world_size = static_cast<int>(complete.devices.size());
  RETURN_IF_ERROR(CheckOptions(complete));
  auto state = std::make_unique<State>(complete);
  RETURN_IF_ERROR(state->CreateRanks());
  RETURN_IF_ERROR(state->Join());
  state->StartWatchdog();
  return std::unique_ptr<NcclGroup>(new NcclGroup(std::move(state)));
}

NcclGroup::NcclGroup(std::unique_ptr<State> state) : state_(std::move(state)) {}
NcclGroup::~NcclGroup() = default;
int NcclGroup::size() const { return state_->size(); }
Communicator& NcclGroup::communicator(int local_rank) { return state_->rank(local_rank); }
Status NcclGroup::status() const { return state_->status(); }
std::string NcclGroup::History(int local_rank) const {
  const ProgressPage* page = state_->rank(local_rank).progress();
  return page == nullptr ? "" : DescribeHistory(*page);
}

}  // namespace onnxtrain
