// SPDX-License-Identifier: Apache-2.0
#include "tools/option_set.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "graph/nearest_name.h"

namespace onnxtrain {
namespace {

constexpr size_t kHelpColumn = 30;
constexpr size_t kHelpWidth = 100;

std::string Dashed(std::string_view name) {
  std::string dashed(name);
  std::replace(dashed.begin(), dashed.end(), '_', '-');
  return dashed;
}

std::string Join(const std::vector<std::string>& parts, const char* separator) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : separator) + part;
  return text;
}

// `text` broken at spaces so that lines behind `indent` stay inside the width.
std::string Wrapped(const std::string& text, size_t indent) {
  std::istringstream words(text);
  std::string result, line, word;
  while (words >> word) {
    if (!line.empty() && indent + line.size() + 1 + word.size() > kHelpWidth) {
      result += line + "\n" + std::string(indent, ' ');
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
  }
  return result + line;
}

std::string AsText(const nlohmann::json& value) {
  if (value.is_string()) return value.get<std::string>();
  return value.dump();
}

std::string NumberText(double number) {
  std::ostringstream text;
  text << number;
  return text.str();
}

StatusOr<double> ParseInRange(const std::string& value, const NumberRange& range) {
  ASSIGN_OR_RETURN(const double number, ParseDouble(value));
  const bool finite = std::isfinite(number) || (range.infinite && number > 0);
  const bool above = range.open ? number > range.least : number >= range.least;
  if (finite && above && (number < range.below || range.infinite)) return number;
  std::string wanted = (range.open ? "above " : "at least ") + NumberText(range.least);
  if (std::isfinite(range.below)) wanted += " and below " + NumberText(range.below);
  return UsageError("must be " + wanted + ", found " + value);
}

// "Batch and ranks" is the topic batch.
std::string TopicOf(std::string_view section) {
  std::string topic;
  for (const char c : section.substr(0, section.find(' '))) topic += static_cast<char>(std::tolower(c));
  return topic;
}

}  // namespace

StatusOr<int64_t> ParseInt(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) {
    return UsageError("expected an integer, found '" + std::string(text) + "'");
  }
  return value;
}

StatusOr<double> ParseDouble(std::string_view text) {
  const std::string copy(text);
  char* end = nullptr;
  const double value = std::strtod(copy.c_str(), &end);
  if (copy.empty() || end != copy.c_str() + copy.size() || std::isnan(value)) {
    return UsageError("expected a number, found '" + copy + "'");
  }
  return value;
}

void OptionSet::Add(Option option) {
  CHECK_WITH(Find(option.name) == nullptr, "option declared twice: " + option.name);
  option.section = section_;
  options_.push_back(std::move(option));
}

void OptionSet::Flag(std::string name, bool* target, std::string help) {
  Add({std::move(name), "", "", std::move(help), false, [target](const std::string& value) {
         if (value != "" && value != "true" && value != "false") {
           return UsageError("takes no value, found '" + value + "'");
         }
         *target = value != "false";
         return OkStatus();
       }});
}

void OptionSet::Int(std::string name, int64_t* target, std::string metavar, std::string help, int64_t least) {
  Add({std::move(name), "", std::move(metavar), std::move(help), false,
       [target, least](const std::string& value) -> Status {
         ASSIGN_OR_RETURN(*target, ParseInt(value));
         if (*target < least) return UsageError("must be at least " + std::to_string(least) + ", found " + value);
         return OkStatus();
       }});
}

void OptionSet::Double(std::string name, double* target, std::string metavar, std::string help, NumberRange range) {
  Add({std::move(name), "", std::move(metavar), std::move(help), false,
       [target, range](const std::string& value) -> Status {
         ASSIGN_OR_RETURN(*target, ParseInRange(value, range));
         return OkStatus();
       }});
}

void OptionSet::Double(std::string name, std::optional<double>* target, std::string metavar, std::string help,
                       NumberRange range) {
  Add({std::move(name), "", std::move(metavar), std::move(help), false,
       [target, range](const std::string& value) -> Status {
         ASSIGN_OR_RETURN(*target, ParseInRange(value, range));
         return OkStatus();
       }});
}

void OptionSet::String(std::string name, std::string* target, std::string metavar, std::string help) {
  Add({std::move(name), "", std::move(metavar), std::move(help), false, [target](const std::string& value) {
         *target = value;
         return OkStatus();
       }});
}

