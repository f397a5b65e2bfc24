// SPDX-License-Identifier: Apache-2.0
#include "graph/text_writer.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "graph/digest.h"
#include "graph/op_registry.h"

namespace onnxtrain {
namespace {

constexpr int64_t kMaxPrintedElements = 16;

bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }

template <typename T>
std::string ShortestText(T value) {
  char text[64];
  const std::to_chars_result end = std::to_chars(text, text + sizeof(text), value);
  std::string result(text, end.ptr);
  if (result == "-nan") result = "nan";  // the sign of a NaN means nothing
  const bool is_float_already = result.find_first_of(".einf") != std::string::npos;
  return is_float_already ? result : result + ".0";
}

template <typename T, typename Printer>
std::string Joined(const T& items, Printer print) {
  std::string text;
  for (const auto& item : items) {
    if (!text.empty()) text += ", ";
    text += print(item);
  }
  return text;
}

template <typename T>
std::string ElementsText(const Tensor& tensor) {
  return Joined(tensor.values<T>(), [](T element) {
    if constexpr (std::is_floating_point_v<T>) {
      return FloatText(element);
    } else {
      return std::to_string(element);
    }
  });
}

// 16-bit floats as their bits, as ONNX's parser reads them.
std::string ElementsText(const Tensor& tensor) {
  switch (tensor.dtype()) {
    case DType::kFloat:
      return ElementsText<float>(tensor);
    case DType::kDouble:
      return ElementsText<double>(tensor);
    case DType::kInt8:
      return ElementsText<int8_t>(tensor);
    case DType::kInt16:
      return ElementsText<int16_t>(tensor);
    case DType::kInt32:
      return ElementsText<int32_t>(tensor);
    case DType::kInt64:
      return ElementsText<int64_t>(tensor);
    case DType::kUint8:
    case DType::kBool:
      return ElementsText<uint8_t>(tensor);
    case DType::kUint16:
    case DType::kFloat16:
    case DType::kBfloat16:
      return ElementsText<uint16_t>(tensor);
    case DType::kUint32:
      return ElementsText<uint32_t>(tensor);
    case DType::kUint64:
      return ElementsText<uint64_t>(tensor);
    default:
      break;
  }
  internal::CheckFailed(__FILE__, __LINE__, "printable element type", ToString(tensor.type()));
}

struct AttributeText {
  std::string operator()(int64_t value) const { return " = " + std::to_string(value); }
  std::string operator()(float value) const { return " = " + FloatText(value); }
  std::string operator()(const std::string& value) const { return " = " + QuotedText(value); }
  std::string operator()(const Tensor& value) const {
    return " = " + TypeText(value.type()) + " {" + ElementsText(value) + "}";
  }
  std::string operator()(const std::vector<int64_t>& values) const {
    return values.empty() ? ": ints = []" : " = [" + Joined(values, [](int64_t v) { return std::to_string(v); }) + "]";
  }
  std::string operator()(const std::vector<float>& values) const {
    return values.empty() ? ": floats = []" : " = [" + Joined(values, [](float v) { return FloatText(v); }) + "]";
  }
  std::string operator()(const std::vector<std::string>& values) const {
    return values.empty() ? ": strings = []" : " = [" + Joined(values, QuotedText) + "]";
  }
};

std::string AttributesText(const Attributes& attributes) {
  if (attributes.entries().empty()) return "";
  return "<" +
         Joined(attributes.entries(),
                [](const auto& entry) { return entry.first + std::visit(AttributeText{}, entry.second); }) +
         "> ";
}

std::string NamesText(const std::vector<Value*>& values) {
  return Joined(values, [](const Value* value) { return value == nullptr ? "\"\"" : NameText(value->name()); });
}

std::string NodeText(const Node& node) {
  return "  " + NamesText(node.outputs()) + " = " + node.op() + " " + AttributesText(node.attributes()) + "(" +
         NamesText(node.inputs()) + ")\n";
}

std::string SignatureText(const std::vector<Value*>& values) {
  return "(" +
         Joined(values, [](const Value* value) { return TypeText(value->type()) + " " + NameText(value->name()); }) +
         ")";
}

struct Entry {
  std::string text;
  std::string comment;
};

Entry TensorEntry(const std::string& name, const Tensor& tensor, const TextOptions& options) {
  const std::string head = TypeText(tensor.type()) + " " + NameText(name);
  if (options.full || tensor.elements() <= kMaxPrintedElements) return {head + " = {" + ElementsText(tensor) + "}", ""};
  const uint64_t hash = Fnv1a({reinterpret_cast<const char*>(tensor.data()), tensor.bytes()});
  char digits[17];
  std::snprintf(digits, sizeof(digits), "%016llx", static_cast<unsigned long long>(hash));
  return {head, std::string("  # hash ") + digits};
}

const Tensor* FindInitial(const TextContext& context, const std::string& name) {
  for (const auto& [initial, tensor] : context.initial) {
    if (initial == name) return tensor;
  }
  return nullptr;
}

std::vector<Entry> TensorEntries(const Graph& graph, const TextOptions& options, const TextContext& context) {
  std::vector<Entry> entries;
  std::vector<const Value*> states = context.states;
  if (states.empty()) states.assign(graph.states().begin(), graph.states().end());
  std::set<std::string> printed;
  for (const Value* state : states) {
    const Tensor* initial = FindInitial(context, state->name());
    printed.insert(state->name());
    entries.push_back(initial == nullptr ? Entry{TypeText(state->type()) + " " + NameText(state->name()), ""}
                                         : TensorEntry(state->name(), *initial, options));
  }
  for (const Value* constant : graph.constants()) {
    entries.push_back(TensorEntry(constant->name(), *constant->constant(), options));
  }
  for (const auto& [name, tensor] : context.initial) {
    if (printed.count(name) == 0) entries.push_back(TensorEntry(name, *tensor, options));
  }
  return entries;
}

std::string EntriesText(const std::vector<Entry>& entries) {
  if (entries.empty()) return "";
  std::string text = "<\n";
  for (const Entry& entry : entries) {
    text += "  " + entry.text + (&entry == &entries.back() ? "" : ",") + entry.comment + "\n";
  }
  return text + ">\n";
}

// Versions of all domains in use; ours and the default one always.
std::string OpsetText(const Graph& graph) {
  std::set<std::string> domains;
  for (const auto& node : graph.nodes()) {
    const size_t dot = node->op().rfind('.');
    if (dot != std::string::npos) domains.insert(node->op().substr(0, dot));
  }
  domains.insert(std::string(kOwnPrefix.substr(0, kOwnPrefix.size() - 1)));
  std::string text = "[\"\" : " + std::to_string(kCanonicalOpset);
  for (const std::string& domain : domains) text += ", " + QuotedText(domain) + " : 1";
  return text + "]";
}

std::string HeaderText(const Graph& graph, const TextContext& context) {
  std::vector<std::pair<std::string, std::string>> metadata = context.metadata;
  std::map<std::string, std::string> updates;
  for (const Value* state : graph.states()) {
    if (state->update() != nullptr) updates["update." + state->name()] = state->update()->name();
  }
  metadata.insert(metadata.end(), updates.begin(), updates.end());
  for (const auto& [role, value] : graph.roles()) metadata.emplace_back("role." + role, value->name());
  std::string text = "<\n  opset_import: " + OpsetText(graph);
  if (metadata.empty()) return text + "\n>\n";
  text += ",\n  metadata_props: [\n";
  for (const auto& entry : metadata) {
    text += "    " + QuotedText(entry.first) + " : " + QuotedText(entry.second) +
            (&entry == &metadata.back() ? "\n" : ",\n");
  }
  return text + "  ]\n>\n";
}

}  // namespace

std::string FloatText(float value) { return ShortestText(value); }
std::string FloatText(double value) { return ShortestText(value); }

std::string TypeText(const TensorType& type) {
  return type.shape.empty() ? std::string(NameOf(type.dtype)) : ToString(type);
}

std::string QuotedText(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + "\"";
}

std::string NameText(std::string_view name) {
  const bool plain = !name.empty() && IsLetter(name[0]) &&
                     std::all_of(name.begin(), name.end(), [](char c) { return IsLetter(c) || IsDigit(c); });
  return plain ? std::string(name) : QuotedText(name);
}

std::string WriteGraphText(const Graph& graph, const TextOptions& options, const TextContext& context) {
  std::string text = HeaderText(graph, context);
  text += NameText(graph.name()) + " " + SignatureText(graph.inputs()) + " => " + SignatureText(graph.outputs()) + "\n";
  text += EntriesText(TensorEntries(graph, options, context));
  text += "{\n";
  for (const auto& node : graph.nodes()) text += NodeText(*node);
  return text + "}\n";
}

}  // namespace onnxtrain
