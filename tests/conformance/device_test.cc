// SPDX-License-Identifier: Apache-2.0
// What every device must do; runs on each backend of tests/support/backends.cc.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <numeric>
#include <vector>

#include "graph/program_text.h"
#include "tests/support/backends.h"

namespace onnxtrain {
namespace {

class DeviceConformance : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (const std::string reason = WhyNot(GetParam()); !reason.empty()) GTEST_SKIP() << reason;
    backend_ = OpenTestBackend(GetParam(), 1);
    device_ = &backend_->device(0);
  }

  std::unique_ptr<Stream> MakeStream(size_t capacity = 0) {
    StreamOptions options;
    options.name = "test";
    options.queue_capacity = capacity;
    StatusOr<std::unique_ptr<Stream>> stream = device_->CreateStream(options);
    EXPECT_TRUE(stream.ok()) << stream.status().message();
    return *std::move(stream);
  }
  std::unique_ptr<Buffer> MakeBuffer(size_t bytes) {
    StatusOr<std::unique_ptr<Buffer>> buffer = device_->Allocate(bytes);
    EXPECT_TRUE(buffer.ok()) << buffer.status().message();
    return *std::move(buffer);
  }
  std::vector<int64_t> Read(const Buffer& buffer, size_t count) {
    std::vector<int64_t> values(count);
    EXPECT_TRUE(device_->CopyToHost(values.data(), buffer.data(), count * sizeof(int64_t)).ok());
    return values;
  }

  std::unique_ptr<Backend> backend_;
  Device* device_ = nullptr;
};

// Adds one to an int64 in a buffer: the step counter's kernel, which every device has.
class Increment {
 public:
  Increment(Device& device, const Buffer& counter) : apply_(device, {1}), output_(counter.data()) {
    inputs_ = {counter.data(), reinterpret_cast<const std::byte*>(apply_.data())};
    const Node& node = *program_.FindGraph("step")->nodes().front();
    StatusOr<std::unique_ptr<Kernel>> kernel = device.kernels().Create(KernelContext{node});
    CHECK_WITH(kernel.ok(), kernel.status().message());
    kernel_ = *std::move(kernel);
  }
  void Launch(Stream& stream) {
    LaunchArgs args;
    args.inputs = inputs_;
    args.outputs = {&output_, 1};
    stream.Launch(*kernel_, args);
  }

 private:
  Program program_ = *ReadProgramText(R"(<ir_version: 10, opset_import: ["" : 24, "onnxtrain" : 1]>
    step (int64 count, bool apply) => (int64 next) { next = onnxtrain.AdvanceStep (count, apply) })");
  DeviceArray<uint8_t> apply_;
  std::unique_ptr<Kernel> kernel_;
  std::array<const std::byte*, 2> inputs_ = {};
  std::byte* output_;
};

class FailingKernel : public Kernel {
 public:
  Status Launch(const LaunchArgs&) override { return InternalError("planted failure"); }
};

TEST_P(DeviceConformance, BuffersAreAlignedAndHoldTheirSize) {
  for (size_t bytes : {size_t{0}, size_t{1}, size_t{255}, size_t{256}, size_t{100001}}) {
    std::unique_ptr<Buffer> buffer = MakeBuffer(bytes);
    EXPECT_EQ(buffer->size(), bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer->data()) % 256, 0u);
  }
}

TEST_P(DeviceConformance, CopyAndFillMoveBytesInOrder) {
  std::unique_ptr<Stream> stream = MakeStream();
  std::unique_ptr<Buffer> a = MakeBuffer(64);
  std::unique_ptr<Buffer> b = MakeBuffer(64);
  std::vector<int64_t> host(8);
  std::iota(host.begin(), host.end(), 1);
  stream->Copy(a->data(), host.data(), 64);
  stream->Copy(b->data(), a->data(), 64);
  stream->Fill(b->data(), 16);
  stream->Copy(b->data(), b->data(), 0);
  ASSERT_TRUE(stream->Synchronize().ok());
  EXPECT_EQ(Read(*b, 8), (std::vector<int64_t>{0, 0, 3, 4, 5, 6, 7, 8}));
}

TEST_P(DeviceConformance, EventsOrderTwoStreams) {
  std::unique_ptr<Stream> first = MakeStream();
  std::unique_ptr<Stream> second = MakeStream();
  std::unique_ptr<Buffer> buffer = MakeBuffer(8);
  std::unique_ptr<Event> ping = *device_->CreateEvent();
  std::unique_ptr<Event> pong = *device_->CreateEvent();
  Increment increment(*device_, *buffer);
  constexpr int kRounds = 500;
  for (int i = 0; i < kRounds; ++i) {
    increment.Launch(*first);
    first->Record(*ping);
    second->Wait(*ping);
    increment.Launch(*second);
    second->Record(*pong);
    first->Wait(*pong);
  }
  ASSERT_TRUE(first->Synchronize().ok());
  ASSERT_TRUE(second->Synchronize().ok());
  EXPECT_EQ(Read(*buffer, 1)[0], 2 * kRounds);
}

