// SPDX-License-Identifier: Apache-2.0
// A stack and a place in it: control passes between fibers of one host thread. Sanitizers are told of every switch;
// under ThreadSanitizer a switch orders nothing by itself, so that only fiber_release and fiber_acquire (barriers) do.
// For that this file and host_cuda.cc are themselves not instrumented, but compiled with ONNXTRAIN_FIBERS_UNDER_TSAN.
#ifndef ONNXTRAIN_TESTS_SIMULATED_CUDA_FIBER_H_
#define ONNXTRAIN_TESTS_SIMULATED_CUDA_FIBER_H_

#include <cstddef>

namespace host_cuda {

class Fiber {
 public:
  Fiber() = default;
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // The next Resume calls entry(argument) on this fiber's own stack. It must end with Finish.
  void Prepare(void (*entry)(void*), void* argument);
  // From `main`, which is the host thread's own stack, to this fiber, until it yields or finishes.
  void Resume(Fiber& main);
  void Yield(Fiber& main);
  [[noreturn]] void Finish(Fiber& main);

 private:
  void Begin();
  static void Start();

  void* place_ = nullptr;  // where it goes on
  unsigned char* stack_ = nullptr;
  void (*entry_)(void*) = nullptr;
  void* argument_ = nullptr;
  void* sanitizer_fiber_ = nullptr;   // ThreadSanitizer
  void* fake_stack_ = nullptr;        // AddressSanitizer
  const void* main_stack_ = nullptr;  // of the host thread, as AddressSanitizer found it
  size_t main_stack_bytes_ = 0;
  Fiber* main_ = nullptr;
};

// What a fiber did before the first happens before what another does after the second on the same tag.
void fiber_release(void* tag);
void fiber_acquire(void* tag);

}  // namespace host_cuda

#endif  // ONNXTRAIN_TESTS_SIMULATED_CUDA_FIBER_H_
