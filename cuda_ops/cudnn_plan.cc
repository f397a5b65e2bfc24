// SPDX-License-Identifier: Apache-2.0
#include "cuda_ops/cudnn_plan.h"

#include <algorithm>
#include <utility>

namespace onnxtrain {
namespace {

// Engines that are tried before the graph counts as one that the library does not serve.
constexpr int64_t kMostEngines = 64;

// What an engine configuration is judged by.
struct Candidate {
  std::vector<cudnnBackendNumericalNote_t> notes;
  int64_t engine = -1;

  bool Has(cudnnBackendNumericalNote_t note) const {
    return std::find(notes.begin(), notes.end(), note) != notes.end();
  }
};

StatusOr<Candidate> Judge(const CudnnDescriptor& configuration, CudnnDescriptor& engine) {
  std::vector<CudnnDescriptor> engines;
  engines.push_back(CudnnDescriptor(CUDNN_BACKEND_ENGINE_DESCRIPTOR));
  RETURN_IF_ERROR(configuration.ReadDescriptors(CUDNN_ATTR_ENGINECFG_ENGINE, engines).status());
  engine = std::move(engines[0]);
  Candidate candidate;
  candidate.notes.resize(CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
  ASSIGN_OR_RETURN(const int64_t notes, engine.Read(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                                    CUDNN_NUMERICAL_NOTE_TYPE_COUNT, candidate.notes.data()));
  candidate.notes.resize(static_cast<size_t>(notes));
  ASSIGN_OR_RETURN(candidate.engine, engine.ReadInt(CUDNN_ATTR_ENGINE_GLOBAL_INDEX));
  return candidate;
}

// Why the options forbid an engine; empty when they do not.
std::string Forbidden(const Candidate& candidate, DType dtype, const CudnnPlanOptions& options) {
  if (options.deterministic && candidate.Has(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC)) return "not deterministic";
  if (candidate.Has(CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION)) return "sums in less than float";
  const bool rounds = candidate.Has(CUDNN_NUMERICAL_NOTE_TENSOR_CORE) ||
                      candidate.Has(CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS);
  if (dtype == DType::kFloat && rounds && !options.tf32) return "rounds to TF32";
  if (candidate.Has(CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6) || candidate.Has(CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13)) {
    return "loses digits by large Winograd tiles";
  }
  return "";
}

StatusOr<CudnnDescriptor> OperationGraph(const CudnnGraph& graph) {
  CudnnDescriptor made(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  std::vector<const CudnnDescriptor*> operations;
  for (const CudnnDescriptor& operation : graph.operations) operations.push_back(&operation);
  made.SetDescriptors(CUDNN_ATTR_OPERATIONGRAPH_OPS, operations);
  RETURN_IF_ERROR(made.Finalize(graph.name));
  return made;
}

// The library's choices, best first; with the fallback mode those that it would otherwise not name.
StatusOr<std::vector<CudnnDescriptor>> Configurations(const CudnnDescriptor& graph, const CudnnDevice& device,
                                                      cudnnBackendHeurMode_t mode, CudnnDescriptor& heuristics) {
  heuristics = CudnnDescriptor(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristics.SetDescriptor(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
  heuristics.Set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
  heuristics.SetDescriptor(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, device.descriptor());
  RETURN_IF_ERROR(heuristics.Finalize("heuristics"));
  ASSIGN_OR_RETURN(const int64_t count, heuristics.Count(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR));
  std::vector<CudnnDescriptor> configurations;
  for (int64_t i = 0; i < std::min(count, kMostEngines); ++i) {
    configurations.push_back(CudnnDescriptor(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR));
  }
  ASSIGN_OR_RETURN(const int64_t found, heuristics.ReadDescriptors(CUDNN_ATTR_ENGINEHEUR_RESULTS, configurations));
  if (found < static_cast<int64_t>(configurations.size())) {
    configurations.erase(configurations.begin() + found, configurations.end());
  }
  return configurations;
}

StatusOr<CudnnDescriptor> BuildPlan(const CudnnDevice& device, const CudnnDescriptor& configuration) {
  CudnnDescriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  plan.SetDescriptor(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration);
  plan.SetDescriptor(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, device.descriptor());
  RETURN_IF_ERROR(plan.Finalize("plan"));
  return plan;
}

}  // namespace

StatusOr<std::unique_ptr<CudnnDevice>> CudnnDevice::FromJson(const std::string& json) {
  std::unique_ptr<CudnnDevice> device(new CudnnDevice);
  device->descriptor_.Set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
                          static_cast<int64_t>(json.size()), json.data());
  RETURN_IF_ERROR(device->descriptor_.Finalize("properties of a GPU from JSON"));
  return device;
}

StatusOr<std::unique_ptr<CudnnDevice>> CudnnDevice::OfGpu(int ordinal) {
  std::unique_ptr<CudnnDevice> device(new CudnnDevice);
  const int32_t id = ordinal;
  device->descriptor_.Set(CUDNN_ATTR_DEVICEPROP_DEVICE_ID, CUDNN_TYPE_INT32, 1, &id);
  RETURN_IF_ERROR(device->descriptor_.Finalize("properties of GPU " + std::to_string(ordinal)));
  return device;
}

StatusOr<std::string> CudnnDevice::ToJson() const {
  return descriptor_.ReadText(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION);
}

StatusOr<std::unique_ptr<CudnnPlan>> CudnnPlan::Create(const CudnnDevice& device, CudnnGraph graph,
                                                       const CudnnPlanOptions& options) {
  std::unique_ptr<CudnnPlan> made(new CudnnPlan);
  made->graph_ = std::move(graph);
  const std::string& name = made->graph_.name;
  ASSIGN_OR_RETURN(CudnnDescriptor operation_graph, OperationGraph(made->graph_));
  std::string reasons;
  for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    CudnnDescriptor heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    auto configurations = Configurations(operation_graph, device, mode, heuristics);
    if (!configurations.ok()) {
      reasons += "\n  " + configurations.status().message();
      continue;
    }
    for (CudnnDescriptor& configuration : *configurations) {
      CudnnDescriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
      ASSIGN_OR_RETURN(const Candidate candidate, Judge(configuration, engine));
      const std::string title = "\n  engine " + std::to_string(candidate.engine) + ": ";
      const std::string forbidden = Forbidden(candidate, made->graph_.dtype, options);
      if (!forbidden.empty()) {
        reasons += title + forbidden;
        continue;
      }
      auto plan = BuildPlan(device, configuration);
      if (!plan.ok()) {
        reasons += title + plan.status().message();
        continue;
      }
      made->plan_ = std::move(*plan);
      RETURN_IF_ERROR(made->ReadWorkspace());
      if (made->workspace_bytes_ > options.most_workspace) {
        reasons += title + "wants " + std::to_string(made->workspace_bytes_) + " bytes of workspace";
        continue;
      }
      made->engine_ = candidate.engine;
      made->choice_.push_back(std::move(operation_graph));
      made->choice_.push_back(std::move(heuristics));
      made->choice_.push_back(std::move(engine));
      made->choice_.push_back(std::move(configuration));
      return made;
    }
  }
  return InvalidModelError("cuDNN has no engine for " + name + ":" + (reasons.empty() ? " none named" : reasons));
}

StatusOr<std::unique_ptr<CudnnPlan>> CudnnPlan::FromJson(const CudnnDevice& device, const std::string& json) {
  std::unique_ptr<CudnnPlan> made(new CudnnPlan);
  made->plan_.Set(CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, static_cast<int64_t>(json.size()),
                  json.data());
  made->plan_.SetDescriptor(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, device.descriptor());
  RETURN_IF_ERROR(made->plan_.Finalize("plan from JSON"));
  RETURN_IF_ERROR(made->ReadWorkspace());
  return made;
}

Status CudnnPlan::ReadWorkspace() {
  ASSIGN_OR_RETURN(const int64_t bytes, plan_.ReadInt(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE));
  workspace_bytes_ = static_cast<size_t>(bytes);
  return OkStatus();
}

Status BoundCudnnPlan::Run(cudnnHandle_t handle, std::span<const int64_t> ids, std::span<void* const> pointers,
                           void* workspace) {
  auto known = std::find_if(places_.begin(), places_.end(), [&](const Places& places) {
    return places.workspace == workspace && std::equal(pointers.begin(), pointers.end(), places.pointers.begin());
  });
  if (known == places_.end()) {
    CudnnDescriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    pack.SetInts(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, {ids.begin(), ids.end()});
    pack.Set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, static_cast<int64_t>(pointers.size()),
             pointers.data());
    pack.Set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
    RETURN_IF_ERROR(pack.Finalize("variant pack"));
    places_.push_back({{pointers.begin(), pointers.end()}, workspace, std::move(pack)});
    known = places_.end() - 1;
  }
  return CudnnError(cudnnBackendExecute(handle, plan_->get(), known->pack.get()), "cudnnBackendExecute");
}

}  // namespace onnxtrain
