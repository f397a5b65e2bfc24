// SPDX-License-Identifier: Apache-2.0
// Layout: which gradient and which parameter lies where in which flat bucket, and which part of it each rank owns.
//
// One immutable object, computed once (passes/bucket_gradients.h) and hashed. It is the only thing that optimizer, norm,
// checkpoint and padding code may read to find an element. Rules, after Megatron-Core's distributed optimizer:
// a parameter starts at a multiple of 256 bytes, a bucket is padded to world_size * 128 elements, rank r owns the r-th
// equal slice (shard) of every bucket, parameters may cross shard borders but never bucket borders, padding is zero.
#ifndef ONNXTRAIN_GRAPH_LAYOUT_H_
#define ONNXTRAIN_GRAPH_LAYOUT_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "graph/status.h"
#include "graph/tensor.h"

namespace onnxtrain {

struct LayoutParameter {
  std::string name;    // canonical parameter
  TensorType type;     // whole, unsharded
  int group = 0;       // index of its optimizer group (hyper-parameters)
  int bucket = 0;
  int64_t offset = 0;  // first element inside the bucket
};

struct LayoutBucket {
  DType dtype = DType::kUndefined;
  int64_t elements = 0;         // padded length, a multiple of world_size * 128
  std::vector<int> parameters;  // indices into Layout::parameters(), by offset
};

// A run of elements of one parameter inside one rank's shard of a bucket.
struct LayoutSegment {
  int parameter = 0;            // index into Layout::parameters()
  int64_t parameter_begin = 0;  // elements [begin, begin + count) of the flattened parameter
  int64_t shard_begin = 0;      // where they lie inside the shard
  int64_t count = 0;
};

class Layout {
 public:
  // An empty layout: nothing is bucketed.
  Layout() = default;
  // Places parameters one after the other; `buckets` lists parameter indices in the order of their place. CHECKs that each
  // parameter is in exactly one bucket and that a bucket has one dtype. Fills bucket and offset of the parameters.
  static Layout Make(std::vector<LayoutParameter> parameters, const std::vector<std::vector<int>>& buckets,
                     int world_size);

  bool empty() const { return buckets_.empty(); }
  int world_size() const { return world_size_; }
  const std::vector<LayoutParameter>& parameters() const { return parameters_; }
  const std::vector<LayoutBucket>& buckets() const { return buckets_; }
  int FindParameter(std::string_view name) const;  // -1 when absent
  int64_t shard_elements(int bucket) const { return buckets_[static_cast<size_t>(bucket)].elements / world_size_; }
  // The segments of a rank's shard, by shard_begin. May be empty: a rank may own nothing but padding.
  std::vector<LayoutSegment> Segments(int bucket, int rank) const;
  // The segments of the whole bucket (shard_begin counts from the start of the bucket).
  std::vector<LayoutSegment> Segments(int bucket) const;
  // Elements of padding over elements of parameters, all buckets.
  double padding_fraction() const;

  // One line per bucket; stored as metadata "layout" of a printed Program and read back exactly.
  std::string ToString() const;
  static StatusOr<Layout> Parse(std::string_view text);
  // FNV-1a of ToString(): equal on all ranks or the run is refused.
  uint64_t Digest() const;

 private:
  std::vector<LayoutSegment> SegmentsIn(int bucket, int64_t begin, int64_t end) const;

  int world_size_ = 1;
  std::vector<LayoutParameter> parameters_;
  std::vector<LayoutBucket> buckets_;
};

}  // namespace onnxtrain

#endif  // ONNXTRAIN_GRAPH_LAYOUT_H_
