// SPDX-License-Identifier: Apache-2.0
#include "tests/support/program_runner.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <set>

#include "graph/digest.h"
#include "graph/op_registry.h"
#include "runtime/cpu/kernels/all_kernels.h"

namespace onnxtrain {
namespace {

const KernelRegistry& Kernels() {
  static const KernelRegistry registry = [] {
    KernelRegistry made;
    AddAllKernels(made);
    return made;
  }();
  return registry;
}

Tensor NaNs(const TensorType& type) {
  if (!IsFloating(type.dtype)) return Tensor(type);
  Tensor wide(TensorType{DType::kDouble, type.shape});
  std::fill(wide.values<double>().begin(), wide.values<double>().end(), std::numeric_limits<double>::quiet_NaN());
  return wide.CastTo(type.dtype);
}

bool IsScratch(const StateEntry& entry) {
  return entry.state_class == StateClass::kAccumulator || entry.state_class == StateClass::kReplica;
}

// Copies `count` elements; both tensors have one element type.
void CopyElements(const Tensor& from, int64_t from_begin, Tensor& to, int64_t to_begin, int64_t count) {
  const size_t size = SizeOf(from.dtype());
  CHECK(from.dtype() == to.dtype());
  std::memcpy(to.data() + static_cast<size_t>(to_begin) * size, from.data() + static_cast<size_t>(from_begin) * size,
              static_cast<size_t>(count) * size);
}

template <typename T>
void Combine(Tensor& total, const Tensor& part, bool max) {
  std::span<T> to = total.values<T>();
  std::span<const T> from = part.values<T>();
  for (size_t i = 0; i < to.size(); ++i) to[i] = max ? std::max(to[i], from[i]) : to[i] + from[i];
}

StatusOr<Tensor> Reduce(const std::vector<const Tensor*>& parts, const std::string& op);

// Sums in float, rounded once.
StatusOr<Tensor> ReduceHalves(const std::vector<const Tensor*>& parts, const std::string& op) {
  std::vector<Tensor> wide;
  for (const Tensor* part : parts) wide.push_back(part->CastTo(DType::kFloat));
  std::vector<const Tensor*> pointers;
  for (const Tensor& tensor : wide) pointers.push_back(&tensor);
  ASSIGN_OR_RETURN(const Tensor total, Reduce(pointers, op));
  return total.CastTo(parts[0]->dtype());
}

StatusOr<Tensor> Reduce(const std::vector<const Tensor*>& parts, const std::string& op) {
  if (parts[0]->dtype() == DType::kBfloat16) return ReduceHalves(parts, op);
  Tensor total = *parts[0];
  for (size_t r = 1; r < parts.size(); ++r) {
    if (total.dtype() == DType::kFloat) {
      Combine<float>(total, *parts[r], op == "max");
    } else if (total.dtype() == DType::kDouble) {
      Combine<double>(total, *parts[r], op == "max");
    } else {
      return InternalError("program runner: no reduction of " + ToString(total.type()));
    }
  }
  return total;
}

// What one collective gives each rank.
StatusOr<std::vector<Tensor>> Collective(const Node& node, const std::vector<const Tensor*>& parts) {
  const size_t world = parts.size();
  const std::string& op = node.op();
  const TensorType type = node.output(0)->type();
  std::vector<Tensor> results;
  if (op == "onnxtrain.AllGather") {
    Tensor whole(type);
    const int64_t count = parts[0]->elements();
    for (size_t r = 0; r < world; ++r) CopyElements(*parts[r], 0, whole, static_cast<int64_t>(r) * count, count);
    results.assign(world, whole);
    return results;
  }
  if (op == "onnxtrain.Broadcast") {
    results.assign(world, *parts[static_cast<size_t>(node.attributes().Int("root", 0))]);
    return results;
  }
  ASSIGN_OR_RETURN(const Tensor total, Reduce(parts, node.attributes().String("op", "sum")));
  for (size_t r = 0; r < world; ++r) {
    Tensor own(type);
    const bool slice = op == "onnxtrain.ReduceScatter";
    CopyElements(total, slice ? static_cast<int64_t>(r) * own.elements() : 0, own, 0, own.elements());
    results.push_back(std::move(own));
  }
  return results;
}

std::string BucketCanonical(const StateEntry& entry, const Layout& layout, int parameter) {
  return entry.role + "/" + layout.parameters()[static_cast<size_t>(parameter)].name;
}

}  // namespace

StatusOr<std::unique_ptr<ProgramRunner>> ProgramRunner::Create(const Program& program, const NamedTensors& initial) {
  std::unique_ptr<ProgramRunner> runner(new ProgramRunner(program));
  RETURN_IF_ERROR(runner->InitializeState(initial));
  return runner;
}

Status ProgramRunner::InitializeState(const NamedTensors& initial) {
  const auto canonical = [&](const std::string& name, const TensorType& type) -> StatusOr<Tensor> {
    for (const NamedTensors* source : {&initial, &program_.initial}) {
      auto found = source->find(name);
      if (found == source->end()) continue;
      if (found->second.type() == type) return found->second;
      return InvalidDataError("initial '" + name + "' is " + ToString(found->second.type()) + ", not " +
                              ToString(type));
    }
    return Tensor(type);
  };
  for (const StateEntry& entry : program_.states()) {
    for (int rank = 0; rank < program_.world_size; ++rank) {
      Tensor value = IsScratch(entry) ? NaNs(entry.type) : Tensor(entry.type);
      if (!IsScratch(entry) && entry.bucket < 0) {
        ASSIGN_OR_RETURN(value, canonical(CanonicalName(entry), entry.type));
      } else if (!IsScratch(entry)) {
        const Layout& layout = program_.layout();
        for (const LayoutSegment& segment : layout.Segments(entry.bucket, rank)) {
          const std::string name = BucketCanonical(entry, layout, segment.parameter);
          const TensorType& type = layout.parameters()[static_cast<size_t>(segment.parameter)].type;
          ASSIGN_OR_RETURN(const Tensor whole, canonical(name, type));
          CopyElements(whole, segment.parameter_begin, value, segment.shard_begin, segment.count);
        }
      }
      ranks_[static_cast<size_t>(rank)].states[entry.name] = std::move(value);
    }
  }
  return OkStatus();
}

Status ProgramRunner::StartRun(int rank, const std::string& name, const FeedSource& feeds, int micro_batch) {
  Rank& own = ranks_[static_cast<size_t>(rank)];
  own.graph = program_.FindGraph(name);
  if (own.graph == nullptr) return InvalidModelError("program runner: no graph '" + name + "'");
  own.values.clear();
  own.nodes = own.graph->NodesInOrder();
  own.next = 0;
  for (const Value* input : own.graph->inputs()) {
    Tensor tensor = feeds(*input, rank, micro_batch);
    CHECK_WITH(tensor.type() == input->type(), input->name());
    own.values.emplace(input, std::move(tensor));
  }
  for (const Value* constant : own.graph->constants()) own.values.emplace(constant, *constant->constant());
  for (const Value* state : own.graph->states()) {
    auto found = own.states.find(state->name());
    if (found == own.states.end()) return InternalError("state '" + state->name() + "' is not in the state table");
    own.values.emplace(state, found->second);
  }
  return OkStatus();
}

Status ProgramRunner::Launch(int rank, const Node& node, int index, int micro_batch) {
  Rank& own = ranks_[static_cast<size_t>(rank)];
  KernelContext context{.node = node,
                        .node_index = index,
                        .rank = rank,
                        .world_size = program_.world_size,
                        .accumulation = program_.accumulation,
                        .layout = &program_.layout()};
  ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel, Kernels().Create(context));
  std::vector<const std::byte*> inputs;
  std::vector<std::byte*> outputs;
  for (const Value* input : node.inputs()) inputs.push_back(input == nullptr ? nullptr : own.values.at(input).data());
  for (const Value* output : node.outputs()) {
    if (output != nullptr) own.values.emplace(output, Tensor(output->type()));
    outputs.push_back(output == nullptr ? nullptr : own.values.at(output).data());
  }
  Tensor workspace(TensorType{DType::kUint8, {static_cast<int64_t>(kernel->workspace_bytes())}});
  const RunContext run{micro_batch};
  const LaunchArgs args{.inputs = inputs,
                        .outputs = outputs,
                        .workspace = workspace.data(),
                        .status_word = &own.status_word,
                        .run = &run};
  return kernel->Launch(args).Prepend(node.Describe());
}

