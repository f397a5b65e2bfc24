// SPDX-License-Identifier: Apache-2.0
// The binary version of CIFAR: records of 1 label byte (CIFAR-10) or 2, coarse and fine (CIFAR-100), and 3072 bytes of
// red, green and blue planes of 32 x 32. The format has no header: it is recognised by the size of the file.
#ifndef ONNXTRAIN_RUNTIME_DATA_CIFAR_H_
#define ONNXTRAIN_RUNTIME_DATA_CIFAR_H_

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/status.h"
#include "runtime/data/array.h"

namespace onnxtrain {

// The file is a whole, positive number of CIFAR-10 or CIFAR-100 records.
bool MayBeCifar(size_t file_bytes);

// "images" and "labels" for CIFAR-10; "images", "coarse" and "fine" for CIFAR-100.
std::vector<std::string> CifarNames(size_t file_bytes);

// images: uint8[n,3,32,32]; the others: uint8[n]. All stay in the file. A label out of range (10; 20 and 100)
// is kInvalidData with its record.
StatusOr<Array> OpenCifar(FileContents file, const std::string& name);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_DATA_CIFAR_H_
