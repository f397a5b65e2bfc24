// SPDX-License-Identifier: Apache-2.0
// Labels of a classification loss as its kernels read them: integers of any width, some of them ignored.
#ifndef ONNXTRAIN_RUNTIME_CPU_KERNELS_CLASS_LABELS_H_
#define ONNXTRAIN_RUNTIME_CPU_KERNELS_CLASS_LABELS_H_

#include <cstdint>
#include <optional>

#include "graph/attributes.h"
#include "graph/dtype.h"

namespace onnxtrain {

class ClassLabels {
 public:
  ClassLabels(DType dtype, int64_t classes, const Attributes& attributes) : dtype_(dtype), classes_(classes) {
    if (attributes.Has("ignore_index")) ignored_ = attributes.Int("ignore_index", 0);
  }

  enum class Kind : uint8_t { kCounted, kIgnored, kOutOfRange };
  struct Label {
    Kind kind;
    int64_t index;
  };
  // `ignore_index` is ignored even where it is a class.
  Label At(const std::byte* labels, int64_t position) const {
    const int64_t index = Read(labels, position);
    if (ignored_ && index == *ignored_) return {Kind::kIgnored, index};
    return {0 <= index && index < classes_ ? Kind::kCounted : Kind::kOutOfRange, index};
  }

 private:
  int64_t Read(const std::byte* labels, int64_t i) const {
    switch (dtype_) {
      case DType::kInt64:
        return reinterpret_cast<const int64_t*>(labels)[i];
      case DType::kInt32:
        return reinterpret_cast<const int32_t*>(labels)[i];
      case DType::kInt16:
        return reinterpret_cast<const int16_t*>(labels)[i];
      case DType::kInt8:
        return reinterpret_cast<const int8_t*>(labels)[i];
      case DType::kUint8:
        return reinterpret_cast<const uint8_t*>(labels)[i];
      case DType::kUint16:
        return reinterpret_cast<const uint16_t*>(labels)[i];
      case DType::kUint32:
        return reinterpret_cast<const uint32_t*>(labels)[i];
      default:
        return static_cast<int64_t>(reinterpret_cast<const uint64_t*>(labels)[i]);
    }
  }

  const DType dtype_;
  const int64_t classes_;
  std::optional<int64_t> ignored_;
};

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_CPU_KERNELS_CLASS_LABELS_H_
