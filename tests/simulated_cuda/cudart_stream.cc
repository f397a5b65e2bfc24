// SPDX-License-Identifier: Apache-2.0
#include "tests/simulated_cuda/cudart_stream.h"

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>

#include "tests/simulated_cuda/cudart_state.h"
#include "tests/simulated_cuda/kept.h"

namespace simulated_cuda {
namespace {

int JitterSeed() {
  static const int seed = [] {
    const char* text = std::getenv("SIMULATED_CUDA_JITTER");
    return text == nullptr ? -1 : std::atoi(text);
  }();
  return seed;
}

// Every stream that exists. Never destroyed: threads of the program may end after static objects do.
struct Streams {
  std::mutex mutex;
  std::set<cudaStream_t> all;
  std::map<int, cudaStream_t> defaults;
  int made = 0;
  std::map<std::thread::id, int> recording;  // captures in progress by the thread that began them
};
Streams& streams() {
  static Streams& all = *new Streams;
  return all;
}

cudaStream_t DefaultStream(int device) {
  const std::lock_guard<std::mutex> lock(streams().mutex);
  cudaStream_t& stream = streams().defaults[device];
  if (stream == nullptr) {
    stream = new CUstream_st(device, streams().made++);
    streams().all.insert(stream);
  }
  return stream;
}

}  // namespace

cudaStream_t Resolve(cudaStream_t stream, const char* call) {
  if (stream == nullptr || stream == cudaStreamLegacy) return DefaultStream(CurrentDevice());
  {
    const std::lock_guard<std::mutex> lock(streams().mutex);
    if (streams().all.count(stream) == 0) {
      Explain("%s: there is no such stream", call);
      return nullptr;
    }
  }
  if (stream->device == CurrentDevice()) return stream;
  Explain("%s: the stream belongs to GPU %d, the current one is %d", call, stream->device, CurrentDevice());
  return nullptr;
}

cudaError_t Enqueue(cudaStream_t stream, Command command) {
  if (stream->capture == nullptr) {
    stream->Push([run = std::move(command)] {
      const DeviceAccess access;
      run();
    });
    return cudaSuccess;
  }
  Capture& capture = *stream->capture;
  if (capture.invalid) return cudaErrorStreamCaptureInvalidated;
  capture.graph->nodes.push_back({std::move(command), {stream->frontier.begin(), stream->frontier.end()}, stream});
  stream->frontier = {capture.graph->nodes.size() - 1};
  return cudaSuccess;
}

cudaError_t Invalidate(cudaStream_t stream, const char* call) {
  Explain("%s is not permitted while the stream is recording", call);
  stream->capture->invalid = true;
  return cudaErrorStreamCaptureUnsupported;
}

bool RefusedWhileRecording(const char* call) {
  const std::lock_guard<std::mutex> lock(streams().mutex);
  if (streams().recording.count(std::this_thread::get_id()) == 0) return false;
  Explain("%s is not permitted on a thread that is recording", call);
  for (const cudaStream_t stream : streams().all) {
    if (stream->capture != nullptr && stream->capture->thread == std::this_thread::get_id())
      stream->capture->invalid = true;
  }
  return true;
}

void DrainDevice(int device) {
  std::vector<cudaStream_t> mine;
  {
    const std::lock_guard<std::mutex> lock(streams().mutex);
    for (const cudaStream_t stream : streams().all) {
      if (stream->device == device) mine.push_back(stream);
    }
  }
  for (const cudaStream_t stream : mine) stream->Drain();
}

namespace {

// Nodes that `ends` come behind, themselves included.
std::vector<bool> Ancestors(const CUgraph_st& graph, const std::set<size_t>& ends) {
  std::vector<bool> reached(graph.nodes.size(), false);
  for (const size_t end : ends) reached[end] = true;
  for (size_t node = graph.nodes.size(); node-- > 0;) {
    if (!reached[node]) continue;
    for (const size_t before : graph.nodes[node].after) reached[before] = true;
  }
  return reached;
}

// Runs a graph: the nodes of each stream that was recorded on a thread of their own, in order, as the device might.
class GraphRun {
 public:
  explicit GraphRun(const CUgraph_st& graph) : graph_(graph), done_(graph.nodes.size(), false) {
    for (size_t i = 0; i < graph.nodes.size(); ++i) lanes_[graph.nodes[i].lane].push_back(i);
  }
  void Run() {
    std::vector<std::thread> others;
    for (const auto& [stream, nodes] : lanes_) {
      if (stream != graph_.origin) others.emplace_back([this, &nodes = nodes] { RunLane(nodes); });
    }
    RunLane(lanes_[graph_.origin]);
    for (std::thread& other : others) other.join();
  }

