// SPDX-License-Identifier: Apache-2.0
#include "cuda_ops/kernels/element_access.h"
#include "cuda_ops/kernels/gather.h"
#include "cuda_ops/kernels/grid.h"
#include "runtime/kernel_fault.h"

namespace onnxtrain {
namespace cuda_kernels {

template <typename Places, typename Bits>
__global__ void __launch_bounds__(kBlockThreads, kResidentBlocks)
    Gather(GatherArguments a, Places places, Divisor by_inner, Divisor by_count) {
  const int64_t total = a.outer * a.count * a.inner;
  for (int64_t i = FirstElement(); i < total; i += ElementStride()) {
    int64_t outer = i;
    const int64_t column = by_inner.Split(&outer);
    const int64_t place = places.At(by_count.Split(&outer));
    Bits value = 0;
    if (place >= 0) {
      value = static_cast<const Bits*>(a.data)[(outer * a.size + place) * a.inner + column];
    } else {
      ReportFault(a.fault.status_word, static_cast<uint32_t>(DeviceFault::kIndexOutOfRange), a.fault.node_index);
    }
    static_cast<Bits*>(a.result)[i] = value;
  }
}

template <typename Places, typename Bits>
cudaError_t LaunchGatherOf(const GatherArguments& a, const Places& places, cudaStream_t stream) {
  return ONNXTRAIN_LAUNCH((Gather<Places, Bits>), ElementBlocks(a.outer * a.count * a.inner), kBlockThreads, 0, stream,
                          a, places, Divisor(a.inner), Divisor(a.count));
}

template <typename Places>
cudaError_t LaunchGatherAt(const GatherArguments& a, const Places& places, size_t element_bytes, cudaStream_t stream) {
  if (a.outer * a.count * a.inner == 0) return cudaSuccess;
  switch (element_bytes) {
    case 1:
      return LaunchGatherOf<Places, uint8_t>(a, places, stream);
    case 2:
      return LaunchGatherOf<Places, uint16_t>(a, places, stream);
    case 4:
      return LaunchGatherOf<Places, uint32_t>(a, places, stream);
    case 8:
      return LaunchGatherOf<Places, uint64_t>(a, places, stream);
    default:
      return cudaErrorInvalidValue;
  }
}

}  // namespace cuda_kernels

cudaError_t LaunchGather(const GatherArguments& a, const AxisPlaces& places, size_t element_bytes,
                         cudaStream_t stream) {
  return cuda_kernels::LaunchGatherAt(a, places, element_bytes, stream);
}
cudaError_t LaunchGather(const GatherArguments& a, const ElementPlaces& places, size_t element_bytes,
                         cudaStream_t stream) {
  return cuda_kernels::LaunchGatherAt(a, places, element_bytes, stream);
}
cudaError_t LaunchGather(const GatherArguments& a, const TuplePlaces& places, size_t element_bytes,
                         cudaStream_t stream) {
  return cuda_kernels::LaunchGatherAt(a, places, element_bytes, stream);
}
cudaError_t LaunchGather(const GatherArguments& a, const PadPlaces& places, size_t element_bytes, cudaStream_t stream) {
  return cuda_kernels::LaunchGatherAt(a, places, element_bytes, stream);
}

}  // namespace onnxtrain
