// SPDX-License-Identifier: Apache-2.0
#include "graph/traps.h"

#include <algorithm>
#include <array>
#include <map>

#include "graph/digest.h"

namespace onnxtrain {
namespace {

constexpr size_t kShown = 3;

// "'a', 'b', 'c' and 4 more"
std::string Listed(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < std::min(kShown, names.size()); ++i) text += (i == 0 ? "'" : ", '") + names[i] + "'";
  if (names.size() > kShown) text += " and " + std::to_string(names.size() - kShown) + " more";
  return text;
}

bool StartsWith(std::string_view text, std::string_view start) { return text.substr(0, start.size()) == start; }

// "onnx::MatMul_123" of the TorchScript exporter, "val_9" of the dynamo exporter.
bool IsAnonymous(std::string_view name) {
  return StartsWith(name, "onnx::") ||
         (StartsWith(name, "val_") && name.find_first_not_of("0123456789", 4) == std::string_view::npos);
}

// How many inputs of nodes are this value.
int64_t UsesOf(const OnnxModel& model, const std::string& name) {
  int64_t uses = 0;
  for (const ModelNode& node : model.nodes()) uses += std::count(node.inputs.begin(), node.inputs.end(), name);
  return uses;
}

void FindFalseTies(const OnnxModel& model, std::vector<std::string>& traps) {
  std::map<std::string, std::vector<std::string>> by_source;
  for (const auto& [name, source] : model.tied_names()) {
    if (!StartsWith(name, "alias")) by_source[source].push_back(name);  // aten.alias is an operation of the module
  }
  for (const auto& [source, names] : by_source) {
    if (UsesOf(model, source) < 2) continue;  // the Identity alone: nothing is shared
    traps.push_back(Listed(names) + (names.size() == 1 ? " is an Identity" : " are Identities") + " of '" + source +
                    "': the exporter merged tensors that held equal numbers, and training the file as it is trains "
                    "them as one. --untie gives each its own");
  }
}

void FindLostNames(const OnnxModel& model, std::vector<std::string>& traps) {
  std::vector<std::string> weights;
  std::vector<std::string> convolutions;
  for (const ModelInitializer& initializer : model.initializers()) {
    if (!IsFloating(initializer.type.dtype) || !IsAnonymous(initializer.name)) continue;
    if (StartsWith(initializer.name, "onnx::Conv")) {
      convolutions.push_back(initializer.name);
    } else if (initializer.type.rank() >= 2) {
      weights.push_back(initializer.name);
    }
  }
  if (!weights.empty()) {
    traps.push_back(Listed(weights) +
                    ": constant folding took the names (and may have transposed the weights); they "
                    "train, but cannot be matched with the original module. Export with do_constant_folding=False or "
                    "optimize=False to keep them");
  }
  if (!convolutions.empty()) {
    traps.push_back(Listed(convolutions) +
                    ": BatchNormalization was folded into these convolutions at export and cannot "
                    "be trained as such. Export the model in training mode to keep it");
  }
}

void FindInferenceForm(const OnnxModel& model, std::vector<std::string>& traps) {
  std::map<std::string, std::vector<std::string>> inactive;
  for (const ModeNode& node : model.mode_nodes()) {
    if (node.known && !node.training) inactive[node.op].push_back(node.name);
  }
  if (const auto found = inactive.find("BatchNormalization"); found != inactive.end()) {
    traps.push_back(std::to_string(found->second.size()) + " BatchNormalization nodes are in inference form (" +
                    Listed(found->second) +
                    "): they use their running statistics and do not update them. --bn train "
                    "uses those of the batch");
  }
  if (const auto found = inactive.find("Dropout"); found != inactive.end()) {
    traps.push_back(std::to_string(found->second.size()) + " Dropout nodes are in inference form (" +
                    Listed(found->second) + "). --dropout on makes them draw");
  }
}

void FindFixedBatch(const OnnxModel& model, std::vector<std::string>& traps) {
  for (const ModelValue& input : model.inputs()) {
    if (!input.dims || input.dims->empty() || !input.dims->front().value) return;
  }
  if (model.inputs().empty()) return;
  const ModelValue& input = model.inputs().front();
  traps.push_back("the export fixes the batch: input '" + input.name + "' is " + input.type +
                  ". --batch-size must be " + std::to_string(*input.dims->front().value) +
                  "; export with a dynamic first axis to choose it freely");
}

// Equal for a matrix and its transpose: a sum over elements does not depend on their order. 0 when all are equal.
uint64_t ContentsOf(const Tensor& tensor) {
  const size_t size = SizeOf(tensor.dtype());
  const std::string_view bytes(reinterpret_cast<const char*>(tensor.data()), tensor.bytes());
  uint64_t sum = 0;
  bool varied = false;
  for (size_t at = 0; at < bytes.size(); at += size) {
    sum += Fnv1a(bytes.substr(at, size));
    varied = varied || bytes.substr(at, size) != bytes.substr(0, size);
  }
  return varied ? sum : 0;
}

bool IsTableOfGather(const OnnxModel& model, const std::string& name) {
  return std::any_of(model.nodes().begin(), model.nodes().end(), [&](const ModelNode& node) {
    return node.op == "Gather" && !node.inputs.empty() && node.inputs[0] == name;
  });
}

// An embedding and a folded head that hold the same numbers were one parameter.
Status FindCutTies(const OnnxModel& model, std::vector<std::string>& traps) {
  std::map<std::pair<int64_t, uint64_t>, std::vector<std::string>> groups;
  const auto& initializers = model.initializers();
  const bool folded = std::any_of(initializers.begin(), initializers.end(),
                                  [](const ModelInitializer& i) { return IsAnonymous(i.name) && i.type.rank() == 2; });
  if (!folded) return OkStatus();
  for (const ModelInitializer& initializer : initializers) {
    if (!IsFloating(initializer.type.dtype) || initializer.type.rank() != 2) continue;
    if (!IsAnonymous(initializer.name) && !IsTableOfGather(model, initializer.name)) continue;
    ASSIGN_OR_RETURN(const Tensor tensor, model.Initializer(initializer.name));
    const uint64_t contents = ContentsOf(tensor);
    if (contents != 0) groups[{tensor.elements(), contents}].push_back(initializer.name);
  }
  for (const auto& [key, names] : groups) {
    if (names.size() < 2) continue;
    traps.push_back(Listed(names) +
                    " hold the same numbers: one shared parameter that folding has copied. They train "
                    "apart from here on");
  }
  return OkStatus();
}

// The node that reduces: through what keeps the number.
const Node* Reducer(const Value& loss) {
  constexpr std::array<std::string_view, 6> kKeep = {"Identity", "Cast", "Reshape", "Squeeze", "Unsqueeze", "Flatten"};
  const Node* node = loss.producer();
  while (node != nullptr && std::find(kKeep.begin(), kKeep.end(), node->op()) != kKeep.end() &&
         node->input(0) != nullptr && node->input(0)->type().elements() == 1) {
    node = node->input(0)->producer();
  }
  return node;
}

}  // namespace

