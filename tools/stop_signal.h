// SPDX-License-Identifier: Apache-2.0
// SIGINT, SIGTERM and SIGUSR1 ask a run to end after its step; a second signal ends the process at once.
#ifndef ONNXTRAIN_TOOLS_STOP_SIGNAL_H_
#define ONNXTRAIN_TOOLS_STOP_SIGNAL_H_

#include <string>

namespace onnxtrain {

// Handlers are in place for the object's lifetime; one object at a time. The flag is process-wide because signals are.
class StopSignal {
 public:
  StopSignal();
  ~StopSignal();
  // The signal that came; 0 for none.
  int received() const;
  // 128 + signal, what a shell expects of it.
  int exit_code() const { return 128 + received(); }
  std::string name() const;
};

}  // namespace onnxtrain

#endif  // ONNXTRAIN_TOOLS_STOP_SIGNAL_H_
