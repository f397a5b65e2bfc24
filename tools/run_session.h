// SPDX-License-Identifier: Apache-2.0
// From the options of a run to its model, data and session: what train, eval, check, plan and build share.
#ifndef ONNXTRAIN_TOOLS_RUN_SESSION_H_
#define ONNXTRAIN_TOOLS_RUN_SESSION_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "graph/onnx_model.h"
#include "graph/program.h"
#include "runtime/local_session.h"
#include "tools/console.h"
#include "tools/run_data.h"
#include "tools/run_options.h"

namespace onnxtrain {

struct OpenedRun {
  OnnxModel model;
  RunData data;
};

// The model that MODEL means and the data that the options name. Prints notes about the data.
StatusOr<OpenedRun> OpenRun(RunOptions& run, Console& console);

// The session with the weights of --init-weights in it.
StatusOr<std::unique_ptr<LocalSession>> CreateSession(OnnxModel model, const RunOptions& run);

// The model for commands without a session: untied where the options say so, which is printed.
StatusOr<OnnxModel> LoadModelFor(const RunOptions& run, Console& console);
// The weights of --init-weights take the place of a program's own. InvalidData for a tensor that does not fit.
Status SetInitialWeights(const OnnxModel& model, const RunOptions& run, Program& program);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_TOOLS_RUN_SESSION_H_
