// SPDX-License-Identifier: Apache-2.0
#include "tests/simulated_cuda/fiber.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>

#if defined(ONNXTRAIN_FIBERS_UNDER_TSAN)
#include <sanitizer/tsan_interface.h>
#endif
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

#if defined(__x86_64__)

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

namespace {

// A place is the stack pointer behind the saved registers.
void Switch(void** save, void** load) { onnxtrain_switch_fiber(save, *load); }

void Place(void** place, unsigned char* stack, size_t bytes, void (*start)()) {
  // As after six pushes and the call of `start`, whose own frame wants the stack 8 off a multiple of 16.
  auto* top = reinterpret_cast<uint64_t*>(stack + bytes);
  *--top = 0;
  *--top = reinterpret_cast<uint64_t>(start);
  for (int i = 0; i < 6; ++i) *--top = 0;
  *place = top;
}

void Forget(void*) {}

}  // namespace

#else

#include <ucontext.h>

namespace {

// A place is a ucontext_t.
ucontext_t* ContextOf(void** place) {
  if (*place == nullptr) *place = new ucontext_t;
  return static_cast<ucontext_t*>(*place);
}

void Switch(void** save, void** load) { swapcontext(ContextOf(save), ContextOf(load)); }

void Place(void** place, unsigned char* stack, size_t bytes, void (*start)()) {
  ucontext_t* const context = ContextOf(place);
  getcontext(context);
  context->uc_stack.ss_sp = stack;
  context->uc_stack.ss_size = bytes;
  context->uc_link = nullptr;
  makecontext(context, start, 0);
}

void Forget(void* place) { delete static_cast<ucontext_t*>(place); }

}  // namespace

#endif

namespace host_cuda {
namespace {

#if defined(ONNXTRAIN_FIBERS_UNDER_TSAN)
constexpr size_t kStackBytes = 64 * 1024;  // the sanitizer writes its shadow
#else
constexpr size_t kStackBytes = 256 * 1024;  // AddressSanitizer writes its reports on it
#endif
thread_local Fiber* starting = nullptr;

}  // namespace

void fiber_release([[maybe_unused]] void* tag) {
#if defined(ONNXTRAIN_FIBERS_UNDER_TSAN)
  __tsan_release(tag);
#endif
}

void fiber_acquire([[maybe_unused]] void* tag) {
#if defined(ONNXTRAIN_FIBERS_UNDER_TSAN)
  __tsan_acquire(tag);
#endif
}

Fiber::~Fiber() {
  Forget(place_);
  if (stack_ != nullptr) munmap(stack_, kStackBytes);
#if defined(ONNXTRAIN_FIBERS_UNDER_TSAN)
  if (sanitizer_fiber_ != nullptr && stack_ != nullptr) __tsan_destroy_fiber(sanitizer_fiber_);
#endif
}

void Fiber::Prepare(void (*entry)(void*), void* argument) {
  if (stack_ == nullptr) {
    void* memory = mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) std::abort();
    mprotect(memory, 4096, PROT_NONE);  // an overflow faults
    stack_ = static_cast<unsigned char*>(memory);
#if defined(ONNXTRAIN_FIBERS_UNDER_TSAN)
    sanitizer_fiber_ = __tsan_create_fiber(0);
#endif
  }
  entry_ = entry;
  argument_ = argument;
  Place(&place_, stack_, kStackBytes, &Fiber::Start);
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
#if defined(ONNXTRAIN_FIBERS_UNDER_TSAN)
  main.sanitizer_fiber_ = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(sanitizer_fiber_, __tsan_switch_to_fiber_no_sync);
#endif
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&main.fake_stack_, stack_, kStackBytes);
#endif
  Switch(&main.place_, &place_);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(main.fake_stack_, nullptr, nullptr);
#endif
}

void Fiber::Yield(Fiber& main) {
#if defined(ONNXTRAIN_FIBERS_UNDER_TSAN)
  __tsan_switch_to_fiber(main.sanitizer_fiber_, __tsan_switch_to_fiber_no_sync);
#endif
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&fake_stack_, main_stack_, main_stack_bytes_);
#endif
  Switch(&place_, &main.place_);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(fake_stack_, &main_stack_, &main_stack_bytes_);
#endif
}

void Fiber::Finish(Fiber& main) {
#if defined(ONNXTRAIN_FIBERS_UNDER_TSAN)
  __tsan_switch_to_fiber(main.sanitizer_fiber_, __tsan_switch_to_fiber_no_sync);
#endif
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(nullptr, main_stack_, main_stack_bytes_);
#endif
  Switch(&place_, &main.place_);
  std::abort();  // a finished fiber is not resumed
}

}  // namespace host_cuda
