// SPDX-License-Identifier: Apache-2.0
#include "graph/program_text.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>

#include "graph/op_registry.h"
#include "graph/program_metadata.h"
#include "graph/text_reader.h"
#include "graph/text_writer.h"

namespace onnxtrain {
namespace {

using Metadata = std::vector<std::pair<std::string, std::string>>;

constexpr std::string_view kState = "state.";
constexpr std::string_view kLayout = "layout";

// ---- reading

std::vector<std::string_view> SplitSections(std::string_view text) {
  std::vector<std::string_view> sections;
  size_t begin = 0, line = 0;
  while (line < text.size()) {
    const size_t end = std::min(text.find('\n', line), text.size());
    if (text.substr(line, end - line) == "---") {
      sections.push_back(text.substr(begin, line - begin));
      begin = std::min(end + 1, text.size());
    }
    line = end + 1;
  }
  sections.push_back(text.substr(begin));
  return sections;
}

std::optional<StateClass> StateClassFromName(std::string_view name) {
  for (const StateClass known :
       {StateClass::kParameter, StateClass::kFrozen, StateClass::kBuffer, StateClass::kOptimizerState,
        StateClass::kCounter, StateClass::kAccumulator, StateClass::kReplica}) {
    if (NameOf(known) == name) return known;
  }
  return std::nullopt;
}

bool ParseNumber(std::string_view text, int64_t& value) {
  const std::from_chars_result result = std::from_chars(text.data(), text.data() + text.size(), value);
  return result.ec == std::errc() && result.ptr == text.data() + text.size() && value >= 0;
}

// "float" or "float[2,3]", as TypeText writes it.
bool ParseType(std::string_view text, TensorType& type) {
  const size_t bracket = text.find('[');
  const std::optional<DType> dtype = DTypeFromName(text.substr(0, bracket));
  if (!dtype) return false;
  type = {*dtype, {}};
  if (bracket == std::string_view::npos) return true;
  std::string_view dims = text.substr(bracket + 1);
  while (!dims.empty()) {
    const size_t end = dims.find_first_of(",]");
    if (end == std::string_view::npos || !ParseNumber(dims.substr(0, end), type.shape.emplace_back())) return false;
    if (dims[end] == ']') return end + 1 == dims.size();
    dims.remove_prefix(end + 1);
  }
  return false;
}

class ProgramReader {
 public:
  StatusOr<Program> Read(std::string_view text) {
    const std::vector<std::string_view> sections = SplitSections(text);
    for (const std::string_view section : sections) RETURN_IF_ERROR(ReadMetadata(section));
    for (const std::string_view section : sections) RETURN_IF_ERROR(ReadGraph(section));
    RETURN_IF_ERROR(AddTable());
    RETURN_IF_ERROR(AddInitial());
    return std::move(program_);
  }

 private:
  Status ReadMetadata(std::string_view section) {
    ASSIGN_OR_RETURN(const Metadata metadata, ReadTextMetadata(section));
    for (const auto& [key, value] : metadata) {
      if (key.starts_with(kState)) RETURN_IF_ERROR(ReadState(key.substr(kState.size()), value));
      if (key == kLayout) layout_text_ = value;
      if (key.starts_with("layout.")) layout_text_ += "\n" + value;
      if (key == "world_size") RETURN_IF_ERROR(ReadCount(key, value, program_.world_size));
      if (key == "accumulation") RETURN_IF_ERROR(ReadCount(key, value, program_.accumulation));
    }
    return OkStatus();
  }

  static Status ReadCount(const std::string& key, const std::string& value, int& count) {
    int64_t number = 0;
    if (!ParseNumber(value, number) || number < 1 || number > (1 << 20)) {
      return InvalidModelError("metadata '" + key + "' is '" + value + "', expected a number from 1");
    }
    count = static_cast<int>(number);
    return OkStatus();
  }

