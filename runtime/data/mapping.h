// SPDX-License-Identifier: Apache-2.0
// The MAP of `--train NAME=FILE:MAP`: what is done to the rows of a file before they are fed. Parsed once, bound to the
// type of the array once, applied to the gathered rows of each batch, so that a file is never expanded as a whole.
//
//   f32 f64 i64 i32   cast; a number that the integer type cannot hold is kInvalidData, fractions are cut off
//   /K  *K            in float32, or in float64 after f64; 8- and 16-bit elements become float32 by themselves
//   mean=A;B;C        minus the mean, std=A;B;C by the standard deviation: one number, or one a channel (axis 1)
//   flatten           all axes but the first into one
//   reshape=AxBxC     the axes after the first; one of them may be -1
//   onehot=K          an integer in 0..K-1 becomes K float32, as a new last axis
//   nhwc2nchw         [n,h,w,c] to [n,c,h,w]
//   [A:B]             rows A to B-1; either may be left out, negative ones count from the end
#ifndef ONNXTRAIN_RUNTIME_DATA_MAPPING_H_
#define ONNXTRAIN_RUNTIME_DATA_MAPPING_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/status.h"
#include "graph/tensor.h"

namespace onnxtrain {

enum class MapKind : uint8_t {
  kCast,
  kDivide,
  kMultiply,
  kMean,
  kDeviation,
  kFlatten,
  kReshape,
  kOneHot,
  kChannelsFirst,
  kRows,
};

struct MapStep {
  MapKind kind = MapKind::kCast;
  std::string text;                 // as written, for messages
  DType dtype = DType::kUndefined;  // kCast
  std::vector<double> numbers;      // kDivide, kMultiply (one), kMean, kDeviation
  Shape shape;                      // kReshape
  int64_t classes = 0;              // kOneHot
  std::optional<int64_t> begin;     // kRows
  std::optional<int64_t> end;
};

class Mapping {
 public:
  Mapping() = default;  // changes nothing
  // kUsage with the word that is not understood and the known ones.
  static StatusOr<Mapping> Parse(const std::string& text);
  const std::vector<MapStep>& steps() const { return steps_; }
  bool empty() const { return steps_.empty(); }

 private:
  std::vector<MapStep> steps_;
};

// A cast that keeps every value of `from`: u8 to f32 yes, i64 to f32 and f64 to f32 no. Never from or to bool but
// bool to a number.
bool CastKeepsValues(DType from, DType to);

// A mapping bound to arrays of one type. Immutable after binding; Apply from any thread with its own Scratch.
class RowMapping {
 public:
  // `source` with axis 0, the row. kInvalidData where a step does not fit the type; `where` starts the message.
  static StatusOr<RowMapping> Bind(const Mapping& mapping, const TensorType& source, std::string_view where);

  // Adds the cast to a graph input's type: any cast that keeps values. kInvalidData names the map to write otherwise.
  Status CastTo(DType dtype, std::string_view where);
  // The other way to ask for a type: a cast the user's file implies, whatever values it loses.
  void ForceCast(DType dtype);

  // Rows [first_row, first_row + rows) of the source are used.
  int64_t first_row() const { return first_row_; }
  int64_t rows() const { return rows_; }
  // Types of one row, without axis 0.
  const TensorType& source_row() const { return source_row_; }
  const TensorType& row() const { return row_; }
  // Rows can be copied as they are.
  bool copies() const { return steps_.empty(); }

  // Working memory of Apply for rows one block at a time; made once per caller.
  struct Scratch {
    std::vector<std::byte> source;
    std::vector<std::byte> even;
    std::vector<std::byte> odd;
  };
  // Rows per block, so that a block stays in the cache.
  int64_t block_rows() const { return block_rows_; }
  Scratch MakeScratch() const;

  // Maps `count` <= block_rows() rows that lie in scratch.source to `to` (count * row().bytes()). On failure *bad is
  // the row, counted from 0, whose element does not fit.
  Status Apply(int64_t count, Scratch& scratch, std::byte* to, int64_t* bad) const;

 private:
  struct Step {
    MapKind kind;
    std::string text;
    TensorType from;  // of one row
    TensorType to;
    std::vector<double> numbers;
  };
  // One step over `count` rows; the first element that does not fit, or -1.
  static int64_t RunStep(const Step& step, int64_t count, const std::byte* from, std::byte* to);
  Status Add(const MapStep& step, std::string_view where);
  Status AddRows(const MapStep& step, std::string_view where);
  Status AddArithmetic(const MapStep& step, std::string_view where);
  Status AddReshape(const MapStep& step, std::string_view where);
  Status AddOneHot(const MapStep& step, std::string_view where);
  void Push(MapKind kind, const std::string& text, TensorType to, std::vector<double> numbers = {});
  void ChooseBlock();

  int64_t first_row_ = 0;
  int64_t rows_ = 0;
  TensorType source_row_;
  TensorType row_;
  std::vector<Step> steps_;
  int64_t block_rows_ = 1;
};

// A whole array mapped at once (feeds, small files).
StatusOr<Tensor> ApplyMapping(const Mapping& mapping, const Tensor& source, std::string_view where);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_DATA_MAPPING_H_
