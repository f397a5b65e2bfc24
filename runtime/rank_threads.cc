// SPDX-License-Identifier: Apache-2.0
#include "runtime/rank_threads.h"

namespace onnxtrain {

RankThreads::RankThreads(int ranks) {
  for (int rank = 0; rank < ranks; ++rank) threads_.emplace_back([this, rank] { Work(rank); });
}

RankThreads::~RankThreads() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void RankThreads::Run(const std::function<void(int)>& body) {
  std::unique_lock<std::mutex> lock(mutex_);
  body_ = &body;
  working_ = static_cast<int>(threads_.size());
  ++round_;
  changed_.notify_all();
  changed_.wait(lock, [this] { return working_ == 0; });
}

void RankThreads::Work(int rank) {
  uint64_t done = 0;
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stop_ || round_ != done; });
    if (stop_) return;
    done = round_;
    const std::function<void(int)>& body = *body_;
    lock.unlock();
    body(rank);
    lock.lock();
    if (--working_ == 0) changed_.notify_all();
  }
}

}  // namespace onnxtrain
