// SPDX-License-Identifier: Apache-2.0
// Notices collectives that do not end. One thread for all ranks of a process; it calls no CUDA function, since those
// can block behind the very kernel that hangs.
#ifndef ONNXTRAIN_CUDA_OPS_COLLECTIVE_WATCHDOG_H_
#define ONNXTRAIN_CUDA_OPS_COLLECTIVE_WATCHDOG_H_

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "cuda_ops/kernels/collective_progress.h"
#include "graph/status.h"

namespace onnxtrain {

struct WatchdogOptions {
  int first_rank = 0;
  int world_size = 1;
  std::vector<const ProgressPage*> pages;  // of ranks first_rank, first_rank + 1, ...; outlive the watchdog
  // A collective that a stream has reached fails when nothing of that rank moves for so long.
  std::chrono::milliseconds timeout{0};
  // Called at every look; an error is a failure, too. Must not block.
  std::function<Status()> look;
  // Called once, from the watchdog's thread, which ends with it.
  std::function<void(const Status&)> on_failure;
};

class CollectiveWatchdog {
 public:
  explicit CollectiveWatchdog(WatchdogOptions options);
  ~CollectiveWatchdog();  // stops the thread

 private:
  struct Standing {
    uint64_t started = 0;
    uint64_t completed = 0;
    std::chrono::steady_clock::time_point since;
  };
  void Watch();
  Status LookAt(size_t local_rank, std::chrono::steady_clock::time_point now);

  const WatchdogOptions options_;
  std::vector<Standing> standing_;
  std::mutex mutex_;
  std::condition_variable stop_changed_;
  bool stop_ = false;
  std::thread thread_;
};

// "collective 7 (AllReduce of 1024 float) ...": who waits in it, who has not come, and the last number that each rank
// completed. `waiting` is the index of a rank that has started but not completed a collective.
std::string DescribeStandstill(const WatchdogOptions& options, size_t waiting);
// The last collectives of a rank, oldest first, a line each with number, call and state.
std::string DescribeHistory(const ProgressPage& page);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_CUDA_OPS_COLLECTIVE_WATCHDOG_H_
