// SPDX-License-Identifier: Apache-2.0
// Checkpoints and model files of a LocalSession.
#include "graph/inference_export.h"
#include "runtime/checkpoint.h"
#include "runtime/local_session.h"

namespace onnxtrain {

Status LocalSession::SaveCheckpoint(const std::string& folder, const std::string& metadata_json) {
  Checkpoint checkpoint;
  checkpoint.step = step_;
  checkpoint.metadata_json = metadata_json;
  for (const std::string& name : states_->names()) {
    ASSIGN_OR_RETURN(Tensor tensor, states_->Read(name));
    checkpoint.tensors.emplace_back(name, std::move(tensor));
  }
  PosixFileSystem files;
  return WriteCheckpoint(files, folder, checkpoint);
}

Status LocalSession::LoadCheckpoint(const std::string& folder) {
  ASSIGN_OR_RETURN(const Checkpoint checkpoint, ReadCheckpoint(folder));
  std::map<std::string, const Tensor*> held;
  for (const auto& [name, tensor] : checkpoint.tensors) held[name] = &tensor;
  // All of it is checked before anything changes.
  for (const std::string& name : states_->names()) {
    const auto found = held.find(name);
    if (found == held.end()) {
      return InvalidDataError("checkpoint '" + folder + "' has no '" + name +
                              "': it was written for other trainable tensors or another optimizer");
    }
    if (!(found->second->type() == *states_->Find(name))) {
      return InvalidDataError("checkpoint '" + folder + "': '" + name + "' is " + ToString(found->second->type()) +
                              ", this run has " + ToString(*states_->Find(name)));
    }
  }
  for (const auto& [name, tensor] : held) {
    if (states_->Find(name) == nullptr) {
      return InvalidDataError("checkpoint '" + folder + "' holds '" + name +
                              "', which this run does not have: model, trainable tensors or optimizer differ");
    }
  }
  for (const std::string& name : states_->names()) RETURN_IF_ERROR(WriteState(name, *held.at(name)));
  step_ = checkpoint.step;
  return OkStatus();
}

StatusOr<std::map<std::string, Tensor>> LocalSession::TrainedTensors() {
  std::map<std::string, Tensor> trained;
  for (const std::string& name : states_->names()) {
    const bool frozen = name.rfind("frozen/", 0) == 0;
    if (!frozen && name.rfind("parameter/", 0) != 0 && name.rfind("buffer/", 0) != 0) continue;
    const std::string initializer = name.substr(name.find('/') + 1);
    const ModelInitializer* original = model_.FindInitializer(initializer);
    if (original == nullptr) continue;
    ASSIGN_OR_RETURN(Tensor tensor, states_->Read(name));
    tensor = tensor.CastTo(original->type.dtype);
    if (frozen) {  // as in the file, unless somebody wrote to it
      ASSIGN_OR_RETURN(const Tensor in_file, model_.Initializer(initializer));
      if (in_file.Identical(tensor)) continue;
    }
    trained[initializer] = std::move(tensor);
  }
  return trained;
}

Status LocalSession::SaveModel(const std::string& path) {
  using Tensors = std::map<std::string, Tensor>;
  ASSIGN_OR_RETURN(const Tensors trained, TrainedTensors());
  std::map<std::string, const Tensor*> updated;
  for (const auto& [name, tensor] : trained) updated[name] = &tensor;
  return model_.Save(path, updated);
}

Status LocalSession::ExportInference(const std::string& path) {
  using Tensors = std::map<std::string, Tensor>;
  ASSIGN_OR_RETURN(const Tensors trained, TrainedTensors());
  std::map<std::string, const Tensor*> updated;
  for (const auto& [name, tensor] : trained) updated[name] = &tensor;
  InferenceExportOptions options;
  const bool inside = options_.loss == "auto";
  if (!inside) options.loss = "";  // appended by training: not in the file
  for (const ModelValue& output : model_.outputs()) {
    if (inside && output.name == options_.loss_on) options.loss = output.name;
  }
  return onnxtrain::ExportInference(model_, options, updated, path);
}

}  // namespace onnxtrain
