// SPDX-License-Identifier: Apache-2.0
#include "runtime/task_order.h"

#include <algorithm>
#include <set>

namespace onnxtrain {
namespace {

class ListScheduler {
 public:
  ListScheduler(const StepTasks& step, const std::vector<std::vector<int>>& dependencies,
                const std::function<double(const Task&)>& cost_us)
      : step_(step), dependencies_(dependencies), cost_us_(cost_us) {
    const size_t count = step.tasks.size();
    missing_.resize(count);
    ready_at_.resize(count, 0);
    followers_.resize(count);
    for (size_t i = 0; i < count; ++i) {
      const int task = static_cast<int>(i);
      missing_[i] = static_cast<int>(dependencies[i].size());
      for (int before : dependencies[i]) followers_[static_cast<size_t>(before)].push_back(task);
      (OnCompute(task) ? compute_left_ : communication_left_).insert(task);
      if (missing_[i] == 0 && OnCompute(task)) ready_.insert(task);
    }
  }

  std::vector<int> Run() {
    while (order_.size() < step_.tasks.size()) {
      while (!communication_left_.empty() && missing_[Index(*communication_left_.begin())] == 0) {
        Issue(*communication_left_.begin());
      }
      if (!compute_left_.empty()) Issue(NextCompute());
    }
    return std::move(order_);
  }

 private:
  static size_t Index(int task) { return static_cast<size_t>(task); }
  const Task& task(int index) const { return step_.tasks[Index(index)]; }
  bool OnCompute(int index) const { return task(index).stream == kComputeStream; }

  bool Eligible(int index) const {
    const int first_left = *compute_left_.begin();
    if (task(index).in_graph_order) return index == first_left;
    return index < step_.first_fetch || first_left >= step_.first_fetch;
  }

  int NextCompute() const {
    int best = -1;
    for (int candidate : ready_) {
      if (!Eligible(candidate)) continue;
      if (ready_at_[Index(candidate)] <= now_[kComputeStream]) return candidate;
      if (best < 0 || ready_at_[Index(candidate)] < ready_at_[Index(best)]) best = candidate;
    }
    CHECK_WITH(best >= 0, "tasks wait for each other");
    return best;
  }

  void Issue(int index) {
    double& now = now_[task(index).stream];
    now = std::max(now, ready_at_[Index(index)]) + cost_us_(task(index));
    order_.push_back(index);
    (OnCompute(index) ? compute_left_ : communication_left_).erase(index);
    ready_.erase(index);
    for (int follower : followers_[Index(index)]) {
      ready_at_[Index(follower)] = std::max(ready_at_[Index(follower)], now);
      if (--missing_[Index(follower)] == 0 && OnCompute(follower)) ready_.insert(follower);
    }
  }

  const StepTasks& step_;
  const std::vector<std::vector<int>>& dependencies_;
  const std::function<double(const Task&)>& cost_us_;
  std::vector<int> missing_;      // dependencies not issued yet
  std::vector<double> ready_at_;  // end of the dependencies issued so far
  std::vector<std::vector<int>> followers_;
  std::set<int> compute_left_;
  std::set<int> communication_left_;
  std::set<int> ready_;  // on compute, all dependencies issued
  double now_[2] = {0, 0};
  std::vector<int> order_;
};

}  // namespace

std::vector<int> OrderTasks(const StepTasks& step, const std::vector<std::vector<int>>& dependencies,
                            const std::function<double(const Task&)>& cost_us) {
  return ListScheduler(step, dependencies, cost_us).Run();
}

TaskClocks::TaskClocks(const std::vector<Task>& tasks, const std::vector<int>& order,
                       const std::vector<std::vector<int>>& dependencies)
    : tasks_(tasks), positions_(tasks.size()), steps_(tasks.size()), clocks_(tasks.size(), kNowhere) {
  std::array<int, kMaxStreams> latest = {-1, -1, -1, -1};  // task
  std::array<int, kMaxStreams> counts = {};
  for (size_t step = 0; step < order.size(); ++step) {
    const size_t task = static_cast<size_t>(order[step]);
    const size_t stream = static_cast<size_t>(tasks[task].stream);
    StreamPositions& clock = clocks_[task];
    const auto join = [&](int before) {
      for (size_t s = 0; s < kMaxStreams; ++s) clock[s] = std::max(clock[s], clocks_[static_cast<size_t>(before)][s]);
    };
    if (latest[stream] >= 0) join(latest[stream]);
    for (int before : dependencies[task]) join(before);
    positions_[task] = clock[stream] = counts[stream]++;
    steps_[task] = static_cast<int>(step);
    latest[stream] = order[step];
  }
}

bool TaskClocks::HappensBefore(int first, int second) const {
  return first != second &&
         clock(second)[static_cast<size_t>(tasks_[static_cast<size_t>(first)].stream)] >= position(first);
}

}  // namespace onnxtrain
