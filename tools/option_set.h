// SPDX-License-Identifier: Apache-2.0
// The options of a command: declared once with their targets, then parsed from the command line and from --config
// FILE.json.
//
//   OptionSet options;
//   options.Int("batch-size", &batch_size, "N", "samples per rank and micro-batch");
//   options.Choice("schedule", &schedule, {"constant", "linear"}, "how the learning rate moves");
//   RETURN_IF_ERROR(options.Parse(arguments));
//
// Long options, `--name value` or `--name=value`, dashes and underscores alike. The command line wins over the file.
// Every problem is a Usage error that names the option and, for an unknown one, the nearest spelling.
#ifndef ONNXTRAIN_TOOLS_OPTION_SET_H_
#define ONNXTRAIN_TOOLS_OPTION_SET_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "graph/status.h"

namespace onnxtrain {

// Which numbers an option takes: finite unless `infinite`, at least `least` (or above it), below `below`.
struct NumberRange {
  double least = 0;
  bool open = false;  // `least` itself is not allowed
  double below = std::numeric_limits<double>::infinity();
  bool infinite = false;
};

class OptionSet {
 public:
  using Setter = std::function<Status(const std::string& value)>;

  // Headings of the help, in order; options declared after it belong to it.
  void Section(std::string title) { section_ = std::move(title); }
  void Flag(std::string name, bool* target, std::string help);
  void Int(std::string name, int64_t* target, std::string metavar, std::string help, int64_t least = INT64_MIN);
  void Double(std::string name, double* target, std::string metavar, std::string help, NumberRange range = {});
  void Double(std::string name, std::optional<double>* target, std::string metavar, std::string help,
              NumberRange range = {});
  void String(std::string name, std::string* target, std::string metavar, std::string help);
  // `later` are values of the interface that this build does not have: refused, with a message that says so.
  void Choice(std::string name, std::string* target, std::vector<std::string> choices, std::string help,
              std::vector<std::string> later = {});
  // May be given many times; every value is kept in order.
  void Strings(std::string name, std::vector<std::string>* target, std::string metavar, std::string help);
  void Custom(std::string name, std::string metavar, std::string help, Setter setter, bool repeats = false);
  // A key that a configuration may hold, as config.json of a run does, and that means nothing here.
  void IgnoreInConfig(std::string name) { ignored_.insert(std::move(name)); }
  // Arguments that are no options. `least` and `most` count them.
  void Positional(std::string metavar, std::vector<std::string>* target, size_t least, size_t most);

  // Of the options declared since the last call the help shows only these, and names its sections as topics for the
  // rest: it has to fit a screen.
  void ShowOnly(const std::vector<std::string>& names);

  // Fails with Usage. `--help` sets help_wanted() and stops parsing; a word behind it is the topic: the first word of a
  // section, in small letters, or 'all'.
  Status Parse(const std::vector<std::string>& arguments);
  // Every key of a JSON configuration as if given on the command line, unless it was; for --config and stored runs. The
  // key "model" is the argument MODEL.
  Status ApplyConfig(const std::string& json_text, const std::string& file);

  // Whether the command line or a configuration file gave it.
  bool given(std::string_view name) const { return given_.count(std::string(name)) != 0; }
  bool help_wanted() const { return help_wanted_; }
  // "onnx-train train MODEL [options]" and the table of options, or of those of the topic, at most 100 columns.
  std::string Help(std::string_view command, std::string_view summary) const;
  // Whether the command line itself gave it.
  bool typed(std::string_view name) const { return typed_.count(std::string(name)) != 0; }
  // What was given, by name; lists are joined by ';'.
  std::map<std::string, std::string, std::less<>> GivenTexts() const;

 private:
  struct Option {
    std::string name;
    std::string section;
    std::string metavar;  // empty: a flag
    std::string help;
    bool repeats = false;
    Setter setter;
    bool rare = false;  // shown under its topic only
  };

  void Add(Option option);
  const Option* Find(std::string_view name) const;
  Status Unknown(std::string_view name) const;
  Status Set(const Option& option, const std::string& value);
  bool IsShown(const Option& option) const;
  std::string Row(const Option& option) const;
  std::string Topics() const;  // "loss, data, all"
  Status CheckTopic() const;

  std::vector<Option> options_;
  std::string section_ = "Options";
  std::set<std::string> given_;
  std::set<std::string> typed_;
  std::set<std::string> ignored_;
  std::vector<std::pair<std::string, std::string>> values_;  // in the order given
  std::string positional_metavar_;
  std::vector<std::string>* positional_ = nullptr;
  size_t positional_least_ = 0;
  size_t positional_most_ = 0;
  bool help_wanted_ = false;
  std::string topic_;
  size_t sorted_out_ = 0;  // options that ShowOnly has seen
};

// Numbers as options spell them. Fail with Usage and say what was expected.
StatusOr<int64_t> ParseInt(std::string_view text);
StatusOr<double> ParseDouble(std::string_view text);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_TOOLS_OPTION_SET_H_
