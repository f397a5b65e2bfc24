// SPDX-License-Identifier: Apache-2.0
// Streams, events and recordings of the simulated CUDA runtime. A stream is a thread that takes commands in order;
// between begin and end of a capture its commands become nodes of a graph instead, each behind those that the stream
// had reached.
#ifndef ONNXTRAIN_TESTS_SIMULATED_CUDA_CUDART_STREAM_H_
#define ONNXTRAIN_TESTS_SIMULATED_CUDA_CUDART_STREAM_H_

#include <cuda_runtime_api.h>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <random>
#include <set>
#include <thread>
#include <vector>

namespace simulated_cuda {

using Command = std::function<void()>;

struct Capture;

}  // namespace simulated_cuda

struct CUgraph_st {
  struct Node {
    simulated_cuda::Command run;
    std::vector<size_t> after;
    cudaStream_t lane;  // the stream it was recorded on
  };
  std::vector<Node> nodes;
  cudaStream_t origin = nullptr;
};

struct CUgraphExec_st {
  CUgraph_st graph;
};

struct CUevent_st {
  std::mutex mutex;
  std::condition_variable changed;
  uint64_t recorded = 0;  // points so far
  uint64_t passed = 0;
  // Where the last point lies when it was recorded in a capture.
  simulated_cuda::Capture* capture = nullptr;
  std::set<size_t> frontier;

  void Pass(uint64_t point);
  void WaitFor(uint64_t point);
};

struct CUstream_st {
  CUstream_st(int device, int number);
  ~CUstream_st();
  void Push(simulated_cuda::Command command);
  void Drain();

  const int device;
  simulated_cuda::Capture* capture = nullptr;
  std::set<size_t> frontier;  // nodes of the capture that the next one comes behind

 private:
  void Work();
  void Pause();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<simulated_cuda::Command> queue_;
  bool busy_ = false;
  bool stop_ = false;
  std::mt19937 generator_;
  std::thread worker_;
};

namespace simulated_cuda {

struct Capture {
  CUgraph_st* graph = nullptr;
  cudaStream_t origin = nullptr;
  std::thread::id thread;
  bool invalid = false;
  std::set<cudaStream_t> streams;
};

// The stream of a handle: null is the device's default stream. Null with an explanation for one that does not exist.
cudaStream_t Resolve(cudaStream_t stream, const char* call);
// Runs the command on the stream, with device memory open, or records it.
cudaError_t Enqueue(cudaStream_t stream, Command command);
// A call that a capture does not survive was made on a stream that records.
cudaError_t Invalidate(cudaStream_t stream, const char* call);

}  // namespace simulated_cuda

#endif  // ONNXTRAIN_TESTS_SIMULATED_CUDA_CUDART_STREAM_H_