 private:
  void RunLane(const std::vector<size_t>& nodes) {
    const DeviceAccess access;
    for (const size_t index : nodes) {
      std::unique_lock<std::mutex> lock(mutex_);
      for (const size_t before : graph_.nodes[index].after) changed_.wait(lock, [&] { return done_[before]; });
      lock.unlock();
      graph_.nodes[index].run();
      lock.lock();
      done_[index] = true;
      changed_.notify_all();
    }
  }

  const CUgraph_st& graph_;
  std::map<cudaStream_t, std::vector<size_t>> lanes_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<bool> done_;
};

cudaError_t FinishCapture(Capture& capture) {
  cudaError_t error = capture.invalid ? cudaErrorStreamCaptureInvalidated : cudaSuccess;
  const std::vector<bool> joined = Ancestors(*capture.graph, capture.origin->frontier);
  for (const cudaStream_t stream : capture.streams) {
    for (const size_t node : stream->frontier) {
      if (joined[node] || error != cudaSuccess) continue;
      Explain("cudaStreamEndCapture: a stream was recorded on and not joined");
      error = cudaErrorStreamCaptureUnjoined;
    }
    stream->capture = nullptr;
    stream->frontier.clear();
  }
  return error;
}

}  // namespace
}  // namespace simulated_cuda

CUstream_st::CUstream_st(int device_of_stream, int number)
    : device(device_of_stream),
      generator_(static_cast<unsigned>(simulated_cuda::JitterSeed() * 1000 + number)),
      worker_([this] { Work(); }) {}

CUstream_st::~CUstream_st() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  worker_.join();
}

void CUstream_st::Push(simulated_cuda::Command command) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    queue_.push_back(std::move(command));
  }
  changed_.notify_all();
}

void CUstream_st::Drain() {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [this] { return queue_.empty() && !busy_; });
}

void CUstream_st::Pause() {
  if (simulated_cuda::JitterSeed() < 0) return;
  std::this_thread::sleep_for(std::chrono::microseconds(generator_() % 60));
}

void CUstream_st::Work() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stop_ || !queue_.empty(); });
    if (queue_.empty()) return;
    const simulated_cuda::Command command = std::move(queue_.front());
    queue_.pop_front();
    busy_ = true;
    lock.unlock();
    Pause();
    command();
    lock.lock();
    busy_ = false;
    changed_.notify_all();
  }
}

void CUevent_st::Pass(uint64_t point) {
  const std::lock_guard<std::mutex> lock(mutex);
  passed = point;
  changed.notify_all();
}

void CUevent_st::WaitFor(uint64_t point) {
  std::unique_lock<std::mutex> lock(mutex);
  changed.wait(lock, [&] { return passed >= point; });
}

using simulated_cuda::Capture;
using simulated_cuda::counters;
using simulated_cuda::Explain;
using simulated_cuda::Resolve;
using simulated_cuda::Return;
using simulated_cuda::streams;

#define SIMULATED_CUDA_STREAM(variable)   \
  SIMULATED_CUDA_ENTER();                 \
  variable = Resolve(variable, __func__); \
  if (variable == nullptr) return Return(cudaErrorInvalidResourceHandle)

