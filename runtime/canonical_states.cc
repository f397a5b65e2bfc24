// SPDX-License-Identifier: Apache-2.0
#include "runtime/canonical_states.h"

#include "graph/nearest_name.h"

namespace onnxtrain {
namespace {

bool HasCanonicalTensor(const StateEntry& state) {
  return state.state_class != StateClass::kAccumulator && state.state_class != StateClass::kReplica;
}

}  // namespace

CanonicalStates::CanonicalStates(const Program& program, const PersistentPlacements& placements, RankTeam& team)
    : team_(team) {
  for (const StateEntry& state : program.states()) {
    if (!HasCanonicalTensor(state)) continue;
    const Placement* placement = placements.FindState(state.name);
    CHECK_WITH(placement != nullptr, state.name);
    if (state.bucket < 0) {
      AddWhole(state, *placement, team.size());
    } else {
      AddBucket(state, *placement, program.layout(), team.size());
    }
  }
}

CanonicalStates::Entry& CanonicalStates::Named(const std::string& name, const TensorType& type) {
  const auto [found, inserted] = entries_.try_emplace(name);
  if (inserted) {
    names_.push_back(name);
    found->second.type = type;
  }
  return found->second;
}

void CanonicalStates::AddWhole(const StateEntry& state, const Placement& placement, int ranks) {
  Entry& entry = Named(CanonicalName(state), state.type);
  for (int rank = 0; rank < ranks; ++rank) {
    (rank == 0 ? entry.pieces : entry.copies).push_back({rank, placement, 0});
  }
}

void CanonicalStates::AddBucket(const StateEntry& state, const Placement& placement, const Layout& layout, int ranks) {
  for (int rank = 0; rank < ranks; ++rank) {
    const std::vector<LayoutSegment> segments =
        state.sharded ? layout.Segments(state.bucket, rank) : layout.Segments(state.bucket);
    AddSegments(state, placement, layout, segments, rank, /*copy=*/!state.sharded && rank != 0);
  }
}

void CanonicalStates::AddSegments(const StateEntry& state, const Placement& placement, const Layout& layout,
                                  const std::vector<LayoutSegment>& segments, int rank, bool copy) {
  const size_t size = SizeOf(state.type.dtype);
  for (const LayoutSegment& segment : segments) {
    const LayoutParameter& parameter = layout.parameters()[static_cast<size_t>(segment.parameter)];
    const TensorType type{state.type.dtype, parameter.type.shape};
    Entry& entry = Named(state.role + "/" + parameter.name, type);
    Piece piece{rank, placement, static_cast<size_t>(segment.parameter_begin) * size};
    piece.placement.offset += static_cast<size_t>(segment.shard_begin) * size;
    piece.placement.bytes = static_cast<size_t>(segment.count) * size;
    (copy ? entry.copies : entry.pieces).push_back(piece);
  }
}

const TensorType* CanonicalStates::Find(std::string_view name) const {
  const auto found = entries_.find(name);
  return found == entries_.end() ? nullptr : &found->second.type;
}

StatusOr<const CanonicalStates::Entry*> CanonicalStates::Lookup(std::string_view name) const {
  const auto found = entries_.find(name);
  if (found == entries_.end()) {
    return UsageError("no state '" + std::string(name) + "'" + DidYouMean(name, names_));
  }
  return &found->second;
}

StatusOr<Tensor> CanonicalStates::Read(std::string_view name) {
  ASSIGN_OR_RETURN(const Entry* entry, Lookup(name));
  RETURN_IF_ERROR(team_.Synchronize());
  Tensor tensor(entry->type);
  for (const Piece& piece : entry->pieces) {
    RETURN_IF_ERROR(team_.ReadState(piece.rank, piece.placement, tensor.data() + piece.canonical_offset));
  }
  return tensor;
}

Status CanonicalStates::Write(std::string_view name, const Tensor& tensor) {
  ASSIGN_OR_RETURN(const Entry* entry, Lookup(name));
  if (!(tensor.type() == entry->type)) {
    return InvalidDataError("'" + std::string(name) + "' is " + ToString(entry->type) + ", found " +
                            ToString(tensor.type()));
  }
  RETURN_IF_ERROR(team_.Synchronize());
  for (const std::vector<Piece>* pieces : {&entry->pieces, &entry->copies}) {
    for (const Piece& piece : *pieces) {
      RETURN_IF_ERROR(team_.WriteState(piece.rank, piece.placement, tensor.data() + piece.canonical_offset));
    }
  }
  return OkStatus();
}

}  // namespace onnxtrain