  Status ReadState(std::string name, std::string_view text) {
    const auto take = [&text] {
      const size_t end = std::min(text.find(' '), text.size());
      const std::string_view word = text.substr(0, end);
      text.remove_prefix(std::min(end + 1, text.size()));
      return word;
    };
    StateEntry entry;
    entry.name = std::move(name);
    const std::string where = "metadata 'state." + entry.name + "'";
    const std::string_view class_name = take();
    const std::optional<StateClass> state_class = StateClassFromName(class_name);
    if (!state_class) return InvalidModelError(where + ": '" + std::string(class_name) + "' is no class of state");
    entry.state_class = *state_class;
    int64_t bucket = -1;
    if (text.starts_with("bucket=") && !ParseNumber(take().substr(7), bucket)) {
      return InvalidModelError(where + ": bucket= needs a number");
    }
    entry.bucket = static_cast<int>(bucket);
    if (text == "sharded" || text.starts_with("sharded ")) entry.sharded = !take().empty();
    if (text.starts_with("type=") && !ParseType(take().substr(5), entry.type)) {
      return InvalidModelError(where + ": type= needs a type such as float[2,3]");
    }
    SetCanonical(entry, text.empty() ? std::string(class_name) + "/" + entry.name : std::string(text));
    for (const StateEntry& other : table_) {
      if (other.name == entry.name) return InvalidModelError(where + " stands twice");
    }
    names_.insert(entry.name);
    table_.push_back(std::move(entry));
    return OkStatus();
  }

  static void SetCanonical(StateEntry& entry, const std::string& canonical) {
    const size_t slash = entry.bucket >= 0 ? canonical.size() : std::min(canonical.find('/'), canonical.size());
    entry.role = canonical.substr(0, slash);
    if (slash < canonical.size()) entry.parameter = canonical.substr(slash + 1);
  }

  Status ReadGraph(std::string_view section) {
    ASSIGN_OR_RETURN(TextGraph read, ReadGraphText(section, OpRegistry::Default(), names_));
    const std::string name = read.graph.name();
    if (program_.FindGraph(name) != nullptr) return InvalidModelError("two graphs named '" + name + "'");
    for (auto& entry : read.initial) initial_.push_back(std::move(entry));
    const Graph& graph = program_.AddGraph(std::move(read.graph));
    for (const Value* state : graph.states()) {
      if (!names_.insert(state->name()).second) continue;
      table_.push_back({state->name(), state->type(), StateClass::kParameter, "parameter", state->name()});
    }
    return OkStatus();
  }

  Status AddTable() {
    for (StateEntry& entry : table_) {
      const TensorType* type = StateTypeInGraphs(program_, entry.name);
      if (!entry.type.known() && type == nullptr) {
        return InvalidModelError("metadata 'state." + entry.name + "': no graph has this state, so it needs type=");
      }
      if (!entry.type.known()) entry.type = *type;
      program_.AddState(std::move(entry));
    }
    if (layout_text_.empty()) return OkStatus();
    ASSIGN_OR_RETURN(Layout layout, Layout::Parse(layout_text_));
    program_.set_layout(std::move(layout));
    return OkStatus();
  }

  Status AddInitial() {
    for (auto& [name, tensor] : initial_) {
      std::string canonical = name.starts_with(kInitialPrefix) ? name.substr(kInitialPrefix.size()) : "";
      if (canonical.empty()) {
        const StateEntry* entry = program_.FindState(name);
        if (entry == nullptr || entry->bucket >= 0) {
          return InvalidModelError("'" + name +
                                   "' is a bucket and has no initial value of its own; give those of its "
                                   "parameters, named '" +
                                   std::string(kInitialPrefix) + "<role>/<parameter>'");
        }
        canonical = CanonicalName(*entry);
      }
      if (!program_.initial.emplace(canonical, std::move(tensor)).second) {
        return InvalidModelError("two initial values of '" + canonical + "'");
      }
    }
    return OkStatus();
  }

  Program program_;
  std::vector<StateEntry> table_;
  std::set<std::string, std::less<>> names_;
  std::vector<std::pair<std::string, Tensor>> initial_;
  std::string layout_text_;
};

}  // namespace

std::string WriteProgramText(const Program& program, const TextOptions& options) {
  std::string text;
  for (const auto& [name, graph] : program.graphs()) {
    TextContext context;
    context.states = StatesInTableOrder(program, graph);
    if (text.empty()) {
      context.metadata = ProgramMetadata(program);
      context.initial = InitialValues(program, graph);
    } else {
      text += "---\n";
    }
    text += WriteGraphText(graph, options, context);
  }
  return text;
}

StatusOr<Program> ReadProgramText(std::string_view text) { return ProgramReader().Read(text); }

}  // namespace onnxtrain
