// SPDX-License-Identifier: Apache-2.0
#include "cuda_ops/rendezvous_server.h"

#include <poll.h>

#include <algorithm>
#include <set>

namespace onnxtrain {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kHelloTime{10000};
constexpr milliseconds kSendTime{10000};
constexpr size_t kStrangers = 64;  // connections beside the ranks'
constexpr size_t kNotices = 20;
constexpr size_t kMissingNamed = 16;

}  // namespace

void RendezvousServer::Ignore(const Connection& connection, const std::string& why) {
  if (notices_.size() < kNotices) notices_.push_back("ignored a connection from " + connection.peer + ": " + why);
}

size_t RendezvousServer::Ranks() const {
  return static_cast<size_t>(std::count_if(connections_.begin(), connections_.end(),
                                           [](const Connection& one) { return one.hello.has_value(); }));
}

std::string RendezvousServer::MissingRanks() const {
  std::set<int> here = {0};
  for (const Connection& one : connections_) {
    if (one.hello.has_value()) here.insert(one.hello->rank);
  }
  std::string text;
  size_t named = 0;
  for (int rank = 0; rank < self_.world_size; ++rank) {
    if (here.count(rank) != 0) continue;
    if (++named > kMissingNamed) return text + ", ...";
    text += (text.empty() ? "rank " : ", rank ") + std::to_string(rank);
  }
  return text;
}

void RendezvousServer::AcceptAll() {
  while (true) {
    Connection made;
    StatusOr<Socket> accepted = Accept(listener_, &made.peer);
    if (!accepted.ok() || accepted->descriptor() < 0) return;
    if (connections_.size() - Ranks() >= kStrangers) {
      Ignore(made, "too many connections that say nothing");
      continue;
    }
    made.socket = std::move(*accepted);
    made.say_hello_by = steady_clock::now() + kHelloTime;
    connections_.push_back(std::move(made));
  }
}

StatusOr<RendezvousServer::Verdict> RendezvousServer::Greet(Connection& connection,
                                                            const std::vector<std::string>& fields) {
  StatusOr<RendezvousHello> hello = HelloOf(fields);
  if (!hello.ok()) {
    Ignore(connection, hello.status().message());
    return Verdict::kClose;
  }
  std::string conflict = Conflict(self_, *hello);
  for (const Connection& other : connections_) {
    if (conflict.empty() && other.hello.has_value()) conflict = Conflict(*other.hello, *hello);
  }
  connection.hello = std::move(*hello);  // so that it is told
  if (!conflict.empty()) return CommunicationError("rendezvous: " + conflict);
  return Verdict::kKeep;
}

StatusOr<RendezvousServer::Verdict> RendezvousServer::LookAt(Connection& connection, bool readable) {
  const bool open = !readable || connection.socket.Receive(connection.received);
  if (connection.hello.has_value()) {
    if (open) return Verdict::kKeep;
    const std::string rank = "rank " + std::to_string(connection.hello->rank);
    Ignore(connection, rank + " has gone again");
    gone_ += (gone_.empty() ? "; " : ", ") + rank;
    return Verdict::kClose;
  }
  StatusOr<std::optional<std::vector<std::string>>> fields = ParseFrame(connection.received);
  if (!fields.ok()) {
    Ignore(connection, fields.status().message());
    return Verdict::kClose;
  }
  if (fields->has_value()) return Greet(connection, **fields);
  if (open && steady_clock::now() < connection.say_hello_by) return Verdict::kKeep;
  Ignore(connection, open ? "it said no hello in time" : "it closed before it said hello");
  return Verdict::kClose;
}

Status RendezvousServer::WaitForAll(Deadline deadline) {
  while (Ranks() + 1 < static_cast<size_t>(self_.world_size)) {
    if (steady_clock::now() >= deadline) {
      Status late =
          CommunicationError("rendezvous: " + MissingRanks() + " of a world of " + std::to_string(self_.world_size) +
                             " did not come in time" + (gone_.empty() ? "" : gone_ + " had come and went again"));
      (void)SendToAll({"error", late.message()});
      return late;
    }
    std::vector<pollfd> waited = {{listener_.descriptor(), POLLIN, 0}};
    for (const Connection& one : connections_) waited.push_back({one.socket.descriptor(), POLLIN, 0});
    (void)poll(waited.data(), waited.size(), std::min(MillisecondsUntil(deadline), 1000));
    size_t index = 1;
    for (auto one = connections_.begin(); one != connections_.end();) {
      const StatusOr<Verdict> verdict = LookAt(*one, waited[index++].revents != 0);
      if (!verdict.ok()) {
        (void)SendToAll({"error", verdict.status().message()});
        return verdict.status();
      }
      one = *verdict == Verdict::kClose ? connections_.erase(one) : std::next(one);
    }
    if (waited[0].revents != 0) AcceptAll();
  }
  return OkStatus();
}

Status RendezvousServer::SendToAll(const std::vector<std::string>& fields) {
  const std::string frame = FrameOf(fields);
  Status first;
  for (const Connection& one : connections_) {
    if (!one.hello.has_value()) continue;
    const Status sent = one.socket.Send(frame, steady_clock::now() + kSendTime);
    if (!sent.ok() && first.ok()) first = sent.Prepend("rendezvous: rank " + std::to_string(one.hello->rank));
  }
  return first;
}

}  // namespace onnxtrain
