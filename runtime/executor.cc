// SPDX-License-Identifier: Apache-2.0
#include "runtime/executor.h"

#include <cstring>
#include <unordered_map>

#include "graph/op_registry.h"

namespace onnxtrain {
namespace {

KernelContext ContextOf(const Node& node, int index, const RankResources& resources) {
  KernelContext context{node};
  context.node_index = index;
  context.rank = resources.rank;
  context.world_size = resources.world_size;
  context.accumulation = resources.accumulation;
  context.threads = node.def().collective ? 1 : resources.threads;
  context.seed = resources.seed;
  context.layout = resources.layout;
  return context;
}

}  // namespace

namespace {

// Every operator without a kernel, with how many nodes need it and one of them.
Status CheckKernels(const Graph& graph, const Device& device) {
  std::map<std::string, std::pair<int, const Node*>> missing;
  for (const std::unique_ptr<Node>& node : graph.nodes()) {
    if (device.kernels().Has(node->op())) continue;
    auto& [count, first] = missing[node->op()];
    if (count++ == 0) first = node.get();
  }
  if (missing.empty()) return OkStatus();
  std::string text;
  for (const auto& [op, uses] : missing) {
    text += "\n  " + op + ": " + std::to_string(uses.first) + (uses.first == 1 ? " node, " : " nodes, the first is ") +
            uses.second->Describe();
  }
  const std::string advice = device.name() == "cpu" ? "" : "\n--fallback cpu runs them on the host";
  return InvalidModelError("--device " + std::string(device.name()) + " has no kernel for" + text + advice);
}

}  // namespace

StatusOr<std::vector<size_t>> WorkspaceBytes(const Graph& graph, const RankResources& resources) {
  RETURN_IF_ERROR(CheckKernels(graph, *resources.device));
  std::vector<size_t> bytes;
  int index = 0;
  for (const std::unique_ptr<Node>& node : graph.nodes()) {
    ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel,
                     resources.device->kernels().Create(ContextOf(*node, index++, resources)));
    bytes.push_back(kernel->workspace_bytes());
  }
  return bytes;
}

Executor::Executor(const Graph& graph, const ExecutionPlan& plan, const RankResources& resources)
    : graph_(graph), plan_(plan), resources_(resources) {}

Executor::~Executor() {
  for (Stream* stream : resources_.streams) {
    if (submitted_ != 0) (void)stream->Synchronize();  // nothing of ours may still be queued
  }
}

StatusOr<std::unique_ptr<Executor>> Executor::Create(const Graph& graph, const ExecutionPlan& plan,
                                                     const RankResources& resources) {
  if (plan.streams.size() > resources.streams.size()) {
    return InternalError("the plan of graph '" + graph.name() + "' uses " + std::to_string(plan.streams.size()) +
                         " streams, the session has " + std::to_string(resources.streams.size()));
  }
  std::unique_ptr<Executor> executor(new Executor(graph, plan, resources));
  RETURN_IF_ERROR(executor->CreateKernels());
  RETURN_IF_ERROR(executor->CreateEvents());
  RETURN_IF_ERROR(executor->CreateStaging());
  RETURN_IF_ERROR(executor->BindLaunches());
  return executor;
}

Status Executor::CreateKernels() {
  int index = 0;
  for (const std::unique_ptr<Node>& node : graph_.nodes()) {
    ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel,
                     resources_.device->kernels().Create(ContextOf(*node, index, resources_)));
    const size_t planned = plan_.workspaces[static_cast<size_t>(index)].bytes;
    if (kernel->workspace_bytes() > planned) {
      return InternalError(node->Describe() + " wants " + std::to_string(kernel->workspace_bytes()) +
                           " bytes of workspace, the plan has " + std::to_string(planned));
    }
    kernels_.push_back(std::move(kernel));
    ++index;
  }
  return OkStatus();
}

