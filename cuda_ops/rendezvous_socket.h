// SPDX-License-Identifier: Apache-2.0
// TCP sockets for the rendezvous: non-blocking, closed with the object, every wait with a deadline.
#ifndef ONNXTRAIN_CUDA_OPS_RENDEZVOUS_SOCKET_H_
#define ONNXTRAIN_CUDA_OPS_RENDEZVOUS_SOCKET_H_

#include <chrono>
#include <string>
#include <string_view>

#include "graph/status.h"

namespace onnxtrain {

using Deadline = std::chrono::steady_clock::time_point;

class Socket {
 public:
  Socket() = default;
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  ~Socket();
  Socket(Socket&& other) noexcept : descriptor_(other.Release()) {}
  Socket& operator=(Socket&& other) noexcept;

  int descriptor() const { return descriptor_; }
  // Sends all of it before the deadline.
  Status Send(std::string_view bytes, Deadline deadline) const;
  // Appends what has arrived, at most 4096 bytes. False: the other side has closed, or an error ended the connection.
  // True without new bytes: nothing has arrived.
  bool Receive(std::string& bytes) const;
  // Waits until there is something to receive (or an end to notice); false when the deadline came first.
  bool WaitForInput(Deadline deadline) const;

 private:
  int Release();
  int descriptor_ = -1;
};

// On every address of this machine. Usage when the port is taken.
StatusOr<Socket> ListenOn(int port);
// No socket with OK: nobody waits.
StatusOr<Socket> Accept(const Socket& listener, std::string* peer);
StatusOr<Socket> ConnectTo(const std::string& host, int port, Deadline deadline);
// Milliseconds for poll(), at least 0.
int MillisecondsUntil(Deadline deadline);
// Name of this machine and its boot: equal for the processes of one container only.
std::string HostName();

}  // namespace onnxtrain

#endif  // ONNXTRAIN_CUDA_OPS_RENDEZVOUS_SOCKET_H_
