// SPDX-License-Identifier: Apache-2.0
// Canonical tensors (whole, unsharded, by name) against what the ranks hold: the only place that gathers and scatters state.
#ifndef ONNXTRAIN_RUNTIME_CANONICAL_STATES_H_
#define ONNXTRAIN_RUNTIME_CANONICAL_STATES_H_

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "graph/program.h"
#include "runtime/execution_plan.h"
#include "runtime/rank_team.h"

namespace onnxtrain {

class CanonicalStates {
 public:
  // Borrows nothing but the team: table and Layout are copied. Accumulators and replicas have no canonical tensor.
  CanonicalStates(const Program& program, const PersistentPlacements& placements, RankTeam& team);

  // In the order of the state table; "parameter/fc.weight", "moment1/fc.weight", "buffer/bn.running_mean", "counter/step".
  const std::vector<std::string>& names() const { return names_; }
  const TensorType* Find(std::string_view name) const;
  // Both wait for the team first. Write changes every rank that holds the tensor or a part of it. An unknown name is a
  // Usage error, another type InvalidData.
  StatusOr<Tensor> Read(std::string_view name);
  Status Write(std::string_view name, const Tensor& tensor);

 private:
  // A run of the canonical tensor in one rank's states.
  struct Piece {
    int rank = 0;
    Placement placement;
    size_t canonical_offset = 0;  // bytes
  };
  struct Entry {
    TensorType type;
    std::vector<Piece> pieces;   // together the whole tensor, each byte once
    std::vector<Piece> copies;   // further places with the same bytes on other ranks
  };

  void AddWhole(const StateEntry& state, const Placement& placement, int ranks);
  void AddBucket(const StateEntry& state, const Placement& placement, const Layout& layout, int ranks);
  void AddSegments(const StateEntry& state, const Placement& placement, const Layout& layout,
                   const std::vector<LayoutSegment>& segments, int rank, bool copy);
  Entry& Named(const std::string& name, const TensorType& type);
  StatusOr<const Entry*> Lookup(std::string_view name) const;

  RankTeam& team_;
  std::vector<std::string> names_;
  std::map<std::string, Entry, std::less<>> entries_;
};

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_CANONICAL_STATES_H_
