// SPDX-License-Identifier: Apache-2.0
#include "cuda_ops/rendezvous.h"

#include <algorithm>
#include <optional>
#include <thread>

#include "cuda_ops/rendezvous_message.h"
#include "cuda_ops/rendezvous_server.h"
#include "cuda_ops/rendezvous_socket.h"

namespace onnxtrain {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kRetry{50};
// How much longer a rank that is connected waits: rank 0 may have begun later, and knows who is missing.
constexpr milliseconds kGrace{5000};
constexpr size_t kPayloadLimit = 4096;

Status CheckOptions(const RendezvousOptions& options, int port) {
  if (options.world_size < 1 || options.rank < 0 || options.rank >= options.world_size || options.local_rank < 0) {
    return UsageError("rank " + std::to_string(options.rank) + " (local " + std::to_string(options.local_rank) +
                      ") does not fit a world of " + std::to_string(options.world_size));
  }
  if (options.world_size > 1 && (port < 1 || port > 65535)) {
    return UsageError("the rendezvous has no port " + std::to_string(port) + "; use 1 to 65535");
  }
  if (options.world_size > 1 && options.rank > 0 && options.master_address.empty()) {
    return UsageError("rank " + std::to_string(options.rank) + " does not know where rank 0 runs (MASTER_ADDR)");
  }
  return OkStatus();
}

RendezvousHello HelloFrom(const RendezvousOptions& options) {
  return {options.rank, options.world_size, options.local_rank, HostName(), options.identity};
}

StatusOr<std::string> PayloadFrom(const std::function<StatusOr<std::string>()>& make_payload) {
  ASSIGN_OR_RETURN(std::string payload, make_payload());
  CHECK(payload.size() <= kPayloadLimit);
  return payload;
}

StatusOr<Rendezvous> Serve(const RendezvousOptions& options, int port, Deadline deadline,
                           const std::function<StatusOr<std::string>()>& make_payload) {
  ASSIGN_OR_RETURN(Socket listener, ListenOn(port));
  RendezvousServer server(std::move(listener), HelloFrom(options));
  RETURN_IF_ERROR(server.WaitForAll(deadline));
  StatusOr<std::string> payload = PayloadFrom(make_payload);
  if (!payload.ok()) {
    (void)server.SendToAll({"error", "rank 0: " + payload.status().message()});
    return payload.status();
  }
  RETURN_IF_ERROR(server.SendToAll({"payload", *payload}));
  return Rendezvous{std::move(*payload), server.TakeNotices()};
}

// The server's answer on one connection; nothing when the connection ended before it was complete.
StatusOr<std::optional<Rendezvous>> AnswerOn(const Socket& connection, const std::string& hello,
                                             const std::string& where, Deadline deadline) {
  if (!connection.Send(hello, deadline).ok()) return std::optional<Rendezvous>();
  std::string received;
  for (bool open = true; open;) {
    if (!connection.WaitForInput(deadline + kGrace)) {
      return CommunicationError("rendezvous: " + where +
                                " took our hello and sent no answer in time: other ranks are " +
                                "missing, or another program has that port");
    }
    open = connection.Receive(received);
    StatusOr<std::optional<std::vector<std::string>>> fields = ParseFrame(received);
    if (!fields.ok() || (fields->has_value() && (*fields)->size() != 2)) {
      return UsageError("rendezvous: " + where +
                        " does not answer as onnx-train: another program has that port; choose " + "another");
    }
    if (!fields->has_value()) continue;
    const std::vector<std::string>& answer = **fields;
    if (answer[0] != "payload") return CommunicationError(answer[1]);
    return std::optional(Rendezvous{answer[1], {}});
  }
  return std::optional<Rendezvous>();
}

StatusOr<Rendezvous> Ask(const RendezvousOptions& options, int port, Deadline deadline) {
  const std::string where = options.master_address + ":" + std::to_string(port);
  const std::string hello = FrameOf(HelloFrom(options));
  std::string reason;
  while (steady_clock::now() < deadline) {
    StatusOr<Socket> connection = ConnectTo(options.master_address, port, deadline);
    if (connection.ok()) {
      ASSIGN_OR_RETURN(std::optional<Rendezvous> answer, AnswerOn(*connection, hello, where, deadline));
      if (answer.has_value()) return std::move(*answer);
      reason = "it closed the connection";
    } else {
      reason = connection.status().message();
    }
    std::this_thread::sleep_for(std::min<steady_clock::duration>(kRetry, deadline - steady_clock::now()));
  }
  return CommunicationError("rendezvous: rank " + std::to_string(options.rank) + " did not reach rank 0 at " + where +
                            " within " + std::to_string(options.timeout.count()) + " ms (" + reason +
                            "); is rank 0 running, and is that port open?");
}

}  // namespace

StatusOr<Rendezvous> Meet(const RendezvousOptions& options,
                          const std::function<StatusOr<std::string>()>& make_payload) {
  const int port = options.port != 0 ? options.port : options.master_port + 1;
  RETURN_IF_ERROR(CheckOptions(options, port));
  if (options.world_size == 1) {
    ASSIGN_OR_RETURN(std::string payload, PayloadFrom(make_payload));
    return Rendezvous{std::move(payload), {}};
  }
  const Deadline deadline = steady_clock::now() + options.timeout;
  return options.rank == 0 ? Serve(options, port, deadline, make_payload) : Ask(options, port, deadline);
}

}  // namespace onnxtrain
