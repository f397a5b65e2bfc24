// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/column.h"

#include <algorithm>
#include <cstring>

#include "runtime/data/row_kernels.h"

namespace onnxtrain {
namespace {

std::string Place(const std::string& name, const std::string& origin) { return "'" + name + "' from '" + origin + "'"; }

class ArrayColumn final : public Column {
 public:
  ArrayColumn(std::string name, std::vector<ArrayPiece> pieces, RowMapping mapping)
      : Column(std::move(name)), pieces_(std::move(pieces)), mapping_(std::move(mapping)) {
    int64_t total = 0;
    for (const ArrayPiece& piece : pieces_) {
      first_row_.push_back(total);
      total += piece.array.rows();
    }
  }

  std::optional<int64_t> samples() const override { return mapping_.rows(); }
  TensorType BatchType(int64_t count) const override {
    TensorType type = mapping_.row();
    type.shape.insert(type.shape.begin(), count);
    return type;
  }
  Status CastTo(DType dtype) override { return mapping_.CastTo(dtype, Place(name(), pieces_[0].origin)); }
  Status ForceCast(DType dtype) override {
    mapping_.ForceCast(dtype);
    return OkStatus();
  }
  ColumnScratch MakeScratch() const override { return {mapping_.MakeScratch()}; }

  Status Gather(std::span<const int64_t> samples, ColumnScratch& scratch, std::byte* to) const override {
    const size_t from_bytes = mapping_.source_row().bytes();
    const size_t to_bytes = mapping_.row().bytes();
    const size_t block = mapping_.copies() ? samples.size() : static_cast<size_t>(mapping_.block_rows());
    for (size_t start = 0; start < samples.size(); start += block) {
      const auto rows = samples.subspan(start, std::min(block, samples.size() - start));
      std::byte* target = mapping_.copies() ? to : scratch.rows.source.data();
      for (size_t i = 0; i < rows.size() && from_bytes > 0; ++i) {
        std::memcpy(target + i * from_bytes, Row(rows[i]), from_bytes);
      }
      if (!mapping_.copies()) RETURN_IF_ERROR(Map(rows, scratch, to));
      to += rows.size() * to_bytes;
    }
    return OkStatus();
  }

 private:
  size_t PieceOf(int64_t row) const {
    if (pieces_.size() == 1) return 0;
    return static_cast<size_t>(std::upper_bound(first_row_.begin(), first_row_.end(), row) - first_row_.begin()) - 1;
  }

  const std::byte* Row(int64_t sample) const {
    CHECK(sample >= 0 && sample < mapping_.rows());
    const int64_t row = sample + mapping_.first_row();
    const size_t piece = PieceOf(row);
    return pieces_[piece].array.row(row - first_row_[piece]);
  }

  Status Map(std::span<const int64_t> rows, ColumnScratch& scratch, std::byte* to) const {
    int64_t bad = 0;
    const Status status = mapping_.Apply(static_cast<int64_t>(rows.size()), scratch.rows, to, &bad);
    if (status.ok()) return status;
    const int64_t row = rows[static_cast<size_t>(bad)] + mapping_.first_row();
    const size_t piece = PieceOf(row);
    return status.Prepend(Place(name(), pieces_[piece].origin) + ", row " + std::to_string(row - first_row_[piece]));
  }

  std::vector<ArrayPiece> pieces_;
  std::vector<int64_t> first_row_;
  RowMapping mapping_;
};

class TokenColumn final : public Column {
 public:
  TokenColumn(std::string name, const TokenWindows* windows, int shift, int64_t vocabulary)
      : Column(std::move(name)), windows_(windows), shift_(shift), vocabulary_(vocabulary) {}

  std::optional<int64_t> samples() const override { return windows_->windows(); }
  TensorType BatchType(int64_t count) const override { return {dtype_, {count, windows_->window()}}; }
  Status CastTo(DType dtype) override {
    if (dtype != DType::kInt64 && dtype != DType::kInt32) {
      return InvalidDataError("'" + name() + "' takes " + std::string(NameOf(dtype)) +
                              ", but tokens are int64 or int32");
    }
    dtype_ = dtype;
    return OkStatus();
  }
  Status ForceCast(DType dtype) override { return CastTo(dtype); }

