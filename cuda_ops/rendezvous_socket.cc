// SPDX-License-Identifier: Apache-2.0
#include "cuda_ops/rendezvous_socket.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <utility>

namespace onnxtrain {
namespace {

constexpr int kBacklog = 1024;

std::string ErrorText(int error) { return std::strerror(error); }

bool WaitFor(int descriptor, short events, Deadline deadline) {
  pollfd waited = {descriptor, events, 0};
  int ready;
  do {
    ready = poll(&waited, 1, MillisecondsUntil(deadline));
  } while (ready < 0 && errno == EINTR);
  return ready > 0;
}

StatusOr<Socket> BindTo(int family, const sockaddr* address, socklen_t size, int port) {
  Socket listener(socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (listener.descriptor() < 0) return InternalError("socket: " + ErrorText(errno));
  const int on = 1;
  const int off = 0;
  (void)setsockopt(listener.descriptor(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (family == AF_INET6) (void)setsockopt(listener.descriptor(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
  if (bind(listener.descriptor(), address, size) == 0 && listen(listener.descriptor(), kBacklog) == 0) return listener;
  const std::string text = "port " + std::to_string(port) + " for the rendezvous: " + ErrorText(errno);
  return errno == EADDRINUSE || errno == EACCES ? UsageError(text + "; choose another port") : InternalError(text);
}

StatusOr<Socket> ConnectTo(const addrinfo& address, Deadline deadline) {
  Socket made(socket(address.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (made.descriptor() < 0) return CommunicationError("socket: " + ErrorText(errno));
  if (connect(made.descriptor(), address.ai_addr, address.ai_addrlen) == 0) return made;
  if (errno != EINPROGRESS) return CommunicationError(ErrorText(errno));
  if (!WaitFor(made.descriptor(), POLLOUT, deadline)) return CommunicationError("no answer");
  int error = 0;
  socklen_t size = sizeof(error);
  (void)getsockopt(made.descriptor(), SOL_SOCKET, SO_ERROR, &error, &size);
  if (error != 0) return CommunicationError(ErrorText(error));
  return made;
}

}  // namespace

Socket::~Socket() {
  if (descriptor_ >= 0) (void)close(descriptor_);
}

Socket& Socket::operator=(Socket&& other) noexcept {
  if (this == &other) return *this;
  if (descriptor_ >= 0) (void)close(descriptor_);
  descriptor_ = other.Release();
  return *this;
}

int Socket::Release() { return std::exchange(descriptor_, -1); }

Status Socket::Send(std::string_view bytes, Deadline deadline) const {
  while (!bytes.empty()) {
    const ssize_t sent = send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent >= 0) {
      bytes.remove_prefix(static_cast<size_t>(sent));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (!WaitFor(descriptor_, POLLOUT, deadline)) return CommunicationError("the other side takes no more bytes");
    } else if (errno != EINTR) {
      return CommunicationError(ErrorText(errno));
    }
  }
  return OkStatus();
}

bool Socket::Receive(std::string& bytes) const {
  char buffer[4096];
  const ssize_t received = recv(descriptor_, buffer, sizeof(buffer), 0);
  if (received > 0) bytes.append(buffer, static_cast<size_t>(received));
  return received > 0 || (received < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR));
}

bool Socket::WaitForInput(Deadline deadline) const { return WaitFor(descriptor_, POLLIN, deadline); }

StatusOr<Socket> ListenOn(int port) {
  sockaddr_in6 any6 = {};
  any6.sin6_family = AF_INET6;
  any6.sin6_port = htons(static_cast<uint16_t>(port));
  any6.sin6_addr = in6addr_any;
  StatusOr<Socket> listener = BindTo(AF_INET6, reinterpret_cast<const sockaddr*>(&any6), sizeof(any6), port);
  if (listener.ok() || listener.status().code() == StatusCode::kUsage) return listener;
  sockaddr_in any4 = {};  // a machine without IPv6
  any4.sin_family = AF_INET;
  any4.sin_port = htons(static_cast<uint16_t>(port));
  any4.sin_addr.s_addr = htonl(INADDR_ANY);
  return BindTo(AF_INET, reinterpret_cast<const sockaddr*>(&any4), sizeof(any4), port);
}

StatusOr<Socket> Accept(const Socket& listener, std::string* peer) {
  sockaddr_storage address = {};
  socklen_t size = sizeof(address);
  Socket accepted(
      accept4(listener.descriptor(), reinterpret_cast<sockaddr*>(&address), &size, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (accepted.descriptor() < 0) return accepted;  // it has gone again
  char host[NI_MAXHOST] = "unknown";
  (void)getnameinfo(reinterpret_cast<const sockaddr*>(&address), size, host, sizeof(host), nullptr, 0, NI_NUMERICHOST);
  *peer = host;
  return accepted;
}

StatusOr<Socket> ConnectTo(const std::string& host, int port, Deadline deadline) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (error != 0) return CommunicationError(gai_strerror(error));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> addresses(found, freeaddrinfo);
  Status last = CommunicationError("it has no address");
  for (const addrinfo* address = found; address != nullptr; address = address->ai_next) {
    StatusOr<Socket> made = ConnectTo(*address, deadline);
    if (made.ok()) return made;
    last = made.status();
  }
  return last;
}

int MillisecondsUntil(Deadline deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
  return static_cast<int>(std::clamp<int64_t>(left.count(), 0, 1000000));
}

std::string HostName() {
  char name[256] = "";
  (void)gethostname(name, sizeof(name) - 1);
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  return boot.empty() ? name : std::string(name) + " " + boot.substr(0, 8);
}

}  // namespace onnxtrain
