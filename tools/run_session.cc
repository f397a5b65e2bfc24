// SPDX-License-Identifier: Apache-2.0
#include "tools/run_session.h"

#include "graph/nearest_name.h"
#include "runtime/data/array_file.h"
#include "tools/model_argument.h"

namespace onnxtrain {
namespace {

// Every tensor of the file is an initializer of the model, of its type; those of other float types are cast.
StatusOr<std::vector<NamedTensor>> ReadWeights(const OnnxModel& model, const std::string& file) {
  ASSIGN_OR_RETURN(std::vector<NamedTensor> tensors, ReadNamedArrays(file));
  std::vector<std::string> names;
  for (const ModelInitializer& initializer : model.initializers()) names.push_back(initializer.name);
  for (auto& [name, tensor] : tensors) {
    const std::string where = "--init-weights '" + file + "': '" + name + "'";
    const ModelInitializer* initializer = model.FindInitializer(name);
    if (initializer == nullptr) {
      return InvalidDataError(where + " is no initializer of the model" + DidYouMean(name, names));
    }
    const TensorType& wanted = initializer->type;
    const bool same_kind = IsFloating(tensor.dtype()) == IsFloating(wanted.dtype);
    if (tensor.shape() != wanted.shape || !wanted.known() || !same_kind) {
      return InvalidDataError(where + " is " + ToString(tensor.type()) + ", the model has " + initializer->type_text);
    }
    if (tensor.dtype() != wanted.dtype) tensor = tensor.CastTo(wanted.dtype);
  }
  return tensors;
}

// A tensor that this run keeps as a constant may only be what it is.
Status CheckConstant(const OnnxModel& model, const std::string& name, const Tensor& tensor) {
  ASSIGN_OR_RETURN(const Tensor original, model.Initializer(name));
  if (original.Identical(tensor)) return OkStatus();
  return InvalidDataError("--init-weights: '" + name +
                          "' is a constant of the graph in this run (`inspect` says why) and has other values");
}

}  // namespace

StatusOr<OpenedRun> OpenRun(RunOptions& run, Console& console) {
  ASSIGN_OR_RETURN(OnnxModel model, LoadModelArgument(run.model[0]));
  if (model.has_training_info() && !run.step_chosen) {
    return UsageError("'" + model.path() +
                      "' holds a training step of its own (training_info), which this build does not run; "
                      "choose one with --loss, --loss-on or --optimizer");
  }
  ASSIGN_OR_RETURN(RunData data, OpenRunData(model, run));
  for (const std::string& note : data.notes) console.Note("note: " + note);
  return OpenedRun{std::move(model), std::move(data)};
}

StatusOr<std::unique_ptr<LocalSession>> CreateSession(OnnxModel model, const RunOptions& run) {
  ASSIGN_OR_RETURN(std::unique_ptr<LocalSession> session, LocalSession::Create(std::move(model), run.training));
  if (run.init_weights.empty()) return session;
  ASSIGN_OR_RETURN(const std::vector<NamedTensor> tensors, ReadWeights(session->model(), run.init_weights));
  for (const auto& [name, tensor] : tensors) {
    const StatusOr<Tensor> held = session->ReadTensor(name);
    if (!held.ok()) {
      RETURN_IF_ERROR(CheckConstant(session->model(), name, tensor));
      continue;
    }
    RETURN_IF_ERROR(session->WriteTensor(name, tensor.CastTo(held->dtype())));
  }
  return session;
}

StatusOr<OnnxModel> LoadModelFor(const RunOptions& run, Console& console) {
  ASSIGN_OR_RETURN(OnnxModel model, LoadModelArgument(run.model[0]));
  if (!run.training.untie) return model;
  for (const std::string& name : model.Untie())
    console.Note("note: --untie changes the model: '" + name + "' is a tensor of its own");
  return model;
}

Status SetInitialWeights(const OnnxModel& model, const RunOptions& run, Program& program) {
  if (run.init_weights.empty()) return OkStatus();
  ASSIGN_OR_RETURN(const std::vector<NamedTensor> tensors, ReadWeights(model, run.init_weights));
  for (const auto& [name, tensor] : tensors) {
    const StateEntry* state = program.FindState(name);
    if (state == nullptr) {
      RETURN_IF_ERROR(CheckConstant(model, name, tensor));
    } else {
      program.initial[CanonicalName(*state)] = tensor.CastTo(state->type.dtype);
    }
  }
  return OkStatus();
}

}  // namespace onnxtrain
