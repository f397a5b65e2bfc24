// SPDX-License-Identifier: Apache-2.0
// Which operators the mixed_precision pass runs in 16 bits. The table is the one list; docs/mixed_precision.md shows
// it, and a test keeps the two equal. What needs float's range or sums long rows is where torch.autocast has it; other
// than there, a value keeps 16 bits from product to product, also through a norm, a softmax and a residual sum.
#ifndef ONNXTRAIN_PASSES_PRECISION_CLASSES_H_
#define ONNXTRAIN_PASSES_PRECISION_CLASSES_H_

#include <span>
#include <string_view>

namespace onnxtrain {

enum class PrecisionClass {
  kHalf,     // always in 16 bits: matrix products and convolutions, which have units for it and accumulate in float
  kFollow,   // in 16 bits when what it reads was computed in 16 bits: activations, sums, softmax
  kMove,     // as kFollow; of parameters and constants alone it only rearranges, so the copy is made before it
  kRounded,  // computed in float; what it hands on counts as computed in 16 bits: normalizations
  kSingle,   // computed in float and handed on in float: losses, reductions, exponentials and all that is not listed
};
// "half", "follow", "move", "rounded", "single".
std::string_view NameOf(PrecisionClass precision_class);

struct PrecisionRule {
  std::string_view op;
  PrecisionClass precision_class;
  int data_inputs = 0;  // how many leading inputs are in 16 bits; 0: all of them
};

// Sorted by class, then by name. kSingle is what is not here.
std::span<const PrecisionRule> PrecisionRules();
// Null for an operator of kSingle.
const PrecisionRule* FindPrecisionRule(std::string_view op);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_PASSES_PRECISION_CLASSES_H_