Status ProgramRunner::RunToCollective(int rank, int micro_batch) {
  Rank& own = ranks_[static_cast<size_t>(rank)];
  for (; own.next < own.nodes.size(); ++own.next) {
    const Node& node = *own.nodes[own.next];
    if (node.def().collective) return OkStatus();
    RETURN_IF_ERROR(Launch(rank, node, static_cast<int>(own.next), micro_batch));
  }
  return OkStatus();
}

// All ranks stand before a collective: the same one.
Status ProgramRunner::RunCollectives() {
  const Node& first = *ranks_[0].nodes[ranks_[0].next];
  std::vector<const Tensor*> parts;
  for (Rank& rank : ranks_) {
    const Node& node = *rank.nodes[rank.next];
    if (node.op() != first.op() || !(node.attributes() == first.attributes()) ||
        node.input(0)->type() != first.input(0)->type()) {
      return CommunicationError("ranks meet in different collectives: " + first.Describe() + " and " + node.Describe());
    }
    parts.push_back(&rank.values.at(node.input(0)));
  }
  ASSIGN_OR_RETURN(std::vector<Tensor> results, Collective(first, parts));
  for (size_t r = 0; r < ranks_.size(); ++r) {
    const Node& node = *ranks_[r].nodes[ranks_[r].next++];
    ranks_[r].values.emplace(node.output(0), std::move(results[r]));
  }
  return OkStatus();
}

