// SPDX-License-Identifier: Apache-2.0
#include "runtime/storage_reuse.h"

#include <algorithm>
#include <set>

namespace onnxtrain {
namespace {

using Kind = AliasRule::Kind;

struct Access {
  int task = 0;
  StorageRange range;
};

// Accesses of each root storage.
std::vector<std::vector<Access>> AccessesByStorage(const StepTasks& step, const std::vector<int>& order,
                                                   const StorageAssignment& storages) {
  std::vector<std::vector<Access>> accesses(static_cast<size_t>(storages.storages()));
  for (int task : order) {
    const Task& work = step.tasks[static_cast<size_t>(task)];
    for (const std::vector<StorageRange>* ranges : {&work.reads, &work.writes}) {
      for (const StorageRange& unresolved : *ranges) {
        const StorageRange range = storages.Resolve(unresolved);
        accesses[static_cast<size_t>(range.storage)].push_back({task, range});
      }
    }
  }
  return accesses;
}

class InPlaceWriter {
 public:
  InPlaceWriter(const StepTasks& step, const std::vector<int>& order, const TaskClocks& clocks,
                StorageAssignment& storages)
      : step_(step),
        order_(order),
        clocks_(clocks),
        storages_(storages),
        accesses_(AccessesByStorage(step, order, storages)) {}

  void Run() {
    for (int task : order_) {
      const Task& work = step_.tasks[static_cast<size_t>(task)];
      if (work.kind != StepKind::kLaunch) continue;
      std::set<int> placed;  // outputs that have found an input
      for (const AliasRule& rule : storages_.rules()[static_cast<size_t>(work.node)]) {
        if (placed.count(rule.output) == 0 && Try(task, rule)) placed.insert(rule.output);
      }
    }
  }

 private:
  bool Try(int task, const AliasRule& rule) {
    const int index = step_.tasks[static_cast<size_t>(task)].node;
    const Node& node = *storages_.nodes()[static_cast<size_t>(index)];
    const Value* in = node.input(static_cast<size_t>(rule.input));
    const Value* out = node.output(static_cast<size_t>(rule.output));
    if (rule.kind != Kind::kInPlace || in == nullptr || out == nullptr || !storages_.OwnsItsStorage(out)) return false;
    const StorageRange to = storages_.Of(out);
    const StorageRange from = storages_.Of(in);
    if (!Dies(from, to, task) || !MayOverwrite(index, node, from, rule.output)) return false;
    storages_.Merge(to.storage, from.storage, 0);
    for (Access access : accesses_[static_cast<size_t>(to.storage)]) {
      access.range = storages_.Resolve(access.range);
      accesses_[static_cast<size_t>(from.storage)].push_back(access);
    }
    return true;
  }

  // The input fills a transient storage that nobody else needs when or after the task runs.
  bool Dies(const StorageRange& from, const StorageRange& to, int task) const {
    if (from.storage == to.storage || from.bytes != to.bytes || from.bytes != storages_.Bytes(from.storage))
      return false;
    if (storages_.Persistent(from.storage) != nullptr) return false;
    const std::vector<Access>& accesses = accesses_[static_cast<size_t>(from.storage)];
    return std::all_of(accesses.begin(), accesses.end(), [&](const Access& access) {
      return access.task == task || clocks_.HappensBefore(access.task, task);
    });
  }

  // Whatever else the node reads from there it may overwrite by the same output.
  bool MayOverwrite(int index, const Node& node, const StorageRange& from, int output) const {
    const std::vector<AliasRule>& rules = storages_.rules()[static_cast<size_t>(index)];
    for (size_t i = 0; i < node.inputs().size(); ++i) {
      if (node.input(i) == nullptr || storages_.Of(node.input(i)).storage != from.storage) continue;
      const bool allowed = std::any_of(rules.begin(), rules.end(), [&](const AliasRule& rule) {
        return rule.kind == Kind::kInPlace && rule.output == output && static_cast<size_t>(rule.input) == i;
      });
      const StorageRange range = storages_.Of(node.input(i));
      if (!allowed || range.offset != from.offset || range.bytes != from.bytes) return false;
    }
    // Another output that views the input would change with it.
    return std::none_of(node.outputs().begin(), node.outputs().end(), [&](const Value* other) {
      return other != nullptr && storages_.Of(other).storage == from.storage;
    });
  }