extern "C" {

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  SIMULATED_CUDA_ENTER();
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned int flags, int priority) {
  SIMULATED_CUDA_ENTER();
  if (flags != cudaStreamNonBlocking || priority > 0 || priority < -5) {
    Explain("cudaStreamCreateWithPriority: only non-blocking streams of priority -5 to 0 are simulated");
    return Return(cudaErrorInvalidValue);
  }
  const std::lock_guard<std::mutex> lock(streams().mutex);
  *stream = new CUstream_st(simulated_cuda::CurrentDevice(), streams().made++);
  streams().all.insert(*stream);
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned int flags) {
  return cudaStreamCreateWithPriority(stream, flags, 0);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  SIMULATED_CUDA_STREAM(stream);
  if (stream->capture != nullptr) return Return(simulated_cuda::Invalidate(stream, "cudaStreamDestroy"));
  {
    const std::lock_guard<std::mutex> lock(streams().mutex);
    streams().all.erase(stream);
  }
  delete stream;
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  SIMULATED_CUDA_STREAM(stream);
  if (stream->capture != nullptr) return Return(simulated_cuda::Invalidate(stream, "cudaStreamSynchronize"));
  ++counters().host_waits;
  stream->Drain();
  return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize() {
  SIMULATED_CUDA_ENTER();
  if (simulated_cuda::RefusedWhileRecording("cudaDeviceSynchronize")) return Return(cudaErrorStreamCaptureUnsupported);
  ++counters().host_waits;
  simulated_cuda::DrainDevice(simulated_cuda::CurrentDevice());
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int) {
  SIMULATED_CUDA_ENTER();
  *event = new CUevent_st;
  return cudaSuccess;
}

// CUDA lets pending work finish with an event that is destroyed; here the event itself stays.
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  if (event != nullptr) simulated_cuda::Keep(event);  // it is gone even when the call fails
  SIMULATED_CUDA_ENTER();
  return event == nullptr ? Return(cudaErrorInvalidResourceHandle) : cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  SIMULATED_CUDA_STREAM(stream);
  event->capture = stream->capture;
  if (stream->capture != nullptr) {
    event->frontier = stream->frontier;
    return stream->capture->invalid ? Return(cudaErrorStreamCaptureInvalidated) : cudaSuccess;
  }
  const uint64_t point = ++event->recorded;
  stream->Push([event, point] { event->Pass(point); });
  return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int) {
  SIMULATED_CUDA_STREAM(stream);
  if (event->capture == nullptr) {
    if (event->recorded == 0) return cudaSuccess;
    if (stream->capture != nullptr) {
      Explain("cudaStreamWaitEvent: a recording stream waits for work outside of the recording");
      stream->capture->invalid = true;
      return Return(cudaErrorStreamCaptureIsolation);
    }
    const uint64_t point = event->recorded;
    stream->Push([event, point] { event->WaitFor(point); });
    return cudaSuccess;
  }
  {
    const std::lock_guard<std::mutex> lock(streams().mutex);
    if (streams().recording.count(std::this_thread::get_id()) == 0) {
      Explain("cudaStreamWaitEvent: the event was recorded in a capture that has ended");
      return Return(cudaErrorCapturedEvent);
    }
  }
  if (stream->capture == nullptr) {
    stream->capture = event->capture;
    stream->capture->streams.insert(stream);
  }
  stream->frontier.insert(event->frontier.begin(), event->frontier.end());
  return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  SIMULATED_CUDA_ENTER();
  if (event->capture != nullptr) return Return(cudaErrorCapturedEvent);
  ++counters().host_waits;
  event->WaitFor(event->recorded);
  return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  SIMULATED_CUDA_ENTER();
  const std::lock_guard<std::mutex> lock(event->mutex);
  return event->passed >= event->recorded ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  SIMULATED_CUDA_STREAM(stream);
  ++counters().host_functions;
  return Return(simulated_cuda::Enqueue(stream, [function, data] { function(data); }));
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  SIMULATED_CUDA_STREAM(stream);
  *status = stream->capture == nullptr ? cudaStreamCaptureStatusNone
            : stream->capture->invalid ? cudaStreamCaptureStatusInvalidated
                                       : cudaStreamCaptureStatusActive;
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  SIMULATED_CUDA_STREAM(stream);
  if (mode != cudaStreamCaptureModeThreadLocal || stream->capture != nullptr) {
    Explain("cudaStreamBeginCapture: only thread-local captures, one at a time, are simulated");
    return Return(cudaErrorIllegalState);
  }
  auto* capture = new Capture{new CUgraph_st, stream, std::this_thread::get_id(), false, {stream}};
  capture->graph->origin = stream;
  stream->capture = capture;
  const std::lock_guard<std::mutex> lock(streams().mutex);
  ++streams().recording[std::this_thread::get_id()];
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  SIMULATED_CUDA_STREAM(stream);
  Capture* capture = stream->capture;
  if (capture == nullptr || capture->origin != stream) return Return(cudaErrorStreamCaptureUnmatched);
  const cudaError_t error = simulated_cuda::FinishCapture(*capture);
  {
    const std::lock_guard<std::mutex> lock(streams().mutex);
    streams().recording.erase(std::this_thread::get_id());
  }
  *graph = error == cudaSuccess ? capture->graph : nullptr;
  simulated_cuda::Keep(capture);  // events name it
  return Return(error);
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long) {
  SIMULATED_CUDA_ENTER();
  *executable = new CUgraphExec_st{*graph};
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  SIMULATED_CUDA_ENTER();
  delete graph;
  return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  SIMULATED_CUDA_ENTER();
  delete executable;
  return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  SIMULATED_CUDA_STREAM(stream);
  ++counters().graph_launches;
  return Return(simulated_cuda::Enqueue(stream, [executable] { simulated_cuda::GraphRun(executable->graph).Run(); }));
}

}  // extern "C"
