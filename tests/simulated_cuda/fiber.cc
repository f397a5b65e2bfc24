// SPDX-License-Identifier: Apache-2.0
#include "tests/simulated_cuda/fiber.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

#if !defined(__x86_64__)
#error "the fiber switch is written for x86-64"
#endif

// Saves the callee-saved registers and the stack pointer of the one, restores those of the other.
extern "C" void onnxtrain_switch_fiber(void** save, void* load);
asm(R"(
  .text
  .globl onnxtrain_switch_fiber
  .type onnxtrain_switch_fiber, @function
onnxtrain_switch_fiber:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
  .size onnxtrain_switch_fiber, . - onnxtrain_switch_fiber
)");

namespace host_cuda {
namespace {

constexpr size_t kStackBytes = 64 * 1024;
thread_local Fiber* starting = nullptr;

}  // namespace

void fiber_release([[maybe_unused]] void* tag) {
#if defined(__SANITIZE_THREAD__)
  __tsan_release(tag);
#endif
}

void fiber_acquire([[maybe_unused]] void* tag) {
#if defined(__SANITIZE_THREAD__)
  __tsan_acquire(tag);
#endif
}

Fiber::~Fiber() {
  if (stack_ != nullptr) munmap(stack_, kStackBytes);
#if defined(__SANITIZE_THREAD__)
  if (sanitizer_fiber_ != nullptr && stack_ != nullptr) __tsan_destroy_fiber(sanitizer_fiber_);
#endif
}

void Fiber::Prepare(void (*entry)(void*), void* argument) {
  if (stack_ == nullptr) {
    void* memory = mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) std::abort();
    mprotect(memory, 4096, PROT_NONE);  // an overflow faults
    stack_ = static_cast<unsigned char*>(memory);
#if defined(__SANITIZE_THREAD__)
    sanitizer_fiber_ = __tsan_create_fiber(0);
#endif
  }
  entry_ = entry;
  argument_ = argument;
  // As after six pushes and the call of Start, whose own frame wants the stack 8 off a multiple of 16.
  auto* top = reinterpret_cast<uint64_t*>(stack_ + kStackBytes);
  *--top = 0;
  *--top = reinterpret_cast<uint64_t>(&Fiber::Start);
  for (int i = 0; i < 6; ++i) *--top = 0;
  stack_pointer_ = top;
}

void Fiber::Start() { starting->Begin(); }

void Fiber::Begin() {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(nullptr, &main_stack_, &main_stack_bytes_);
#endif
  entry_(argument_);
  std::abort();  // entry ends with Finish
}

void Fiber::Resume(Fiber& main) {
  main_ = &main;
  starting = this;
#if defined(__SANITIZE_THREAD__)
  main.sanitizer_fiber_ = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(sanitizer_fiber_, __tsan_switch_to_fiber_no_sync);
#endif
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&main.fake_stack_, stack_, kStackBytes);
#endif
  onnxtrain_switch_fiber(&main.stack_pointer_, stack_pointer_);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(main.fake_stack_, nullptr, nullptr);
#endif
}

void Fiber::Yield(Fiber& main) {
#if defined(__SANITIZE_THREAD__)
  __tsan_switch_to_fiber(main.sanitizer_fiber_, __tsan_switch_to_fiber_no_sync);
#endif
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&fake_stack_, main_stack_, main_stack_bytes_);
#endif
  onnxtrain_switch_fiber(&stack_pointer_, main.stack_pointer_);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(fake_stack_, &main_stack_, &main_stack_bytes_);
#endif
}

void Fiber::Finish(Fiber& main) {
#if defined(__SANITIZE_THREAD__)
  __tsan_switch_to_fiber(main.sanitizer_fiber_, __tsan_switch_to_fiber_no_sync);
#endif
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(nullptr, main_stack_, main_stack_bytes_);
#endif
  onnxtrain_switch_fiber(&stack_pointer_, main.stack_pointer_);
  std::abort();  // a finished fiber is not resumed
}

}  // namespace host_cuda
