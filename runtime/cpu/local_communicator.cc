// SPDX-License-Identifier: Apache-2.0
#include "runtime/cpu/local_communicator.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <string>

#include "runtime/cpu/reduce_loops.h"

namespace onnxtrain {
namespace {

// A reduction this small is computed whole by every rank: one meeting less.
constexpr int64_t kSmallBytes = 4096;

enum class Collective : uint8_t { kAllReduce, kReduceScatter, kAllGather, kBroadcast };

const char* NameOf(Collective collective) {
  switch (collective) {
    case Collective::kAllReduce: return "AllReduce";
    case Collective::kReduceScatter: return "ReduceScatter";
    case Collective::kAllGather: return "AllGather";
    case Collective::kBroadcast: return "Broadcast";
  }
  return "";
}

// What a rank brings to a meeting.
struct Call {
  Collective collective = Collective::kAllReduce;
  int64_t count = 0;
  DType dtype = DType::kUndefined;
  int detail = 0;  // ReduceOp or root
  const std::byte* send = nullptr;
  std::byte* recv = nullptr;

  bool Matches(const Call& other) const {
    return collective == other.collective && count == other.count && dtype == other.dtype && detail == other.detail;
  }
  std::string ToString() const {
    return std::string(NameOf(collective)) + " of " + std::to_string(count) + " " +
           std::string(onnxtrain::NameOf(dtype));
  }
};

}  // namespace

struct LocalGroup::State {
  std::mutex mutex;
  std::condition_variable all_here;
  std::vector<Call> calls;
  std::vector<bool> arrived;
  int missing = 0;
  uint64_t generation = 0;
  std::chrono::milliseconds timeout{0};
  Status aborted;

  // Blocks until all ranks have arrived.
  Status Meet(int rank);
  Status Lagging();
};

Status LocalGroup::State::Lagging() {
  std::string names;
  for (size_t r = 0; r < arrived.size(); ++r) {
    if (!arrived[r]) names += (names.empty() ? "" : ", ") + std::to_string(r);
  }
  return CommunicationError("collective " + std::to_string(generation) + " timed out after " +
                            std::to_string(timeout.count()) + " ms: rank " + names +
                            " did not come; a slower rank needs a longer --timeout");
}

Status LocalGroup::State::Meet(int rank) {
  std::unique_lock<std::mutex> lock(mutex);
  if (!aborted.ok()) return aborted;
  const uint64_t mine = generation;
  arrived[static_cast<size_t>(rank)] = true;
  if (--missing == 0) {
    missing = static_cast<int>(calls.size());
    std::fill(arrived.begin(), arrived.end(), false);
    ++generation;
    all_here.notify_all();
    return OkStatus();
  }
  const bool met = all_here.wait_for(lock, timeout, [&] { return generation != mine || !aborted.ok(); });
  if (generation != mine) return OkStatus();
  if (!met && aborted.ok()) {
    aborted = Lagging();
    all_here.notify_all();
  }
  return aborted;
}

class LocalGroup::Member : public Communicator {
 public:
  Member(State& state, int rank) : state_(state), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(state_.calls.size()); }

  Status AllReduce(const void* send, void* recv, int64_t count, DType dtype, ReduceOp op, void*) override {
    RETURN_IF_ERROR(Enter({Collective::kAllReduce, count, dtype, static_cast<int>(op), Bytes(send), Bytes(recv)}));
    const int64_t element = static_cast<int64_t>(SizeOf(dtype));
    if (count * element <= kSmallBytes) return AllReduceSmall(count, dtype, op);
    const auto [begin, end] = Slice(count);
    Reduce(begin, end - begin, dtype, op, Mine().recv + begin * element);
    RETURN_IF_ERROR(state_.Meet(rank_));  // every slice is reduced
    for (int r = 0; r < size(); ++r) {
      if (r != rank_) CopySlice(r, count, element);
    }
    return state_.Meet(rank_);  // nobody reads our slice any more
  }

  Status ReduceScatter(const void* send, void* recv, int64_t recv_count, DType dtype, ReduceOp op, void*) override {
    RETURN_IF_ERROR(
        Enter({Collective::kReduceScatter, recv_count, dtype, static_cast<int>(op), Bytes(send), Bytes(recv)}));
    Reduce(recv_count * rank_, recv_count, dtype, op, Mine().recv);
    return state_.Meet(rank_);
  }

