// SPDX-License-Identifier: Apache-2.0
// Which copy of a loop of runtime/cpu/isa this processor runs. A header of such a loop declares it with
// ONNXTRAIN_FOR_EACH_ISA(void Add(...);), and a kernel keeps ONNXTRAIN_SELECT_ISA(Add) from its creation on.
#ifndef ONNXTRAIN_RUNTIME_CPU_ISA_LEVEL_H_
#define ONNXTRAIN_RUNTIME_CPU_ISA_LEVEL_H_

#include <cstdint>

namespace onnxtrain {

enum class IsaLevel : uint8_t { kV2, kV3, kV4 };

// The highest level that this processor and this build have.
IsaLevel BestIsaLevel();

template <typename Function>
Function SelectIsa(Function v2, Function v3, Function v4) {
  const IsaLevel level = BestIsaLevel();
  return level == IsaLevel::kV4 ? v4 : level == IsaLevel::kV3 ? v3 : v2;
}

}  // namespace onnxtrain

#if defined(__x86_64__)
#define ONNXTRAIN_FOR_EACH_ISA(...) \
  namespace isa_v2 {                \
  __VA_ARGS__                       \
  }                                 \
  namespace isa_v3 {                \
  __VA_ARGS__                       \
  }                                 \
  namespace isa_v4 {                \
  __VA_ARGS__                       \
  }
#define ONNXTRAIN_SELECT_ISA(...) \
  ::onnxtrain::SelectIsa(&isa_v2::__VA_ARGS__, &isa_v3::__VA_ARGS__, &isa_v4::__VA_ARGS__)
// The same for a name with overloads: the pointer type picks one.
#define ONNXTRAIN_SELECT_ISA_AS(Pointer, name) \
  ::onnxtrain::SelectIsa<Pointer>(&isa_v2::name, &isa_v3::name, &isa_v4::name)
#else
#define ONNXTRAIN_FOR_EACH_ISA(...) \
  namespace isa_v2 {                \
  __VA_ARGS__                       \
  }
#define ONNXTRAIN_SELECT_ISA_AS(Pointer, name) static_cast<Pointer>(&isa_v2::name)
#define ONNXTRAIN_SELECT_ISA(...) (&isa_v2::__VA_ARGS__)
#endif

#endif  // ONNXTRAIN_RUNTIME_CPU_ISA_LEVEL_H_
