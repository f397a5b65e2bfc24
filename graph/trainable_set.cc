// SPDX-License-Identifier: Apache-2.0
#include "graph/trainable_set.h"

#include <algorithm>
#include <array>
#include <optional>
#include <unordered_set>

#include "graph/glob.h"
#include "graph/gradient_reach.h"
#include "graph/nearest_name.h"
#include "graph/onnx_model.h"
#include "graph/tensor_pattern.h"

namespace onnxtrain {
namespace {

// A default verdict; `fixed` ones no glob can change.
struct Judgement {
  Verdict verdict = Verdict::kTrainable;
  std::string reason;
  bool fixed = false;
};

Judgement Trains(std::string reason) { return {Verdict::kTrainable, std::move(reason), false}; }
Judgement Buffer(std::string reason) { return {Verdict::kBuffer, std::move(reason), false}; }
Judgement Constant(std::string reason) { return {Verdict::kConstant, std::move(reason), false}; }
Judgement Never(Verdict verdict, std::string reason) { return {verdict, std::move(reason), true}; }

bool EndsWith(std::string_view text, std::string_view ending) {
  return text.size() >= ending.size() && text.substr(text.size() - ending.size()) == ending;
}

std::string_view LastComponent(std::string_view name) {
  const size_t dot = name.find_last_of("./");
  return dot == std::string_view::npos ? name : name.substr(dot + 1);
}

// Buffers that well-known modules register. A bias of a layer called "attn" has rank 1, the mask of that name more.
bool HasBufferName(std::string_view name, int64_t rank) {
  constexpr std::array<std::string_view, 7> kNames = {"running_mean", "running_var",  "num_batches_tracked", "inv_freq",
                                                      "masked_bias",  "position_ids", "original_inv_freq"};
  const std::string_view last = LastComponent(name);
  if (std::find(kNames.begin(), kNames.end(), last) != kNames.end()) return true;
  return rank > 1 && EndsWith(name, "attn.bias");
}

// Without its numeric suffix: "unsqueeze" of "unsqueeze_14".
std::string_view Stem(std::string_view name) {
  const size_t end = name.find_last_not_of("0123456789");
  const bool suffixed = end != std::string_view::npos && end + 1 < name.size() && end > 0 && name[end] == '_';
  return suffixed ? name.substr(0, end) : name;
}

// val_9: what the dynamo exporter calls a constant that it folded.
bool HasFoldedName(std::string_view name) { return Stem(name) == "val" && name != "val"; }

// unsqueeze_14: a constant that kept the name of the operation that made it. A lone "embedding" may be a parameter.
bool HasOperationName(std::string_view name) {
  constexpr std::array<std::string_view, 24> kOperations = {
      "unsqueeze", "squeeze", "zeros", "ones",        "full", "arange", "where", "expand",
      "div",       "mul",     "add",   "sub",         "neg",  "cos",    "sin",   "slice",
      "stack",     "permute", "clone", "masked_fill", "triu", "tril",   "rsqrt", "embedding"};
  const std::string_view stem = Stem(name);
  return std::find(kOperations.begin(), kOperations.end(), stem) != kOperations.end() && name != "embedding";
}

// The operator that multiplies by the tensor directly; null when none does.
const Node* Contraction(const Value& value) {
  for (const Node* node : value.consumers()) {
    const std::string& op = node->op();
    const bool contracts = op == "MatMul" || op == "Gemm" || op == "Conv" || op == "ConvTranspose";
    if (contracts && (node->input(0) == &value || node->input(1) == &value)) return node;
  }
  return nullptr;
}

const Node* StatisticsReader(const Value& value) {
  for (const Node* node : value.consumers()) {
    if (node->op() == "BatchNormalization" && (node->input(3) == &value || node->input(4) == &value)) return node;
  }
  return nullptr;
}

class Judge {
 public:
  Judge(const Graph& graph, std::span<const Value* const> losses, const std::vector<InitializerFacts>& facts,
        const ReadInitializer& read)
      : graph_(graph), read_(read), reached_(GradientReach(graph, losses)) {
    labelled_ = std::any_of(facts.begin(), facts.end(), [](const InitializerFacts& f) { return !f.label.empty(); });
  }

