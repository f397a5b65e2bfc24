// SPDX-License-Identifier: Apache-2.0
// A host thread for each rank of a process, for backends that want their ranks submitted side by side (backend.h). The
// threads sleep between calls of Run.
#ifndef ONNXTRAIN_RUNTIME_RANK_THREADS_H_
#define ONNXTRAIN_RUNTIME_RANK_THREADS_H_

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace onnxtrain {

class RankThreads {
 public:
  explicit RankThreads(int ranks);
  ~RankThreads();
  RankThreads(const RankThreads&) = delete;
  RankThreads& operator=(const RankThreads&) = delete;

  // Calls body(rank) on the thread of every rank and returns when all are done. One caller at a time.
  void Run(const std::function<void(int)>& body);

 private:
  void Work(int rank);

  std::mutex mutex_;
  std::condition_variable changed_;
  const std::function<void(int)>* body_ = nullptr;
  uint64_t round_ = 0;
  int working_ = 0;
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_RANK_THREADS_H_