  const StepTasks& step_;
  const std::vector<int>& order_;
  const TaskClocks& clocks_;
  StorageAssignment& storages_;
  std::vector<std::vector<Access>> accesses_;
};

struct Bucket {
  int storage = 0;
  std::vector<int> tasks;  // that access it, in order of issue
};

// In the order of the collectives that read them.
std::vector<Bucket> FindBuckets(const StepTasks& step, const std::vector<int>& order,
                                const StorageAssignment& storages) {
  std::set<int> packed;
  for (size_t i = 0; i < storages.nodes().size(); ++i) {
    for (const AliasRule& rule : storages.rules()[i]) {
      const Node& node = *storages.nodes()[i];
      if (storages.IsPacked(rule, node))
        packed.insert(storages.Of(node.output(static_cast<size_t>(rule.output))).storage);
    }
  }
  const std::vector<std::vector<Access>> accesses = AccessesByStorage(step, order, storages);
  std::vector<Bucket> buckets;
  for (int task : order) {
    const Task& work = step.tasks[static_cast<size_t>(task)];
    if (work.stream != kCommunicationStream) continue;
    for (const StorageRange& read : work.reads) {
      const int storage = storages.Resolve(read).storage;
      if (storages.Persistent(storage) != nullptr || packed.erase(storage) == 0) continue;
      Bucket& bucket = buckets.emplace_back(Bucket{storage, {}});
      for (const Access& access : accesses[static_cast<size_t>(storage)]) bucket.tasks.push_back(access.task);
    }
  }
  return buckets;
}

}  // namespace

void WriteInPlace(const StepTasks& step, const std::vector<int>& order, const TaskClocks& clocks,
                  StorageAssignment& storages) {
  InPlaceWriter(step, order, clocks, storages).Run();
}

void LimitBuckets(const StepTasks& step, const std::vector<int>& order, const StorageAssignment& storages,
                  int in_flight, std::vector<std::vector<int>>& dependencies) {
  if (in_flight <= 0) return;
  std::vector<int> step_of(step.tasks.size());
  for (size_t i = 0; i < order.size(); ++i) step_of[static_cast<size_t>(order[i])] = static_cast<int>(i);
  const auto last = [&](const Bucket& bucket) { return step_of[static_cast<size_t>(bucket.tasks.back())]; };
  std::vector<Bucket> flying;
  for (Bucket& bucket : FindBuckets(step, order, storages)) {
    auto oldest = std::min_element(flying.begin(), flying.end(), [&](auto& a, auto& b) { return last(a) < last(b); });
    const bool full = flying.size() >= static_cast<size_t>(in_flight);
    if (!full || last(*oldest) > step_of[static_cast<size_t>(bucket.tasks.front())]) {
      flying.push_back(std::move(bucket));
      continue;
    }
    std::set<int> streams;  // the first use on each stream comes after all uses of the oldest
    for (int task : bucket.tasks) {
      if (!streams.insert(step.tasks[static_cast<size_t>(task)].stream).second) continue;
      std::vector<int>& before = dependencies[static_cast<size_t>(task)];
      before.insert(before.end(), oldest->tasks.begin(), oldest->tasks.end());
    }
    *oldest = std::move(bucket);
  }
}

std::vector<Lifetime> FindLifetimes(const StepTasks& step, const std::vector<int>& order, const TaskClocks& clocks,
                                    const StorageAssignment& storages) {
  std::vector<Lifetime> lifetimes(static_cast<size_t>(storages.storages()));
  const std::vector<std::vector<Access>> accesses = AccessesByStorage(step, order, storages);
  for (int storage = 0; storage < storages.storages(); ++storage) {
    const size_t s = static_cast<size_t>(storage);
    if (accesses[s].empty() || storages.Persistent(storage) != nullptr) continue;
    Lifetime& life = lifetimes[s];
    life.bytes = storages.Bytes(storage);
    life.first_step = static_cast<int>(order.size());
    life.over_before.fill(static_cast<int>(order.size()));
    for (const Access& access : accesses[s]) {
      const size_t stream = static_cast<size_t>(step.tasks[static_cast<size_t>(access.task)].stream);
      StreamPositions over = clocks.clock(access.task);
      over[stream] = clocks.position(access.task) - 1;
      for (size_t i = 0; i < kMaxStreams; ++i) life.over_before[i] = std::min(life.over_before[i], over[i]);
      life.last[stream] = std::max(life.last[stream], clocks.position(access.task));
      life.first_step = std::min(life.first_step, clocks.step(access.task));
      life.last_step = std::max(life.last_step, clocks.step(access.task));
    }
  }
  return lifetimes;
}

}  // namespace onnxtrain