  StatusOr<Judgement> Decide(const InitializerFacts& facts) const {
    if (!IsFloating(facts.type.dtype)) {
      const std::string type = facts.type.known() ? ToString(facts.type) : facts.type_text;
      return Never(Verdict::kConstant, "its type " + type + " has no gradient");
    }
    const Value* value = graph_.FindValue(facts.name);
    if (value != nullptr) {
      if (const Node* node = StatisticsReader(*value)) {
        return Never(Verdict::kBuffer, "running statistics of " + node->Describe());
      }
    }
    if (HasBufferName(facts.name, facts.type.rank()) && facts.label != "PARAMETER") {
      return WithReach(value, Buffer("'" + std::string(LastComponent(facts.name)) + "' is the name of a buffer"));
    }
    if (facts.label == "BUFFER") return WithReach(value, Buffer("the exporter labelled it BUFFER"));
    if (!Reaches(value)) return WithReach(value, Constant(""));
    if (facts.label == "PARAMETER") return Trains("the exporter labelled it PARAMETER and the loss depends on it");
    return WithoutLabel(facts, *value);
  }

 private:
  bool Reaches(const Value* value) const { return value != nullptr && reached_.contains(value); }

  // What has no path to the loss can never train, whatever else it is.
  Judgement WithReach(const Value* value, Judgement judgement) const {
    if (Reaches(value)) return judgement;
    if (judgement.verdict == Verdict::kConstant) judgement.reason = "the loss does not depend on it";
    judgement.fixed = true;
    return judgement;
  }

  StatusOr<Judgement> WithoutLabel(const InitializerFacts& facts, const Value& value) const {
    if (facts.type.rank() == 0) return Constant("a single number: exporters lift the constants of formulas like this");
    const bool folded = HasFoldedName(facts.name);
    const Node* contraction = facts.type.rank() >= 2 ? Contraction(value) : nullptr;
    if (contraction != nullptr) {
      if (!labelled_ && !folded && !HasOperationName(facts.name)) return Trains("the loss depends on it");
      return Trains("a folded parameter: without a label or name, but " + contraction->Describe() +
                    " multiplies by it");
    }
    if (labelled_) return Constant("other tensors are labelled PARAMETER, this one is not");
    if (HasOperationName(facts.name)) return Constant("it has the name of an operation: the exporter computed it");
    if (folded || facts.type.rank() >= 2) {
      ASSIGN_OR_RETURN(const std::optional<Judgement> by_contents, ByContents(facts, folded));
      if (by_contents) return *by_contents;
    }
    return Trains("the loss depends on it");
  }

  StatusOr<std::optional<Judgement>> ByContents(const InitializerFacts& facts, bool folded) const {
    ASSIGN_OR_RETURN(const Tensor tensor, read_(facts.name));
    std::optional<Judgement> found;
    if (LooksLikeMask(tensor)) found = Constant("it holds a mask: two values only, one of them 0");
    if (LooksLikeSinusoids(tensor))
      found = Constant("it holds sines and cosines of positions, computed and not learned");
    if (folded && IsUniform(tensor)) found = Constant("the exporter named it, and all its elements are the same");
    return found;
  }

