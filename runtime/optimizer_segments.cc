// SPDX-License-Identifier: Apache-2.0
#include "runtime/optimizer_segments.h"

#include "graph/attributes.h"

namespace onnxtrain {

StatusOr<std::vector<OptimizerSegment>> OptimizerSegmentsOf(const KernelContext& context) {
  const Attributes& attributes = context.node.attributes();
  if (!attributes.Has("bucket")) {
    return std::vector<OptimizerSegment>{{0, context.input_type(0).elements(),
                                          DecimalValue(attributes.Float("weight_decay", 0)),
                                          DecimalValue(attributes.Float("lr_multiplier", 1))}};
  }
  const int bucket = static_cast<int>(attributes.Int("bucket", 0));
  const std::vector<float> decays = attributes.Floats("weight_decays");
  const std::vector<float> multipliers = attributes.Floats("lr_multipliers");
  if (context.layout == nullptr || bucket < 0 || bucket >= static_cast<int>(context.layout->buckets().size())) {
    return InternalError(context.node.Describe() + ": bucket " + std::to_string(bucket) + " is not in the Layout");
  }
  std::vector<OptimizerSegment> segments;
  for (const LayoutSegment& part : context.layout->Segments(bucket, context.rank)) {
    const size_t group = static_cast<size_t>(context.layout->parameters()[static_cast<size_t>(part.parameter)].group);
    if (group >= decays.size() || group >= multipliers.size()) {
      return InternalError(context.node.Describe() + ": no hyper-parameters of optimizer group " +
                           std::to_string(group));
    }
    segments.push_back({part.shard_begin, part.shard_begin + part.count, DecimalValue(decays[group]),
                        DecimalValue(multipliers[group])});
  }
  return segments;
}

}  // namespace onnxtrain
