// SPDX-License-Identifier: Apache-2.0
// What a team of ranks does when something fails: the n-th allocation, stream or event, or a rank that stays away.
#include "runtime/rank_team.h"

#include <gtest/gtest.h>

#include "graph/program_text.h"
#include "runtime/cpu/cpu_device.h"
#include "runtime/cpu/local_communicator.h"
#include "runtime/persistent_placements.h"
#include "runtime/scheduler.h"
#include "tests/support/status_matchers.h"

namespace onnxtrain {
namespace {

constexpr const char* kStep = R"(<ir_version: 10, opset_import: ["" : 24, "onnxtrain" : 1],
  metadata_props: ["update.w" : "w_new", "world_size" : "2"]>
step (float[4] g) => (float[4] w_new)
<float[4] w, float[4] half = {0.5, 0.5, 0.5, 0.5}>
{
  sum = onnxtrain.AllReduce <op = "sum"> (g)
  scaled = Mul (sum, half)
  w_new = Add (w, scaled)
}
)";

// Everything that a device hands out is counted; the `fail_at`-th request is refused.
class FailingDevice : public Device {
 public:
  explicit FailingDevice(int fail_at) : fail_at_(fail_at) {}
  std::string_view name() const override { return "failing"; }
  const KernelRegistry& kernels() const override { return cpu_.kernels(); }
  bool shares_host_memory() const override { return true; }
  StatusOr<std::unique_ptr<Buffer>> Allocate(size_t bytes) override {
    RETURN_IF_ERROR(Next());
    return cpu_.Allocate(bytes);
  }
  StatusOr<std::unique_ptr<Buffer>> AllocateStaging(size_t bytes) override { return Allocate(bytes); }
  StatusOr<std::unique_ptr<Stream>> CreateStream(const StreamOptions& options) override {
    RETURN_IF_ERROR(Next());
    return cpu_.CreateStream(options);
  }
  StatusOr<std::unique_ptr<Event>> CreateEvent() override {
    RETURN_IF_ERROR(Next());
    return cpu_.CreateEvent();
  }
  Status CopyToDevice(void* to, const void* from, size_t bytes) override { return cpu_.CopyToDevice(to, from, bytes); }
  Status CopyToHost(void* to, const void* from, size_t bytes) override { return cpu_.CopyToHost(to, from, bytes); }
  int requests() const { return requests_; }

 private:
  Status Next() { return requests_++ == fail_at_ ? ResourceExhaustedError("planted failure") : OkStatus(); }
  CpuDevice cpu_;
  const int fail_at_;
  int requests_ = 0;
};

struct Planned {
  Program program = *ReadProgramText(kStep);
  PersistentPlacements persistent = PlacePersistent(program);
  ExecutionPlan plan;

  Planned() {
    ScheduleOptions options;
    options.persistent = &persistent;
    plan = *Schedule(graph(), options);
  }
  const Graph& graph() const { return *program.FindGraph("step"); }
};

RankTeamOptions OptionsFor(Device& device, const Planned& planned, LocalGroup& group) {
  RankTeamOptions options;
  options.ranks = group.size();
  for (int rank = 0; rank < group.size(); ++rank) {
    options.devices.push_back(&device);
    options.communicators.push_back(&group.communicator(rank));
  }
  options.state_bytes = planned.persistent.constants.front().second.offset;
  return options;
}

// One step of every rank on its own gradient; rank 0's weight afterwards.
StatusOr<Tensor> TrainOneStep(Device& device, const Planned& planned, LocalGroup& group, int submitting_ranks) {
  ASSIGN_OR_RETURN(const std::unique_ptr<RankTeam> team, RankTeam::Create(OptionsFor(device, planned, group)));
  ASSIGN_OR_RETURN(const int constants, team->AddConstants(planned.persistent));
  ASSIGN_OR_RETURN(const int plan, team->AddPlan(planned.graph(), planned.plan, constants));
  const std::vector<float> gradient{1, 2, 3, 4};
  const std::byte* feed = reinterpret_cast<const std::byte*>(gradient.data());
  std::vector<std::vector<float>> fetched(static_cast<size_t>(group.size()), std::vector<float>(4));
  for (int rank = 0; rank < submitting_ranks; ++rank) {
    std::byte* fetch = reinterpret_cast<std::byte*>(fetched[static_cast<size_t>(rank)].data());
    team->executor(plan, rank).Submit({}, {&feed, 1}, {&fetch, 1});
  }
  RETURN_IF_ERROR(team->Synchronize());
  return Tensor::FromVector<float>({4}, fetched[0]);
}

TEST(RankTeamTest, TrainsAStepOnTwoRanks) {
  const Planned planned;
  CpuDevice device;
  LocalGroup group(2, std::chrono::minutes(1));
  const StatusOr<Tensor> weight = TrainOneStep(device, planned, group, 2);
  ASSERT_TRUE(IsOk(weight.status()));
  EXPECT_TRUE(weight->Identical(Tensor::FromVector<float>({4}, {1, 2, 3, 4})));
}

TEST(RankTeamTest, TheNthRequestMayFailForEveryN) {
  const Planned planned;
  FailingDevice counting(-1);
  {
    LocalGroup group(2, std::chrono::minutes(1));
    ASSERT_TRUE(IsOk(TrainOneStep(counting, planned, group, 2).status()));
  }
  ASSERT_GT(counting.requests(), 10);
  for (int n = 0; n < counting.requests(); ++n) {
    SCOPED_TRACE("request " + std::to_string(n));
    FailingDevice device(n);
    LocalGroup group(2, std::chrono::minutes(1));
    EXPECT_TRUE(
        Fails(TrainOneStep(device, planned, group, 2).status(), StatusCode::kResourceExhausted, "planted failure"));
  }
}

TEST(RankTeamTest, ARankThatIsNotSubmittedIsNamed) {
  const Planned planned;
  CpuDevice device;
  LocalGroup group(2, std::chrono::milliseconds(50));
  EXPECT_TRUE(Fails(TrainOneStep(device, planned, group, 1).status(), StatusCode::kCommunication, "rank 1"));
}

}  // namespace
}  // namespace onnxtrain