std::string LossReductionTrap(const Value& loss) {
  constexpr std::string_view kCombined = ". Ranks and micro-batches are combined by their number of samples";
  const Node* node = Reducer(loss);
  if (node == nullptr || node->op() == "ReduceMean") return "";
  if (node->op() == "SoftmaxCrossEntropyLoss" || node->op() == "NegativeLogLikelihoodLoss") {
    const std::string reduction = node->attributes().String("reduction", "mean");
    if (reduction == "mean") return "";
    return "the loss '" + loss.name() + "' of " + node->Describe() + " has reduction '" + reduction + "', not a mean" +
           std::string(kCombined);
  }
  return "the loss '" + loss.name() + "' comes from " + node->Describe() +
         ": whether it is a mean over samples cannot be seen" + std::string(kCombined);
}

StatusOr<std::vector<std::string>> FindTraps(const OnnxModel& model, std::span<const Value* const> losses) {
  std::vector<std::string> traps;
  FindFalseTies(model, traps);
  RETURN_IF_ERROR(FindCutTies(model, traps));
  FindLostNames(model, traps);
  FindInferenceForm(model, traps);
  FindFixedBatch(model, traps);
  for (const Value* loss : losses) {
    std::string trap = loss->type().elements() == 1 ? LossReductionTrap(*loss) : "";
    if (!trap.empty()) traps.push_back(std::move(trap));
  }
  return traps;
}

}  // namespace onnxtrain
