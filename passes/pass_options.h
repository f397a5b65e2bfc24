// SPDX-License-Identifier: Apache-2.0
// Options of one pass as text, as in bucket_gradients<bucket_bytes=64,mode="a;b">. A factory reads what it knows;
// status() then tells about values that do not parse and about names that nobody asked for.
#ifndef ONNXTRAIN_PASSES_PASS_OPTIONS_H_
#define ONNXTRAIN_PASSES_PASS_OPTIONS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/status.h"

namespace onnxtrain {

// Names are written with underscores; dashes are accepted.
using OptionTexts = std::map<std::string, std::string, std::less<>>;

class PassOptions {
 public:
  // `defaults` (of the command line, may be null, borrowed) are looked up for options that are not in `given`.
  PassOptions(std::string pass, OptionTexts given, const OptionTexts* defaults = nullptr);

  const std::string& pass() const { return pass_; }
  bool Has(std::string_view name);
  std::string Text(std::string_view name, std::string_view fallback);
  int64_t Int(std::string_view name, int64_t fallback);
  double Number(std::string_view name, double fallback);  // "inf" is a number
  bool Flag(std::string_view name, bool fallback);        // true, false, on, off, 1, 0
  std::vector<std::string> List(std::string_view name);   // separated by ';', empty when absent
  // One of `choices`.
  std::string Choice(std::string_view name, std::string_view fallback, const std::vector<std::string>& choices);
  // "0.9,0.999"; absent: none.
  std::vector<double> Numbers(std::string_view name);
  std::optional<double> OptionalNumber(std::string_view name);

  // The factory finds the value of an option wanting; status() then says so.
  void Reject(std::string_view name, std::string_view expected) { Fail(name, Text(name, ""), expected); }

  // Usage: the first value that does not parse, else the first given name that was never asked for.
  Status status() const;

 private:
  const std::string* Find(std::string_view name);
  void Fail(std::string_view name, const std::string& text, std::string_view expected);

  std::string pass_;
  OptionTexts given_;
  const OptionTexts* defaults_;
  std::vector<std::string> known_;
  Status failure_;
};

}  // namespace onnxtrain

#endif  // ONNXTRAIN_PASSES_PASS_OPTIONS_H_
