// SPDX-License-Identifier: Apache-2.0
// Bad input gets a message that says what, where and what to do, and the right exit code, and nothing is lost: one
// table, run against the real binary.
#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>

#include <csignal>
#include <fstream>
#include <optional>

#include "runtime/checkpoint.h"
#include "runtime/run_folder.h"
#include "tests/support/status_matchers.h"
#include "tests/tools/command_line.h"

namespace onnxtrain {
namespace {

const std::vector<std::string> kLabels = Words("--loss ce --labels labels");
const std::vector<std::string> kData = kLabels + Words("--train x={d}/x.npy --train labels={d}/y.npy");
const std::vector<std::string> kOut = Words("--out {d}/run --quiet");

// What a case leaves beside its command.
struct Stage {
  const CommandLine& command_line;
  CommandOptions options;
  std::optional<RunFolderLock> lock;
};

constexpr int64_t kNone = -1;
constexpr int64_t kWhatWasFinished = -2;  // as many steps as there are lines of metrics

struct BadInput {
  std::string name;
  std::vector<std::string> arguments;
  int exit_code = 0;
  std::vector<std::string> words;  // all of them in the message
  void (*prepare)(Stage& stage) = nullptr;
  int64_t checkpoint = kNone;  // step of the newest of the run folder, complete and readable
};

void PrintTo(const BadInput& bad, std::ostream* out) { *out << bad.name; }

std::vector<std::string> Train(const std::vector<std::string>& data, const std::vector<std::string>& more = {}) {
  return Words("train {m}/classifier.onnxtxt") + data + kOut + more;
}

// Two steps of a run.
void TrainTwoSteps(Stage& stage) { stage.command_line.RunOk(Train(kData, Words("--max-steps 2"))); }

// A model file of one initializer that lies elsewhere.
void WriteExternal(Stage& stage) {
  onnx::ModelProto model;
  model.set_ir_version(8);
  model.add_opset_import()->set_version(17);
  onnx::GraphProto& graph = *model.mutable_graph();
  graph.set_name("external");
  onnx::TensorProto& tensor = *graph.add_initializer();
  tensor.set_name("weight");
  tensor.add_dims(4);
  tensor.set_data_type(onnx::TensorProto::FLOAT);
  tensor.set_data_location(onnx::TensorProto::EXTERNAL);
  onnx::StringStringEntryProto& entry = *tensor.add_external_data();
  entry.set_key("location");
  entry.set_value("../secret.bin");
  stage.command_line.folder().Write("external.onnx", model.SerializeAsString());
}

void WriteTrainingInfo(Stage& stage) {
  onnx::ModelProto model;
  model.set_ir_version(8);
  model.add_opset_import()->set_version(17);
  model.mutable_graph()->set_name("own");
  model.add_training_info()->mutable_algorithm()->set_name("step");
  stage.command_line.folder().Write("own.onnx", model.SerializeAsString());
}

void WriteTruncated(Stage& stage) {
  onnx::ModelProto model;
  model.set_ir_version(8);
  model.mutable_graph()->set_name(std::string(500, 'n'));
  stage.command_line.folder().Write("truncated.onnx", model.SerializeAsString().substr(0, 100));
}

// A graph that holds itself a thousand times, as attributes of nodes: no stack may grow with it.
void WriteNested(Stage& stage) {
  std::string bytes;
  const auto wrap = [](char tag, const std::string& inside) {
    std::string length;
    size_t rest = inside.size();
    for (; rest >= 128; rest /= 128) length += static_cast<char>(128 + rest % 128);
    return std::string(1, tag) + length + static_cast<char>(rest) + inside;
  };
  for (int depth = 0; depth < 2000; ++depth) bytes = wrap(0x0a, wrap(0x2a, wrap(0x32, bytes)));
  stage.command_line.folder().Write("nested.onnx", wrap(0x3a, bytes));
}

void WriteGarbage(Stage& stage) {
  stage.command_line.folder().Write("garbage.onnx", "this is no model, whatever it is\n");
}

std::string Numbers(int count) {
  std::string text = "0";
  for (int i = 1; i < count; ++i) text += "," + std::to_string(i % 7 - 3) + "e-2";
  return text;
}

#if defined(__SANITIZE_THREAD__)
constexpr bool kSanitizerNeedsFiles = true;
#else
constexpr bool kSanitizerNeedsFiles = false;
#endif
constexpr const char* kNeedsFiles = "ThreadSanitizer keeps its memory in files, which the limit on their size ends";

// 16 KiB of weights: a checkpoint is larger than everything else that a run writes, and than the limit set here.
void TrainWideTwoSteps(Stage& stage) {
  stage.command_line.folder().Write("wide.onnxtxt",
                                    "<ir_version: 8, opset_import: [\"\" : 17]>\nwide (float[batch,4] x) => "
                                    "(float[batch,64] y)\n<float[4,64] first = {" +
                                        Numbers(4 * 64) + "}, float[64,64] second = {" + Numbers(64 * 64) +
                                        "}>\n{\n  hidden = MatMul (x, first)\n  y = MatMul (hidden, second)\n}\n");
  stage.command_line.RunOk(Words("train {d}/wide.onnxtxt") + kData + kOut + Words("--max-steps 2"));
  stage.options.file_size_limit = 30000;
}

void LockRun(Stage& stage) {
  TrainTwoSteps(stage);
  StatusOr<RunFolderLock> lock = RunFolderLock::Acquire(stage.command_line.Path("run"));
  ASSERT_OK(lock);
  stage.lock.emplace(*std::move(lock));
}

void DamageCheckpoint(Stage& stage) {
  TrainTwoSteps(stage);
  std::fstream file(stage.command_line.Path("run/checkpoints/step-00000002/state.safetensors"),
                    std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(-2, std::ios::end);
  file.put('\x55');
}

template <int kSignal>
void InterruptThirdStep(Stage& stage) {
  stage.options.signal = kSignal;
  stage.options.signal_when = [&stage] { return LinesOf(stage.command_line.Path("run/metrics.jsonl")).size() >= 3; };
}

std::vector<BadInput> Table() {
  const std::vector<std::string> endless = Words("train {m}/classifier.onnxtxt --out {d}/run") + kData +
                                           Words("--max-steps 1000000000 --save-every 1000000000");
  const auto x_from = [](const std::string& file) {
    return kLabels + Words("--train x={d}/" + file + " --train labels={d}/y.npy");
  };
  const auto labels_from = [](const std::string& file) {
    return kLabels + Words("--train x={d}/x.npy --train labels={d}/" + file + " --no-shuffle --batch-size 8 --ranks 2");
  };
  return {
      // The model.
      {"ModelMissing", Words("inspect {d}/none.onnx"), 2, {"no file", "none.onnx"}},
      {"ModelFolderWithoutModel", Words("inspect {d}"), 2, {"holds no model.onnx"}},
      {"ModelGarbage",
       Words("inspect {d}/garbage.onnx"),
       3,
       {"garbage.onnx", "not an ONNX model", "byte"},
       WriteGarbage},
      {"ModelTruncated",
       Words("inspect {d}/truncated.onnx"),
       3,
       {"truncated.onnx", "past the end", "byte"},
       WriteTruncated},
      {"ModelNested", Words("inspect {d}/nested.onnx"), 3, {"nested.onnx"}, WriteNested},
      {"ExternalDataOutside",
       Words("inspect {d}/external.onnx"),
       3,
       {"external.onnx", "weight", "../secret.bin"},
       WriteExternal},
      {"OwnTrainingStep", Words("check {d}/own.onnx"), 2, {"training_info", "--loss"}, WriteTrainingInfo},
      {"NoGradientRules",
       Words("check {m}/no_gradient.onnxtxt"),
       3,
       {"2 operators", "Hardmax", "LpNormalization", "--freeze"}},
      {"LossMissing", Words("check {m}/classifier.onnxtxt"), 3, {"--loss", "logits: float[32,3]"}},
      {"LossNotScalar",
       Words("grad {m}/classifier.onnxtxt --feed {d}/batch.npz --loss-on logits"),
       3,
       {"logits", "float[8,3]", "--loss"}},
      {"LossOnUnknown",
       Words("check {m}/classifier.onnxtxt --loss ce --labels labels --loss-on hiden"),
       2,
       {"hiden", "did you mean 'hidden'"}},
      {"NothingTrains", Train(kData, Words("--freeze *")), 3, {"nothing trains", "fc1_weight", "--freeze"}},
      {"FrozenByName", Train(kData, Words("--trainable fc3*")), 2, {"--trainable", "fc3*", "fc1_weight"}},
      {"BatchNormMissing", Train(kData, Words("--bn train")), 3, {"--bn train"}},
      {"DimUnbound", Words("plan {m}/token_classifier.onnxtxt"), 2, {"time", "tokens", "--dim"}},
      {"DimUnknown", Words("plan {m}/token_classifier.onnxtxt --dim tine=4"), 2, {"tine", "did you mean 'time'"}},
      // Feeds and data.
      {"FeedMissing",
       Words("grad {m}/classifier_loss.onnxtxt --feed x=[[1,2,3,4]]"),
       2,
       {"labels", "int64[batch]", "--feed"}},
      {"FeedUnknown", Words("grad {m}/classifier_loss.onnxtxt --feed y=[1] --feed {d}/batch.npz"), 2, {"no input 'y'"}},
      {"FeedShape",
       Words("grad {m}/classifier_loss.onnxtxt --feed x=[[1,2,3]] --feed labels=[1]"),
       4,
       {"'x'", "float[batch,4]", "float[1,3]"}},
      {"FeedFraction",
       Words("grad {m}/classifier_loss.onnxtxt --feed x=[[1,2,3,4]] --feed labels=[1.5]"),
       4,
       {"labels", "int64"}},
      {"FeedSyntax",
       Words("grad {m}/classifier_loss.onnxtxt --feed x=[[1,2,3,4] --feed labels=[1]"),
       4,
       {"'x'", "byte"}},
      {"FeedLabelOutside",
       Words("grad {m}/classifier_loss.onnxtxt --feed x=[[1,2,3,4]] --feed labels=[3]"),
       4,
       {"label", "out of range"}},
      {"DataMissing", Train(x_from("none.npy")), 4, {"none.npy"}},
      {"DataType", Train(x_from("x64.npy")), 4, {"x64.npy", "expected float", "found double", "f32"}},
      {"DataRank", Train(x_from("x_cube.npy")), 4, {"'x'", "float[batch,4]", "float[32,2,2]"}},
      {"DataShape", Train(x_from("x_wide.npy")), 4, {"'x'", "float[batch,4]", "float[32,5]"}},
      {"DataCounts",
       Train(kLabels + Words("--train x={d}/x.npy --train labels={d}/y_short.npy")),
       4,
       {"50 samples", "40"}},
      {"DataFeedMissing", Train(kLabels + Words("--train x={d}/x.npy")), 2, {"labels", "not fed", "--train"}},
      {"DataNameUnknown",
       Train(kLabels + Words("--train x={d}/x.npy --train lables={d}/y.npy")),
       2,
       {"lables", "did you mean 'labels'"}},
      {"DataShorterThanBatch", Train(kData, Words("--batch-size 64 --drop-last")), 4, {"no step", "50 samples", "64"}},
      {"DataShorterThanFixedBatch",
       Words("train {m}/fixed_batch.onnxtxt --ranks 7 --train x={d}/x.npy --train labels={d}/y.npy") + kOut,
       4,
       {"no step", "50 samples", "56"}},
      {"FixedBatch",
       Words("train {m}/fixed_batch.onnxtxt --batch-size 4 --train x={d}/x.npy --train labels={d}/y.npy") + kOut,
       2,
       {"--batch-size 4", "fixes the batch at 8"}},
      {"LabelOutside",
       Train(labels_from("y_outside.npy")),
       4,
       {"step 2", "[rank 0]", "label out of range", "element 5 of 'labels'", "is 3", "expected 0 .. 2"},
       nullptr,
       2},
      {"TokenOutside",
       Words("train {m}/token_classifier.onnxtxt --tokens {d}/tokens_outside.bin --seq-len 8") + kOut,
       4,
       {"tokens_outside.bin", "below 8"},
       nullptr,
       0},
      {"TokenFilesNone",
       Words("train {m}/token_classifier.onnxtxt --tokens {d}/token_*.bin --seq-len 8") + kOut,
       2,
       {"token_*.bin", "did you mean", "tokens.bin"}},
      {"NotFinite",
       Train(kLabels + Words("--train x={d}/x_nan.npy --train labels={d}/y.npy --no-shuffle --batch-size 8 --ranks 2")),
       5,
       {"step 2", "[rank 1]", "'x'", "NaN", "'hidden'", "Gemm", "nonfinite"},
       nullptr,
       2},
      {"NotFiniteChecked",
       Train(kLabels +
             Words("--train x={d}/x_nan.npy --train labels={d}/y.npy --no-shuffle --batch-size 8 --nan-check")),
       5,
       {"step 5", "'hidden'", "Gemm"},
       nullptr,
       5},
      // The run folder.
      {"FolderHoldsRun", Train(kData), 2, {"already holds a run", "--resume", "--overwrite"}, TrainTwoSteps, 2},
      {"FolderInUse", Train({}, Words("--resume --max-steps 4")), 2, {"in use by process"}, LockRun, 2},
      {"GlobalBatchChanged",
       Train({}, Words("--resume --batch-size 7")),
       2,
       {"global batch of 32", "--override"},
       TrainTwoSteps,
       2},
      {"CheckpointDamaged",
       Train({}, Words("--resume --max-steps 4")),
       4,
       {"step-00000002", "state.safetensors"},
       DamageCheckpoint},
      {"DiskFull",
       Words("train {d}/wide.onnxtxt --resume --max-steps 4") + kOut,
       1,
       {"disk full", "state.safetensors"},
       TrainWideTwoSteps,
       2},
      {"StepMissing",
       Words("export {d}/run --step 1 -o {d}/out.onnx"),
       2,
       {"no checkpoint of step 1", "it has 2"},
       TrainTwoSteps,
       2},
      {"InterruptInt", endless, 130, {"SIGINT", "saved", "--resume"}, InterruptThirdStep<SIGINT>, kWhatWasFinished},
      {"InterruptTerm", endless, 143, {"SIGTERM", "saved", "--resume"}, InterruptThirdStep<SIGTERM>, kWhatWasFinished},
      {"InterruptUsr1", endless, 138, {"SIGUSR1", "saved", "--resume"}, InterruptThirdStep<SIGUSR1>, kWhatWasFinished},
  };
}

class BadInputTest : public ::testing::TestWithParam<BadInput> {
 protected:
  // The checkpoint reads back whole, and no other is newer.
  void ExpectCheckpoint(int64_t step) {
    PosixFileSystem files;
    const StatusOr<CheckpointList> list = ListCheckpoints(files, command_line_.Path("run/checkpoints"));
    ASSERT_OK(list);
    EXPECT_TRUE(list->broken.empty()) << list->broken[0].second.message();
    ASSERT_FALSE(list->complete.empty());
    const CheckpointInfo& newest = list->complete.back();
    EXPECT_OK(ReadCheckpoint(newest.folder));
    const int64_t finished = static_cast<int64_t>(LinesOf(command_line_.Path("run/metrics.jsonl")).size());
    EXPECT_EQ(newest.step, step == kWhatWasFinished ? finished : step);
  }

  CommandLine command_line_;
};

TEST_P(BadInputTest, GetsItsMessageAndNothingIsLost) {
  const BadInput& bad = GetParam();
  Stage stage{command_line_, {}, {}};
  if (bad.prepare != nullptr) bad.prepare(stage);
  if (HasFatalFailure()) return;
  if (kSanitizerNeedsFiles && stage.options.file_size_limit > 0) GTEST_SKIP() << kNeedsFiles;
  const CommandResult result = command_line_.Run(bad.arguments, stage.options);
  EXPECT_EQ(result.exit_code, bad.exit_code) << result.err;
  for (const std::string& word : bad.words)
    EXPECT_NE(result.err.find(word), std::string::npos) << word << " in:\n" << result.err;
  if (bad.checkpoint != kNone) ExpectCheckpoint(bad.checkpoint);
}

INSTANTIATE_TEST_SUITE_P(Table, BadInputTest, ::testing::ValuesIn(Table()),
                         [](const ::testing::TestParamInfo<BadInput>& info) { return info.param.name; });

// The batch of a step that was not finite is ready for `grad`.
TEST(NotFiniteBatch, IsReadyForGrad) {
  const CommandLine command_line;
  const CommandResult trained = command_line.Run(
      Train(kLabels + Words("--train x={d}/x_nan.npy --train labels={d}/y.npy --no-shuffle --batch-size 8 --ranks 2")));
  ASSERT_EQ(trained.exit_code, 5) << trained.err;
  EXPECT_EQ(NamesIn(command_line.Path("run/nonfinite")),
            (std::vector<std::string>{"step-00000002.rank-0.npz", "step-00000002.rank-1.npz"}));
  EXPECT_NE(LinesOf(command_line.Path("run/metrics.jsonl")).back().find("\"loss\":\"NaN\""), std::string::npos);
  const CommandResult good =
      command_line.Run(Words("grad {d}/run --feed {d}/run/nonfinite/step-00000002.rank-0.npz") + kLabels);
  EXPECT_EQ(good.exit_code, 0) << good.err;
  const CommandResult bad = command_line.Run(
      Words("grad {d}/run --feed {d}/run/nonfinite/step-00000002.rank-1.npz --out {d}/g.npz") + kLabels);
  EXPECT_EQ(bad.exit_code, 5);
  EXPECT_FALSE(ReadBytes(command_line.Path("g.npz")).empty()) << "the gradients are written all the same";
}

// After every failure that leaves a checkpoint, the run goes on as if nothing had happened.
TEST(DiskFull, RunGoesOnWithRoom) {
  const CommandLine command_line;
  Stage stage{command_line, {}, {}};
  TrainWideTwoSteps(stage);
  if (kSanitizerNeedsFiles) GTEST_SKIP() << kNeedsFiles;
  const std::vector<std::string> resume = Words("train {d}/wide.onnxtxt --resume --max-steps 4") + kOut;
  const CommandResult full = command_line.Run(resume, stage.options);
  EXPECT_EQ(full.exit_code, 1) << full.err;
  command_line.RunOk(resume);
  EXPECT_EQ(LinesOf(command_line.Path("run/metrics.jsonl")).size(), 4u);
  EXPECT_EQ(NamesIn(command_line.Path("run/checkpoints")),
            (std::vector<std::string>{"step-00000002", "step-00000004"}));
}

}  // namespace
}  // namespace onnxtrain
