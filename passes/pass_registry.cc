// SPDX-License-Identifier: Apache-2.0
#include "passes/pass_registry.h"

#include <algorithm>
#include <cctype>

#include "graph/nearest_name.h"

namespace onnxtrain {
namespace {

// Reads a list of passes from front to back.
class ListReader {
 public:
  explicit ListReader(std::string_view text) : text_(text) {}

  bool AtEnd() {
    SkipSpaces();
    return position_ == text_.size();
  }
  bool Take(char c) {
    SkipSpaces();
    if (position_ == text_.size() || text_[position_] != c) return false;
    ++position_;
    return true;
  }
  // Letters, digits and underscores; a dash is read as an underscore. "" when there is none.
  std::string Word() {
    SkipSpaces();
    std::string word;
    for (; position_ < text_.size(); ++position_) {
      const char c = text_[position_];
      if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '_' && c != '-') break;
      word += c == '-' ? '_' : c;
    }
    return word;
  }
  // Up to the next ',' or '>', or between quotes.
  bool Value(std::string& value) {
    const bool quoted = Take('"');
    SkipSpaces();
    const std::string_view stop = quoted ? "\"" : ",>\"";
    const size_t end = text_.find_first_of(stop, position_);
    if (end == std::string_view::npos) return false;
    value = std::string(text_.substr(position_, end - position_));
    position_ = quoted ? end + 1 : end;
    while (!quoted && !value.empty() && value.back() == ' ') value.pop_back();
    return true;
  }
  Status Error(std::string_view expected) const {
    return UsageError("list of passes: expected " + std::string(expected) + " at '" +
                      std::string(text_.substr(position_, 20)) + "' (character " + std::to_string(position_ + 1) + ")");
  }

 private:
  void SkipSpaces() {
    while (position_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[position_])) != 0) ++position_;
  }

  std::string_view text_;
  size_t position_ = 0;
};

// The part behind '<'.
Status ReadOptions(ListReader& reader, OptionTexts& options) {
  if (reader.Take('>')) return OkStatus();
  do {
    const std::string name = reader.Word();
    if (name.empty()) return reader.Error("the name of an option");
    if (!reader.Take('=')) return reader.Error("'='");
    std::string value;
    if (!reader.Value(value)) return reader.Error("a value");
    if (!options.emplace(name, value).second) return reader.Error("each option once, and '" + name + "' came twice");
  } while (reader.Take(','));
  return reader.Take('>') ? OkStatus() : reader.Error("',' or '>'");
}

}  // namespace

void PassRegistry::Add(PassEntry entry) {
  std::string name = entry.name;
  CHECK_WITH(entries_.emplace(name, std::move(entry)).second, "two passes named '" + name + "'");
}

const PassEntry* PassRegistry::Find(std::string_view name) const {
  const auto found = entries_.find(name);
  return found == entries_.end() ? nullptr : &found->second;
}

StatusOr<std::unique_ptr<Pass>> PassRegistry::Make(std::string_view name, OptionTexts given,
                                                   const OptionTexts* defaults) const {
  const PassEntry* entry = Find(name);
  if (entry == nullptr) {
    std::vector<std::string> names;
    for (const auto& [known, unused] : entries_) names.push_back(known);
    return UsageError("there is no pass '" + std::string(name) + "'" + DidYouMean(name, names));
  }
  PassOptions options(entry->name, std::move(given), defaults);
  std::unique_ptr<Pass> pass = entry->make(options);
  RETURN_IF_ERROR(options.status());
  return pass;
}

StatusOr<PassPipeline> PassRegistry::MakePipeline(std::string_view text, const OptionTexts* defaults) const {
  ListReader reader(text);
  PassPipeline pipeline;
  if (reader.AtEnd()) return pipeline;
  do {
    const std::string name = reader.Word();
    if (name.empty()) return reader.Error("the name of a pass");
    OptionTexts options;
    if (reader.Take('<')) RETURN_IF_ERROR(ReadOptions(reader, options));
    ASSIGN_OR_RETURN(std::unique_ptr<Pass> pass, Make(name, std::move(options), defaults));
    pipeline.Add(std::move(pass));
  } while (reader.Take(','));
  if (!reader.AtEnd()) return reader.Error("',' or the end");
  return pipeline;
}

}  // namespace onnxtrain
