// SPDX-License-Identifier: Apache-2.0
#include "passes/pass.h"

#include <string>

#include "graph/verifier.h"

namespace onnxtrain {

Status PassPipeline::Run(Program& program, const Observer& observer) const {
  const Status valid = VerifyProgram(program);
  if (!valid.ok()) return valid.Prepend("before the first pass");
  for (const std::unique_ptr<Pass>& pass : passes_) {
    const std::string name(pass->name());
    StatusOr<bool> changed = pass->Run(program);
    if (!changed.ok()) return changed.status().Prepend("pass " + name);
    if (*changed) {
      const Status still_valid = VerifyProgram(program);
      if (!still_valid.ok()) return still_valid.Prepend("after pass " + name);
    }
    if (observer) RETURN_IF_ERROR(observer(*pass, *changed, program));
  }
  return OkStatus();
}

}  // namespace onnxtrain
