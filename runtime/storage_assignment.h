// SPDX-License-Identifier: Apache-2.0
// Which values share bytes, before those bytes have an address. A storage is a block of bytes that holds one or several
// values: views lie on what they view, gradients inside their bucket, the new state on the old one where nobody reads
// that any more.
//
// Rules, by OpDef::aliases: kView always; kPack where the input owns its whole storage; state updates where every
// reader of the old state comes before the first writer of the new one in graph order. kInPlace between intermediates
// needs the order of execution and is decided later (Merge).
#ifndef ONNXTRAIN_RUNTIME_STORAGE_ASSIGNMENT_H_
#define ONNXTRAIN_RUNTIME_STORAGE_ASSIGNMENT_H_

#include <cstddef>
#include <set>
#include <unordered_map>
#include <vector>

#include "graph/graph.h"
#include "graph/op_registry.h"
#include "graph/status.h"
#include "runtime/execution_plan.h"

namespace onnxtrain {

// Bytes [offset, offset + bytes) of a storage.
struct StorageRange {
  int storage = -1;
  size_t offset = 0;
  size_t bytes = 0;
};

class StorageAssignment {
 public:
  // Graph and placements are borrowed. Fails when a state or constant has no persistent placement of its size.
  static StatusOr<StorageAssignment> Create(const Graph& graph, const PersistentPlacements& persistent);

  // States, constants, inputs, then node outputs in graph order.
  const std::vector<const Value*>& values() const { return values_; }
  const std::vector<const Node*>& nodes() const { return nodes_; }
  const std::vector<std::vector<AliasRule>>& rules() const { return rules_; }  // by node index
  // In terms of storages that are not part of another one.
  StorageRange Of(const Value* value) const;
  StorageRange Resolve(StorageRange range) const;

  int storages() const { return static_cast<int>(storages_.size()); }
  bool IsRoot(int storage) const { return At(storage).parent < 0; }
  size_t Bytes(int storage) const { return At(storage).bytes; }
  // Null: transient.
  const Placement* Persistent(int storage) const { return At(storage).pinned ? &At(storage).place : nullptr; }
  // The value fills its storage, which is transient and part of no other.
  bool OwnsItsStorage(const Value* value) const;

  // Nothing to launch: all outputs lie on bytes they may share.
  bool IsElided(int node) const { return elided_[static_cast<size_t>(node)]; }
  bool IsView(const AliasRule& rule, const Node& node) const;
  bool IsPacked(const AliasRule& rule, const Node& node) const;
  // The update lies where the state lies: nothing to copy at the end.
  bool UpdatesInPlace(const Value* state) const;

  int AddStorage(size_t bytes);
  // `inner` becomes bytes [offset, ...) of `outer`; both are roots and differ.
  void Merge(int inner, int outer, size_t offset);

 private:
  struct Storage {
    size_t bytes = 0;
    int parent = -1;  // the storage this one is part of
    size_t parent_offset = 0;
    bool pinned = false;
    Placement place;
  };

  explicit StorageAssignment(const Graph& graph) : graph_(&graph) {}
  const Storage& At(int storage) const { return storages_[static_cast<size_t>(storage)]; }
  Status AddPersistent(const PersistentPlacements& persistent);
  Status Pin(const Value* value, const Placement* placement);
  void AddTransient();
  void PlaceViews();
  void PackBuckets();
  void ElideNodes();
  void PlaceUpdates();
  bool MayUpdateInPlace(const Value* state, const std::vector<std::vector<const Value*>>& values_in,
                        const std::set<const Value*>& read_at_end) const;
  bool WritesInPlace(int node, int state_storage, int update_storage) const;
  int IndexOf(const Node* node) const { return node_index_.at(node); }

  const Graph* graph_;
  std::vector<const Value*> values_;
  std::vector<const Node*> nodes_;
  std::unordered_map<const Node*, int> node_index_;
  std::vector<std::vector<AliasRule>> rules_;
  std::vector<Storage> storages_;
  std::unordered_map<const Value*, StorageRange> ranges_;
  std::vector<bool> elided_;
};

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_STORAGE_ASSIGNMENT_H_
