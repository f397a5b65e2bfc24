// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/dataset.h"

#include <set>
#include <utility>

namespace onnxtrain {

StatusOr<Dataset> Dataset::Create(std::vector<std::unique_ptr<Column>> columns, std::unique_ptr<TokenWindows> tokens) {
  std::set<std::string_view> names;
  const Column* counted = nullptr;
  for (const auto& column : columns) {
    if (!names.insert(column->name()).second) return UsageError("data for '" + column->name() + "' is given twice");
    const auto samples = column->samples();
    if (!samples) continue;
    if (counted == nullptr) counted = column.get();
    if (*samples != *counted->samples()) {
      return InvalidDataError("'" + counted->name() + "' has " + std::to_string(*counted->samples()) +
                              " samples (axis 0), but '" + column->name() + "' has " + std::to_string(*samples));
    }
  }
  if (counted == nullptr)
    return InvalidDataError("no data with samples is given; --feed alone does not make a data set");
  Dataset dataset;
  dataset.samples_ = *counted->samples();
  dataset.columns_ = std::move(columns);
  dataset.tokens_ = std::move(tokens);
  return dataset;
}

Column* Dataset::Find(std::string_view name) const {
  for (const auto& column : columns_) {
    if (column->name() == name) return column.get();
  }
  return nullptr;
}

StatusOr<Dataset> OpenTokenDataset(const TokenOptions& options, std::vector<std::unique_ptr<Column>> further) {
  ASSIGN_OR_RETURN(TokenWindows opened, TokenWindows::Open(options.files, options.window));
  auto windows = std::make_unique<TokenWindows>(std::move(opened));
  std::vector<std::unique_ptr<Column>> columns;
  columns.push_back(MakeTokenColumn(options.inputs, windows.get(), 0, options.vocabulary));
  if (!options.targets.empty()) {
    columns.push_back(MakeTokenColumn(options.targets, windows.get(), options.target_shift, options.vocabulary));
  }
  for (auto& column : further) columns.push_back(std::move(column));
  return Dataset::Create(std::move(columns), std::move(windows));
}

}  // namespace onnxtrain