Status Executor::CreateEvents() {
  for (int i = 0; i < plan_.events; ++i) {
    ASSIGN_OR_RETURN(std::unique_ptr<Event> event, resources_.device->CreateEvent());
    events_.push_back(std::move(event));
  }
  for (std::unique_ptr<Event>& event : done_) {
    ASSIGN_OR_RETURN(event, resources_.device->CreateEvent());
  }
  return OkStatus();
}

Status Executor::CreateStaging() {
  if (resources_.device->shares_host_memory()) return OkStatus();
  for (Staging& staging : staging_) {
    staging.wanted.resize(graph_.outputs().size());
    for (const Value* input : graph_.inputs()) {
      ASSIGN_OR_RETURN(std::unique_ptr<Buffer> buffer, resources_.device->AllocateStaging(input->type().bytes()));
      staging.feeds.push_back(std::move(buffer));
    }
    for (const Value* output : graph_.outputs()) {
      ASSIGN_OR_RETURN(std::unique_ptr<Buffer> buffer, resources_.device->AllocateStaging(output->type().bytes()));
      staging.fetches.push_back(std::move(buffer));
    }
  }
  return OkStatus();
}

void Executor::Stage(size_t slot, std::span<const std::byte* const> feeds, std::span<std::byte* const> fetches) {
  Staging& staging = staging_[slot];
  for (size_t i = 0; i < staging.feeds.size(); ++i) {
    const Buffer& buffer = *staging.feeds[i];
    if (buffer.size() != 0) std::memcpy(buffer.data(), feeds[i], buffer.size());
  }
  for (size_t i = 0; i < staging.wanted.size(); ++i) staging.wanted[i] = fetches[i];
}

void Executor::Finish(size_t slot) {
  done_[slot]->Synchronize();
  Staging& staging = staging_[slot];
  for (size_t i = 0; i < staging.wanted.size(); ++i) {
    const Buffer& buffer = *staging.fetches[i];
    if (staging.wanted[i] != nullptr && buffer.size() != 0)
      std::memcpy(staging.wanted[i], buffer.data(), buffer.size());
    staging.wanted[i] = nullptr;
  }
}

Status Executor::Rebind(std::byte* transient) {
  resources_.transient = transient;
  recordings_.clear();
  launches_.clear();
  return BindLaunches();
}

Status Executor::BindLaunches() {
  std::unordered_map<const Value*, std::byte*> address{{nullptr, nullptr}};
  for (const PlacedValue& placed : plan_.placements) address[placed.value] = Address(placed.placement);
  size_t index = 0;
  for (const std::unique_ptr<Node>& node : graph_.nodes()) {
    Launch& launch = launches_.emplace_back();
    for (const std::vector<Value*>* values : {&node->inputs(), &node->outputs()}) {
      for (const Value* value : *values) {
        const auto found = address.find(value);
        if (found == address.end()) {
          return InternalError("the plan places no bytes for '" + value->name() + "' of " + node->Describe());
        }
        if (values == &node->inputs()) {
          launch.inputs.push_back(found->second);
        } else {
          launch.outputs.push_back(found->second);
        }
      }
    }
    const Placement& workspace = plan_.workspaces[index++];
    launch.args.workspace = workspace.bytes == 0 ? nullptr : Address(workspace);
    launch.args.communicator = node->def().collective ? resources_.communicator : nullptr;
    launch.args.status_word = resources_.status_word;
  }
  for (Launch& launch : launches_) {  // the vectors have their final place now
    launch.args.inputs = launch.inputs;
    launch.args.outputs = launch.outputs;
  }
  return OkStatus();
}

std::byte* Executor::Address(const Placement& placement) const {
  if (placement.region == Region::kTransient) return resources_.transient + placement.offset;
  if (placement.offset < resources_.state_bytes) return resources_.states + placement.offset;
  // Constants are never written: the verifier has proved it.
  return const_cast<std::byte*>(resources_.constants) + (placement.offset - resources_.state_bytes);
}

