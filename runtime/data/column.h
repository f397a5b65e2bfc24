// SPDX-License-Identifier: Apache-2.0
// One feed of a data set: what sample i of the input NAME is. Columns hold what they open; Gather from any thread, each
// with its own ColumnScratch.
#ifndef ONNXTRAIN_RUNTIME_DATA_COLUMN_H_
#define ONNXTRAIN_RUNTIME_DATA_COLUMN_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "graph/status.h"
#include "graph/tensor.h"
#include "runtime/data/array.h"
#include "runtime/data/mapping.h"
#include "runtime/data/token_file.h"

namespace onnxtrain {

// Working memory of Gather.
struct ColumnScratch {
  RowMapping::Scratch rows;
};

class Column {
 public:
  virtual ~Column() = default;
  Column(const Column&) = delete;
  Column& operator=(const Column&) = delete;

  // The graph input, or the target of the loss.
  const std::string& name() const { return name_; }
  // Samples along axis 0; none for a feed that is the same every step.
  virtual std::optional<int64_t> samples() const = 0;
  // What a batch of `count` samples is fed as.
  virtual TensorType BatchType(int64_t count) const = 0;

  // Makes `dtype` the type fed, where no value can change by it; kInvalidData with the map to write otherwise. Called
  // before the first Gather, as is ForceCast, which casts as an explicit f32, f64, i64 or i32 in the map would.
  virtual Status CastTo(DType dtype) = 0;
  virtual Status ForceCast(DType dtype) = 0;

  virtual ColumnScratch MakeScratch() const { return {}; }
  // Writes BatchType(samples.size()) to `to`. kInvalidData names file, row and element.
  virtual Status Gather(std::span<const int64_t> samples, ColumnScratch& scratch, std::byte* to) const = 0;

 protected:
  explicit Column(std::string name) : name_(std::move(name)) {}

 private:
  std::string name_;
};

struct ArrayPiece {
  std::string origin;  // the file, for messages
  Array array;
};

// Rows of one array, or of several of equal row type one after the other (the files of a glob). Row ranges of the
// mapping then count over all of them.
StatusOr<std::unique_ptr<Column>> MakeArrayColumn(std::string name, std::vector<ArrayPiece> pieces,
                                                  const Mapping& mapping);

// Tokens of the windows: shift 0 for inputs, 1 for the targets that follow. int64 unless cast to int32. `vocabulary`: a
// token at or above it is kInvalidData; 0 for no limit. Two columns may share one TokenWindows, which is borrowed.
std::unique_ptr<Column> MakeTokenColumn(std::string name, const TokenWindows* windows, int shift, int64_t vocabulary);

// The same tensor every step; with `repeat` its leading axis must be 1 and is repeated for every sample.
StatusOr<std::unique_ptr<Column>> MakeConstantColumn(std::string name, Tensor tensor, bool repeat);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_DATA_COLUMN_H_
