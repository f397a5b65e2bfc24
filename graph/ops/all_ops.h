// SPDX-License-Identifier: Apache-2.0
// The one list of operator families. A new family adds its line here and in all_ops.cc, and nothing else.
#ifndef ONNXTRAIN_GRAPH_OPS_ALL_OPS_H_
#define ONNXTRAIN_GRAPH_OPS_ALL_OPS_H_

namespace onnxtrain {

class OpRegistry;

void AddActivationOps(OpRegistry& registry);      // Relu, Sigmoid, Tanh, Gelu, Erf, ... and their gradients
void AddCollectiveOps(OpRegistry& registry);      // onnxtrain.AllReduce, ReduceScatter, AllGather, BucketPack, ...
void AddConvOps(OpRegistry& registry);            // Conv, onnxtrain.ConvInputGrad, ConvWeightGrad
void AddDropoutOps(OpRegistry& registry);         // Dropout, onnxtrain.Dropout
void AddEinsumOps(OpRegistry& registry);          // Einsum, lifted into matrix products
void AddElementwiseOps(OpRegistry& registry);     // arithmetic, comparison, logic, Where, Cast, Clip
void AddGatherOps(OpRegistry& registry);          // Gather, GatherElements, ScatterElements, ... and gradients
void AddLossOps(OpRegistry& registry);            // SoftmaxCrossEntropyLoss, NegativeLogLikelihoodLoss, ...
void AddMathFunctionOps(OpRegistry& registry);    // Exp, Log, Sqrt, Pow, Sin, ...
void AddMatMulOps(OpRegistry& registry);          // MatMul, Gemm
void AddNormalizationOps(OpRegistry& registry);   // LayerNormalization, BatchNormalization, ...
void AddOptimizerOps(OpRegistry& registry);       // onnxtrain.SGD, Adam, AdamW, step control, schedules
void AddPoolOps(OpRegistry& registry);            // MaxPool, AveragePool, GlobalAveragePool
void AddReductionOps(OpRegistry& registry);       // ReduceSum, ReduceMean, ...
void AddResizeOps(OpRegistry& registry);          // Resize, Upsample
void AddShapeOps(OpRegistry& registry);           // Reshape, Transpose, Expand, Tile, Range, ...
void AddSliceOps(OpRegistry& registry);           // Slice, Split, Concat, Pad
void AddSoftmaxOps(OpRegistry& registry);         // Softmax, LogSoftmax

// Last: a bare definition (types only) of every standard operator that no family has defined.
void AddRemainingSchemaOps(OpRegistry& registry);

void AddAllOps(OpRegistry& registry);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_GRAPH_OPS_ALL_OPS_H_