Status ProgramRunner::ApplyUpdates() {
  for (Rank& rank : ranks_) {
    std::map<std::string, Tensor> updated;
    for (const Value* state : rank.graph->states()) {
      if (state->update() != nullptr) updated.emplace(state->name(), rank.values.at(state->update()));
    }
    for (auto& [name, tensor] : updated) rank.states[name] = std::move(tensor);
  }
  return OkStatus();
}

Status ProgramRunner::Run(const std::vector<std::string>& graphs, const FeedSource& feeds, int micro_batch) {
  CHECK(graphs.size() == ranks_.size());
  for (int rank = 0; rank < program_.world_size; ++rank) {
    RETURN_IF_ERROR(StartRun(rank, graphs[static_cast<size_t>(rank)], feeds, micro_batch));
  }
  while (true) {
    size_t ended = 0;
    for (int rank = 0; rank < program_.world_size; ++rank) {
      RETURN_IF_ERROR(RunToCollective(rank, micro_batch).Prepend("rank " + std::to_string(rank)));
      const Rank& own = ranks_[static_cast<size_t>(rank)];
      ended += own.next == own.nodes.size();
    }
    if (ended == ranks_.size()) return ApplyUpdates();
    if (ended != 0) return CommunicationError("some ranks have ended and others wait in a collective");
    RETURN_IF_ERROR(RunCollectives());
  }
}

Status ProgramRunner::Step(const FeedSource& feeds, const std::vector<bool>& idle) {
  const auto run = [&](const std::string& graph, int micro_batch) {
    std::vector<std::string> graphs;
    for (size_t r = 0; r < ranks_.size(); ++r) graphs.push_back(r < idle.size() && idle[r] ? "zero_" + graph : graph);
    return Run(graphs, feeds, micro_batch);
  };
  if (program_.accumulation == 1) return run("step", 0);
  RETURN_IF_ERROR(run("first", 0));
  for (int m = 1; m + 1 < program_.accumulation; ++m) RETURN_IF_ERROR(run("middle", m));
  return run("last", program_.accumulation - 1);
}

