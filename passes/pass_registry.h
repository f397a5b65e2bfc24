// SPDX-License-Identifier: Apache-2.0
// Passes by name, and pipelines from text: "build_backward, bucket_gradients<bucket_bytes=64>".
#ifndef ONNXTRAIN_PASSES_PASS_REGISTRY_H_
#define ONNXTRAIN_PASSES_PASS_REGISTRY_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "passes/pass.h"
#include "passes/pass_options.h"

namespace onnxtrain {

struct PassEntry {
  std::string name;
  std::string summary;  // one line for --list-passes
  // Reads all options that the pass has, whatever their values. PassOptions::status() is checked by the caller.
  std::function<std::unique_ptr<Pass>(PassOptions&)> make;
};

class PassRegistry {
 public:
  // CHECKs that the name is new.
  void Add(PassEntry entry);
  const PassEntry* Find(std::string_view name) const;
  const std::map<std::string, PassEntry, std::less<>>& entries() const { return entries_; }

  // Usage for an unknown pass (naming the nearest), and for options that it does not have or that do not parse.
  StatusOr<std::unique_ptr<Pass>> Make(std::string_view name, OptionTexts given,
                                       const OptionTexts* defaults = nullptr) const;
  // A comma list of names, each with options in <>: name=value, or name="a value; with anything but quotes". Spaces are
  // allowed between words. Empty text is an empty pipeline. Usage with the place of the first mistake.
  StatusOr<PassPipeline> MakePipeline(std::string_view text, const OptionTexts* defaults = nullptr) const;

  // The passes of this folder, from the one list in passes/all_passes.cc. Constant, made on first use.
  static const PassRegistry& Default();

 private:
  std::map<std::string, PassEntry, std::less<>> entries_;
};

}  // namespace onnxtrain

#endif  // ONNXTRAIN_PASSES_PASS_REGISTRY_H_
