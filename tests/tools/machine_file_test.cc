// SPDX-License-Identifier: Apache-2.0
#include "tools/machine_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/training_options.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temporary_folder.h"
#include "tools/link_options.h"

namespace onnxtrain {
namespace {

using testing::HasSubstr;

TEST(MachineFile, NamesAreMachines) {
  const auto h200 = ReadMachine("h200");
  ASSERT_OK(h200.status());
  EXPECT_EQ(h200->half_gflops, 600e3);
  const auto cpu = ReadMachine("cpu");
  ASSERT_OK(cpu.status());
  EXPECT_EQ(cpu->link_gbps, CostModel().link_gbps);
}

TEST(MachineFile, NumbersOfAFileCountAndTheRestIsTheCpus) {
  const TemporaryFolder folder;
  const std::string file = folder.Write("gpu.json", R"({"half_gflops": 5e5, "kernel_us": 0})");
  const auto machine = ReadMachine(file);
  ASSERT_OK(machine.status());
  EXPECT_EQ(machine->half_gflops, 5e5);
  EXPECT_EQ(machine->kernel_us, 0);
  EXPECT_EQ(machine->memory_gbps, CostModel().memory_gbps);
}

TEST(MachineFile, Tf32HasARateOfItsOwnAndIsFloatsWhereNoneIsGiven) {
  const auto h200 = ReadMachine("h200");
  ASSERT_OK(h200.status());
  EXPECT_EQ(WithTf32(*h200).gflops, 300e3);
  EXPECT_EQ(h200->gflops, 50e3);
  const TemporaryFolder folder;
  const auto with = ReadMachine(folder.Write("with.json", R"({"gflops": 4e4, "tf32_gflops": 2e5})"));
  ASSERT_OK(with.status());
  EXPECT_EQ(WithTf32(*with).gflops, 2e5);
  const auto without = ReadMachine(folder.Write("without.json", R"({"gflops": 4e4})"));
  ASSERT_OK(without.status());
  EXPECT_EQ(WithTf32(*without).gflops, 4e4);
}

TEST(MachineFile, PlansWithTf32AreSimulatedAtItsRate) {
  TrainingOptions training;
  training.machine = *FindMachine("h200");
  LinkOptions().Apply(training);
  EXPECT_EQ(training.machine.gflops, 50e3);
  training.tf32 = true;
  LinkOptions().Apply(training);
  EXPECT_EQ(training.machine.gflops, 300e3);
  EXPECT_TRUE(training.tf32);  // no machine was given: left to the device to refuse
}

TEST(MachineFile, WhatMakesNoSenseIsNamed) {
  const TemporaryFolder folder;
  const auto message = [&](const std::string& text) {
    return ReadMachine(folder.Write("gpu.json", text)).status().message();
  };
  EXPECT_THAT(message("[1]"), HasSubstr("is not a JSON object"));
  EXPECT_THAT(message(R"({"tflops": 1})"), HasSubstr("unknown key 'tflops'"));
  EXPECT_THAT(message(R"({"gflops": 0})"), HasSubstr("gflops must be a number above 0, found 0"));
  EXPECT_THAT(message(R"({"memory_gbps": "fast"})"), HasSubstr("memory_gbps must be a number above 0"));
  EXPECT_THAT(ReadMachine("h100").status().message(), HasSubstr("neither cpu nor h200"));
}

}  // namespace
}  // namespace onnxtrain