Status ProgramRunner::Evaluate(const FeedSource& feeds) {
  if (program_.FindGraph("gather") != nullptr) {
    RETURN_IF_ERROR(Run(std::vector<std::string>(ranks_.size(), "gather"), feeds));
  }
  return Run(std::vector<std::string>(ranks_.size(), "eval"), feeds);
}

StatusOr<Tensor> ProgramRunner::ValueOf(int rank, std::string_view name) const {
  const Rank& own = ranks_[static_cast<size_t>(rank)];
  const Value* value = own.graph == nullptr ? nullptr : own.graph->FindValue(name);
  if (value == nullptr) return UsageError("no value '" + std::string(name) + "' in the last run");
  return own.values.at(value);
}

NamedTensors ProgramRunner::OutputsOf(int rank) const {
  const Rank& own = ranks_[static_cast<size_t>(rank)];
  NamedTensors outputs;
  for (const Value* output : own.graph->outputs()) outputs.emplace(output->name(), own.values.at(output));
  return outputs;
}

Status ProgramRunner::GatherSharded(const StateEntry& entry, NamedTensors& state) const {
  const Layout& layout = program_.layout();
  for (int rank = 0; rank < program_.world_size; ++rank) {
    Tensor shard = ranks_[static_cast<size_t>(rank)].states.at(entry.name);
    const Tensor zeros(shard.type());
    for (const LayoutSegment& segment : layout.Segments(entry.bucket, rank)) {
      const TensorType& type = layout.parameters()[static_cast<size_t>(segment.parameter)].type;
      Tensor& whole = state.emplace(BucketCanonical(entry, layout, segment.parameter), Tensor(type)).first->second;
      CopyElements(shard, segment.shard_begin, whole, segment.parameter_begin, segment.count);
      CopyElements(zeros, 0, shard, segment.shard_begin, segment.count);
    }
    if (!shard.Identical(zeros)) {
      return InternalError("padding of '" + entry.name + "' on rank " + std::to_string(rank) + " is not zero");
    }
  }
  return OkStatus();
}

StatusOr<NamedTensors> ProgramRunner::CanonicalState() const {
  NamedTensors state;
  for (const StateEntry& entry : program_.states()) {
    if (IsScratch(entry)) continue;
    if (entry.bucket >= 0) {
      RETURN_IF_ERROR(GatherSharded(entry, state));
      continue;
    }
    const Tensor& own = ranks_[0].states.at(entry.name);
    for (const Rank& rank : ranks_) {
      if (entry.state_class != StateClass::kBuffer && !rank.states.at(entry.name).Identical(own)) {
        return InternalError("ranks differ in '" + entry.name + "'");
      }
    }
    state.emplace(CanonicalName(entry), own);
  }
  return state;
}

NamedTensors SeededState(const Program& program, uint64_t seed) {
  NamedTensors state;
  const auto add = [&](const std::string& name, const TensorType& type, const StateEntry& entry) {
    auto given = program.initial.find(name);
    if (given != program.initial.end()) {
      state.emplace(name, given->second);
      return;
    }
    const bool positive =
        entry.state_class == StateClass::kBuffer || entry.role == "moment2" || entry.role == "squared_sum";
    const bool counter = entry.state_class == StateClass::kCounter;
    const double low = counter ? 3 : positive ? 0.1 : -1;
    const double high = counter ? 3 : 1;
    state.emplace(name, RandomTensor(type.dtype, type.shape, Fnv1a(name, seed), low, high));
  };
  for (const StateEntry& entry : program.states()) {
    if (IsScratch(entry)) continue;
    if (entry.bucket < 0) {
      add(CanonicalName(entry), entry.type, entry);
      continue;
    }
    for (const LayoutSegment& segment : program.layout().Segments(entry.bucket)) {
      const LayoutParameter& parameter = program.layout().parameters()[static_cast<size_t>(segment.parameter)];
      add(entry.role + "/" + parameter.name, parameter.type, entry);
    }
  }
  return state;
}

}  // namespace onnxtrain
