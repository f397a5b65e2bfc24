// SPDX-License-Identifier: Apache-2.0
// From the element type of a value to the C++ type of a kernel, at creation.
#ifndef ONNXTRAIN_RUNTIME_CPU_KERNELS_ELEMENT_TYPES_H_
#define ONNXTRAIN_RUNTIME_CPU_KERNELS_ELEMENT_TYPES_H_

#include <memory>
#include <type_traits>

#include "runtime/kernel.h"

namespace onnxtrain {

// The list of C++ types that a kernel template is made for.
template <typename... T>
struct TypeList {};
using FloatTypes = TypeList<float, double>;
using IntegerTypes = TypeList<int32_t, int64_t, uint8_t, int8_t, int16_t, uint16_t, uint32_t, uint64_t>;
using NumberTypes = TypeList<float, double, int32_t, int64_t, uint8_t, int8_t, int16_t, uint16_t, uint32_t, uint64_t>;
// Elements that are only moved, by size.
using MovedTypes = TypeList<uint8_t, uint16_t, uint32_t, uint64_t>;

template <typename T>
struct TypeTag {
  using type = T;
};

// make(TypeTag<T>()) for the T of `list` that is `dtype`; UnsupportedTypes when none is.
template <typename... T, typename Make>
StatusOr<std::unique_ptr<Kernel>> ForElementType(TypeList<T...>, DType dtype, const KernelContext& context,
                                                 const Make& make) {
  std::unique_ptr<Kernel> kernel;
  (void)((dtype == DTypeOf<T>() && (kernel = make(TypeTag<T>()), true)) || ...);
  if (kernel == nullptr) return UnsupportedTypes(context);
  return kernel;
}

// The same by the size of the element: for kernels that only move bytes. Strings are refused.
template <typename Make>
StatusOr<std::unique_ptr<Kernel>> ForElementSize(DType dtype, const KernelContext& context, const Make& make) {
  switch (SizeOf(dtype)) {
    case 1:
      return std::unique_ptr<Kernel>(make(TypeTag<uint8_t>()));
    case 2:
      return std::unique_ptr<Kernel>(make(TypeTag<uint16_t>()));
    case 4:
      return std::unique_ptr<Kernel>(make(TypeTag<uint32_t>()));
    case 8:
      return std::unique_ptr<Kernel>(make(TypeTag<uint64_t>()));
    default:
      return UnsupportedTypes(context);
  }
}

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_CPU_KERNELS_ELEMENT_TYPES_H_
