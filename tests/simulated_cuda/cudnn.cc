// SPDX-License-Identifier: Apache-2.0
// The simulated cuDNN: the functions of the backend interface that our convolutions call, with checks of what the
// library leaves to its callers, carried out on the handle's stream by a host function. CUDA's functions are those of
// the process. Heuristics offer three engines: one that is not deterministic, one for tensor cores, and a plain one.
#include <cuda_runtime_api.h>
#include <cudnn_graph.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "tests/simulated_cuda/cudnn_control.h"
#include "tests/simulated_cuda/cudnn_object.h"
#include "tests/simulated_cuda/cudnn_state.h"
#include "tests/simulated_cuda/kept.h"

struct cudnnContext {
  int device;
  cudaStream_t stream;
};

namespace simulated_cudnn {
namespace {

constexpr int64_t kAtomicEngine = 1, kTensorCoreEngine = 2, kPlainEngine = 3;

std::atomic<int64_t> calls_until_failure = -1;
std::atomic<int64_t> plans, plans_from_json, executed, live_objects;
thread_local std::string last_words;

cudnnStatus_t Refuse(cudnnStatus_t status, const std::string& why) {
  last_words = why;
  std::fprintf(stderr, "simulated cuDNN: %s\n", why.c_str());
  return status;
}

cudnnStatus_t Enter() {
  int64_t left = calls_until_failure.load();
  while (left >= 0 && !calls_until_failure.compare_exchange_weak(left, left - 1)) {
  }
  if (left != 0) return CUDNN_STATUS_SUCCESS;
  last_words = "planted failure";
  return CUDNN_STATUS_INTERNAL_ERROR;
}

Object& In(cudnnBackendDescriptor_t descriptor) { return *static_cast<Handle*>(descriptor)->object; }

std::shared_ptr<Object> Configuration(int64_t number, const std::vector<int32_t>& notes,
                                      const std::shared_ptr<Object>& graph) {
  auto engine = std::make_shared<Object>(Object{CUDNN_BACKEND_ENGINE_DESCRIPTOR, true, {}, {}});
  Put(*engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &number);
  Put(*engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, static_cast<int64_t>(notes.size()),
      notes.data());
  PutObjects(*engine, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, {graph});
  auto configuration = std::make_shared<Object>(Object{CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, true, {}, {}});
  PutObjects(*configuration, CUDNN_ATTR_ENGINECFG_ENGINE, {engine});
  return configuration;
}

std::string FinalizeHeuristics(Object& heuristics) {
  const Attribute* graph = heuristics.Find(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
  if (graph == nullptr || graph->objects.empty()) return "heuristics without a graph";
  if (heuristics.Descriptor(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP) == nullptr) return "heuristics without a GPU";
  const std::shared_ptr<Object>& of = graph->objects[0];
  const char* engines = std::getenv("SIMULATED_CUDNN_ENGINES");
  if (engines != nullptr && std::strcmp(engines, "0") == 0) {
    PutObjects(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS, {});
    return "";
  }
  PutObjects(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS,
             {Configuration(kAtomicEngine, {CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC}, of),
              Configuration(kTensorCoreEngine, {CUDNN_NUMERICAL_NOTE_TENSOR_CORE}, of), Configuration(kPlainEngine, {}, of)});
  return "";
}

std::string FinalizePlan(Object& plan) {
  if (plan.Descriptor(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP) == nullptr) return "a plan without a GPU";
  Convolution& c = plan.convolution;
  if (const Attribute* json = plan.Find(CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION)) {
    ++plans_from_json;
    return FromText({reinterpret_cast<const char*>(json->bytes.data()), json->bytes.size()}, c);
  }
  const Object* configuration = plan.Descriptor(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
  const Object* engine = configuration == nullptr ? nullptr : configuration->Descriptor(CUDNN_ATTR_ENGINECFG_ENGINE);
  const Object* graph = engine == nullptr ? nullptr : engine->Descriptor(CUDNN_ATTR_ENGINE_OPERATION_GRAPH);
  if (graph == nullptr) return "a plan without an engine";
  if (const std::string wrong = DescribeGraph(*graph, c); !wrong.empty()) return wrong;
  const int64_t number = engine->Ints(CUDNN_ATTR_ENGINE_GLOBAL_INDEX)[0];
  c.tf32 = number == kTensorCoreEngine && c.type == CUDNN_DATA_FLOAT ? 1 : 0;
  // Different from one to the next, so that nobody counts on one size.
  c.workspace_bytes = 1000 * ((c.channels + c.kernel[2] + c.direction) % 4);
  ++plans;
  const std::string text = ToText(c);
  Put(plan, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, static_cast<int64_t>(text.size()),
      text.data());
  return "";
}

std::string FinalizeDevice(Object& device) {
  if (device.Find(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION) != nullptr) return "";
  if (device.Find(CUDNN_ATTR_DEVICEPROP_DEVICE_ID) == nullptr) return "properties of no GPU";
  const std::string json = "{\"deviceName\": \"simulated\"}";
  Put(device, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, static_cast<int64_t>(json.size()),
      json.data());
  return "";
}

std::string FinalizeObject(Object& object) {
  Convolution ignored = {};
  switch (object.type) {
    case CUDNN_BACKEND_TENSOR_DESCRIPTOR:
      return CheckTensor(object);
    case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR:
      return DescribeGraph(object, ignored);
    case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR:
      return FinalizeHeuristics(object);
    case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR: {
      std::string wrong = FinalizePlan(object);
      const int64_t bytes = object.convolution.workspace_bytes;
      Put(object, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &bytes);
      return wrong;
    }
    case CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR:
      return FinalizeDevice(object);
    default:
      return "";
  }
}

void* PointerOf(const Object& pack, int64_t id) {
  const std::vector<int64_t> ids = pack.Ints(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  const Attribute* pointers = pack.Find(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
  for (size_t i = 0; pointers != nullptr && i < ids.size() && static_cast<int64_t>(i) < pointers->count; ++i) {
    void* pointer = nullptr;
    std::memcpy(&pointer, pointers->bytes.data() + i * sizeof(pointer), sizeof(pointer));
    if (ids[i] == id) return pointer;
  }
  return nullptr;
}

bool Overlap(const void* a, int64_t a_bytes, const void* b, int64_t b_bytes) {
  const auto x = reinterpret_cast<intptr_t>(a), y = reinterpret_cast<intptr_t>(b);
  return x < y + b_bytes && y < x + a_bytes;
}

std::string CheckPlaces(const Work& work) {
  const Convolution& c = work.convolution;
  void* const places[] = {work.x, work.w, work.y};
  const int64_t bytes[] = {ElementsOfX(c) * static_cast<int64_t>(BytesOf(c.type)),
                           ElementsOfW(c) * static_cast<int64_t>(BytesOf(c.type)),
                           ElementsOfY(c) * static_cast<int64_t>(BytesOf(c.type))};
  const auto workspace = reinterpret_cast<uintptr_t>(work.workspace);
  if (c.workspace_bytes > 0 && (workspace == 0 || workspace % 256 != 0)) return "a workspace that is missing or askew";
  for (int i = 0; i < 3; ++i) {
    if (places[i] == nullptr) return "a tensor without memory";
    if (reinterpret_cast<uintptr_t>(places[i]) % static_cast<uintptr_t>(c.alignment[i]) != 0) {
      return "a tensor with less alignment than was said";
    }
    if (Overlap(places[i], bytes[i], places[(i + 1) % 3], bytes[(i + 1) % 3])) return "tensors that overlap";
    if (c.workspace_bytes > 0 && Overlap(places[i], bytes[i], work.workspace, c.workspace_bytes)) {
      return "a workspace in a tensor";
    }
  }
  return "";
}

void RunOnce(void* pointer) {
  const std::unique_ptr<Work> work(static_cast<Work*>(pointer));
  Run(*work);
  ++executed;
}
// Of a graph, which may be replayed.
void RunAgain(void* pointer) {
  Run(*static_cast<Work*>(pointer));
  ++executed;
}

cudnnStatus_t Enqueue(const Work& work, cudaStream_t stream) {
  cudaStreamCaptureStatus capturing = cudaStreamCaptureStatusNone;
  if (cudaStreamIsCapturing(stream, &capturing) != cudaSuccess) return CUDNN_STATUS_EXECUTION_FAILED_CUDART;
  const bool once = capturing == cudaStreamCaptureStatusNone;
  auto owned = std::make_unique<Work>(work);
  if (cudaLaunchHostFunc(stream, once ? RunOnce : RunAgain, owned.get()) != cudaSuccess) {
    return CUDNN_STATUS_EXECUTION_FAILED_CUDART;
  }
  Work* const queued = owned.release();  // RunOnce deletes it
  if (!once) simulated_cuda::Keep(queued);
  return CUDNN_STATUS_SUCCESS;
}

}  // namespace
}  // namespace simulated_cudnn

using namespace simulated_cudnn;

#define SIMULATED_CUDNN_ENTER()                                                         \
  do {                                                                                  \
    if (const cudnnStatus_t entered = Enter(); entered != CUDNN_STATUS_SUCCESS) return entered; \
  } while (false)

extern "C" {

void simulated_cudnn_fail_at(int64_t n) { calls_until_failure = n; }

int64_t simulated_cudnn_counter(const char* name) {
  const std::string wanted = name;
  if (wanted == "plans") return plans;
  if (wanted == "plans_from_json") return plans_from_json;
  if (wanted == "executed") return executed;
  return wanted == "live_objects" ? live_objects.load() : -1;
}

size_t cudnnGetVersion() { return CUDNN_VERSION; }
const char* cudnnGetErrorString(cudnnStatus_t status) {
  return status == CUDNN_STATUS_SUCCESS ? "CUDNN_STATUS_SUCCESS" : "CUDNN_STATUS of the simulation";
}
void cudnnGetLastErrorString(char* message, size_t size) { std::snprintf(message, size, "%s", last_words.c_str()); }

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  SIMULATED_CUDNN_ENTER();
  int device = 0;
  if (cudaGetDevice(&device) != cudaSuccess) return CUDNN_STATUS_NOT_INITIALIZED;
  *handle = new cudnnContext{device, nullptr};
  ++live_objects;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  delete handle;
  --live_objects;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  SIMULATED_CUDNN_ENTER();
  handle->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t* descriptor) {
  SIMULATED_CUDNN_ENTER();
  *descriptor = new Handle{std::make_shared<Object>(Object{type, false, {}, {}})};
  ++live_objects;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  delete static_cast<Handle*>(descriptor);
  --live_objects;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count, const void* values) {
  SIMULATED_CUDNN_ENTER();
  Object& object = In(descriptor);
  if (object.finalized) return Refuse(CUDNN_STATUS_BAD_PARAM, "an attribute of a finalized descriptor");
  if (type != CUDNN_TYPE_BACKEND_DESCRIPTOR) {
    Put(object, name, type, count, values);
    return CUDNN_STATUS_SUCCESS;
  }
  std::vector<std::shared_ptr<Object>> objects;
  for (int64_t i = 0; i < count; ++i) {
    auto* handle = static_cast<Handle*>(static_cast<const cudnnBackendDescriptor_t*>(values)[i]);
    if (!handle->object->finalized) return Refuse(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, "a part that is not finalized");
    objects.push_back(handle->object);
  }
  PutObjects(object, name, std::move(objects));
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count, int64_t* found, void* values) {
  SIMULATED_CUDNN_ENTER();
  const Object& object = In(descriptor);
  const Attribute* attribute = object.Find(name);
  if (!object.finalized || attribute == nullptr || attribute->type != type) {
    return Refuse(CUDNN_STATUS_BAD_PARAM, "reading attribute " + std::to_string(name) + " that is not there");
  }
  *found = attribute->count;
  if (count == 0 || values == nullptr) return CUDNN_STATUS_SUCCESS;
  const int64_t copied = std::min(count, attribute->count);
  for (int64_t i = 0; i < copied && type == CUDNN_TYPE_BACKEND_DESCRIPTOR; ++i) {
    auto* handle = static_cast<Handle*>(static_cast<cudnnBackendDescriptor_t*>(values)[i]);
    handle->object = attribute->objects[static_cast<size_t>(i)];
  }
  if (type != CUDNN_TYPE_BACKEND_DESCRIPTOR && copied > 0) {
    std::memcpy(values, attribute->bytes.data(), SizeOf(type) * static_cast<size_t>(copied));
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  SIMULATED_CUDNN_ENTER();
  Object& object = In(descriptor);
  const std::string wrong = FinalizeObject(object);
  if (!wrong.empty()) return Refuse(CUDNN_STATUS_NOT_SUPPORTED, wrong);
  object.finalized = true;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t pack) {
  SIMULATED_CUDNN_ENTER();
  const Object& of = In(plan);
  const Object& places = In(pack);
  int device = -1;
  if (cudaGetDevice(&device) != cudaSuccess || device != handle->device) {
    return Refuse(CUDNN_STATUS_BAD_PARAM, "a handle of another GPU");
  }
  if (handle->stream == nullptr) return Refuse(CUDNN_STATUS_BAD_PARAM, "the default stream");
  if (!of.finalized || !places.finalized) return Refuse(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, "an unfinished plan");
  Work work = {of.convolution, PointerOf(places, of.convolution.ids[0]), PointerOf(places, of.convolution.ids[1]),
               PointerOf(places, of.convolution.ids[2]), nullptr};
  if (const Attribute* workspace = places.Find(CUDNN_ATTR_VARIANT_PACK_WORKSPACE)) {
    std::memcpy(&work.workspace, workspace->bytes.data(), sizeof(work.workspace));
  }
  const std::string wrong = CheckPlaces(work);
  if (!wrong.empty()) return Refuse(CUDNN_STATUS_BAD_PARAM, wrong);
  return Enqueue(work, handle->stream);
}

}  // extern "C"
