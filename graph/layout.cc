// SPDX-License-Identifier: Apache-2.0
#include "graph/layout.h"

#include <algorithm>

#include "graph/digest.h"

namespace onnxtrain {
namespace {

constexpr int64_t kParameterAlignmentBytes = 256;
constexpr int64_t kShardMultiple = 128;

int64_t RoundUp(int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

int64_t AlignmentElements(DType dtype) { return kParameterAlignmentBytes / static_cast<int64_t>(SizeOf(dtype)); }

}  // namespace

Layout Layout::Make(std::vector<LayoutParameter> parameters, const std::vector<std::vector<int>>& buckets,
                    int world_size) {
  CHECK(world_size >= 1);
  Layout layout;
  layout.world_size_ = world_size;
  layout.parameters_ = std::move(parameters);
  std::vector<bool> placed(layout.parameters_.size(), false);
  for (const std::vector<int>& members : buckets) {
    CHECK_WITH(!members.empty(), "a bucket without parameters");
    LayoutBucket bucket;
    for (const int index : members) {
      CHECK(index >= 0 && index < static_cast<int>(layout.parameters_.size()));
      LayoutParameter& parameter = layout.parameters_[static_cast<size_t>(index)];
      CHECK_WITH(!placed[static_cast<size_t>(index)], parameter.name + " is in two buckets");
      CHECK_WITH(SizeOf(parameter.type.dtype) != 0, parameter.name);
      if (bucket.parameters.empty()) bucket.dtype = parameter.type.dtype;
      CHECK_WITH(parameter.type.dtype == bucket.dtype, parameter.name + " has another element type than its bucket");
      placed[static_cast<size_t>(index)] = true;
      parameter.bucket = static_cast<int>(layout.buckets_.size());
      parameter.offset = RoundUp(bucket.elements, AlignmentElements(bucket.dtype));
      bucket.elements = parameter.offset + parameter.type.elements();
      bucket.parameters.push_back(index);
    }
    bucket.elements = RoundUp(std::max<int64_t>(bucket.elements, 1), world_size * kShardMultiple);
    layout.buckets_.push_back(std::move(bucket));
  }
  for (size_t i = 0; i < placed.size(); ++i) CHECK_WITH(placed[i], layout.parameters_[i].name + " is in no bucket");
  return layout;
}

int Layout::FindParameter(std::string_view name) const {
  const auto found = std::find_if(parameters_.begin(), parameters_.end(),
                                  [&](const LayoutParameter& parameter) { return parameter.name == name; });
  return found == parameters_.end() ? -1 : static_cast<int>(found - parameters_.begin());
}

std::vector<LayoutSegment> Layout::Segments(int bucket, int rank) const {
  CHECK(rank >= 0 && rank < world_size_);
  const int64_t length = shard_elements(bucket);
  return SegmentsIn(bucket, rank * length, (rank + 1) * length);
}

std::vector<LayoutSegment> Layout::Segments(int bucket) const {
  return SegmentsIn(bucket, 0, buckets_[static_cast<size_t>(bucket)].elements);
}

std::vector<LayoutSegment> Layout::SegmentsIn(int bucket, int64_t begin, int64_t end) const {
  CHECK(bucket >= 0 && bucket < static_cast<int>(buckets_.size()));
  std::vector<LayoutSegment> segments;
  for (const int index : buckets_[static_cast<size_t>(bucket)].parameters) {
    const LayoutParameter& parameter = parameters_[static_cast<size_t>(index)];
    const int64_t first = std::max(begin, parameter.offset);
    const int64_t last = std::min(end, parameter.offset + parameter.type.elements());
    if (first < last) segments.push_back({index, first - parameter.offset, first - begin, last - first});
  }
  return segments;
}

double Layout::padding_fraction() const {
  int64_t total = 0;
  int64_t used = 0;
  for (const LayoutBucket& bucket : buckets_) total += bucket.elements;
  for (const LayoutParameter& parameter : parameters_) used += parameter.type.elements();
  return used == 0 ? 0.0 : static_cast<double>(total - used) / static_cast<double>(used);
}

uint64_t Layout::Digest() const { return Fnv1a(ToString()); }

}  // namespace onnxtrain