void Executor::Submit(const RunContext& run, std::span<const std::byte* const> feeds,
                      std::span<std::byte* const> fetches, StepTimes* times) {
  CHECK(feeds.size() == graph_.inputs().size() && fetches.size() == graph_.outputs().size());
  const size_t slot = submitted_ % kDepth;
  if (submitted_ >= kDepth) Finish(slot);
  runs_[slot] = run;
  Stage(slot, feeds, fetches);
  // The first run warms libraries up: what they make on first use may not be recorded.
  if (resources_.record && resources_.device->can_record() && times == nullptr && submitted_ > 0) {
    Replay(slot, feeds, fetches);
  } else {
    EnqueueAll(slot, feeds, fetches, times);
  }
  // Streams are joined at the end of a plan: the end of the first is the end of all.
  resources_.streams[0]->Record(*done_[slot]);
  ++submitted_;
}

void Executor::Replay(size_t slot, std::span<const std::byte* const> feeds, std::span<std::byte* const> fetches) {
  Stream& origin = *resources_.streams[0];
  std::unique_ptr<Recording>& recording = recordings_[{slot, runs_[slot].micro_batch}];
  if (recording == nullptr) {
    resources_.device->BeginRecording(origin);
    EnqueueAll(slot, feeds, fetches, nullptr);
    recording = resources_.device->EndRecording(origin);
  }
  if (recording != nullptr) recording->Replay(origin);
}

void Executor::EnqueueAll(size_t slot, std::span<const std::byte* const> feeds, std::span<std::byte* const> fetches,
                          StepTimes* times) {
  for (size_t i = 0; i < plan_.steps.size(); ++i) {
    const StepKind kind = plan_.steps[i].kind;
    Stream& stream = *resources_.streams[static_cast<size_t>(plan_.steps[i].stream)];
    const bool stamped = times != nullptr && kind != StepKind::kRecord && kind != StepKind::kWait;
    if (stamped) times->StampStart(i, stream);
    Enqueue(i, slot, feeds, fetches);
    if (stamped) times->StampEnd(i, stream);
  }
}

void Executor::WaitFor(int back) {
  if (submitted_ <= static_cast<uint64_t>(back)) return;
  Finish((submitted_ - 1 - static_cast<uint64_t>(back)) % kDepth);
}

void Executor::Enqueue(size_t index, size_t slot, std::span<const std::byte* const> feeds,
                       std::span<std::byte* const> fetches) {
  const Staging& staging = staging_[slot];
  const PlanStep& step = plan_.steps[index];
  Stream& stream = *resources_.streams[static_cast<size_t>(step.stream)];
  switch (step.kind) {
    case StepKind::kFeed: {
      const auto input = static_cast<size_t>(step.value);
      const std::byte* from = staging.feeds.empty() ? feeds[input] : staging.feeds[input]->data();
      return stream.Copy(Address(step.target), from, graph_.inputs()[input]->type().bytes());
    }
    case StepKind::kFetch: {
      const auto output = static_cast<size_t>(step.value);
      std::byte* to = staging.fetches.empty() ? fetches[output] : staging.fetches[output]->data();
      if (to != nullptr) stream.Copy(to, Address(step.range), graph_.outputs()[output]->type().bytes());
      return;
    }
    case StepKind::kZeroFill:
      return stream.Fill(Address(step.range), step.range.bytes);
    case StepKind::kCopy:
      return stream.Copy(Address(step.target), Address(step.range), step.range.bytes);
    case StepKind::kLaunch: {
      const size_t node = static_cast<size_t>(step.node);
      LaunchArgs args = launches_[node].args;
      args.run = &runs_[slot];
      return stream.Launch(*kernels_[node], args);
    }
    case StepKind::kRecord:
      return stream.Record(*events_[static_cast<size_t>(step.event)]);
    case StepKind::kWait:
      return stream.Wait(*events_[static_cast<size_t>(step.event)]);
  }
}

}  // namespace onnxtrain
