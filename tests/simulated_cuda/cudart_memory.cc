// SPDX-License-Identifier: Apache-2.0
// Memory of the simulated GPUs. Every allocation lies between two guard zones, whose pattern is checked when it is
// freed, and is filled with NaN before and after its life. All device memory is one reserved range, so that it can be
// made unreadable: by a protection key, per thread, where the processor has them; else, with SIMULATED_CUDA_GUARD=1,
// whenever nothing runs on any device.
#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#include "tests/simulated_cuda/cudart_state.h"

namespace simulated_cuda {
namespace {

constexpr size_t kReserved = size_t{64} << 30;
constexpr size_t kGuard = 256;
constexpr size_t kPage = 4096;
constexpr unsigned char kGuardByte = 0xA5;
constexpr unsigned char kPoison = 0xFF;  // NaN in every floating type

struct Allocation {
  size_t bytes = 0;
  Place place;
};

class Memory {
 public:
  Memory() {
    base_ = static_cast<unsigned char*>(
        mmap(nullptr, kReserved, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    if (base_ == MAP_FAILED) std::abort();
    key_ = pkey_alloc(0, PKEY_DISABLE_ACCESS);
    if (key_ >= 0 && pkey_mprotect(base_, kReserved, PROT_READ | PROT_WRITE, key_) != 0) std::abort();
    const char* guard = std::getenv("SIMULATED_CUDA_GUARD");
    guarded_ = key_ < 0 && guard != nullptr && std::strcmp(guard, "0") != 0;
    if (guarded_ && mprotect(base_, kReserved, PROT_NONE) != 0) std::abort();
  }

  bool has_keys() const { return key_ >= 0; }

  void* AllocateDevice(size_t bytes, int device) {
    const DeviceAccess access;
    const std::lock_guard<std::mutex> lock(mutex_);
    const size_t whole = (bytes + 2 * kGuard + kPage - 1) / kPage * kPage;
    unsigned char* begin = Take(whole);
    if (begin == nullptr) return nullptr;
    unsigned char* data = begin + kGuard;
    std::memset(begin, kGuardByte, kGuard);
    std::memset(data, kPoison, bytes);
    std::memset(data + bytes, kGuardByte, kGuard);
    allocations_[data] = {bytes, {MemoryKind::kDevice, device}};
    return data;
  }

  void* AllocateHost(size_t bytes) {
    void* data = std::aligned_alloc(kPage, (bytes + kPage - 1) / kPage * kPage);
    if (data == nullptr) return nullptr;
    const std::lock_guard<std::mutex> lock(mutex_);
    allocations_[static_cast<unsigned char*>(data)] = {bytes, {MemoryKind::kPageLocked, -1}};
    return data;
  }

  bool Free(void* pointer, MemoryKind kind) {
    const DeviceAccess access;
    const std::lock_guard<std::mutex> lock(mutex_);
    auto* data = static_cast<unsigned char*>(pointer);
    const auto found = allocations_.find(data);
    if (found == allocations_.end() || found->second.place.kind != kind) return false;
    const size_t bytes = found->second.bytes;
    allocations_.erase(found);
    if (kind == MemoryKind::kPageLocked) {
      std::free(pointer);
      return true;
    }
    CheckGuards(data, bytes);
    unsigned char* begin = data - kGuard;
    const size_t whole = (bytes + 2 * kGuard + kPage - 1) / kPage * kPage;
    madvise(begin, whole, MADV_DONTNEED);  // reads of freed memory find zeros; its place is not given away again soon
    free_.emplace(whole, begin);
    return true;
  }

  Place PlaceOf(const void* pointer, size_t bytes, bool* fits) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto* data = static_cast<const unsigned char*>(pointer);
    auto after = allocations_.upper_bound(const_cast<unsigned char*>(data));
    *fits = true;
    if (after != allocations_.begin()) {
      const auto& [begin, allocation] = *std::prev(after);
      if (data < begin + allocation.bytes || (bytes == 0 && data == begin + allocation.bytes)) {
        *fits = data + bytes <= begin + allocation.bytes;
        return allocation.place;
      }
    }
    if (data >= base_ && data < base_ + kReserved) *fits = false;  // between allocations
    return {data >= base_ && data < base_ + kReserved ? MemoryKind::kDevice : MemoryKind::kPageable, -1};
  }

  void Open() {
    if (key_ >= 0 && depth_++ == 0) pkey_set(key_, 0);
    if (!guarded_) return;
    const std::lock_guard<std::mutex> lock(access_mutex_);
    if (open_++ == 0 && mprotect(base_, kReserved, PROT_READ | PROT_WRITE) != 0) std::abort();
  }
  void Close() {
    if (key_ >= 0 && --depth_ == 0) pkey_set(key_, PKEY_DISABLE_ACCESS);
    if (!guarded_) return;
    const std::lock_guard<std::mutex> lock(access_mutex_);
    if (--open_ == 0 && mprotect(base_, kReserved, PROT_NONE) != 0) std::abort();
  }

 private:
  unsigned char* Take(size_t whole) {
    if (next_ + whole <= kReserved) {
      unsigned char* begin = base_ + next_;
      next_ += whole;
      return begin;
    }
    const auto found = free_.lower_bound(whole);
    if (found == free_.end()) return nullptr;
    unsigned char* begin = found->second;
    free_.erase(found);
    return begin;
  }

  static void CheckGuards(const unsigned char* data, size_t bytes) {
    for (size_t i = 0; i < kGuard; ++i) {
      const bool before = data[-1 - static_cast<ptrdiff_t>(i)] == kGuardByte;
      if (before && data[bytes + i] == kGuardByte) continue;
      Explain("a kernel or copy wrote %zu bytes %s an allocation of %zu bytes", i + 1, before ? "behind" : "before",
              bytes);
      std::abort();
    }
  }

  static thread_local int depth_;
  unsigned char* base_ = nullptr;
  int key_ = -1;
  bool guarded_ = false;
  std::mutex mutex_;
  std::mutex access_mutex_;
  int open_ = 0;
  size_t next_ = 0;
  std::map<unsigned char*, Allocation> allocations_;
  std::multimap<size_t, unsigned char*> free_;
};

thread_local int Memory::depth_ = 0;

Memory& memory() {
  static Memory& all = *new Memory;  // outlives every thread
  return all;
}

}  // namespace

Place PlaceOf(const void* pointer, size_t bytes, bool* fits) { return memory().PlaceOf(pointer, bytes, fits); }
DeviceAccess::DeviceAccess() { memory().Open(); }
DeviceAccess::~DeviceAccess() { memory().Close(); }

}  // namespace simulated_cuda

using simulated_cuda::CurrentDevice;
using simulated_cuda::memory;
using simulated_cuda::MemoryKind;
using simulated_cuda::Return;

extern "C" {

// Whether the host cannot touch device memory at any time.
int simulated_cuda_has_protection_keys() { return memory().has_keys() ? 1 : 0; }

cudaError_t cudaMalloc(void** pointer, size_t bytes) {
  SIMULATED_CUDA_ENTER(cudaErrorMemoryAllocation);
  if (simulated_cuda::RefusedWhileRecording("cudaMalloc")) return Return(cudaErrorStreamCaptureUnsupported);
  ++simulated_cuda::counters().allocations;
  *pointer = bytes == 0 ? nullptr : memory().AllocateDevice(bytes, CurrentDevice());
  return bytes != 0 && *pointer == nullptr ? Return(cudaErrorMemoryAllocation) : cudaSuccess;
}

cudaError_t cudaFree(void* pointer) {
  SIMULATED_CUDA_ENTER();
  if (pointer == nullptr) return cudaSuccess;
  if (simulated_cuda::RefusedWhileRecording("cudaFree")) return Return(cudaErrorStreamCaptureUnsupported);
  bool fits = true;
  const simulated_cuda::Place place = simulated_cuda::PlaceOf(pointer, 0, &fits);
  if (place.kind == MemoryKind::kDevice && place.device >= 0) simulated_cuda::DrainDevice(place.device);
  return memory().Free(pointer, MemoryKind::kDevice) ? cudaSuccess : Return(cudaErrorInvalidValue);
}

cudaError_t cudaHostAlloc(void** pointer, size_t bytes, unsigned int) {
  SIMULATED_CUDA_ENTER(cudaErrorMemoryAllocation);
  if (simulated_cuda::RefusedWhileRecording("cudaHostAlloc")) return Return(cudaErrorStreamCaptureUnsupported);
  ++simulated_cuda::counters().allocations;
  *pointer = memory().AllocateHost(bytes);
  return *pointer == nullptr ? Return(cudaErrorMemoryAllocation) : cudaSuccess;
}

cudaError_t cudaFreeHost(void* pointer) {
  SIMULATED_CUDA_ENTER();
  return memory().Free(pointer, MemoryKind::kPageLocked) ? cudaSuccess : Return(cudaErrorInvalidValue);
}

// Page-locked memory is mapped at the same address.
cudaError_t cudaHostGetDevicePointer(void** device, void* host, unsigned int) {
  SIMULATED_CUDA_ENTER();
  bool fits = true;
  if (simulated_cuda::PlaceOf(host, 1, &fits).kind != MemoryKind::kPageLocked) return Return(cudaErrorInvalidValue);
  *device = host;
  return cudaSuccess;
}

}  // extern "C"
