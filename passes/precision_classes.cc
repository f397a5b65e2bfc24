// SPDX-License-Identifier: Apache-2.0
#include "passes/precision_classes.h"

#include <algorithm>

namespace onnxtrain {
namespace {

using enum PrecisionClass;

constexpr PrecisionRule kRules[] = {
    {"Conv", kHalf},
    {"ConvTranspose", kHalf},
    {"Gemm", kHalf},
    {"MatMul", kHalf},
    {"onnxtrain.MatMul", kHalf},

    {"Abs", kFollow},
    {"Add", kFollow},
    {"AveragePool", kFollow},
    {"Clip", kFollow},
    {"Div", kFollow},
    {"Dropout", kFollow, 1},
    {"Elu", kFollow},
    {"Erf", kFollow},
    {"Gelu", kFollow},
    {"GlobalAveragePool", kFollow},
    {"HardSigmoid", kFollow},
    {"HardSwish", kFollow},
    {"LeakyRelu", kFollow},
    {"Max", kFollow},
    {"MaxPool", kFollow},
    {"Min", kFollow},
    {"Mul", kFollow},
    {"Neg", kFollow},
    {"PRelu", kFollow},
    {"Relu", kFollow},
    {"Resize", kFollow, 1},
    {"Sigmoid", kFollow},
    {"Softmax", kFollow},  // every kernel computes it in float and rounds once: what is kept takes half the memory
    {"Sub", kFollow},
    {"Sum", kFollow},
    {"Swish", kFollow},
    {"Tanh", kFollow},
    {"Where", kFollow},
    {"onnxtrain.Dropout", kFollow, 1},

    {"Concat", kMove},
    {"DepthToSpace", kMove},
    {"Expand", kMove},
    {"Flatten", kMove},
    {"Gather", kMove},
    {"GatherElements", kMove},
    {"GatherND", kMove},
    {"Identity", kMove},
    {"Pad", kMove},
    {"Reshape", kMove},
    {"Slice", kMove},
    {"SpaceToDepth", kMove},
    {"Split", kMove},
    {"Squeeze", kMove},
    {"Tile", kMove},
    {"Transpose", kMove},
    {"Trilu", kMove},
    {"Unsqueeze", kMove},

    {"BatchNormalization", kRounded},
    {"GroupNormalization", kRounded},
    {"InstanceNormalization", kRounded},
    {"LayerNormalization", kRounded},
    {"RMSNormalization", kRounded},
};

}  // namespace

std::string_view NameOf(PrecisionClass precision_class) {
  switch (precision_class) {
    case kHalf:
      return "half";
    case kFollow:
      return "follow";
    case kMove:
      return "move";
    case kRounded:
      return "rounded";
    case kSingle:
      return "single";
  }
  return "";
}

std::span<const PrecisionRule> PrecisionRules() { return kRules; }

const PrecisionRule* FindPrecisionRule(std::string_view op) {
  const auto rule = std::find_if(std::begin(kRules), std::end(kRules), [&](const auto& r) { return r.op == op; });
  return rule == std::end(kRules) ? nullptr : &*rule;
}

}  // namespace onnxtrain
