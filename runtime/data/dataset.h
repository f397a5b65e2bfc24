// SPDX-License-Identifier: Apache-2.0
// A set of columns that belong together: sample i is row i of each.
#ifndef ONNXTRAIN_RUNTIME_DATA_DATASET_H_
#define ONNXTRAIN_RUNTIME_DATA_DATASET_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "graph/status.h"
#include "runtime/data/column.h"
#include "runtime/data/token_file.h"

namespace onnxtrain {

// Move-only. Immutable but for the casts of its columns, which come before the first batch.
class Dataset {
 public:
  // kInvalidData: columns of different sample counts, or none with samples. kUsage: a name that occurs twice.
  // `tokens` holds what token columns read from; may be null.
  static StatusOr<Dataset> Create(std::vector<std::unique_ptr<Column>> columns,
                                  std::unique_ptr<TokenWindows> tokens = nullptr);

  int64_t samples() const { return samples_; }
  const std::vector<std::unique_ptr<Column>>& columns() const { return columns_; }
  // Null when there is none of this name.
  Column* Find(std::string_view name) const;

 private:
  Dataset() = default;

  std::vector<std::unique_ptr<Column>> columns_;
  std::unique_ptr<TokenWindows> tokens_;
  int64_t samples_ = 0;
};

struct TokenOptions {
  std::vector<std::string> files;  // in order
  int64_t window = 0;              // --seq-len
  std::string inputs;              // names of the columns; no targets column when empty
  std::string targets;
  int target_shift = 1;    // 0 for graphs that shift inside
  int64_t vocabulary = 0;  // rows of the embedding, 0 for no check
};

// Token columns, and further ones beside them.
StatusOr<Dataset> OpenTokenDataset(const TokenOptions& options, std::vector<std::unique_ptr<Column>> further);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_DATA_DATASET_H_
