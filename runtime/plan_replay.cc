// SPDX-License-Identifier: Apache-2.0
#include "runtime/plan_replay.h"

#include <algorithm>

namespace onnxtrain {
namespace {

std::string_view NameOf(Region region) { return region == Region::kPersistent ? "persistent" : "transient"; }

std::string RangeText(Region region, size_t begin, size_t end) {
  return std::string(NameOf(region)) + " bytes [" + std::to_string(begin) + ", " + std::to_string(end) + ")";
}

bool Overlap(const Placement& a, const Placement& b) {
  return a.region == b.region && a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
}

Placement Part(const Placement& whole, const LaunchRange& range) {
  return {whole.region, whole.offset + range.begin, range.bytes};
}

}  // namespace

void Violations::Add(const std::string& sentence) {
  constexpr size_t kMost = 100;
  if (sentences_.size() >= kMost) return;
  if (std::find(sentences_.begin(), sentences_.end(), sentence) == sentences_.end()) sentences_.push_back(sentence);
}

PlanReplay::PlanReplay(const SessionPlan& subject, int number, const Namer& namer, Violations& violations)
    : graph_(*subject.graph), plan_(*subject.plan), number_(number), namer_(namer), violations_(violations) {
  for (const std::unique_ptr<Node>& node : graph_.nodes()) nodes_.push_back(node.get());
}

std::string PlanReplay::Name(int64_t label) const {
  const size_t step = static_cast<size_t>(label & 0xffffffff);
  return step < plan_.steps.size() ? NameOfStep(step) : "the end of the run";
}

std::string PlanReplay::NameOfStep(size_t index) const {
  const PlanStep& step = plan_.steps[index];
  const auto stream = [&] { return plan_.streams[static_cast<size_t>(step.stream)]; };
  std::string what;
  switch (step.kind) {
    case StepKind::kFeed:
      what = "feed of '" + graph_.inputs()[static_cast<size_t>(step.value)]->name() + "'";
      break;
    case StepKind::kFetch:
      what = "fetch of '" + graph_.outputs()[static_cast<size_t>(step.value)]->name() + "'";
      break;
    case StepKind::kZeroFill:
      what = "zero fill";
      break;
    case StepKind::kCopy:
      what = "copy";
      break;
    case StepKind::kLaunch:
      what = "launch of " + node(step.node).Describe();
      break;
    case StepKind::kRecord:
      what = "record of event " + std::to_string(step.event);
      break;
    case StepKind::kWait:
      what = "wait for event " + std::to_string(step.event);
      break;
  }
  return "step " + std::to_string(index) + " (" + stream() + ", " + what + ")";
}

std::vector<Content> PlanReplay::ExpectedOf(const Value* value) const {
  std::vector<Content> content = expected_->Of(value);
  for (Content& piece : content) {
    if (piece.source >= 0) piece.source |= static_cast<int64_t>(number_) << 32;
  }
  return content;
}

ByteLedger::Complaint PlanReplay::ComplaintOf(const std::string& what, Region region) {
  return [this, what, region](size_t begin, size_t end, const Toucher* other, const std::string& problem) {
    Complain(Name(task_.label) + ", " + what + ": " + RangeText(region, begin, end) + ": " + problem +
             (other == nullptr ? "" : "; the other is " + namer_(other->label)));
  };
}

void PlanReplay::Run(ReplayState& state) {
  state_ = &state;
  Begin();
  for (size_t i = 0; i < plan_.steps.size(); ++i) RunStep(i);
  End();
}

// The run begins on stream 0. Transient bytes mean nothing any more; persistent ones are the states and constants.
void PlanReplay::Begin() {
  events_.assign(static_cast<size_t>(plan_.events), VectorClock{});
  begin_ = ++state_->counts[0];
  state_->clocks[0][0] = begin_;
  LedgerOf(Region::kTransient).ForgetContents(Content::kUndefined);
  LedgerOf(Region::kPersistent).ForgetContents(Content::kForeign);
  for (const std::vector<Value*>* values : {&graph_.states(), &graph_.constants()}) {
    for (const Value* value : *values) {
      const Placement& place = *expected_->PlaceOf(value);
      LedgerOf(place.region).SetContent(place.offset, {0, place.bytes, SourceOf(value), 0});
    }
  }
}

void PlanReplay::StartTask(int stream, int64_t label) {
  const size_t s = static_cast<size_t>(stream);
  clock_ = state_->clocks[s];
  task_ = {stream, ++state_->counts[s], label};
  state_->clocks[s][s] = task_.count;
  if (clock_[0] < begin_) {
    Complain(Name(label) + " may start before the run: its stream has not waited for the beginning of stream '" +
             plan_.streams[0] + "'");
  }
}

void PlanReplay::RunStep(size_t index) {
  const PlanStep& step = plan_.steps[index];
  VectorClock& stream = state_->clocks[static_cast<size_t>(step.stream)];
  if (step.kind == StepKind::kRecord) {
    events_[static_cast<size_t>(step.event)] = stream;
    return;
  }
  if (step.kind == StepKind::kWait) {
    const VectorClock& event = events_[static_cast<size_t>(step.event)];
    for (size_t s = 0; s < stream.size(); ++s) stream[s] = std::max(stream[s], event[s]);
    return;
  }
  StartTask(step.stream, LabelOf(index));
  switch (step.kind) {
    case StepKind::kFeed: {
      const Value* input = graph_.inputs()[static_cast<size_t>(step.value)];
      return Write("'" + input->name() + "'", step.target, {0, step.target.bytes, SourceOf(input), 0});
    }
    case StepKind::kFetch:
      return Read(*graph_.outputs()[static_cast<size_t>(step.value)], step.range);
    case StepKind::kZeroFill:
      return Write("padding", step.range, {0, step.range.bytes, Content::kZero, 0});
    case StepKind::kCopy:
      return Copy(step.range, step.target);
    default:
      return RunLaunch(step.node);
  }
}

void PlanReplay::Read(const Value& value, const Placement& place) {
  LedgerOf(place.region)
      .Read(place.offset, ExpectedOf(&value), task_, clock_,
            ComplaintOf("reading '" + value.name() + "'", place.region));
}

void PlanReplay::Write(const std::string& what, const Placement& range, Content content) {
  if (range.region == Region::kPersistent &&
      !LedgerOf(range.region).IsOwned(range.offset, range.offset + range.bytes)) {
    Complain(Name(task_.label) + ", writing " + what + ": " +
             RangeText(range.region, range.offset, range.offset + range.bytes) + " belong to no state of this graph");
  }
  LedgerOf(range.region).Write(range.offset, content, task_, clock_, ComplaintOf("writing " + what, range.region));
}

void PlanReplay::Copy(const Placement& from, const Placement& to) {
  const std::vector<Content> content = LedgerOf(from.region)
                                           .ReadAnything(from.offset, from.offset + from.bytes, task_, clock_,
                                                         ComplaintOf("reading its source", from.region));
  for (const Content& piece : content) {
    const Placement part{to.region, to.offset + piece.offset, piece.bytes};
    Write("its target", part, {0, piece.bytes, piece.source, piece.source_offset});
  }
}

void PlanReplay::RunLaunch(int node) {
  const std::vector<LaunchRange> reads = expected_->Reads(node);
  const std::vector<LaunchRange> writes = expected_->Writes(node);
  CheckOverlaps(reads, writes, node);
  for (const LaunchRange& read : reads) Read(*read.value, *expected_->PlaceOf(read.value));
  const Placement& workspace = plan_.workspaces[static_cast<size_t>(node)];
  Write("its workspace", workspace, {0, workspace.bytes, Content::kUndefined, 0});
  for (const LaunchRange& write : writes) {
    Write("'" + write.value->name() + "'", Part(*expected_->PlaceOf(write.value), write),
          {0, write.bytes, SourceOf(write.value), write.begin});
  }
}

// Inside one launch nothing is ordered: what it writes may be what it reads only where the operator permits it.
void PlanReplay::CheckOverlaps(const std::vector<LaunchRange>& reads, const std::vector<LaunchRange>& writes,
                               int node) {
  const Placement& workspace = plan_.workspaces[static_cast<size_t>(node)];
  const auto complain = [&](const LaunchRange& write, const std::string& other) {
    const Placement range = Part(*expected_->PlaceOf(write.value), write);
    Complain(Name(task_.label) + " writes '" + write.value->name() + "' to " +
             RangeText(range.region, range.offset, range.offset + range.bytes) + ", which overlap " + other);
  };
  for (size_t i = 0; i < writes.size(); ++i) {
    const Placement out = Part(*expected_->PlaceOf(writes[i].value), writes[i]);
    if (Overlap(out, workspace)) complain(writes[i], "its own workspace");
    for (size_t j = 0; j < i; ++j) {
      if (Overlap(out, Part(*expected_->PlaceOf(writes[j].value), writes[j]))) {
        complain(writes[i], "its output '" + writes[j].value->name() + "'");
      }
    }
    for (const LaunchRange& read : reads) {
      const Placement in = *expected_->PlaceOf(read.value);
      if (!Overlap(out, in) || (out == in && expected_->MayOverwrite(node, read.index, writes[i].index))) continue;
      complain(writes[i], "its input '" + read.value->name() + "'");
    }
  }
  for (const LaunchRange& read : reads) {
    if (Overlap(workspace, *expected_->PlaceOf(read.value))) {
      Complain(Name(task_.label) + ": its workspace overlaps its input '" + read.value->name() + "'");
    }
  }
}

void PlanReplay::End() {
  for (size_t s = 1; s < plan_.streams.size(); ++s) {
    if (state_->clocks[0][s] >= state_->counts[s]) continue;
    Complain("stream '" + plan_.streams[0] + "' ends the run without waiting for all of stream '" + plan_.streams[s] +
             "'");
  }
  clock_ = state_->clocks[0];
  task_ = {0, ++state_->counts[0], LabelOf(plan_.steps.size())};
  state_->clocks[0][0] = task_.count;
  for (const Value* state : graph_.states()) {
    const Value* holds = state->update() == nullptr ? state : state->update();
    const Placement& place = *expected_->PlaceOf(state);
    LedgerOf(place.region)
        .Read(place.offset, ExpectedOf(holds), task_, clock_,
              ComplaintOf("state '" + state->name() + "', which must hold '" + holds->name() + "'", place.region));
  }
  for (const Value* constant : graph_.constants()) Read(*constant, *expected_->PlaceOf(constant));
}

}  // namespace onnxtrain
