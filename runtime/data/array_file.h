// SPDX-License-Identifier: Apache-2.0
// One way to read any array file: npy, npz, IDX (plain or gzip), CIFAR, safetensors, CSV/TSV, token .bin, ONNX .pb.
// The format is known by the content, else by the ending. "FILE#ENTRY" picks an array of a file that holds several.
#ifndef ONNXTRAIN_RUNTIME_DATA_ARRAY_FILE_H_
#define ONNXTRAIN_RUNTIME_DATA_ARRAY_FILE_H_

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/status.h"
#include "graph/tensor.h"
#include "runtime/data/array.h"

namespace onnxtrain {

using NamedTensor = std::pair<std::string, Tensor>;

// Reads a serialized ONNX TensorProto. Without one, .pb files are refused.
using TensorProtoReader = std::function<StatusOr<Tensor>(const std::string& path)>;

struct ArrayFileOptions {
  TensorProtoReader tensor_proto_reader;
  // What the untyped 16-bit elements "|V2" of npy and npz stand for: bfloat16 where the graph input has that type.
  DType void_type = DType::kUndefined;
};

// "FILE#ENTRY", split at the first # that leaves an existing file, unless the whole text names one.
struct ArrayPath {
  std::string file;
  std::string entry;  // empty: the only array
};
ArrayPath SplitArrayPath(const std::string& text);

// Opens one array, mapped where the format allows. Without an entry a file of several arrays is kInvalidData with the
// list. Entries: npz and safetensors: names; CIFAR: images, labels (coarse, fine); CSV: columns (csv.h); .bin without
// header: "tokens"; a folder of input_N.pb: input_N.
StatusOr<Array> OpenArrayFile(const std::string& path_with_entry, const ArrayFileOptions& options = {});
StatusOr<Tensor> ReadArrayFile(const std::string& path_with_entry, const ArrayFileOptions& options = {});

// The entries of a file or of a folder of NAME.pb files; one empty name where the format holds a single array.
StatusOr<std::vector<std::string>> ListArrayFile(const std::string& path);

// Every array of an npz, a safetensors or a folder of input_N.pb (in the order of N, named input_N).
StatusOr<std::vector<NamedTensor>> ReadNamedArrays(const std::string& path, const ArrayFileOptions& options = {});

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_DATA_ARRAY_FILE_H_
