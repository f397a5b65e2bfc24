// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernel.h"

namespace onnxtrain {

void KernelRegistry::Add(std::string op, KernelFactory factory) {
  const bool inserted = factories_.emplace(op, std::move(factory)).second;
  CHECK_WITH(inserted, "two kernels of " + op);
}

std::vector<std::string> KernelRegistry::Ops() const {
  std::vector<std::string> ops;
  for (const auto& [op, factory] : factories_) ops.push_back(op);
  return ops;
}

const KernelFactory* KernelRegistry::Find(std::string_view op) const {
  const auto found = factories_.find(op);
  return found == factories_.end() ? nullptr : &found->second;
}

StatusOr<std::unique_ptr<Kernel>> KernelRegistry::Create(const KernelContext& context) const {
  const KernelFactory* factory = Find(context.node.op());
  if (factory == nullptr) {
    return InvalidModelError("no kernel of operator " + context.node.op() +
                             " on this device: " + context.node.Describe());
  }
  return (*factory)(context);
}

Status UnsupportedTypes(const KernelContext& context) {
  std::string types;
  for (const Value* input : context.node.inputs()) {
    if (!types.empty()) types += ", ";
    types += input == nullptr ? "omitted" : ToString(input->type());
  }
  return InvalidModelError("no kernel of " + context.node.op() + " for (" + types + "): " + context.node.Describe() +
                           "; no kernel of this device serves these types");
}

}  // namespace onnxtrain