TEST_P(DeviceConformance, AWaitMeansTheRecordBeforeIt) {
  std::unique_ptr<Stream> stream = MakeStream();
  std::unique_ptr<Stream> other = MakeStream();
  std::unique_ptr<Event> event = *device_->CreateEvent();
  other->Wait(*event);  // never recorded: passes at once
  stream->Record(*event);
  other->Wait(*event);
  event->Synchronize();
  EXPECT_TRUE(other->Synchronize().ok());
}

TEST_P(DeviceConformance, AQueueThatIsFullBlocksAndLosesNothing) {
  std::unique_ptr<Stream> stream = MakeStream(/*capacity=*/4);
  std::unique_ptr<Buffer> buffer = MakeBuffer(8);
  Increment increment(*device_, *buffer);
  for (int i = 0; i < 1000; ++i) increment.Launch(*stream);
  ASSERT_TRUE(stream->Synchronize().ok());
  EXPECT_EQ(Read(*buffer, 1)[0], 1000);
}

TEST_P(DeviceConformance, TheFirstErrorStaysAndLaterWorkIsSkipped) {
  std::unique_ptr<Stream> stream = MakeStream();
  std::unique_ptr<Stream> other = MakeStream();
  std::unique_ptr<Buffer> buffer = MakeBuffer(8);
  std::unique_ptr<Event> event = *device_->CreateEvent();
  Increment increment(*device_, *buffer);
  FailingKernel bad;
  increment.Launch(*stream);
  stream->Launch(bad, {});
  increment.Launch(*stream);
  stream->Record(*event);
  other->Wait(*event);  // must not hang
  EXPECT_TRUE(other->Synchronize().ok());
  const Status status = stream->Synchronize();
  EXPECT_EQ(status.code(), StatusCode::kInternal);
  EXPECT_EQ(status.message(), "planted failure");
  EXPECT_EQ(stream->status().message(), "planted failure");
  EXPECT_EQ(Read(*buffer, 1)[0], 1);
}

TEST_P(DeviceConformance, BuffersStartAsZero) {
  const std::unique_ptr<Buffer> buffer = MakeBuffer(4096);
  EXPECT_EQ(Read(*buffer, 512), std::vector<int64_t>(512, 0));
}

TEST_P(DeviceConformance, StreamsCopyToAndFromStagingWithoutTheHost) {
  const std::unique_ptr<Stream> stream = MakeStream();
  const std::unique_ptr<Buffer> buffer = MakeBuffer(64);
  const std::unique_ptr<Buffer> in = *device_->AllocateStaging(64);
  const std::unique_ptr<Buffer> out = *device_->AllocateStaging(64);
  std::vector<int64_t> values(8);
  std::iota(values.begin(), values.end(), 5);
  std::memcpy(in->data(), values.data(), 64);
  stream->Copy(buffer->data(), in->data(), 64);
  stream->Copy(out->data(), buffer->data(), 64);
  ASSERT_TRUE(stream->Synchronize().ok());
  EXPECT_EQ(std::memcmp(out->data(), values.data(), 64), 0);
}

TEST_P(DeviceConformance, StampsRiseAlongAStream) {
  const std::unique_ptr<Stream> stream = MakeStream();
  const auto origin = std::chrono::steady_clock::now();
  std::array<double, 3> stamps = {-1, -1, -1};
  for (double& stamp : stamps) stream->Stamp(origin, &stamp);
  ASSERT_TRUE(stream->Synchronize().ok());
  EXPECT_GE(stamps[0], 0);
  EXPECT_GE(stamps[1], stamps[0]);
  EXPECT_GE(stamps[2], stamps[1]);
}

TEST_P(DeviceConformance, ARecordingDoesItsWorkAtEachReplayAndNotBefore) {
  if (!device_->can_record()) GTEST_SKIP() << "this device does not record";
  const std::unique_ptr<Stream> origin = MakeStream();
  const std::unique_ptr<Stream> other = MakeStream();
  const std::unique_ptr<Buffer> buffer = MakeBuffer(8);
  const std::unique_ptr<Event> fork = *device_->CreateEvent();
  const std::unique_ptr<Event> join = *device_->CreateEvent();
  Increment increment(*device_, *buffer);
  device_->BeginRecording(*origin);
  increment.Launch(*origin);
  origin->Record(*fork);
  other->Wait(*fork);
  increment.Launch(*other);
  other->Record(*join);
  origin->Wait(*join);
  increment.Launch(*origin);
  const std::unique_ptr<Recording> recording = device_->EndRecording(*origin);
  ASSERT_NE(recording, nullptr) << origin->status().message();
  ASSERT_TRUE(origin->Synchronize().ok());
  EXPECT_EQ(Read(*buffer, 1)[0], 0);
  for (int i = 0; i < 5; ++i) recording->Replay(*origin);
  ASSERT_TRUE(origin->Synchronize().ok());
  EXPECT_EQ(Read(*buffer, 1)[0], 15);
}

INSTANTIATE_TEST_SUITE_P(Backends, DeviceConformance, testing::ValuesIn(AllBackends()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace onnxtrain
