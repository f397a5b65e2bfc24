// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/data_spec.h"

#include <filesystem>

#include "runtime/data/file_contents.h"
#include "runtime/data/json_literal.h"

namespace onnxtrain {
namespace {

bool Exists(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

// Takes FILE[#ENTRY] and MAP apart. The first reading that names an existing file wins.
Status SplitMap(const std::string& text, DataSpec& spec) {
  spec.path = text;
  if (Exists(SplitArrayPath(text).file) && SplitArrayPath(text).entry.find(':') == std::string::npos) return OkStatus();
  Status first_error;
  for (size_t colon = text.find(':'); colon != std::string::npos; colon = text.find(':', colon + 1)) {
    StatusOr<Mapping> mapping = Mapping::Parse(text.substr(colon + 1));
    if (mapping.ok()) {
      spec.path = text.substr(0, colon);
      spec.mapping = std::move(mapping).value();
      return OkStatus();
    }
    if (first_error.ok()) first_error = mapping.status();
  }
  // An entry may have colons in its name (onnx::MatMul_5).
  const bool entry_has_colon = SplitArrayPath(text).entry.find(':') != std::string::npos;
  if (entry_has_colon || first_error.ok()) return OkStatus();
  return first_error.Prepend("'" + text + "'");
}

Status CastFeed(NamedTensor& feed, const FeedTypes& types) {
  const DType wanted = types ? types(feed.first) : DType::kUndefined;
  if (wanted == DType::kUndefined || wanted == feed.second.dtype()) return OkStatus();
  ASSIGN_OR_RETURN(auto column, MakeConstantColumn(feed.first, feed.second, false));
  RETURN_IF_ERROR(column->CastTo(wanted));
  Tensor cast(column->BatchType(0));
  ColumnScratch scratch;
  RETURN_IF_ERROR(column->Gather({}, scratch, cast.data()));
  feed.second = std::move(cast);
  return OkStatus();
}

StatusOr<std::vector<NamedTensor>> ReadUnnamed(const DataSpec& spec, const ArrayFileOptions& options) {
  ASSIGN_OR_RETURN(std::vector<NamedTensor> tensors, ReadNamedArrays(spec.path, options));
  if (tensors.empty()) return InvalidDataError("'" + spec.path + "' holds no arrays");
  return tensors;
}

StatusOr<ArrayPiece> OpenPiece(const std::string& path, const ArrayFileOptions& options) {
  ASSIGN_OR_RETURN(Array array, OpenArrayFile(path, options));
  return ArrayPiece{path, std::move(array)};
}

}  // namespace

StatusOr<DataSpec> ParseDataSpec(const std::string& text) {
  DataSpec spec;
  const size_t equals = text.find('=');
  if (equals == std::string::npos || Exists(text)) {
    spec.path = text;
    if (Exists(text)) return spec;
    Status status = SplitMap(text, spec);
    if (status.ok() && spec.mapping.empty()) return spec;
    return UsageError("'" + text + "': expected NAME=FILE[:MAP], or FILE.npz whose arrays are named as the inputs");
  }
  spec.name = text.substr(0, equals);
  const std::string rest = text.substr(equals + 1);
  if (spec.name.empty() || rest.empty()) return UsageError("'" + text + "': expected NAME=FILE[:MAP]");
  if (LooksLikeJsonLiteral(rest) && !Exists(SplitArrayPath(rest).file) &&
      rest.find_first_of("/:") == std::string::npos) {
    const char first = rest[rest.find_first_not_of(" \t\r\n")];
    if (first == '[' || ParseJsonLiteral(rest, spec.name).ok()) {
      spec.literal = rest;
      return spec;
    }
  }
  RETURN_IF_ERROR(SplitMap(rest, spec));
  return spec;
}

StatusOr<std::vector<std::unique_ptr<Column>>> OpenColumns(const DataSpec& spec, const ArrayFileOptions& options) {
  std::vector<std::unique_ptr<Column>> columns;
  if (!spec.literal.empty()) {
    ASSIGN_OR_RETURN(Tensor tensor, ParseJsonLiteral(spec.literal, spec.name));
    std::vector<ArrayPiece> pieces;
    pieces.push_back({"the command line", Array(std::move(tensor))});
    ASSIGN_OR_RETURN(auto column, MakeArrayColumn(spec.name, std::move(pieces), spec.mapping));
    columns.push_back(std::move(column));
    return columns;
  }
  if (spec.name.empty()) {
    ASSIGN_OR_RETURN(const std::vector<std::string> names, ListArrayFile(spec.path));
    for (const std::string& name : names) {
      if (name.empty()) {
        return UsageError("'" + spec.path + "' does not name its arrays: give NAME=" + spec.path);
      }
      std::vector<ArrayPiece> pieces;
      ASSIGN_OR_RETURN(ArrayPiece piece, OpenPiece(spec.path + "#" + name, options));
      pieces.push_back(std::move(piece));
      ASSIGN_OR_RETURN(auto column, MakeArrayColumn(name, std::move(pieces), spec.mapping));
      columns.push_back(std::move(column));
    }
    if (columns.empty()) return InvalidDataError("'" + spec.path + "' holds no arrays");
    return columns;
  }
  const ArrayPath path = SplitArrayPath(spec.path);
  ASSIGN_OR_RETURN(const std::vector<std::string> files, MatchFiles(path.file));
  std::vector<ArrayPiece> pieces;
  for (const std::string& file : files) {
    ASSIGN_OR_RETURN(ArrayPiece piece, OpenPiece(path.entry.empty() ? file : file + "#" + path.entry, options));
    pieces.push_back(std::move(piece));
  }
  ASSIGN_OR_RETURN(auto column, MakeArrayColumn(spec.name, std::move(pieces), spec.mapping));
  columns.push_back(std::move(column));
  return columns;
}

StatusOr<std::vector<NamedTensor>> ReadFeeds(const DataSpec& spec, const FeedTypes& types,
                                             const ArrayFileOptions& options) {
  std::vector<NamedTensor> feeds;
  if (!spec.literal.empty()) {
    const DType dtype = types ? types(spec.name) : DType::kUndefined;
    ASSIGN_OR_RETURN(Tensor tensor, ParseJsonLiteral(spec.literal, spec.name, dtype));
    feeds.emplace_back(spec.name, std::move(tensor));
    return feeds;
  }
  if (spec.name.empty()) {
    ASSIGN_OR_RETURN(feeds, ReadUnnamed(spec, options));
  } else {
    ASSIGN_OR_RETURN(Tensor tensor, ReadArrayFile(spec.path, options));
    if (!spec.mapping.empty()) {
      ASSIGN_OR_RETURN(tensor, ApplyMapping(spec.mapping, tensor, "'" + spec.name + "' from '" + spec.path + "'"));
    }
    feeds.emplace_back(spec.name, std::move(tensor));
  }
  for (NamedTensor& feed : feeds) RETURN_IF_ERROR(CastFeed(feed, types));
  return feeds;
}

}  // namespace onnxtrain
