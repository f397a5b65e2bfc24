// SPDX-License-Identifier: Apache-2.0
// What every device must do; runs on each backend of tests/support/backends.cc.
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "tests/support/backends.h"

namespace onnxtrain {
namespace {

class DeviceConformance : public testing::TestWithParam<Backend> {
 protected:
  void SetUp() override { device_ = GetParam().make_device(); }

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

  std::unique_ptr<Device> device_;
};

// Adds one to every int64 of output 0; fails when `fail` is set.
class IncrementKernel : public Kernel {
 public:
  explicit IncrementKernel(size_t count, bool fail = false) : count_(count), fail_(fail) {}
  Status Launch(const LaunchArgs& args) override {
    if (fail_) return InternalError("planted failure");
    for (size_t i = 0; i < count_; ++i) ++args.output<int64_t>(0)[i];
    return OkStatus();
  }

 private:
  size_t count_;
  bool fail_;
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
  IncrementKernel kernel(1);
  std::byte* output = buffer->data();
  LaunchArgs args;
  args.outputs = {&output, 1};
  constexpr int kRounds = 500;
  for (int i = 0; i < kRounds; ++i) {
    first->Launch(kernel, args);
    first->Record(*ping);
    second->Wait(*ping);
    second->Launch(kernel, args);
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
  IncrementKernel kernel(1);
  std::byte* output = buffer->data();
  LaunchArgs args;
  args.outputs = {&output, 1};
  for (int i = 0; i < 1000; ++i) stream->Launch(kernel, args);
  ASSERT_TRUE(stream->Synchronize().ok());
  EXPECT_EQ(Read(*buffer, 1)[0], 1000);
}

TEST_P(DeviceConformance, TheFirstErrorStaysAndLaterWorkIsSkipped) {
  std::unique_ptr<Stream> stream = MakeStream();
  std::unique_ptr<Stream> other = MakeStream();
  std::unique_ptr<Buffer> buffer = MakeBuffer(8);
  std::unique_ptr<Event> event = *device_->CreateEvent();
  IncrementKernel good(1);
  IncrementKernel bad(1, /*fail=*/true);
  std::byte* output = buffer->data();
  LaunchArgs args;
  args.outputs = {&output, 1};
  stream->Launch(good, args);
  stream->Launch(bad, args);
  stream->Launch(good, args);
  stream->Record(*event);
  other->Wait(*event);  // must not hang
  EXPECT_TRUE(other->Synchronize().ok());
  const Status status = stream->Synchronize();
  EXPECT_EQ(status.code(), StatusCode::kInternal);
  EXPECT_EQ(status.message(), "planted failure");
  EXPECT_EQ(stream->status().message(), "planted failure");
  EXPECT_EQ(Read(*buffer, 1)[0], 1);
}

INSTANTIATE_TEST_SUITE_P(Backends, DeviceConformance, testing::ValuesIn(AllBackends()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace onnxtrain
