// SPDX-License-Identifier: Apache-2.0
// Tables as text: one row a line, cells separated by comma, semicolon or tab (whichever the first line has), optional
// double quotes, an optional first line of names (recognised by a cell that is no number). LF or CRLF.
#ifndef ONNXTRAIN_RUNTIME_DATA_CSV_H_
#define ONNXTRAIN_RUNTIME_DATA_CSV_H_

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/status.h"
#include "graph/tensor.h"

namespace onnxtrain {

// The names of the columns; "0", "1", ... where the file has none.
StatusOr<std::vector<std::string>> CsvNames(std::span<const std::byte> bytes, std::string_view file);

// `columns` empty: all, as [rows, columns]. A name or an index: [rows]. "A;B;C" or "FIRST:END" (indexes): [rows, n].
// int64 when every chosen cell is a whole number that fits, else double. Empty cells and text are kInvalidData with
// line and column.
StatusOr<Tensor> ParseCsv(std::span<const std::byte> bytes, std::string_view file, const std::string& columns = "");

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_DATA_CSV_H_
