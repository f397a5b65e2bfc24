// SPDX-License-Identifier: Apache-2.0
// A pass: a rewrite of a Program in place. Before and after it the program is valid, can be run and means the same step,
// on one rank and on many. Passes are plain objects made by a factory with an options struct; they keep no state.
#ifndef ONNXTRAIN_PASSES_PASS_H_
#define ONNXTRAIN_PASSES_PASS_H_

#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "graph/program.h"
#include "graph/status.h"

namespace onnxtrain {

class Pass {
 public:
  virtual ~Pass() = default;
  // As in goldens, --passes and --dump-passes: "bucket_gradients".
  virtual std::string_view name() const = 0;
  // Whether the program changed. After an error the program must be discarded. Running it again changes nothing.
  virtual StatusOr<bool> Run(Program& program) const = 0;
};

class PassPipeline {
 public:
  // Called after each pass with the program as it is then.
  using Observer = std::function<Status(const Pass& pass, bool changed, const Program& program)>;

  void Add(std::unique_ptr<Pass> pass) { passes_.push_back(std::move(pass)); }
  const std::vector<std::unique_ptr<Pass>>& passes() const { return passes_; }
  // In order; VerifyProgram before the first and after each pass that changed something. An error names the pass.
  Status Run(Program& program, const Observer& observer = nullptr) const;

 private:
  std::vector<std::unique_ptr<Pass>> passes_;
};

}  // namespace onnxtrain

#endif  // ONNXTRAIN_PASSES_PASS_H_
