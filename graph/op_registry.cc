// SPDX-License-Identifier: Apache-2.0
#include "graph/op_registry.h"

#include "graph/ops/all_ops.h"

namespace onnxtrain {

void OpRegistry::Add(OpDef def) {
  std::string name = def.name;
  const bool inserted = defs_.emplace(name, std::move(def)).second;
  CHECK_WITH(inserted, "operator '" + name + "' is defined twice");
}

const OpDef* OpRegistry::Find(std::string_view name) const {
  auto found = defs_.find(name);
  return found == defs_.end() ? nullptr : &found->second;
}

std::vector<std::string> OpRegistry::Names() const {
  std::vector<std::string> names;
  for (const auto& [name, def] : defs_) names.push_back(name);
  return names;
}

const OpRegistry& OpRegistry::Default() {
  static const OpRegistry registry = [] {
    OpRegistry made;
    AddAllOps(made);
    return made;
  }();
  return registry;
}

}  // namespace onnxtrain
