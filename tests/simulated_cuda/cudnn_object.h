// SPDX-License-Identifier: Apache-2.0
// What a descriptor of the simulated cuDNN holds, and how a convolution is read out of a graph of them.
#ifndef ONNXTRAIN_TESTS_SIMULATED_CUDA_CUDNN_OBJECT_H_
#define ONNXTRAIN_TESTS_SIMULATED_CUDA_CUDNN_OBJECT_H_

#include <cudnn_graph.h>

#include <cstddef>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/simulated_cuda/cudnn_state.h"

namespace simulated_cudnn {

struct Object;
struct Attribute {
  cudnnBackendAttributeType_t type;
  int64_t count;
  std::vector<std::byte> bytes;
  std::vector<std::shared_ptr<Object>> objects;  // of CUDNN_TYPE_BACKEND_DESCRIPTOR
};
struct Object {
  cudnnBackendDescriptorType_t type;
  bool finalized = false;
  std::map<int, Attribute> attributes;
  Convolution convolution = {};  // of a finalized plan

  const Attribute* Find(int name) const {
    const auto found = attributes.find(name);
    return found == attributes.end() ? nullptr : &found->second;
  }
  std::vector<int64_t> Ints(int name) const {
    const Attribute* attribute = Find(name);
    if (attribute == nullptr || attribute->type != CUDNN_TYPE_INT64) return {};
    std::vector<int64_t> values(static_cast<size_t>(attribute->count));
    std::memcpy(values.data(), attribute->bytes.data(), attribute->bytes.size());
    return values;
  }
  const Object* Descriptor(int name) const {
    const Attribute* attribute = Find(name);
    return attribute == nullptr || attribute->objects.empty() ? nullptr : attribute->objects[0].get();
  }
};
// What a caller holds.
struct Handle {
  std::shared_ptr<Object> object;
};

size_t SizeOf(cudnnBackendAttributeType_t type);
void Put(Object& object, int name, cudnnBackendAttributeType_t type, int64_t count, const void* values);
void PutObjects(Object& object, int name, std::vector<std::shared_ptr<Object>> objects);

// What is wrong; empty where nothing is.
std::string CheckTensor(const Object& tensor);
// The only operation of the graph.
std::string DescribeGraph(const Object& graph, Convolution& c);

// A plan as JSON, and back.
std::string ToText(const Convolution& c);
std::string FromText(const std::string& text, Convolution& c);

}  // namespace simulated_cudnn

#endif  // ONNXTRAIN_TESTS_SIMULATED_CUDA_CUDNN_OBJECT_H_
