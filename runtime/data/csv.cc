// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/csv.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>

#include "runtime/data/byte_reader.h"

namespace onnxtrain {
namespace {

struct Cell {
  std::string text;
  size_t offset = 0;
};

// Line by line, as cells. A quoted cell may not span lines: no number does.
class LineReader {
 public:
  LineReader(std::span<const std::byte> bytes, std::string_view file)
      : text_(reinterpret_cast<const char*>(bytes.data()), bytes.size()), file_(file) {
    if (text_.starts_with("\xef\xbb\xbf")) at_ = 3;
    const std::string_view first = text_.substr(at_, text_.find('\n', at_) - at_);
    for (char candidate : {',', ';', '\t'}) {
      if (first.find(candidate) != std::string_view::npos) {
        separator_ = candidate;
        break;
      }
    }
  }

  // False at the end. Lines without any character are skipped.
  StatusOr<bool> Next(std::vector<Cell>& cells);
  size_t line() const { return line_; }

 private:
  StatusOr<Cell> ReadCell(std::string_view line, size_t& position) const;

  std::string_view text_;
  std::string_view file_;
  size_t at_ = 0;
  size_t line_ = 0;
  size_t line_start_ = 0;
  char separator_ = ',';
};

std::string_view Trim(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

StatusOr<Cell> LineReader::ReadCell(std::string_view line, size_t& position) const {
  Cell cell;
  cell.offset = line_start_ + position;
  if (position < line.size() && line[position] == '"') {
    ++position;
    while (true) {
      const size_t quote = line.find('"', position);
      if (quote == std::string_view::npos) {
        return DataErrorAt(file_, cell.offset, "line " + std::to_string(line_) + ": a quoted cell does not end");
      }
      cell.text += line.substr(position, quote - position);
      position = quote + 1;
      if (position >= line.size() || line[position] != '"') break;
      cell.text += '"';
      ++position;
    }
    if (position < line.size() && line[position] != separator_) {
      return DataErrorAt(file_, line_start_ + position, "line " + std::to_string(line_) + ": text after a quoted cell");
    }
    return cell;
  }
  const size_t end = std::min(line.find(separator_, position), line.size());
  cell.text = std::string(Trim(line.substr(position, end - position)));
  position = end;
  return cell;
}

StatusOr<bool> LineReader::Next(std::vector<Cell>& cells) {
  cells.clear();
  while (at_ < text_.size()) {
    const size_t end = std::min(text_.find('\n', at_), text_.size());
    line_start_ = at_;
    ++line_;
    std::string_view line = text_.substr(at_, end - at_);
    at_ = end + 1;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    size_t position = 0;
    while (true) {
      ASSIGN_OR_RETURN(Cell cell, ReadCell(line, position));
      cells.push_back(std::move(cell));
      if (position >= line.size()) return true;
      ++position;  // the separator
    }
  }
  return false;
}

std::optional<int64_t> ParseInt(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<double> ParseDouble(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

struct Table {
  std::vector<std::string> names;
  bool has_names = false;
  std::vector<Cell> first;  // the first row of numbers, empty for none
};

StatusOr<Table> ReadHead(LineReader& reader, std::string_view file) {
  Table table;
  ASSIGN_OR_RETURN(const bool any, reader.Next(table.first));
  if (!any) return DataErrorAt(file, 0, "the table is empty");
  table.has_names =
      std::any_of(table.first.begin(), table.first.end(), [](const Cell& cell) { return !ParseDouble(cell.text); });
  for (size_t i = 0; i < table.first.size(); ++i) {
    table.names.push_back(table.has_names ? table.first[i].text : std::to_string(i));
  }
  if (table.has_names) {
    ASSIGN_OR_RETURN(const bool more, reader.Next(table.first));
    if (!more) table.first.clear();
  }
  return table;
}

struct Choice {
  std::vector<size_t> columns;
  bool single = false;
};

StatusOr<size_t> FindColumn(const Table& table, std::string_view name, std::string_view file) {
  const auto found = std::find(table.names.begin(), table.names.end(), name);
  if (found != table.names.end()) return static_cast<size_t>(found - table.names.begin());
  const auto index = ParseInt(name);
  if (index && *index >= 0 && static_cast<size_t>(*index) < table.names.size()) return static_cast<size_t>(*index);
  std::string list;
  for (const std::string& known : table.names) {
    if (list.size() < 500) list += (list.empty() ? "" : ", ") + known;
  }
  return InvalidDataError("'" + std::string(file) + "' has no column '" + std::string(name) + "'; it has: " + list);
}

// "FIRST:END", both indexes; none where the text is something else.
std::optional<Choice> ParseRange(const std::string& text, size_t count) {
  const size_t colon = text.find(':');
  if (colon == std::string::npos) return std::nullopt;
  const auto begin = ParseInt(std::string_view(text).substr(0, colon));
  const auto end = ParseInt(std::string_view(text).substr(colon + 1));
  if (!begin || !end || *begin < 0 || *end <= *begin || static_cast<size_t>(*end) > count) return std::nullopt;
  Choice choice;
  for (int64_t i = *begin; i < *end; ++i) choice.columns.push_back(static_cast<size_t>(i));
  return choice;
}

StatusOr<Choice> Choose(const Table& table, const std::string& columns, std::string_view file) {
  Choice choice;
  if (columns.empty()) {
    for (size_t i = 0; i < table.names.size(); ++i) choice.columns.push_back(i);
    return choice;
  }
  const bool named = std::find(table.names.begin(), table.names.end(), columns) != table.names.end();
  if (auto range = ParseRange(columns, table.names.size()); range && !named) return *std::move(range);
  choice.single = named || columns.find(';') == std::string::npos;
  if (choice.single) {
    ASSIGN_OR_RETURN(const size_t column, FindColumn(table, columns, file));
    choice.columns.push_back(column);
    return choice;
  }
  for (size_t at = 0; at <= columns.size();) {
    const size_t end = std::min(columns.find(';', at), columns.size());
    ASSIGN_OR_RETURN(const size_t column, FindColumn(table, std::string_view(columns).substr(at, end - at), file));
    choice.columns.push_back(column);
    at = end + 1;
  }
  return choice;
}

// Row by row into doubles, and into integers as long as all are.
struct Cells {
  std::vector<double> numbers;
  std::vector<int64_t> integers;
  bool whole = true;

  Status Append(const Cell& cell, size_t line, const std::string& column, std::string_view file) {
    const auto number = ParseDouble(cell.text);
    if (!number) {
      return DataErrorAt(file, cell.offset,
                         "line " + std::to_string(line) + ", column '" + column + "': a number is expected, found '" +
                             cell.text + "'");
    }
    numbers.push_back(*number);
    const auto integer = whole ? ParseInt(cell.text) : std::nullopt;
    whole = whole && integer.has_value();
    if (whole) integers.push_back(*integer);
    return OkStatus();
  }
};

}  // namespace

StatusOr<std::vector<std::string>> CsvNames(std::span<const std::byte> bytes, std::string_view file) {
  LineReader reader(bytes, file);
  ASSIGN_OR_RETURN(Table table, ReadHead(reader, file));
  return std::move(table.names);
}

StatusOr<Tensor> ParseCsv(std::span<const std::byte> bytes, std::string_view file, const std::string& columns) {
  LineReader reader(bytes, file);
  ASSIGN_OR_RETURN(Table table, ReadHead(reader, file));
  ASSIGN_OR_RETURN(const Choice choice, Choose(table, columns, file));
  Cells cells;
  int64_t rows = 0;
  std::vector<Cell>& row = table.first;
  for (bool more = !row.empty(); more; ++rows) {
    if (row.size() != table.names.size()) {
      return DataErrorAt(file, row[0].offset,
                         "line " + std::to_string(reader.line()) + ": expected " + std::to_string(table.names.size()) +
                             " cells, found " + std::to_string(row.size()));
    }
    for (size_t column : choice.columns) {
      RETURN_IF_ERROR(cells.Append(row[column], reader.line(), table.names[column], file));
    }
    ASSIGN_OR_RETURN(more, reader.Next(row));
  }
  Shape shape = {rows};
  if (!choice.single) shape.push_back(static_cast<int64_t>(choice.columns.size()));
  if (cells.whole && rows > 0) return Tensor::FromVector<int64_t>(std::move(shape), cells.integers);
  return Tensor::FromVector<double>(std::move(shape), cells.numbers);
}

}  // namespace onnxtrain
