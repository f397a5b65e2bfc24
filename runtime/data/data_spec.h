// SPDX-License-Identifier: Apache-2.0
// What follows --train, --val and --feed: NAME=FILE[#ENTRY][:MAP], FILE.npz, NAME=[[1,2],[3,4]].
#ifndef ONNXTRAIN_RUNTIME_DATA_DATA_SPEC_H_
#define ONNXTRAIN_RUNTIME_DATA_DATA_SPEC_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "graph/status.h"
#include "graph/tensor.h"
#include "runtime/data/array_file.h"
#include "runtime/data/column.h"
#include "runtime/data/mapping.h"

namespace onnxtrain {

struct DataSpec {
  std::string name;     // empty: every array of the file, by its own name
  std::string path;     // file, or pattern of files, with its #ENTRY
  std::string literal;  // instead of a path
  Mapping mapping;
};

// Splits at the first '='; a text that names a file as a whole is a file without a name. The map is what follows the
// first
// ':' behind which a map can be read, unless the whole is a file. kUsage where neither a file nor a map results.
StatusOr<DataSpec> ParseDataSpec(const std::string& text);

// Columns of a spec. A file without a name gives one column an array. A pattern gives the rows of all its files.
StatusOr<std::vector<std::unique_ptr<Column>>> OpenColumns(const DataSpec& spec, const ArrayFileOptions& options = {});

// The type that a feed of this name is given to; kUndefined when it is not known.
using FeedTypes = std::function<DType(const std::string& name)>;

// The arrays of a spec as tensors, mapped, then cast to the type asked for where no value can change (kInvalidData
// otherwise). Literals take that type directly.
StatusOr<std::vector<NamedTensor>> ReadFeeds(const DataSpec& spec, const FeedTypes& types,
                                             const ArrayFileOptions& options = {});

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_DATA_DATA_SPEC_H_
