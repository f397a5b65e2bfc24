// SPDX-License-Identifier: Apache-2.0
// Rank 0's side of the rendezvous. One thread; connections are served side by side, so that a silent or hostile one
// keeps nobody waiting.
#ifndef ONNXTRAIN_CUDA_OPS_RENDEZVOUS_SERVER_H_
#define ONNXTRAIN_CUDA_OPS_RENDEZVOUS_SERVER_H_

#include <list>
#include <optional>
#include <string>
#include <vector>

#include "cuda_ops/rendezvous_message.h"
#include "cuda_ops/rendezvous_socket.h"

namespace onnxtrain {

class RendezvousServer {
 public:
  RendezvousServer(Socket listener, RendezvousHello self) : listener_(std::move(listener)), self_(std::move(self)) {}

  // Blocks until every rank is connected. After an error the connected ranks have been told of it.
  Status WaitForAll(Deadline deadline);
  // To every rank: {"payload", bytes} or {"error", text}.
  Status SendToAll(const std::vector<std::string>& fields);
  std::vector<std::string> TakeNotices() { return std::move(notices_); }

 private:
  struct Connection {
    Socket socket;
    std::string peer;
    std::string received;
    Deadline say_hello_by;
    std::optional<RendezvousHello> hello;  // once it is a rank
  };
  // What is to become of a connection after a look at it.
  enum class Verdict { kKeep, kClose };

  void AcceptAll();
  StatusOr<Verdict> LookAt(Connection& connection, bool readable);
  StatusOr<Verdict> Greet(Connection& connection, const std::vector<std::string>& fields);
  void Ignore(const Connection& connection, const std::string& why);
  size_t Ranks() const;
  std::string MissingRanks() const;

  const Socket listener_;
  const RendezvousHello self_;
  std::list<Connection> connections_;
  std::vector<std::string> notices_;
  std::string gone_;  // ranks that came and went again, for the message that they are missing
};

}  // namespace onnxtrain

#endif  // ONNXTRAIN_CUDA_OPS_RENDEZVOUS_SERVER_H_