void OptionSet::Choice(std::string name, std::string* target, std::vector<std::string> choices, std::string help,
                       std::vector<std::string> later) {
  const std::string metavar = Join(choices, "|");
  const auto set = [target, choices = std::move(choices), later = std::move(later), metavar](const std::string& value) {
    if (std::find(later.begin(), later.end(), value) != later.end()) {
      return UsageError("'" + value + "' is not part of this build, which has " + metavar);
    }
    if (std::find(choices.begin(), choices.end(), value) == choices.end()) {
      const std::string nearest = NearestName(value, choices);
      return UsageError("must be one of " + metavar + ", found '" + value + "'" +
                        (nearest.empty() ? "" : "; did you mean '" + nearest + "'?"));
    }
    *target = value;
    return OkStatus();
  };
  Add({std::move(name), "", metavar, std::move(help), false, set});
}

void OptionSet::Strings(std::string name, std::vector<std::string>* target, std::string metavar, std::string help) {
  Add({std::move(name), "", std::move(metavar), std::move(help), true, [target](const std::string& value) {
         target->push_back(value);
         return OkStatus();
       }});
}

void OptionSet::Custom(std::string name, std::string metavar, std::string help, Setter setter, bool repeats) {
  Add({std::move(name), "", std::move(metavar), std::move(help), repeats, std::move(setter)});
}

void OptionSet::Positional(std::string metavar, std::vector<std::string>* target, size_t least, size_t most) {
  positional_metavar_ = std::move(metavar);
  positional_ = target;
  positional_least_ = least;
  positional_most_ = most;
}

const OptionSet::Option* OptionSet::Find(std::string_view name) const {
  const auto found = std::find_if(options_.begin(), options_.end(), [&](const Option& o) { return o.name == name; });
  return found == options_.end() ? nullptr : &*found;
}

Status OptionSet::Unknown(std::string_view name) const {
  std::vector<std::string> names;
  for (const Option& option : options_) names.push_back(option.name);
  const std::string nearest = NearestName(name, names);
  return UsageError("unknown option --" + std::string(name) +
                    (nearest.empty() ? "; --help lists them" : "; did you mean --" + nearest + "?"));
}

Status OptionSet::Set(const Option& option, const std::string& value) {
  const Status status = option.setter(value);
  return status.ok() ? status : Status(status.code(), "--" + option.name + ": " + status.message());
}

Status OptionSet::CheckTopic() const {
  const auto fits = [&](const Option& option) { return TopicOf(option.section) == topic_; };
  if (topic_.empty() || topic_ == "all" || std::any_of(options_.begin(), options_.end(), fits)) return OkStatus();
  return UsageError("no topic '" + topic_ + "' of the help; topics are " + Topics());
}

Status OptionSet::Parse(const std::vector<std::string>& arguments) {
  std::vector<std::string> config_files;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument == "--help" || argument == "-h") {
      help_wanted_ = true;
      if (i + 1 < arguments.size() && arguments[i + 1].substr(0, 1) != "-") topic_ = arguments[i + 1];
      return CheckTopic();
    }
    const bool output = argument == "-o" && Find("o") != nullptr;  // the one short option
    if (!output && (argument.size() < 3 || argument.substr(0, 2) != "--")) {
      if (argument.size() > 1 && argument[0] == '-') {
        return UsageError("unknown option " + argument + "; options are long, as --help lists them");
      }
      if (positional_ == nullptr || positional_->size() >= positional_most_) {
        return UsageError("unexpected argument '" + argument + "'");
      }
      positional_->push_back(argument);
      continue;
    }
    const size_t equals = argument.find('=');
    const bool has_value = !output && equals != std::string::npos;
    const std::string name = output ? "o" : Dashed(argument.substr(2, has_value ? equals - 2 : std::string::npos));
    const bool config = name == "config";
    const Option* option = config ? nullptr : Find(name);
    if (!config && option == nullptr) return Unknown(name);
    std::string value = has_value ? argument.substr(equals + 1) : "";
    if (!has_value && (config || !option->metavar.empty())) {
      if (i + 1 >= arguments.size()) return UsageError("--" + name + " needs a value");
      value = arguments[++i];
    }
    if (config) {
      config_files.push_back(value);
      continue;
    }
    if (given(name) && !option->repeats) return UsageError("--" + name + " is given twice");
    RETURN_IF_ERROR(Set(*option, value));
    given_.insert(name);
    typed_.insert(name);
    values_.emplace_back(name, value);
  }
  for (const std::string& file : config_files) {
    std::ifstream stream(file);
    if (!stream) return UsageError("--config: cannot read '" + file + "'");
    std::stringstream text;
    text << stream.rdbuf();
    RETURN_IF_ERROR(ApplyConfig(text.str(), file));
  }
  if (positional_ != nullptr && positional_->size() < positional_least_) {
    return UsageError("missing argument " + positional_metavar_);
  }
  return OkStatus();
}