  Status Gather(std::span<const int64_t> samples, ColumnScratch&, std::byte* to) const override {
    const size_t bytes = static_cast<size_t>(windows_->window()) * SizeOf(dtype_);
    for (int64_t sample : samples) {
      RETURN_IF_ERROR(windows_->Read(sample, shift_, dtype_, vocabulary_, to));
      to += bytes;
    }
    return OkStatus();
  }

 private:
  const TokenWindows* windows_;
  int shift_;
  int64_t vocabulary_;
  DType dtype_ = DType::kInt64;
};

class ConstantColumn final : public Column {
 public:
  ConstantColumn(std::string name, Tensor tensor, bool repeat)
      : Column(std::move(name)), tensor_(std::move(tensor)), repeat_(repeat) {}

  std::optional<int64_t> samples() const override { return std::nullopt; }
  TensorType BatchType(int64_t count) const override {
    TensorType type = tensor_.type();
    if (repeat_) type.shape[0] = count;
    return type;
  }
  Status CastTo(DType dtype) override {
    if (dtype == tensor_.dtype()) return OkStatus();
    if (CastKeepsValues(tensor_.dtype(), dtype)) return ForceCast(dtype);
    return InvalidDataError("'" + name() + "' takes " + std::string(NameOf(dtype)) + ", the feed is " +
                            ToString(tensor_.type()) + ", and a cast may change values");
  }
  Status ForceCast(DType dtype) override {
    Tensor cast(TensorType{dtype, tensor_.shape()});
    const int64_t bad = ConvertElements(tensor_.dtype(), tensor_.data(), dtype, cast.data(), tensor_.elements());
    if (bad >= 0) {
      return InvalidDataError("'" + name() + "', element " + std::to_string(bad) + ": not a value of " +
                              std::string(NameOf(dtype)));
    }
    tensor_ = std::move(cast);
    return OkStatus();
  }

  Status Gather(std::span<const int64_t> samples, ColumnScratch&, std::byte* to) const override {
    const size_t copies = repeat_ ? samples.size() : 1;
    for (size_t i = 0; i < copies && tensor_.bytes() > 0; ++i) {
      std::memcpy(to + i * tensor_.bytes(), tensor_.data(), tensor_.bytes());
    }
    return OkStatus();
  }

 private:
  Tensor tensor_;
  bool repeat_;
};

TensorType RowType(const TensorType& type) {
  return {type.dtype, type.shape.empty() ? Shape() : Shape(type.shape.begin() + 1, type.shape.end())};
}

}  // namespace

StatusOr<std::unique_ptr<Column>> MakeArrayColumn(std::string name, std::vector<ArrayPiece> pieces,
                                                  const Mapping& mapping) {
  CHECK(!pieces.empty());
  TensorType type = pieces[0].array.type();
  for (size_t i = 1; i < pieces.size(); ++i) {
    const TensorType& other = pieces[i].array.type();
    if (type.shape.empty() || other.shape.empty() || RowType(other) != RowType(type)) {
      return InvalidDataError("'" + name + "': the rows of '" + pieces[i].origin + "' are " + ToString(RowType(other)) +
                              ", those of '" + pieces[0].origin + "' are " + ToString(RowType(type)));
    }
    type.shape[0] += other.shape[0];
  }
  ASSIGN_OR_RETURN(RowMapping rows, RowMapping::Bind(mapping, type, Place(name, pieces[0].origin)));
  return std::unique_ptr<Column>(new ArrayColumn(std::move(name), std::move(pieces), std::move(rows)));
}

std::unique_ptr<Column> MakeTokenColumn(std::string name, const TokenWindows* windows, int shift, int64_t vocabulary) {
  return std::make_unique<TokenColumn>(std::move(name), windows, shift, vocabulary);
}

StatusOr<std::unique_ptr<Column>> MakeConstantColumn(std::string name, Tensor tensor, bool repeat) {
  if (repeat && (tensor.shape().empty() || tensor.shape()[0] != 1)) {
    return InvalidDataError("'" + name + "': a feed for every sample needs a leading axis of 1, found " +
                            ToString(tensor.type()));
  }
  return std::unique_ptr<Column>(new ConstantColumn(std::move(name), std::move(tensor), repeat));
}

}  // namespace onnxtrain