  const Graph& graph_;
  const ReadInitializer& read_;
  std::unordered_set<const Value*> reached_;
  bool labelled_ = false;
};

std::string FirstMatch(const std::vector<std::string>& globs, const std::string& name) {
  for (const std::string& glob : globs) {
    if (MatchesGlob(glob, name)) return glob;
  }
  return "";
}

// Applies the globs to one tensor.
TensorVerdict Settle(const std::string& name, Judgement judgement, const TrainableSetOptions& options) {
  if (judgement.fixed) return {name, judgement.verdict, judgement.reason};
  const std::string wanted = FirstMatch(options.trainable, name);
  if (!wanted.empty()) judgement = Trains("--trainable '" + wanted + "' names it");
  if (!options.trainable.empty() && wanted.empty() && judgement.verdict == Verdict::kTrainable) {
    judgement = {Verdict::kFrozen, "no --trainable glob names it", false};
  }
  const std::string frozen = FirstMatch(options.freeze, name);
  if (!frozen.empty() && judgement.verdict == Verdict::kTrainable) {
    judgement = {Verdict::kFrozen, "--freeze '" + frozen + "' names it", false};
  }
  return {name, judgement.verdict, judgement.reason};
}

Status UnmatchedGlob(const std::string& option, const std::string& glob, const std::vector<InitializerFacts>& facts) {
  std::vector<std::string> names;
  for (const InitializerFacts& fact : facts) names.push_back(fact.name);
  return UsageError(option + " '" + glob + "' matches no initializer of the model" + DidYouMean(glob, names));
}

// Every glob matches something, and a --trainable glob something that can train; what cannot becomes a note.
Status CheckGlobs(const std::vector<InitializerFacts>& facts, const std::vector<Judgement>& judgements,
                  const TrainableSetOptions& options, std::vector<std::string>& notes) {
  for (const std::string& glob : options.trainable) {
    std::vector<std::string> impossible;
    bool possible = false;
    for (size_t i = 0; i < facts.size(); ++i) {
      if (!MatchesGlob(glob, facts[i].name)) continue;
      possible = possible || !judgements[i].fixed;
      if (judgements[i].fixed) impossible.push_back("'" + facts[i].name + "' cannot train: " + judgements[i].reason);
    }
    if (!possible && impossible.empty()) return UnmatchedGlob("--trainable", glob, facts);
    if (!possible) return InvalidModelError("--trainable '" + glob + "': " + impossible[0]);
    for (std::string& note : impossible) notes.push_back("--trainable '" + glob + "': " + std::move(note));
  }
  for (const std::string& glob : options.freeze) {
    const bool matches = std::any_of(facts.begin(), facts.end(),
                                     [&](const InitializerFacts& fact) { return MatchesGlob(glob, fact.name); });
    if (!matches) return UnmatchedGlob("--freeze", glob, facts);
  }
  return OkStatus();
}

Status EmptySet(const TrainableSet& set) {
  std::string message = "nothing trains: ";
  if (set.tensors.empty()) return InvalidModelError(message + "the model has no initializers");
  constexpr size_t kShown = 5;
  for (size_t i = 0; i < std::min(kShown, set.tensors.size()); ++i) {
    const TensorVerdict& tensor = set.tensors[i];
    message += (i == 0 ? "'" : "; '") + tensor.name + "' is " + std::string(NameOf(tensor.verdict)) + " (" +
               tensor.reason + ")";
  }
  if (set.tensors.size() > kShown) message += "; and " + std::to_string(set.tensors.size() - kShown) + " more";
  return InvalidModelError(message + ". `inspect` lists all; --trainable GLOB overrides");
}

}  // namespace

std::string_view NameOf(Verdict verdict) {
  switch (verdict) {
    case Verdict::kTrainable:
      return "trainable";
    case Verdict::kFrozen:
      return "frozen";
    case Verdict::kBuffer:
      return "buffer";
    case Verdict::kConstant:
      return "constant";
  }
  internal::CheckFailed(__FILE__, __LINE__, "verdict", std::to_string(static_cast<int>(verdict)));
}

const TensorVerdict* TrainableSet::Find(std::string_view name) const {
  const auto found =
      std::find_if(tensors.begin(), tensors.end(), [&](const TensorVerdict& tensor) { return tensor.name == name; });
  return found == tensors.end() ? nullptr : &*found;
}

std::vector<std::string> TrainableSet::Trainable() const {
  std::vector<std::string> names;
  for (const TensorVerdict& tensor : tensors) {
    if (tensor.verdict == Verdict::kTrainable) names.push_back(tensor.name);
  }
  return names;
}

StatusOr<TrainableSet> FindTrainableSet(const Graph& graph, std::span<const Value* const> losses,
                                        const std::vector<InitializerFacts>& facts, const ReadInitializer& read,
                                        const TrainableSetOptions& options) {
  const Judge judge(graph, losses, facts, read);
  std::vector<Judgement> judgements;
  for (const InitializerFacts& fact : facts) {
    ASSIGN_OR_RETURN(Judgement judgement, judge.Decide(fact));
    judgements.push_back(std::move(judgement));
  }
  TrainableSet set;
  RETURN_IF_ERROR(CheckGlobs(facts, judgements, options, set.notes));
  for (size_t i = 0; i < facts.size(); ++i) {
    set.tensors.push_back(Settle(facts[i].name, judgements[i], options));
    if (set.tensors.back().verdict == Verdict::kTrainable && LastComponent(facts[i].name) == "pe") {
      set.notes.push_back("'" + facts[i].name + "' has a name of position tables that are often computed and not " +
                          "learned; it trains. --freeze it if it should not");
    }
  }
  if (!options.allow_empty && set.Trainable().empty()) return EmptySet(set);
  return set;
}

std::vector<InitializerFacts> FactsOf(const OnnxModel& model) {
  constexpr const char* kLabelKey = "pkg.torch.export.graph_signature.InputSpec.kind";
  std::vector<InitializerFacts> facts;
  for (const ModelInitializer& initializer : model.initializers()) {
    const auto kind = initializer.metadata.find(kLabelKey);
    std::string label = kind == initializer.metadata.end() ? "" : kind->second;
    // "InputKind.PARAMETER" in some versions.
    label = label.substr(label.rfind('.') + 1);
    if (label != "PARAMETER" && label != "BUFFER") label.clear();
    facts.push_back({initializer.name, initializer.type, initializer.type_text, std::move(label)});
  }
  return facts;
}

StatusOr<TrainableSet> FindTrainableSet(const Graph& graph, std::span<const Value* const> losses,
                                        const OnnxModel& model, const TrainableSetOptions& options) {
  const auto read = [&model](const std::string& name) { return model.Initializer(name); };
  return FindTrainableSet(graph, losses, FactsOf(model), read, options);
}

}  // namespace onnxtrain
