// SPDX-License-Identifier: Apache-2.0
#include "cuda_ops/collective_watchdog.h"

#include <algorithm>

#include "cuda_ops/collective_call.h"

namespace onnxtrain {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

uint64_t Read(const uint64_t& written_by_device) { return __atomic_load_n(&written_by_device, __ATOMIC_ACQUIRE); }

std::string CallText(const ProgressPage& page, uint64_t number) {
  return CollectiveCall::Unpack(Read(page.calls[number % kProgressCalls])).ToString();
}

std::string Joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : ", ") + part;
  return text;
}

}  // namespace

std::string DescribeStandstill(const WatchdogOptions& options, size_t waiting) {
  const uint64_t number = Read(options.pages[waiting]->started);
  std::vector<std::string> inside, away, completed;
  for (size_t r = 0; r < options.pages.size(); ++r) {
    const std::string rank = "rank " + std::to_string(options.first_rank + static_cast<int>(r));
    const uint64_t done = Read(options.pages[r]->completed);
    completed.push_back(rank + ": " + std::to_string(done));
    if (Read(options.pages[r]->started) < number) away.push_back(rank);
    if (Read(options.pages[r]->started) >= number && done < number) inside.push_back(rank);
  }
  const bool others = static_cast<size_t>(options.world_size) > options.pages.size();
  std::string text = "collective " + std::to_string(number) + " (" + CallText(*options.pages[waiting], number) +
                     ") stood still for " + std::to_string(options.timeout.count()) + " ms: " + Joined(inside) +
                     (inside.size() == 1 ? " waits in it, " : " wait in it, ");
  if (!away.empty()) {
    text += Joined(away) + " did not come";
  } else {
    text += others ? "a rank of another process did not come" : "all ranks have come";
  }
  return text + " (last completed by " + Joined(completed) + "); a slower rank needs a longer --timeout";
}

std::string DescribeHistory(const ProgressPage& page) {
  const uint64_t started = Read(page.started);
  const uint64_t completed = Read(page.completed);
  std::string text;
  for (uint64_t n = started > kProgressCalls ? started - kProgressCalls + 1 : 1; n <= started; ++n) {
    text += std::to_string(n) + " " + CallText(page, n) + (n <= completed ? " completed\n" : " started\n");
  }
  return text;
}

CollectiveWatchdog::CollectiveWatchdog(WatchdogOptions options)
    : options_(std::move(options)), standing_(options_.pages.size()), thread_([this] { Watch(); }) {}

CollectiveWatchdog::~CollectiveWatchdog() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  stop_changed_.notify_all();
  thread_.join();
}

Status CollectiveWatchdog::LookAt(size_t local_rank, steady_clock::time_point now) {
  const ProgressPage& page = *options_.pages[local_rank];
  Standing& standing = standing_[local_rank];
  const uint64_t started = Read(page.started);
  const uint64_t completed = Read(page.completed);
  if (started != standing.started || completed != standing.completed || started == completed) {
    standing = {started, completed, now};
    return OkStatus();
  }
  if (now - standing.since < options_.timeout) return OkStatus();
  return CommunicationError(DescribeStandstill(options_, local_rank));
}

void CollectiveWatchdog::Watch() {
  const auto interval = std::clamp(options_.timeout / 10, milliseconds(2), milliseconds(500));
  std::unique_lock<std::mutex> lock(mutex_);
  while (!stop_changed_.wait_for(lock, interval, [&] { return stop_; })) {
    Status failure = options_.look ? options_.look() : OkStatus();
    const steady_clock::time_point now = steady_clock::now();
    for (size_t r = 0; r < options_.pages.size() && failure.ok(); ++r) failure = LookAt(r, now);
    if (failure.ok()) continue;
    lock.unlock();
    options_.on_failure(failure);
    return;
  }
}

}  // namespace onnxtrain
