// SPDX-License-Identifier: Apache-2.0
// Ranks as threads of one process: collectives by direct reads of the other ranks' buffers. A reduce-scatter is one pass
// over the sources, an all-gather one copy per foreign slice; nothing is staged.
//
// Calls block the calling stream thread until every rank has come. All ranks must call the same collective with the same
// count and type; a mismatch, a timeout or an Abort fails the call on all ranks with the reason.
#ifndef ONNXTRAIN_RUNTIME_CPU_LOCAL_COMMUNICATOR_H_
#define ONNXTRAIN_RUNTIME_CPU_LOCAL_COMMUNICATOR_H_

#include <chrono>
#include <memory>
#include <vector>

#include "runtime/communicator.h"

namespace onnxtrain {

// Owns the communicators of a group of ranks; outlives their use.
class LocalGroup {
 public:
  LocalGroup(int ranks, std::chrono::milliseconds timeout);
  ~LocalGroup();
  int size() const;
  Communicator& communicator(int rank);

 private:
  struct State;
  class Member;
  std::unique_ptr<State> state_;
  std::vector<std::unique_ptr<Member>> members_;
};

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_CPU_LOCAL_COMMUNICATOR_H_
