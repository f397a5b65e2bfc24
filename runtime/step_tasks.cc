// SPDX-License-Identifier: Apache-2.0
#include "runtime/step_tasks.h"

#include <algorithm>

#include "runtime/hazard_map.h"

namespace onnxtrain {
namespace {

using Kind = AliasRule::Kind;

class TaskMaker {
 public:
  TaskMaker(const Graph& graph, const TaskOptions& options, StorageAssignment& storages)
      : graph_(graph), options_(options), storages_(storages) {}

  StepTasks Run() {
    AddFeeds();
    FindGaps();
    for (size_t i = 0; i < storages_.nodes().size(); ++i) AddNode(static_cast<int>(i));
    made_.first_fetch = static_cast<int>(made_.tasks.size());
    AddFetches();
    AddCopies();
    return std::move(made_);
  }

 private:
  struct Gaps {
    int storage = -1;
    std::vector<StorageRange> ranges;
  };

  Task& Add(StepKind kind) {
    made_.tasks.emplace_back();
    made_.tasks.back().kind = kind;
    return made_.tasks.back();
  }

  void AddFeeds() {
    for (size_t i = 0; i < graph_.inputs().size(); ++i) {
      Task& task = Add(StepKind::kFeed);
      task.value = static_cast<int>(i);
      task.writes = {storages_.Of(graph_.inputs()[i])};
    }
  }

  void AddFetches() {
    for (size_t i = 0; i < graph_.outputs().size(); ++i) {
      Task& task = Add(StepKind::kFetch);
      task.value = static_cast<int>(i);
      task.reads = {storages_.Of(graph_.outputs()[i])};
    }
  }

  // Bytes of packed outputs that no input covers.
  void FindGaps() {
    for (size_t i = 0; i < storages_.nodes().size(); ++i) {
      const Node& node = *storages_.nodes()[i];
      std::vector<std::pair<size_t, size_t>> parts;  // begin, end
      for (const AliasRule& rule : storages_.rules()[i]) {
        const Value* in = node.input(static_cast<size_t>(rule.input));
        if (rule.kind != Kind::kPack || in == nullptr) continue;
        parts.emplace_back(static_cast<size_t>(rule.offset), static_cast<size_t>(rule.offset) + in->type().bytes());
      }
      if (parts.empty() || node.output(0) == nullptr) continue;
      std::sort(parts.begin(), parts.end());
      parts.emplace_back(node.output(0)->type().bytes(), 0);
      const StorageRange bucket = storages_.Of(node.output(0));
      Gaps gaps{bucket.storage, {}};
      size_t end = 0;
      for (const auto& [begin, next] : parts) {
        if (begin > end) gaps.ranges.push_back({bucket.storage, bucket.offset + end, begin - end});
        end = std::max(end, next);
      }
      if (!gaps.ranges.empty()) gaps_.push_back(std::move(gaps));
    }
  }

  // A bucket's padding is written when its first part is about to be, so that the collective need not wait for it.
  void FillGapsIn(int storage) {
    for (Gaps& gaps : gaps_) {
      if (gaps.storage != storage) continue;
      for (const StorageRange& range : gaps.ranges) {
        Task& fill = Add(StepKind::kZeroFill);
        fill.in_graph_order = true;  // early, it would only keep the bucket alive for longer
        fill.writes = {range};
      }
      gaps.ranges.clear();
    }
  }

  void AddNode(int index) {
    const Node& node = *storages_.nodes()[static_cast<size_t>(index)];
    made_.workspaces.push_back(-1);
    if (storages_.IsElided(index)) {  // a bucket of feeds alone has had no writer yet
      for (const Value* output : node.outputs()) {
        if (output != nullptr) FillGapsIn(storages_.Of(output).storage);
      }
      return;
    }
    Task task;
    task.node = index;
    task.stream = options_.overlap && node.def().collective ? kCommunicationStream : kComputeStream;
    task.in_graph_order = node.def().side_effect;
    AddAccesses(index, node, task);
    for (const StorageRange& write : task.writes) FillGapsIn(write.storage);
    const size_t workspace = options_.workspace_bytes ? options_.workspace_bytes(node, index) : 0;
    if (workspace != 0) {
      made_.workspaces.back() = storages_.AddStorage(workspace);
      task.writes.push_back({made_.workspaces.back(), 0, workspace});
    }
    made_.tasks.push_back(std::move(task));
  }

