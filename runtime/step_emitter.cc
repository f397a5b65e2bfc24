// SPDX-License-Identifier: Apache-2.0
#include "runtime/step_emitter.h"

#include <algorithm>
#include <array>
#include <map>

#include "runtime/hazard_map.h"
#include "runtime/memory_planner.h"

namespace onnxtrain {
namespace {

// A point of a stream: after its `position`-th task; position 0 of stream 0 is the beginning of the run.
using Point = std::pair<int, int>;

class Emitter {
 public:
  Emitter(const std::vector<PlacedTask>& tasks, ExecutionPlan& plan) : tasks_(tasks), plan_(plan) {}

  void Run() {
    PlaceOnStreams();
    const std::vector<std::vector<int>> hazards = Hazards();
    for (size_t i = 0; i < tasks_.size(); ++i) {
      waits_.push_back(Needed(StreamOf(i), Wanted(i, hazards[i])));
      StreamPositions& known = known_[static_cast<size_t>(StreamOf(i))];
      known[static_cast<size_t>(StreamOf(i))] = points_[i].second;
      clocks_[points_[i]] = known;
    }
    waits_.push_back(Needed(kComputeStream, EndOfStreams()));
    WriteSteps();
  }

 private:
  int StreamOf(size_t i) const { return tasks_[i].task->stream; }

  void PlaceOnStreams() {
    std::array<int, kMaxStreams> count = {};
    for (size_t i = 0; i < tasks_.size(); ++i)
      points_.emplace_back(StreamOf(i), ++count[static_cast<size_t>(StreamOf(i))]);
    known_.fill(kNowhere);
    known_[kComputeStream][kComputeStream] = 0;
    clocks_[{kComputeStream, 0}] = known_[kComputeStream];
  }

  std::vector<std::vector<int>> Hazards() const {
    HazardMap maps[2];
    const auto map = [&](const Placement& place) -> HazardMap& { return maps[static_cast<size_t>(place.region)]; };
    std::vector<std::vector<int>> hazards(tasks_.size());
    for (size_t i = 0; i < tasks_.size(); ++i) {
      const int task = static_cast<int>(i);
      for (const Placement& r : tasks_[i].reads) map(r).Read(r.offset, r.offset + r.bytes, task, hazards[i]);
      for (const Placement& w : tasks_[i].writes) map(w).Write(w.offset, w.offset + w.bytes, task, hazards[i]);
    }
    return hazards;
  }

  // The latest point of every other stream that task i has to come after.
  std::vector<Point> Wanted(size_t i, const std::vector<int>& hazards) const {
    StreamPositions latest = kNowhere;
    if (StreamOf(i) != kComputeStream && points_[i].second == 1) latest[kComputeStream] = 0;
    for (int before : hazards) {
      const Point& point = points_[static_cast<size_t>(before)];
      latest[static_cast<size_t>(point.first)] = std::max(latest[static_cast<size_t>(point.first)], point.second);
    }
    return AsPoints(latest);
  }

  std::vector<Point> EndOfStreams() const {
    StreamPositions latest = kNowhere;
    for (const Point& point : points_) latest[static_cast<size_t>(point.first)] = point.second;
    return AsPoints(latest);
  }

  static std::vector<Point> AsPoints(const StreamPositions& positions) {
    std::vector<Point> points;
    for (int stream = 0; stream < kMaxStreams; ++stream) {
      if (positions[static_cast<size_t>(stream)] >= 0)
        points.emplace_back(stream, positions[static_cast<size_t>(stream)]);
    }
    return points;
  }

  // Those points that the stream does not know to be past and that no other of them implies; the stream then knows
  // them.
  std::vector<Point> Needed(int stream, const std::vector<Point>& wanted) {
    StreamPositions& known = known_[static_cast<size_t>(stream)];
    std::vector<Point> needed;
    for (const Point& point : wanted) {
      const size_t on = static_cast<size_t>(point.first);
      if (point.first == stream || known[on] >= point.second) continue;
      const bool implied = std::any_of(wanted.begin(), wanted.end(), [&](const Point& other) {
        return other.first != point.first && other.first != stream && clocks_.at(other)[on] >= point.second;
      });
      if (!implied) needed.push_back(point);
    }
    for (const Point& point : needed) {
      const StreamPositions& clock = clocks_.at(point);
      for (size_t s = 0; s < kMaxStreams; ++s) known[s] = std::max(known[s], clock[s]);
    }
    return needed;
  }

  void WriteSteps() {
    std::map<Point, int> events;
    for (const std::vector<Point>& waits : waits_) {
      for (const Point& point : waits) events[point] = -1;
    }
    WriteRecord({kComputeStream, 0}, events);
    for (size_t i = 0; i < tasks_.size(); ++i) {
      WriteWaits(StreamOf(i), waits_[i], events);
      WriteTask(tasks_[i]);
      WriteRecord(points_[i], events);
    }
    WriteWaits(kComputeStream, waits_.back(), events);
  }

  void WriteRecord(const Point& point, std::map<Point, int>& events) {
    const auto event = events.find(point);
    if (event == events.end()) return;
    event->second = plan_.events++;
    PlanStep& step = Add(StepKind::kRecord, point.first);
    step.event = event->second;
  }

  void WriteWaits(int stream, const std::vector<Point>& waits, const std::map<Point, int>& events) {
    for (const Point& point : waits) Add(StepKind::kWait, stream).event = events.at(point);
  }

  void WriteTask(const PlacedTask& placed) {
    PlanStep& step = Add(placed.task->kind, placed.task->stream);
    step.node = placed.task->node;
    step.value = placed.task->value;
    switch (step.kind) {
      case StepKind::kFeed:
        step.target = placed.writes[0];
        break;
      case StepKind::kFetch:
        step.range = placed.reads[0];
        break;
      case StepKind::kZeroFill:
        step.range = placed.writes[0];
        break;
      case StepKind::kCopy:
        step.range = placed.reads[0], step.target = placed.writes[0];
        break;
      default:
        break;
    }
  }

  PlanStep& Add(StepKind kind, int stream) {
    plan_.steps.emplace_back();
    plan_.steps.back().kind = kind;
    plan_.steps.back().stream = stream;
    return plan_.steps.back();
  }

  const std::vector<PlacedTask>& tasks_;
  ExecutionPlan& plan_;
  std::vector<Point> points_;              // by task
  std::vector<std::vector<Point>> waits_;  // before each task, then at the end
  std::array<StreamPositions, kMaxStreams> known_;
  std::map<Point, StreamPositions> clocks_;  // what is known at a point
};

}  // namespace

void EmitSteps(const std::vector<PlacedTask>& tasks, ExecutionPlan& plan) { Emitter(tasks, plan).Run(); }

}  // namespace onnxtrain
