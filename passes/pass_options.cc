// SPDX-License-Identifier: Apache-2.0
#include "passes/pass_options.h"

#include <algorithm>
#include <charconv>

#include "graph/nearest_name.h"

namespace onnxtrain {
namespace {

template <typename T>
bool ParseAll(const std::string& text, T& value) {
  const char* end = text.data() + text.size();
  const std::from_chars_result result = std::from_chars(text.data(), end, value);
  return result.ec == std::errc() && result.ptr == end;
}

}  // namespace

PassOptions::PassOptions(std::string pass, OptionTexts given, const OptionTexts* defaults)
    : pass_(std::move(pass)), given_(std::move(given)), defaults_(defaults) {}

const std::string* PassOptions::Find(std::string_view name) {
  known_.emplace_back(name);
  auto found = given_.find(name);
  if (found != given_.end()) return &found->second;
  if (defaults_ == nullptr) return nullptr;
  auto fallback = defaults_->find(name);
  return fallback == defaults_->end() ? nullptr : &fallback->second;
}

void PassOptions::Fail(std::string_view name, const std::string& text, std::string_view expected) {
  if (!failure_.ok()) return;
  failure_ = UsageError("pass " + pass_ + ": option '" + std::string(name) + "' is '" + text + "', expected " +
                        std::string(expected));
}

bool PassOptions::Has(std::string_view name) { return Find(name) != nullptr; }

std::string PassOptions::Text(std::string_view name, std::string_view fallback) {
  const std::string* text = Find(name);
  return text == nullptr ? std::string(fallback) : *text;
}

int64_t PassOptions::Int(std::string_view name, int64_t fallback) {
  const std::string* text = Find(name);
  int64_t value = fallback;
  if (text != nullptr && !ParseAll(*text, value)) Fail(name, *text, "an integer");
  return value;
}

double PassOptions::Number(std::string_view name, double fallback) {
  const std::string* text = Find(name);
  double value = fallback;
  if (text != nullptr && !ParseAll(*text, value)) Fail(name, *text, "a number");
  return value;
}

bool PassOptions::Flag(std::string_view name, bool fallback) {
  const std::string* text = Find(name);
  if (text == nullptr) return fallback;
  if (*text == "true" || *text == "on" || *text == "1") return true;
  if (*text != "false" && *text != "off" && *text != "0") Fail(name, *text, "true or false");
  return false;
}

std::vector<std::string> PassOptions::List(std::string_view name) {
  const std::string* text = Find(name);
  std::vector<std::string> list;
  if (text == nullptr || text->empty()) return list;
  for (size_t begin = 0; begin <= text->size();) {
    const size_t end = std::min(text->find(';', begin), text->size());
    list.push_back(text->substr(begin, end - begin));
    begin = end + 1;
  }
  return list;
}

std::string PassOptions::Choice(std::string_view name, std::string_view fallback,
                                const std::vector<std::string>& choices) {
  const std::string text = Text(name, fallback);
  if (std::find(choices.begin(), choices.end(), text) != choices.end()) return text;
  std::string expected;
  for (const std::string& choice : choices) expected += (expected.empty() ? "" : ", ") + choice;
  Fail(name, text, "one of " + expected);
  return std::string(fallback);
}

std::vector<double> PassOptions::Numbers(std::string_view name) {
  const std::string* text = Find(name);
  std::vector<double> numbers;
  if (text == nullptr) return numbers;
  for (size_t begin = 0; begin <= text->size();) {
    const size_t end = std::min(text->find(',', begin), text->size());
    double number = 0;
    if (!ParseAll(text->substr(begin, end - begin), number)) Fail(name, *text, "numbers separated by commas");
    numbers.push_back(number);
    begin = end + 1;
  }
  return numbers;
}

std::optional<double> PassOptions::OptionalNumber(std::string_view name) {
  if (!Has(name)) return std::nullopt;
  return Number(name, 0);
}

Status PassOptions::status() const {
  if (!failure_.ok()) return failure_;
  for (const auto& [name, text] : given_) {
    if (std::find(known_.begin(), known_.end(), name) != known_.end()) continue;
    std::string known;
    for (const std::string& option : known_) known += (known.empty() ? "" : ", ") + option;
    return UsageError("pass " + pass_ + " has no option '" + name + "'" + DidYouMean(name, known_) +
                      (known.empty() ? " (it has none)" : " (it has: " + known + ")"));
  }
  return OkStatus();
}

}  // namespace onnxtrain