  void AddAccesses(int index, const Node& node, Task& task) {
    std::vector<bool> skip_input(node.inputs().size(), false);
    std::vector<bool> skip_output(node.outputs().size(), false);
    for (const AliasRule& rule : storages_.rules()[static_cast<size_t>(index)]) {
      const Value* in = node.input(static_cast<size_t>(rule.input));
      if (storages_.IsView(rule, node)) skip_output[static_cast<size_t>(rule.output)] = true;
      if (rule.kind != Kind::kPack || in == nullptr) continue;
      skip_output[static_cast<size_t>(rule.output)] = true;  // written part by part
      if (storages_.IsPacked(rule, node)) {
        skip_input[static_cast<size_t>(rule.input)] = true;
        continue;
      }
      const StorageRange bucket = storages_.Of(node.output(static_cast<size_t>(rule.output)));
      task.writes.push_back({bucket.storage, bucket.offset + static_cast<size_t>(rule.offset), in->type().bytes()});
    }
    for (size_t i = 0; i < node.inputs().size(); ++i) {
      if (node.input(i) != nullptr && !skip_input[i]) task.reads.push_back(storages_.Of(node.input(i)));
    }
    for (size_t i = 0; i < node.outputs().size(); ++i) {
      if (node.output(i) != nullptr && !skip_output[i]) task.writes.push_back(storages_.Of(node.output(i)));
    }
  }

  // Updates that are somewhere else than their state. A state that is itself another's update is read before it is
  // written; where states become each other's values one of them takes a detour.
  void AddCopies() {
    std::vector<std::pair<StorageRange, StorageRange>> left;  // from, to
    for (const Value* state : graph_.states()) {
      if (state->update() == nullptr || storages_.UpdatesInPlace(state)) continue;
      left.emplace_back(storages_.Of(state->update()), storages_.Of(state));
    }
    while (!left.empty()) {
      const auto ready = std::find_if(left.begin(), left.end(), [&](const auto& copy) {
        return std::none_of(left.begin(), left.end(), [&](const auto& other) {
          return &other != &copy && other.first.storage == copy.second.storage;
        });
      });
      if (ready != left.end()) {
        AddCopy(ready->first, ready->second);
        left.erase(ready);
        continue;
      }
      const size_t bytes = left.front().first.bytes;
      const StorageRange detour{storages_.AddStorage(bytes), 0, bytes};
      AddCopy(left.front().first, detour);
      left.front().first = detour;
    }
  }

  void AddCopy(const StorageRange& from, const StorageRange& to) {
    Task& task = Add(StepKind::kCopy);
    task.reads = {from};
    task.writes = {to};
  }

  const Graph& graph_;
  const TaskOptions& options_;
  StorageAssignment& storages_;
  std::vector<Gaps> gaps_;
  StepTasks made_;
};

}  // namespace

StepTasks MakeTasks(const Graph& graph, const TaskOptions& options, StorageAssignment& storages) {
  return TaskMaker(graph, options, storages).Run();
}

std::vector<std::vector<int>> Dependencies(const std::vector<Task>& tasks, const StorageAssignment& storages) {
  std::vector<HazardMap> maps(static_cast<size_t>(storages.storages()));
  std::vector<std::vector<int>> dependencies(tasks.size());
  for (size_t i = 0; i < tasks.size(); ++i) {
    const int task = static_cast<int>(i);
    for (const StorageRange& read : tasks[i].reads) {
      const StorageRange range = storages.Resolve(read);
      maps[static_cast<size_t>(range.storage)].Read(range.offset, range.offset + range.bytes, task, dependencies[i]);
    }
    for (const StorageRange& write : tasks[i].writes) {
      const StorageRange range = storages.Resolve(write);
      maps[static_cast<size_t>(range.storage)].Write(range.offset, range.offset + range.bytes, task, dependencies[i]);
    }
    std::sort(dependencies[i].begin(), dependencies[i].end());
    dependencies[i].erase(std::unique(dependencies[i].begin(), dependencies[i].end()), dependencies[i].end());
    std::erase(dependencies[i], task);
  }
  return dependencies;
}

}  // namespace onnxtrain
