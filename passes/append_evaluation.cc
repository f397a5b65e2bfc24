// SPDX-License-Identifier: Apache-2.0
#include "passes/append_evaluation.h"

#include "passes/set_mode.h"

namespace onnxtrain {
namespace {

class AppendEvaluationPass : public Pass {
 public:
  explicit AppendEvaluationPass(AppendLossOptions loss) : loss_(std::move(loss)) {
    loss_.graph = "eval";
    loss_.evaluation = true;
  }

  std::string_view name() const override { return "append_evaluation"; }

  StatusOr<bool> Run(Program& program) const override {
    if (program.FindGraph("eval") != nullptr) return false;
    const Graph* step = program.FindGraph("step");
    if (step == nullptr) return InvalidModelError("append_evaluation: no graph 'step'");
    program.AddGraph(step->Clone("eval"));
    RETURN_IF_ERROR(SetMode(SetModeOptions::Inference("eval"))->Run(program).status());
    RETURN_IF_ERROR(AppendLoss(loss_)->Run(program).status());
    return true;
  }

 private:
  AppendLossOptions loss_;
};

}  // namespace

std::unique_ptr<Pass> AppendEvaluation(const AppendLossOptions& loss) {
  return std::make_unique<AppendEvaluationPass>(loss);
}

}  // namespace onnxtrain
