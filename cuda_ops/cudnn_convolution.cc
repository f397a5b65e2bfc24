// SPDX-License-Identifier: Apache-2.0
#include "cuda_ops/cudnn_convolution.h"

#include <utility>

namespace onnxtrain {
namespace {

constexpr int64_t kAlignment = 256;  // bytes; where plans place tensors

// The library knows two and three spatial axes: one more of length one stands in front of a single one.
Shape AtLeastPlanes(Shape shape) {
  if (shape.size() == 3) shape.insert(shape.begin() + 2, 1);
  return shape;
}

std::vector<int64_t> AtLeastTwo(std::vector<int64_t> values, int64_t filler) {
  if (values.size() == 1) values.insert(values.begin(), filler);
  return values;
}

StatusOr<CudnnDescriptor> Tensor4(int64_t id, DType dtype, const Shape& plain) {
  const Shape shape = AtLeastPlanes(plain);
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t i = shape.size() - 1; i-- > 0;) strides[i] = strides[i + 1] * shape[i + 1];
  CudnnDescriptor tensor(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  tensor.SetDataType(CUDNN_ATTR_TENSOR_DATA_TYPE, CudnnTypeOf(dtype));
  tensor.SetInts(CUDNN_ATTR_TENSOR_DIMENSIONS, shape);
  tensor.SetInts(CUDNN_ATTR_TENSOR_STRIDES, strides);
  tensor.SetInt(CUDNN_ATTR_TENSOR_UNIQUE_ID, id);
  tensor.SetInt(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, kAlignment);
  RETURN_IF_ERROR(tensor.Finalize("tensor"));
  return tensor;
}

StatusOr<CudnnDescriptor> WindowOf(const ConvolutionProblem& p) {
  CudnnDescriptor window(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  window.SetDataType(CUDNN_ATTR_CONVOLUTION_COMP_TYPE,
                     p.dtype == DType::kDouble ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT);
  const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
  window.Set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
  const std::vector<int64_t> strides = AtLeastTwo(p.window.strides, 1);
  window.SetInt(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, static_cast<int64_t>(strides.size()));
  window.SetInts(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, strides);
  window.SetInts(CUDNN_ATTR_CONVOLUTION_DILATIONS, AtLeastTwo(p.window.dilations, 1));
  window.SetInts(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, AtLeastTwo(p.window.pads_begin, 0));
  window.SetInts(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, AtLeastTwo(p.window.pads_end, 0));
  RETURN_IF_ERROR(window.Finalize("window"));
  return window;
}

// Names of the attributes of one direction.
struct OperationNames {
  cudnnBackendDescriptorType_t type;
  cudnnBackendAttributeName_t window, x, w, y, alpha, beta;
};

OperationNames NamesOf(ConvolutionDirection direction) {
  switch (direction) {
    case ConvolutionDirection::kForward:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
    case ConvolutionDirection::kInputGradient:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
    case ConvolutionDirection::kWeightGradient:
      break;
  }
  return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
}

}  // namespace

StatusOr<CudnnGraph> ConvolutionGraph(const ConvolutionProblem& p) {
  CudnnGraph graph;
  graph.dtype = p.dtype;
  graph.name = p.ToString();
  ASSIGN_OR_RETURN(CudnnDescriptor x, Tensor4(kConvolutionX, p.dtype, p.x()));
  ASSIGN_OR_RETURN(CudnnDescriptor w, Tensor4(kConvolutionW, p.dtype, p.w()));
  ASSIGN_OR_RETURN(CudnnDescriptor y, Tensor4(kConvolutionY, p.dtype, p.y()));
  ASSIGN_OR_RETURN(CudnnDescriptor window, WindowOf(p));
  const OperationNames names = NamesOf(p.direction);
  CudnnDescriptor operation(names.type);
  operation.SetDescriptor(names.window, window);
  operation.SetDescriptor(names.x, x);
  operation.SetDescriptor(names.w, w);
  operation.SetDescriptor(names.y, y);
  operation.SetFloat(names.alpha, 1);
  operation.SetFloat(names.beta, 0);
  RETURN_IF_ERROR(operation.Finalize(graph.name));
  for (CudnnDescriptor* part : {&x, &w, &y, &window}) graph.parts.push_back(std::move(*part));
  graph.operations.push_back(std::move(operation));
  return graph;
}

}  // namespace onnxtrain