Status OptionSet::ApplyConfig(const std::string& json_text, const std::string& file) {
  const nlohmann::json config = nlohmann::json::parse(json_text, nullptr, /*allow_exceptions=*/false);
  if (!config.is_object()) return UsageError("'" + file + "' is not a JSON object of options");
  std::set<std::string> from_file;
  for (const auto& [key, entry] : config.items()) {
    const std::string name = Dashed(key);
    const Option* option = Find(name);
    if (option == nullptr && ignored_.count(name) != 0) continue;
    if (option == nullptr && name == "model" && positional_ != nullptr && positional_metavar_ == "MODEL") {
      if (positional_->empty() && entry.is_string()) positional_->push_back(entry.get<std::string>());
      continue;
    }
    if (option == nullptr) return Unknown(name).Prepend("'" + file + "'");
    if (given(name)) continue;  // the command line wins
    if (entry.is_array() && !option->repeats) return UsageError("'" + file + "': --" + name + " takes one value");
    if (entry.is_null()) continue;
    const nlohmann::json values = entry.is_array() ? entry : nlohmann::json::array({entry});
    for (const nlohmann::json& value : values) {
      RETURN_IF_ERROR(Set(*option, AsText(value)).Prepend("'" + file + "'"));
      values_.emplace_back(name, AsText(value));
    }
    from_file.insert(name);
  }
  given_.merge(from_file);
  return OkStatus();
}

void OptionSet::ShowOnly(const std::vector<std::string>& names) {
  for (; sorted_out_ < options_.size(); ++sorted_out_) {
    Option& option = options_[sorted_out_];
    option.rare = std::find(names.begin(), names.end(), option.name) == names.end();
  }
}

bool OptionSet::IsShown(const Option& option) const {
  if (option.help.empty()) return false;
  if (topic_ == "all") return true;
  if (topic_.empty()) return !option.rare;
  return TopicOf(option.section) == topic_;
}

std::string OptionSet::Row(const Option& option) const {
  std::string head =
      (option.name.size() == 1 ? "  -" : "  --") + option.name + (option.metavar.empty() ? "" : " " + option.metavar);
  head += head.size() + 2 > kHelpColumn ? "\n" + std::string(kHelpColumn, ' ')
                                        : std::string(kHelpColumn - head.size(), ' ');
  return head + Wrapped(option.help + (option.repeats ? " (repeats)" : ""), kHelpColumn) + "\n";
}

std::string OptionSet::Topics() const {
  std::string topics;
  for (const Option& option : options_) {
    const std::string topic = TopicOf(option.section);
    if (!option.help.empty() && topics.find(topic + ", ") == std::string::npos) topics += topic + ", ";
  }
  return topics + "all";
}

std::string OptionSet::Help(std::string_view command, std::string_view summary) const {
  std::string text = "onnx-train " + std::string(command) +
                     (positional_metavar_.empty() ? "" : " " + positional_metavar_) + " [options]\n" +
                     std::string(summary) + "\n";
  std::string section;
  const auto is_rare = [](const Option& option) { return option.rare; };
  const bool all = topic_ == "all" || std::none_of(options_.begin(), options_.end(), is_rare);
  const bool headings = all || !topic_.empty();
  if (!headings) text += "\n";
  for (const Option& option : options_) {
    if (!IsShown(option)) continue;
    if (headings && option.section != section) text += "\n" + (section = option.section) + "\n";
    text += Row(option);
  }
  const std::string config = "  --config FILE.json";
  text += (headings ? "\n" : "") + config + std::string(kHelpColumn - config.size(), ' ') +
          "the same names as keys of a JSON object; the command line wins\n";
  if (all) return text;
  return text + "\nMore: onnx-train " + std::string(command) + " --help TOPIC, one of\n  " + Topics() + "\n";
}

std::map<std::string, std::string, std::less<>> OptionSet::GivenTexts() const {
  std::map<std::string, std::string, std::less<>> texts;
  for (const auto& [name, value] : values_) {
    std::string& text = texts[name];
    const std::string shown = Find(name)->metavar.empty() && value.empty() ? "true" : value;
    text += (text.empty() ? "" : ";") + shown;
  }
  return texts;
}

}  // namespace onnxtrain
