// SPDX-License-Identifier: Apache-2.0
#include "graph/graph.h"

#include <algorithm>

#include "graph/op_registry.h"
#include "graph/schema_inference.h"

namespace onnxtrain {
namespace {

template <typename T>
void EraseOne(std::vector<T*>& list, const T* item) {
  auto found = std::find(list.begin(), list.end(), item);
  CHECK(found != list.end());
  list.erase(found);
}

std::string TypesOf(const std::vector<Value*>& values) {
  std::string text;
  for (const Value* value : values) {
    if (!text.empty()) text += ", ";
    text += value == nullptr ? "omitted" : value->name() + ": " + ToString(value->type());
  }
  return text;
}

StatusOr<std::vector<TensorType>> InferOutputs(const OpDef& def, const NodeSpec& spec) {
  InferContext context{def.name, spec.attributes, {}, {}, {}};
  for (const Value* input : spec.inputs) {
    context.inputs.push_back(input == nullptr ? TensorType{} : input->type());
    context.constants.push_back(input == nullptr ? nullptr : input->constant());
  }
  for (const std::string& name : spec.output_names) context.wanted.push_back(!name.empty());
  return def.infer ? def.infer(context) : InferFromSchema(context);
}

}  // namespace

Graph::Graph(const OpRegistry& registry, std::string name) : registry_(&registry), name_(std::move(name)) {}
Graph::Graph(Graph&&) noexcept = default;
Graph& Graph::operator=(Graph&&) noexcept = default;
Graph::~Graph() = default;

Graph Graph::Clone(std::string name) const {
  Graph copy(*registry_, std::move(name));
  std::unordered_map<const Value*, Value*> twin{{nullptr, nullptr}};
  for (const Value* input : inputs_) twin[input] = copy.AddInput(input->name(), input->type());
  for (const Value* state : states_) twin[state] = copy.AddState(state->name(), state->type());
  for (const Value* constant : constants_) {
    twin[constant] = copy.AddConstant(constant->name(), *constant->constant());
  }
  auto mapped = [&](const std::vector<Value*>& values) {
    std::vector<Value*> result;
    for (const Value* value : values) result.push_back(twin.at(value));
    return result;
  };
  for (const std::unique_ptr<Node>& node : nodes_) {
    NodeSpec spec{node->op(), mapped(node->inputs()), node->attributes(), {}, node->origin(), {}};
    for (const Value* output : node->outputs()) {
      spec.output_names.push_back(output == nullptr ? "" : output->name());
      spec.output_types.push_back(output == nullptr ? TensorType{} : output->type());
    }
    StatusOr<Node*> made = copy.Insert(nullptr, std::move(spec));
    CHECK_WITH(made.ok(), made.status().message());
    for (size_t i = 0; i < node->outputs().size(); ++i) twin[node->output(i)] = (*made)->output(i);
    twin[nullptr] = nullptr;
  }
  for (const Value* state : states_) {
    if (state->update() != nullptr) copy.SetUpdate(twin.at(state), twin.at(state->update()));
  }
  for (const Value* output : outputs_) copy.AddOutput(twin.at(output));
  for (const auto& [role, value] : roles_) copy.SetRole(role, twin.at(value));
  return copy;
}

Value* Graph::NewValue(std::string name, TensorType type, ValueKind kind) {
  auto value = std::make_unique<Value>();
  value->name_ = name;
  value->type_ = std::move(type);
  value->kind_ = kind;
  Value* raw = value.get();
  const bool inserted = values_.emplace(std::move(name), std::move(value)).second;
  CHECK_WITH(inserted, "two values named '" + raw->name_ + "'");
  return raw;
}

Value* Graph::AddInput(std::string name, TensorType type) {
  inputs_.push_back(NewValue(std::move(name), std::move(type), ValueKind::kInput));
  return inputs_.back();
}

Value* Graph::AddState(std::string name, TensorType type) {
  states_.push_back(NewValue(std::move(name), std::move(type), ValueKind::kState));
  return states_.back();
}

Value* Graph::AddConstant(std::string_view name, Tensor tensor) {
  Value* value = NewValue(UniqueName(name), tensor.type(), ValueKind::kConstant);
  value->constant_ = std::make_unique<Tensor>(std::move(tensor));
  constants_.push_back(value);
  return value;
}

StatusOr<Node*> Graph::Insert(Node* before, NodeSpec spec) {
  const OpDef* def = registry_->Find(spec.op);
  if (def == nullptr) {
    return InvalidModelError("operator '" + spec.op + "'" + (spec.origin.empty() ? "" : " of " + spec.origin) +
                             " is not supported: onnx-train has no definition of it");
  }
  if (spec.output_types.empty()) {
    StatusOr<std::vector<TensorType>> types = InferOutputs(*def, spec);
    if (!types.ok()) {
      return types.status().Prepend(spec.op + (spec.origin.empty() ? "" : " from " + spec.origin) + " on (" +
                                    TypesOf(spec.inputs) + ")");
    }
    spec.output_types = *std::move(types);
  }
  if (spec.output_types.size() < spec.output_names.size()) {
    return InvalidModelError(spec.op + (spec.origin.empty() ? "" : " from " + spec.origin) + " has " +
                             std::to_string(spec.output_types.size()) + " outputs, not " +
                             std::to_string(spec.output_names.size()));
  }

  for (size_t i = 0; i < spec.output_names.size(); ++i) {
    if (spec.output_names[i].empty() || spec.output_types[i].known()) continue;
    return InvalidModelError(spec.op + (spec.origin.empty() ? "" : " from " + spec.origin) + " on (" +
                             TypesOf(spec.inputs) + ") has no type for output " + std::to_string(i));
  }

  auto node = std::make_unique<Node>();
  node->def_ = def;
  node->attributes_ = std::move(spec.attributes);
  node->inputs_ = std::move(spec.inputs);
  node->origin_ = std::move(spec.origin);
  for (Value* input : node->inputs_) {
    if (input != nullptr) input->consumers_.push_back(node.get());
  }
  for (size_t i = 0; i < spec.output_names.size(); ++i) {
    if (spec.output_names[i].empty()) {
      node->outputs_.push_back(nullptr);
      continue;
    }
    Value* output = NewValue(UniqueName(spec.output_names[i]), spec.output_types[i], ValueKind::kIntermediate);
    output->producer_ = node.get();
    node->outputs_.push_back(output);
  }
  const auto place = before == nullptr ? nodes_.end() : before->position_;
  Node* raw = node.get();
  raw->position_ = nodes_.insert(place, std::move(node));
  return raw;
}

void Graph::Unlink(Value* value, Node* consumer) {
  if (value != nullptr) EraseOne(value->consumers_, consumer);
}

void Graph::Erase(Node* node) {
  for (Value* output : node->outputs_) {
    if (output == nullptr) continue;
    output->producer_ = nullptr;
    EraseValue(output);
  }
  for (Value* input : node->inputs_) Unlink(input, node);
  nodes_.erase(node->position_);
}

void Graph::EraseValue(Value* value) {
  CHECK_WITH(value->consumers_.empty() && value->producer_ == nullptr, "'" + value->name_ + "' is in use");
  CHECK_WITH(std::find(outputs_.begin(), outputs_.end(), value) == outputs_.end(), value->name_ + " is an output");
  for (const Value* state : states_) CHECK_WITH(state->update_ != value || state == value, value->name_ + " is an update");
  std::erase_if(roles_, [&](const auto& role) { return role.second == value; });
  if (value->kind_ == ValueKind::kInput) EraseOne(inputs_, value);
  if (value->kind_ == ValueKind::kState) EraseOne(states_, value);
  if (value->kind_ == ValueKind::kConstant) EraseOne(constants_, value);
  values_.erase(std::string(value->name_));
}

Status Graph::ReplaceUses(Value* from, Value* to) {
  if (from == to) return OkStatus();
  if (!(from->type_ == to->type_)) {
    return InternalError("cannot replace '" + from->name_ + "' of type " + ToString(from->type_) + " by '" +
                         to->name_ + "' of type " + ToString(to->type_));
  }
  for (Node* consumer : from->consumers_) {
    std::replace(consumer->inputs_.begin(), consumer->inputs_.end(), from, to);
    to->consumers_.push_back(consumer);
  }
  from->consumers_.clear();
  for (Value* state : states_) {
    if (state->update_ == from) state->update_ = to;
  }
  if (std::find(outputs_.begin(), outputs_.end(), from) != outputs_.end()) {
    std::replace(outputs_.begin(), outputs_.end(), from, to);
    if (to->kind_ == ValueKind::kIntermediate && from->kind_ == ValueKind::kIntermediate) {
      const std::string name = from->name_;
      Rename(from, UniqueName(name));
      Rename(to, name);
    }
  }
  return OkStatus();
}

void Graph::SetInput(Node* node, size_t index, Value* value) {
  CHECK(index < node->inputs_.size());
  Unlink(node->inputs_[index], node);
  node->inputs_[index] = value;
  if (value != nullptr) value->consumers_.push_back(node);
}

void Graph::SetAttribute(Node* node, std::string name, AttributeValue value) {
  node->attributes_.Set(std::move(name), std::move(value));
}

void Graph::MoveBefore(Node* node, Node* before) {
  nodes_.splice(before == nullptr ? nodes_.end() : before->position_, nodes_, node->position_);
}

void Graph::SetUpdate(Value* state, Value* update) {
  CHECK_WITH(state->kind_ == ValueKind::kState, state->name_);
  CHECK_WITH(update == nullptr || update->type_ == state->type_,
             state->name_ + ": " + ToString(state->type_) + ", update " + (update ? ToString(update->type_) : ""));
  state->update_ = update;
}

void Graph::AddOutput(Value* value) { outputs_.push_back(value); }

void Graph::RemoveOutput(Value* value) { EraseOne(outputs_, value); }

void Graph::Rename(Value* value, std::string name) {
  if (value->name_ == name) return;
  auto handle = values_.extract(value->name_);
  handle.key() = name;
  value->name_ = std::move(name);
  CHECK_WITH(values_.insert(std::move(handle)).inserted, "name in use");
}

void Graph::SetRole(std::string role, Value* value) { roles_[std::move(role)] = value; }

Value* Graph::FindRole(std::string_view role) const {
  auto found = roles_.find(role);
  return found == roles_.end() ? nullptr : found->second;
}

void Graph::EraseRole(std::string_view role) {
  auto found = roles_.find(role);
  if (found != roles_.end()) roles_.erase(found);
}

std::vector<Node*> Graph::NodesInOrder() const {
  std::vector<Node*> order;
  order.reserve(nodes_.size());
  for (const std::unique_ptr<Node>& node : nodes_) order.push_back(node.get());
  return order;
}

Value* Graph::FindValue(std::string_view name) const {
  auto found = values_.find(std::string(name));
  return found == values_.end() ? nullptr : found->second.get();
}

std::string Graph::UniqueName(std::string_view wanted) const {
  std::string name(wanted);
  for (int suffix = 1; FindValue(name) != nullptr; ++suffix) name = std::string(wanted) + "_" + std::to_string(suffix);
  return name;
}

}  // namespace onnxtrain
