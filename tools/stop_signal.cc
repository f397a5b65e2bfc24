// SPDX-License-Identifier: Apache-2.0
#include "tools/stop_signal.h"

#include <csignal>

namespace onnxtrain {
namespace {

volatile std::sig_atomic_t received_signal = 0;

extern "C" void OnSignal(int signal) {
  if (received_signal != 0) {  // the second one: as if there were no handler
    std::signal(signal, SIG_DFL);
    std::raise(signal);
    return;
  }
  received_signal = signal;
}

}  // namespace

StopSignal::StopSignal() {
  received_signal = 0;
  for (int signal : {SIGINT, SIGTERM, SIGUSR1}) std::signal(signal, OnSignal);
}

StopSignal::~StopSignal() {
  for (int signal : {SIGINT, SIGTERM, SIGUSR1}) std::signal(signal, SIG_DFL);
}

int StopSignal::received() const { return received_signal; }

std::string StopSignal::name() const {
  switch (received_signal) {
    case SIGINT:
      return "SIGINT";
    case SIGTERM:
      return "SIGTERM";
    case SIGUSR1:
      return "SIGUSR1";
    default:
      return "";
  }
}

}  // namespace onnxtrain
