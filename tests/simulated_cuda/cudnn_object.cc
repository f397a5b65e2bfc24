// SPDX-License-Identifier: Apache-2.0
#include "tests/simulated_cuda/cudnn_object.h"

#include <sstream>
#include <utility>

namespace simulated_cudnn {
namespace {

constexpr const char* kPlanTitle = "{\"simulated_cudnn_plan\": [";

bool IsConvolution(cudnnBackendDescriptorType_t type, int64_t* direction) {
  switch (type) {
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
      *direction = kForward;
      return true;
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
      *direction = kInputGradient;
      return true;
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
      *direction = kWeightGradient;
      return true;
    default:
      return false;
  }
}

struct Names {
  int window, x, w, y;
};
constexpr Names kNames[] = {
    {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y},
    {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY},
    {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY}};

// Into the last two or three of three places.
void Spread(const std::vector<int64_t>& values, size_t skip, int64_t filler, int64_t (&to)[3]) {
  const size_t count = values.size() - skip;
  for (size_t i = 0; i < 3; ++i) to[i] = i + count < 3 ? filler : values[skip + i + count - 3];
}

std::string Describe(const Object& operation, Convolution& c) {
  const Names& names = kNames[c.direction];
  const Object* const window = operation.Descriptor(names.window);
  const Object* const tensors[] = {operation.Descriptor(names.x), operation.Descriptor(names.w),
                                   operation.Descriptor(names.y)};
  if (window == nullptr || !window->finalized) return "a convolution without a window";
  for (int i = 0; i < 3; ++i) {
    if (tensors[i] == nullptr || !tensors[i]->finalized) return "a convolution without its tensors";
    if (const std::string wrong = CheckTensor(*tensors[i]); !wrong.empty()) return wrong;
    c.ids[i] = tensors[i]->Ints(CUDNN_ATTR_TENSOR_UNIQUE_ID)[0];
    c.alignment[i] = tensors[i]->Ints(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT)[0];
    int32_t type = -1;
    std::memcpy(&type, tensors[i]->Find(CUDNN_ATTR_TENSOR_DATA_TYPE)->bytes.data(), sizeof(type));
    if (i > 0 && type != c.type) return "tensors of different types";
    c.type = type;
  }
  const std::vector<int64_t> x = tensors[0]->Ints(CUDNN_ATTR_TENSOR_DIMENSIONS);
  const std::vector<int64_t> w = tensors[1]->Ints(CUDNN_ATTR_TENSOR_DIMENSIONS);
  const std::vector<int64_t> y = tensors[2]->Ints(CUDNN_ATTR_TENSOR_DIMENSIONS);
  if (x.size() != w.size() || x.size() != y.size()) return "tensors of different ranks";
  c.batch = x[0];
  c.channels = x[1];
  c.filters = w[0];
  c.groups = x[1] / w[1];
  if (y[0] != x[0] || y[1] != w[0] || c.groups * w[1] != x[1] || c.filters % c.groups != 0) return "sizes that do not fit";
  Spread(x, 2, 1, c.input);
  Spread(w, 2, 1, c.kernel);
  Spread(y, 2, 1, c.output);
  Spread(window->Ints(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES), 0, 1, c.strides);
  Spread(window->Ints(CUDNN_ATTR_CONVOLUTION_DILATIONS), 0, 1, c.dilations);
  Spread(window->Ints(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS), 0, 0, c.pads);
  int64_t after[3];
  Spread(window->Ints(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS), 0, 0, after);
  for (int i = 0; i < 3; ++i) {
    const int64_t covered = c.input[i] + c.pads[i] + after[i] - c.dilations[i] * (c.kernel[i] - 1) - 1;
    if (covered < 0 || covered / c.strides[i] + 1 != c.output[i]) return "an output that does not fit its window";
  }
  return "";
}

}  // namespace

size_t SizeOf(cudnnBackendAttributeType_t type) {
  switch (type) {
    case CUDNN_TYPE_CHAR:
      return 1;
    case CUDNN_TYPE_BOOLEAN:
      return sizeof(bool);
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_DOUBLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
      return 8;
    default:
      return 4;
  }
}

void Put(Object& object, int name, cudnnBackendAttributeType_t type, int64_t count, const void* values) {
  Attribute& attribute = object.attributes[name];
  attribute = {type, count, std::vector<std::byte>(SizeOf(type) * static_cast<size_t>(count)), {}};
  if (!attribute.bytes.empty()) std::memcpy(attribute.bytes.data(), values, attribute.bytes.size());
}

void PutObjects(Object& object, int name, std::vector<std::shared_ptr<Object>> objects) {
  const auto count = static_cast<int64_t>(objects.size());
  object.attributes[name] = {CUDNN_TYPE_BACKEND_DESCRIPTOR, count, {}, std::move(objects)};
}

// Dense, row by row.
std::string CheckTensor(const Object& tensor) {
  const std::vector<int64_t> sizes = tensor.Ints(CUDNN_ATTR_TENSOR_DIMENSIONS);
  const std::vector<int64_t> strides = tensor.Ints(CUDNN_ATTR_TENSOR_STRIDES);
  if (sizes.size() < 4 || sizes.size() != strides.size()) return "a tensor without four or five sizes and strides";
  int64_t stride = 1;
  for (size_t i = sizes.size(); i-- > 0; stride *= sizes[i]) {
    if (sizes[i] < 1 || strides[i] != stride) return "a tensor that is empty or not dense, which is not simulated";
  }
  if (tensor.Ints(CUDNN_ATTR_TENSOR_UNIQUE_ID).size() != 1) return "a tensor without an id";
  return tensor.Ints(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT).size() == 1 ? "" : "a tensor without an alignment";
}

std::string DescribeGraph(const Object& graph, Convolution& c) {
  const Attribute* operations = graph.Find(CUDNN_ATTR_OPERATIONGRAPH_OPS);
  if (operations == nullptr || operations->objects.size() != 1) return "a graph of other than one operation";
  const Object& operation = *operations->objects[0];
  if (!operation.finalized || !IsConvolution(operation.type, &c.direction)) return "an operation that is not simulated";
  return Describe(operation, c);
}

std::string ToText(const Convolution& c) {
  int64_t words[kConvolutionWords];
  std::memcpy(words, &c, sizeof(c));
  std::string text = kPlanTitle;
  for (size_t i = 0; i < kConvolutionWords; ++i) text += (i == 0 ? "" : ", ") + std::to_string(words[i]);
  return text + "]}";
}

std::string FromText(const std::string& text, Convolution& c) {
  const std::string title = kPlanTitle;
  if (!text.starts_with(title)) return "text that is no plan";
  std::istringstream numbers(text.substr(title.size()));
  int64_t words[kConvolutionWords];
  for (int64_t& word : words) {
    char comma = 0;
    if (!(numbers >> word >> comma)) return "a plan that was cut";
  }
  std::memcpy(&c, words, sizeof(c));
  return "";
}

}  // namespace simulated_cudnn
