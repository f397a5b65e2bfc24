// SPDX-License-Identifier: Apache-2.0
// Cast between all number types: float to integer truncates, anything to bool is "not zero", to 16-bit formats rounds
// to nearest even.
#include <algorithm>
#include <cstring>

#include "runtime/cpu/kernels/all_kernels.h"
#include "runtime/cpu/kernels/element_types.h"
#include "runtime/cpu/pieces.h"

namespace onnxtrain {
namespace {

// Storage of the 16-bit formats, told apart by type.
struct Float16 {
  uint16_t bits;
};
struct Bfloat16 {
  uint16_t bits;
};

template <typename T>
constexpr bool kIsSmallFloat = std::is_same_v<T, Float16> || std::is_same_v<T, Bfloat16>;

inline float Widen(Float16 x) { return Float16ToFloat(x.bits); }
inline float Widen(Bfloat16 x) { return Bfloat16ToFloat(x.bits); }
template <typename T>
inline T Widen(T x) {
  return x;
}

template <typename To, typename From>
inline To Convert(From from) {
  const auto value = Widen(from);
  if constexpr (std::is_same_v<To, bool>) {
    return value != decltype(value)(0);
  } else if constexpr (std::is_same_v<To, Float16>) {
    return {FloatToFloat16(static_cast<float>(value))};
  } else if constexpr (std::is_same_v<To, Bfloat16>) {
    return {FloatToBfloat16(static_cast<float>(value))};
  } else {
    return static_cast<To>(value);
  }
}

using CastLoop = void (*)(const std::byte* from, std::byte* to, int64_t begin, int64_t end);

template <typename From, typename To>
void Loop(const std::byte* from, std::byte* to, int64_t begin, int64_t end) {
  const From* x = reinterpret_cast<const From*>(from);
  To* y = reinterpret_cast<To*>(to);
  for (int64_t i = begin; i < end; ++i) y[i] = Convert<To>(x[i]);
}

template <typename From>
CastLoop LoopTo(DType to) {
  switch (to) {
    case DType::kFloat:
      return &Loop<From, float>;
    case DType::kDouble:
      return &Loop<From, double>;
    case DType::kFloat16:
      return &Loop<From, Float16>;
    case DType::kBfloat16:
      return &Loop<From, Bfloat16>;
    case DType::kInt8:
      return &Loop<From, int8_t>;
    case DType::kInt16:
      return &Loop<From, int16_t>;
    case DType::kInt32:
      return &Loop<From, int32_t>;
    case DType::kInt64:
      return &Loop<From, int64_t>;
    case DType::kUint8:
      return &Loop<From, uint8_t>;
    case DType::kUint16:
      return &Loop<From, uint16_t>;
    case DType::kUint32:
      return &Loop<From, uint32_t>;
    case DType::kUint64:
      return &Loop<From, uint64_t>;
    case DType::kBool:
      return &Loop<From, bool>;
    default:
      return nullptr;
  }
}

CastLoop FindLoop(DType from, DType to) {
  switch (from) {
    case DType::kFloat:
      return LoopTo<float>(to);
    case DType::kDouble:
      return LoopTo<double>(to);
    case DType::kFloat16:
      return LoopTo<Float16>(to);
    case DType::kBfloat16:
      return LoopTo<Bfloat16>(to);
    case DType::kInt8:
      return LoopTo<int8_t>(to);
    case DType::kInt16:
      return LoopTo<int16_t>(to);
    case DType::kInt32:
      return LoopTo<int32_t>(to);
    case DType::kInt64:
      return LoopTo<int64_t>(to);
    case DType::kUint8:
      return LoopTo<uint8_t>(to);
    case DType::kUint16:
      return LoopTo<uint16_t>(to);
    case DType::kUint32:
      return LoopTo<uint32_t>(to);
    case DType::kUint64:
      return LoopTo<uint64_t>(to);
    case DType::kBool:
      return LoopTo<bool>(to);
    default:
      return nullptr;
  }
}

class CastKernel : public Kernel {
 public:
  CastKernel(const KernelContext& context, CastLoop loop)
      : loop_(loop),
        same_size_(context.input_type(0).dtype == context.output_type(0).dtype ? SizeOf(context.input_type(0).dtype)
                                                                               : 0),
        count_(context.output_type(0).elements()),
        threads_(context.threads) {}

  Status Launch(const LaunchArgs& args) override {
    const std::byte* from = args.input<std::byte>(0);
    std::byte* to = args.output<std::byte>(0);
    ForEachPiece(threads_, count_, kMoveGrain, [&](int64_t begin, int64_t end) {
      if (same_size_ == 0) return loop_(from, to, begin, end);
      const auto offset = static_cast<size_t>(begin) * same_size_;
      std::memcpy(to + offset, from + offset, static_cast<size_t>(end - begin) * same_size_);
    });
    return OkStatus();
  }

 private:
  CastLoop loop_;
  size_t same_size_;  // bytes of an element when nothing is converted, else 0
  int64_t count_;
  int threads_;
};

StatusOr<std::unique_ptr<Kernel>> MakeCast(const KernelContext& context) {
  const CastLoop loop = FindLoop(context.input_type(0).dtype, context.output_type(0).dtype);
  if (loop == nullptr) return UnsupportedTypes(context);
  return std::unique_ptr<Kernel>(new CastKernel(context, loop));
}

}  // namespace

void AddCastKernels(KernelRegistry& registry) { registry.Add("Cast", MakeCast); }

}  // namespace onnxtrain
