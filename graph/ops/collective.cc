// SPDX-License-Identifier: Apache-2.0
// Collectives and the flat buckets they work on (table in passes/README.md).
#include <charconv>
#include <limits>

#include "graph/op_registry.h"
#include "graph/ops/all_ops.h"
#include "graph/ops/own_op_checks.h"

namespace onnxtrain {
namespace {

using Kind = AttributeKind;
using Types = StatusOr<std::vector<TensorType>>;
constexpr size_t kAny = std::numeric_limits<size_t>::max();

void CheckReduceOp(OwnOpChecks& check, const InferContext& context) {
  if (!check.ok()) return;
  const std::string op = context.attributes.String("op", "sum");
  check.Demand(op == "sum" || op == "max", "attribute 'op' must be \"sum\" or \"max\", found \"" + op + "\"");
}

int64_t CheckedWorldSize(OwnOpChecks& check, const InferContext& context) {
  if (!check.ok()) return 1;
  const int64_t world_size = context.attributes.Int("world_size", 1);
  check.Demand(world_size >= 1, "attribute 'world_size' must be at least 1, found " + std::to_string(world_size));
  return world_size;
}

Types InferAllReduce(const InferContext& context) {
  OwnOpChecks check(context);
  check.Inputs(1, 1);
  check.Outputs(1, 1);
  check.Attributes({{"op", Kind::kString}, {"bucket", Kind::kInt}});
  check.Floating(0, "tensor");
  CheckReduceOp(check, context);
  RETURN_IF_ERROR(check.status());
  return std::vector<TensorType>{context.inputs[0]};
}

Types InferBroadcast(const InferContext& context) {
  OwnOpChecks check(context);
  check.Inputs(1, 1);
  check.Outputs(1, 1);
  check.Attributes({{"root", Kind::kInt, true}});
  check.Demand(context.inputs.empty() || context.inputs[0].known(), "input 0 (tensor) is missing");
  RETURN_IF_ERROR(check.status());
  return std::vector<TensorType>{context.inputs[0]};
}

// [n] -> [n / world_size]
Types InferSlice(const InferContext& context) {
  OwnOpChecks check(context);
  check.Inputs(1, 1);
  check.Outputs(1, 1);
  check.Attributes({{"op", Kind::kString}, {"world_size", Kind::kInt, true}, {"bucket", Kind::kInt}});
  check.Flat(0, "bucket");
  CheckReduceOp(check, context);
  const int64_t world_size = CheckedWorldSize(check, context);
  RETURN_IF_ERROR(check.status());
  const int64_t elements = context.inputs[0].elements();
  check.Demand(elements % world_size == 0,
               std::to_string(elements) + " elements do not divide into " + std::to_string(world_size) + " shards");
  RETURN_IF_ERROR(check.status());
  return std::vector<TensorType>{{context.inputs[0].dtype, {elements / world_size}}};
}

Types InferAllGather(const InferContext& context) {
  OwnOpChecks check(context);
  check.Inputs(1, 1);
  check.Outputs(1, 1);
  check.Attributes({{"world_size", Kind::kInt, true}, {"bucket", Kind::kInt}});
  check.Flat(0, "shard");
  const int64_t world_size = CheckedWorldSize(check, context);
  RETURN_IF_ERROR(check.status());
  return std::vector<TensorType>{{context.inputs[0].dtype, {context.inputs[0].elements() * world_size}}};
}

// Tensors at `offsets` lie inside `elements` one behind the other.
void CheckPlaces(OwnOpChecks& check, const std::vector<TensorType>& types, const std::vector<int64_t>& offsets,
                 int64_t elements) {
  check.Demand(offsets.size() == types.size(), "attribute 'offsets' has " + std::to_string(offsets.size()) +
                                                   " entries for " + std::to_string(types.size()) + " tensors");
  int64_t end = 0;
  for (size_t i = 0; check.ok() && i < types.size(); ++i) {
    check.Demand(offsets[i] >= end, "tensor " + std::to_string(i) + " at offset " + std::to_string(offsets[i]) +
                                        " overlaps what ends at " + std::to_string(end));
    end = offsets[i] + types[i].elements();
  }
  check.Demand(end <= elements,
               "tensors end at element " + std::to_string(end) + ", the bucket has " + std::to_string(elements));
}

Types InferBucketPack(const InferContext& context) {
  OwnOpChecks check(context);
  check.Inputs(1, kAny);
  check.Outputs(1, 1);
  check.Attributes({{"bucket", Kind::kInt}, {"elements", Kind::kInt, true}, {"offsets", Kind::kInts, true}});
  RETURN_IF_ERROR(check.status());
  const DType dtype = context.inputs[0].dtype;
  for (size_t i = 0; i < context.inputs.size(); ++i) {
    check.Floating(i, "tensor");
    check.Demand(context.inputs[i].dtype == dtype, "tensors of one bucket have one element type, found " +
                                                       ToString(context.inputs[0]) + " and " +
                                                       ToString(context.inputs[i]));
  }
  const int64_t elements = context.attributes.Int("elements", 0);
  CheckPlaces(check, context.inputs, context.attributes.Ints("offsets"), elements);
  RETURN_IF_ERROR(check.status());
  return std::vector<TensorType>{{dtype, {elements}}};
}

// "128,784" -> {128, 784}; "" is a scalar.
StatusOr<Shape> ParseShape(const std::string& text) {
  Shape shape;
  const char* at = text.data();
  const char* const end = text.data() + text.size();
  while (at != end) {
    int64_t dim = 0;
    const auto [next, error] = std::from_chars(at, end, dim);
    const bool separated = next == end || (*next == ',' && next + 1 != end);
    if (error != std::errc() || dim < 0 || !separated) {
      return InvalidModelError("attribute 'shapes': '" + text + "' is not a list of dimensions such as \"128,784\"");
    }
    shape.push_back(dim);
    at = next == end ? end : next + 1;
  }
  return shape;
}

Types InferBucketUnpack(const InferContext& context) {
  OwnOpChecks check(context);
  check.Inputs(1, 1);
  check.Outputs(1, kAny);
  check.Attributes({{"bucket", Kind::kInt}, {"offsets", Kind::kInts, true}, {"shapes", Kind::kStrings, true}});
  check.Flat(0, "bucket");
  RETURN_IF_ERROR(check.status());
  std::vector<TensorType> types;
  for (const std::string& text : context.attributes.Strings("shapes")) {
    ASSIGN_OR_RETURN(Shape shape, ParseShape(text));
    types.push_back({context.inputs[0].dtype, std::move(shape)});
  }
  check.Demand(types.size() == context.wanted.size(), "attribute 'shapes' has " + std::to_string(types.size()) +
                                                          " entries for " + std::to_string(context.wanted.size()) +
                                                          " outputs");
  CheckPlaces(check, types, context.attributes.Ints("offsets"), context.inputs[0].elements());
  RETURN_IF_ERROR(check.status());
  return types;
}

std::vector<AliasRule> PackAliases(const Node& node) {
  const int64_t size = static_cast<int64_t>(SizeOf(node.output(0)->type().dtype));
  const std::vector<int64_t> offsets = node.attributes().Ints("offsets");
  std::vector<AliasRule> rules;
  for (size_t i = 0; i < offsets.size(); ++i) {
    rules.push_back({AliasRule::Kind::kPack, 0, static_cast<int>(i), offsets[i] * size});
  }
  return rules;
}

std::vector<AliasRule> UnpackAliases(const Node& node) {
  const int64_t size = static_cast<int64_t>(SizeOf(node.input(0)->type().dtype));
  const std::vector<int64_t> offsets = node.attributes().Ints("offsets");
  std::vector<AliasRule> rules;
  for (size_t i = 0; i < offsets.size(); ++i) {
    rules.push_back({AliasRule::Kind::kView, static_cast<int>(i), 0, offsets[i] * size});
  }
  return rules;
}

std::vector<AliasRule> InPlace(const Node&) { return {{AliasRule::Kind::kInPlace, 0, 0}}; }

OpDef Own(std::string name, InferFn infer, AliasFn aliases, bool collective) {
  OpDef def;
  def.name = std::move(name);
  def.infer = std::move(infer);
  def.aliases = std::move(aliases);
  def.collective = collective;
  return def;
}

}  // namespace

void AddCollectiveOps(OpRegistry& registry) {
  registry.Add(Own("onnxtrain.AllReduce", InferAllReduce, InPlace, /*collective=*/true));
  registry.Add(Own("onnxtrain.ReduceScatter", InferSlice, nullptr, true));
  registry.Add(Own("onnxtrain.AllGather", InferAllGather, nullptr, true));
  registry.Add(Own("onnxtrain.Broadcast", InferBroadcast, InPlace, true));
  registry.Add(Own("onnxtrain.Shard", InferSlice, nullptr, /*collective=*/false));
  registry.Add(Own("onnxtrain.BucketPack", InferBucketPack, PackAliases, false));
  registry.Add(Own("onnxtrain.BucketUnpack", InferBucketUnpack, UnpackAliases, false));
}

}  // namespace onnxtrain