  Status AllGather(const void* send, void* recv, int64_t send_count, DType dtype, void*) override {
    RETURN_IF_ERROR(Enter({Collective::kAllGather, send_count, dtype, 0, Bytes(send), Bytes(recv)}));
    const size_t bytes = static_cast<size_t>(send_count) * SizeOf(dtype);
    for (int r = 0; r < size(); ++r) {
      std::byte* to = Mine().recv + bytes * static_cast<size_t>(r);
      const std::byte* from = state_.calls[static_cast<size_t>(r)].send;
      if (to != from && bytes != 0) std::memcpy(to, from, bytes);
    }
    return state_.Meet(rank_);
  }

  Status Broadcast(const void* send, void* recv, int64_t count, DType dtype, int root, void*) override {
    RETURN_IF_ERROR(Enter({Collective::kBroadcast, count, dtype, root, Bytes(send), Bytes(recv)}));
    const size_t bytes = static_cast<size_t>(count) * SizeOf(dtype);
    const std::byte* from = state_.calls[static_cast<size_t>(root)].send;
    if (Mine().recv != from && bytes != 0) std::memcpy(Mine().recv, from, bytes);
    return state_.Meet(rank_);
  }

  void Abort(const Status& reason) override {
    const std::lock_guard<std::mutex> lock(state_.mutex);
    if (state_.aborted.ok()) state_.aborted = reason;
    state_.all_here.notify_all();
  }

 private:
  static const std::byte* Bytes(const void* pointer) { return static_cast<const std::byte*>(pointer); }
  static std::byte* Bytes(void* pointer) { return static_cast<std::byte*>(pointer); }
  const Call& Mine() const { return state_.calls[static_cast<size_t>(rank_)]; }

  // Publishes the call, meets the others and compares: after it every rank may read every other rank's Call.
  Status Enter(const Call& call) {
    {
      const std::lock_guard<std::mutex> lock(state_.mutex);
      state_.calls[static_cast<size_t>(rank_)] = call;
    }
    RETURN_IF_ERROR(state_.Meet(rank_));
    for (size_t r = 0; r < state_.calls.size(); ++r) {
      if (state_.calls[r].Matches(call)) continue;
      Abort(CommunicationError("ranks issue different collectives: rank " + std::to_string(r) + " " +
                               state_.calls[r].ToString() + ", rank " + std::to_string(rank_) + " " +
                               call.ToString()));
      return state_.Meet(rank_);
    }
    return OkStatus();
  }

  // Elements [begin, begin + count) of all ranks' send, combined in rank order, to `out`.
  void Reduce(int64_t begin, int64_t count, DType dtype, ReduceOp op, std::byte* out) {
    const int64_t element = static_cast<int64_t>(SizeOf(dtype));
    ReduceInRankOrder([&](int r) { return state_.calls[static_cast<size_t>(r)].send + begin * element; }, size(), count,
                      dtype, op, out);
  }

  Status AllReduceSmall(int64_t count, DType dtype, ReduceOp op) {
    alignas(64) std::byte sum[kSmallBytes];
    Reduce(0, count, dtype, op, sum);
    RETURN_IF_ERROR(state_.Meet(rank_));  // all have read; in place may overwrite now
    if (count != 0) std::memcpy(Mine().recv, sum, static_cast<size_t>(count) * SizeOf(dtype));
    return OkStatus();
  }

  std::pair<int64_t, int64_t> SliceOf(int rank, int64_t count) const {
    return {count * rank / size(), count * (rank + 1) / size()};
  }
  std::pair<int64_t, int64_t> Slice(int64_t count) const { return SliceOf(rank_, count); }

  void CopySlice(int rank, int64_t count, int64_t element) {
    const auto [begin, end] = SliceOf(rank, count);
    std::memcpy(Mine().recv + begin * element, state_.calls[static_cast<size_t>(rank)].recv + begin * element,
                static_cast<size_t>((end - begin) * element));
  }

  State& state_;
  const int rank_;
};

LocalGroup::LocalGroup(int ranks, std::chrono::milliseconds timeout) : state_(std::make_unique<State>()) {
  CHECK(ranks >= 1);
  state_->calls.resize(static_cast<size_t>(ranks));
  state_->arrived.resize(static_cast<size_t>(ranks));
  state_->missing = ranks;
  state_->timeout = timeout;
  for (int r = 0; r < ranks; ++r) members_.push_back(std::make_unique<Member>(*state_, r));
}

LocalGroup::~LocalGroup() = default;

int LocalGroup::size() const { return static_cast<int>(members_.size()); }

Communicator& LocalGroup::communicator(int rank) { return *members_[static_cast<size_t>(rank)]; }

}  // namespace onnxtrain
