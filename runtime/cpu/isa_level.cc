// SPDX-License-Identifier: Apache-2.0
#include "runtime/cpu/isa_level.h"

namespace onnxtrain {

IsaLevel BestIsaLevel() {
#if defined(__x86_64__)
  const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
  const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                  __builtin_cpu_supports("avx512vl");
  if (v4) return IsaLevel::kV4;
  if (v3) return IsaLevel::kV3;
#endif
  return IsaLevel::kV2;
}

}  // namespace onnxtrain
