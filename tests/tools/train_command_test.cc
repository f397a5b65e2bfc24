// SPDX-License-Identifier: Apache-2.0
// What scripts rely on of `train`: its documents, files, exit codes, and how runs go on.
#include <nlohmann/json.hpp>

#include "graph/onnx_model.h"
#include "runtime/data/npz.h"
#include "tests/support/status_matchers.h"
#include "tests/tools/commands_fixture.h"

namespace onnxtrain {
namespace {

using nlohmann::json;

CommandOptions In(std::map<std::string, std::string> environment) {
  CommandOptions options;
  options.environment = std::move(environment);
  return options;
}

class TrainCommandTest : public CommandsTest {
 protected:
  json RunJson(const Strings& arguments) { return json::parse(line_.RunOk(arguments + kQuiet)); }
  json TrainClassifier(const std::string& run, const std::string& more) {
    return RunJson(Words("train {m}/classifier.onnxtxt --out {d}/" + run + " " + more) + kTrain);
  }
  std::vector<json> Metrics(const std::string& run) {
    std::vector<json> lines;
    for (const std::string& line : LinesOf(line_.Path(run + "/metrics.jsonl"))) lines.push_back(json::parse(line));
    return lines;
  }
};

TEST_F(TrainCommandTest, UsageErrorsWriteNothing) {
  const Strings cases[] = {Words("--momentum 0.9"),
                           Words("--optimizer sgd --betas 0.9,0.99"),
                           Words("--schedule linear --gamma 0.5"),
                           Words("--optimizer sgd --nesterov"),
                           Words("--zero 3"),
                           Words("--dtype f16"),
                           Words("--loss-scale dynamic"),
                           Words("--reduce-dtype f16"),
                           Words("--recompute auto"),
                           Words("--device cuda"),
                           Words("--cuda-graphs"),
                           Words("--tf32"),
                           Words("--fallback cpu"),
                           Words("--fallback gpu"),
                           Words("--cache {d}/cache"),
                           Words("--sync-bn"),
                           Words("--optimizer lamb"),
                           Words("--batch-size 4 --global-batch-size 9"),
                           Words("--warmup-steps 3 --max-steps 3"),
                           Words("--lr -1"),
                           Words("--no-decay nothing*"),
                           Words("--freeze nothing*"),
                           Words("--param-group nothing*:lr=1"),
                           Words("--resume --overwrite"),
                           Words("--override"),
                           Words("--val-tokens {d}/tokens.bin")};
  for (const Strings& more : cases) {
    const CommandResult result = line_.Run(Words("train {m}/classifier.onnxtxt --out {d}/refused") + kTrain + more);
    EXPECT_EQ(result.exit_code, 2) << more[0] << "\n" << result.err;
    EXPECT_NE(result.err.find("onnx-train train: "), std::string::npos);
    EXPECT_TRUE(result.out.empty());
    EXPECT_TRUE(NamesIn(line_.Path("refused")).empty()) << more[0];
  }
}

TEST_F(TrainCommandTest, WorldsThatCannotBeJoinedAreRefused) {
  const std::map<std::string, std::string> worlds[] = {{{"RANK", "0"}, {"WORLD_SIZE", "2"}},
                                                       {{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "4"}},
                                                       {{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}},
                                                       {{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "2"}}};
  const Strings train = Words("train {m}/classifier.onnxtxt --max-steps 1 --quiet --out {d}/world") + kTrain;
  for (const auto& world : worlds) {
    EXPECT_EQ(line_.Run(train, In(world)).exit_code, 2);
    EXPECT_TRUE(NamesIn(line_.Path("world")).empty());
  }
  line_.RunOk(train, In({{"RANK", "0"}, {"WORLD_SIZE", "1"}}));
}

TEST_F(TrainCommandTest, RunFolderHoldsWhatIsPromised) {
  const json summary = TrainClassifier("run",
                                       "--max-steps 3 --batch-size 10 --ranks 2 --zero 1 --save-every 2 --dump-passes "
                                       "--val x={d}/x.npy --val labels={d}/y.npy");
  EXPECT_EQ(summary["steps"], 3);
  EXPECT_EQ(summary["samples"], 50);
  for (const char* key : {"loss", "val_loss", "val_accuracy", "seconds"}) EXPECT_TRUE(summary[key].is_number()) << key;
  EXPECT_EQ(summary["checkpoint"], line_.Path("run/checkpoints/step-00000003"));
  EXPECT_EQ(summary["model"], line_.Path("run/model.onnx"));
  EXPECT_EQ(NamesIn(line_.Path("run/checkpoints")), (Strings{"step-00000002", "step-00000003"}));
  const json config = json::parse(ReadText(line_.Path("run/config.json")));
  EXPECT_EQ(config["lr"], 1e-3);
  EXPECT_EQ(config["global-batch-size"], 20);
  EXPECT_EQ(config["threads"], 1);
  const std::vector<json> metrics = Metrics("run");
  ASSERT_EQ(metrics.size(), 4u);  // the third step is a partial batch; then validation
  for (int step = 0; step < 3; ++step) {
    EXPECT_EQ(metrics[static_cast<size_t>(step)]["step"], step);
    EXPECT_EQ(metrics[static_cast<size_t>(step)]["samples"], step == 2 ? 10 : 20);
    for (const char* key : {"loss", "lr", "grad_norm", "step_ms"}) {
      EXPECT_TRUE(metrics[static_cast<size_t>(step)][key].is_number()) << key;
    }
  }
  EXPECT_EQ(metrics[3]["step"], 2);
  EXPECT_EQ(metrics[3]["val_samples"], 50);
  EXPECT_TRUE(json::parse(ReadText(line_.Path("run/plan.json"))).contains("digest"));
  EXPECT_EQ(NamesIn(line_.Path("run/passes"))[0], "00-read.onnxtxt");
  EXPECT_GT(NamesIn(line_.Path("run/passes")).size(), 10u);
}

TEST_F(TrainCommandTest, NoStepAndNoRateChangeNothing) {
  TrainClassifier("none", "--max-steps 0");
  TrainClassifier("zero", "--max-steps 2 --lr 0");
  for (const char* name : {"fc1_weight", "fc1_bias", "fc2_weight", "fc2_bias"}) {
    const Tensor before = Weight("{m}/classifier.onnxtxt", name);
    EXPECT_TRUE(Weight("{d}/none/model.onnx", name).Identical(before)) << name;
    EXPECT_TRUE(Weight("{d}/zero/model.onnx", name).Identical(before)) << name;
  }
  EXPECT_EQ(NamesIn(line_.Path("none/checkpoints")), Strings{"step-00000000"});
}

TEST_F(TrainCommandTest, EpochsAndStepsEndAtTheEarlier) {
  EXPECT_EQ(TrainClassifier("a", "--batch-size 20")["steps"], 3);
  EXPECT_EQ(TrainClassifier("b", "--batch-size 20 --drop-last")["steps"], 2);
  EXPECT_EQ(TrainClassifier("c", "--batch-size 20 --epochs 2 --max-steps 5")["steps"], 5);
  EXPECT_EQ(TrainClassifier("d", "--batch-size 20 --epochs 2 --max-steps 50")["steps"], 6);
  EXPECT_EQ(TrainClassifier("e", "--batch-size 20 --max-steps 7")["steps"], 7);
  EXPECT_EQ(NamesIn(line_.Path("d/checkpoints")), (Strings{"step-00000003", "step-00000006"}));
}

TEST_F(TrainCommandTest, ResumedRunHasTheBitsOfAnUninterruptedOne) {
  TrainClassifier("whole", "--max-steps 7 --ranks 2 --batch-size 6 --optimizer adam --schedule step --step-size 3");
  TrainClassifier("parts", "--max-steps 3 --ranks 2 --batch-size 6 --optimizer adam --schedule step --step-size 3");
  const json summary = RunJson(Words("train {m}/classifier.onnxtxt --resume --out {d}/parts --max-steps 7"));
  EXPECT_EQ(summary["steps"], 7);
  ExpectSameFile("whole/model.onnx", "parts/model.onnx");
  ExpectSameFile("whole/checkpoints/step-00000007/state.safetensors",
                 "parts/checkpoints/step-00000007/state.safetensors");
  const std::vector<json> whole = Metrics("whole"), parts = Metrics("parts");
  ASSERT_EQ(whole.size(), parts.size());
  for (size_t i = 0; i < whole.size(); ++i) {
    for (const char* key : {"step", "loss", "lr", "grad_norm", "samples"})
      EXPECT_EQ(whole[i][key], parts[i][key]) << key;
  }
}

// The masters are float, so nothing is lost between the parts.
TEST_F(TrainCommandTest, ResumedRunInHalfPrecisionHasTheBitsOfAnUninterruptedOne) {
  const std::string more = " --dtype bf16 --reduce-dtype bf16 --ranks 2 --zero 1 --batch-size 6";
  TrainClassifier("whole", "--max-steps 6" + more);
  TrainClassifier("parts", "--max-steps 3" + more);
  RunJson(Words("train {m}/classifier.onnxtxt --resume --out {d}/parts --max-steps 6"));
  ExpectSameFile("whole/model.onnx", "parts/model.onnx");
  EXPECT_EQ(Metrics("whole").back()["loss"], Metrics("parts").back()["loss"]);
}

TEST_F(TrainCommandTest, ResumeMayChangeRanksAndKeepsTheGlobalBatch) {
  TrainClassifier("run", "--max-steps 2 --ranks 2 --zero 1 --batch-size 6 --keep 1");
  RunJson(Words("train {m}/classifier.onnxtxt --resume --out {d}/run --max-steps 4 --ranks 3 --zero 2 --overlap off"));
  EXPECT_EQ(json::parse(ReadText(line_.Path("run/config.json")))["batch-size"], 4);
  EXPECT_EQ(Metrics("run").back()["samples"], 12);
  EXPECT_EQ(NamesIn(line_.Path("run/checkpoints")), Strings{"step-00000004"}) << "--keep comes from config.json";
  const CommandResult refused =
      line_.Run(Words("train {m}/classifier.onnxtxt --resume --out {d}/run --ranks 5 --max-steps 6"));
  EXPECT_EQ(refused.exit_code, 2) << "12 samples do not divide by 5 ranks";
  EXPECT_EQ(
      line_.Run(Words("train {m}/classifier.onnxtxt --resume --out {d}/run --batch-size 2 --max-steps 6")).exit_code,
      2);
  RunJson(Words("train {m}/classifier.onnxtxt --resume --out {d}/run --batch-size 2 --max-steps 6 --override"));
  EXPECT_EQ(Metrics("run").back()["samples"], 6);
}

TEST_F(TrainCommandTest, ScheduleWithAnEndKeepsIt) {
  TrainClassifier("run", "--max-steps 4 --schedule cosine");
  EXPECT_EQ(line_.Run(Words("train {m}/classifier.onnxtxt --resume --out {d}/run --max-steps 6")).exit_code, 2);
  RunJson(Words("train {m}/classifier.onnxtxt --resume --out {d}/run --max-steps 6 --override"));
  EXPECT_EQ(Metrics("run").size(), 6u);
}

TEST_F(TrainCommandTest, ResumeBeginsWhereThereIsNoCheckpoint) {
  const CommandResult result =
      line_.Run(Words("train {m}/classifier.onnxtxt --resume --out {d}/new --max-steps 1") + kTrain);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.err.find("starting from the beginning"), std::string::npos);
  EXPECT_EQ(Metrics("new").size(), 1u);
}

TEST_F(TrainCommandTest, ConfigurationOfARunRepeatsIt) {
  TrainClassifier("first", "--max-steps 3 --lr 0.02 --no-shuffle --param-group fc1*:lr=0.001,weight-decay=0");
  RunJson(Words("train --config {d}/first/config.json --out {d}/second"));
  ExpectSameFile("first/model.onnx", "second/model.onnx");
}

TEST_F(TrainCommandTest, RunIsAModelToTrainOn) {
  TrainClassifier("first", "--max-steps 2");
  const json summary = RunJson(Words("train {d}/first --out {d}/second --max-steps 0") + kTrain);
  EXPECT_EQ(summary["steps"], 0);
  EXPECT_TRUE(Weight("{d}/second/model.onnx", "fc1_weight").Identical(Weight("{d}/first/model.onnx", "fc1_weight")));
}

TEST_F(TrainCommandTest, FixedBatchLeavesOutTheRest) {
  const CommandResult result = line_.Run(
      Words("train {m}/fixed_batch.onnxtxt --out {d}/run --train x={d}/x.npy --train labels={d}/y.npy --epochs 1"));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.err.find("the last 2 of 50 training samples"), std::string::npos) << result.err;
  EXPECT_EQ(Metrics("run").size(), 6u);
}

TEST_F(TrainCommandTest, TrainWritesATimelineOfThreeSteps) {
  TrainClassifier("run", "--max-steps 6 --ranks 2 --trace {d}/trace.json");
  std::map<std::pair<int, int>, int> events;
  const json trace = json::parse(ReadText(line_.Path("trace.json")));
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] != "X") continue;
    EXPECT_GE(event["dur"].get<double>(), 0);
    ++events[{event["pid"].get<int>(), event["tid"].get<int>()}];
  }
  EXPECT_EQ(events.size(), 4u) << "two ranks, two streams";
  for (const auto& [place, count] : events) EXPECT_EQ(count % 3, 0) << "three steps";
}

TEST_F(TrainCommandTest, UntieGivesEveryUseATensor) {
  const Strings train =
      Words("train {m}/tied.onnxtxt --loss mse --labels t --train x={d}/x.npy --train t={d}/x.npy --max-steps 3");
  line_.RunOk(train + Words("--out {d}/tied --quiet"));
  const CommandResult untied = line_.Run(train + Words("--out {d}/untied --untie"));
  EXPECT_EQ(untied.exit_code, 0) << untied.err;
  EXPECT_NE(untied.err.find("--untie changes the model: 'second'"), std::string::npos) << untied.err;
  EXPECT_FALSE(Weight("{d}/untied/model.onnx", "second").Identical(Weight("{d}/untied/model.onnx", "first")));
  const StatusOr<OnnxModel> tied = OnnxModel::Load(line_.Path("tied/model.onnx"));
  ASSERT_OK(tied);
  EXPECT_EQ(tied->FindInitializer("second"), nullptr);
  line_.RunOk(Words("train {m}/tied.onnxtxt --resume --out {d}/untied --max-steps 4 --quiet"));
}

TEST_F(TrainCommandTest, InitialWeightsComeByName) {
  PosixFileSystem files;
  Tensor bias({DType::kFloat, {3}});
  bias.values<float>()[1] = 2;
  const std::vector<NamedTensor> weights{{"fc2_bias", bias}};
  ASSERT_OK(WriteNpz(files, line_.Path("w.npz"), std::span<const NamedTensor>(weights)));
  TrainClassifier("run", "--max-steps 0 --init-weights {d}/w.npz");
  EXPECT_TRUE(Weight("{d}/run/model.onnx", "fc2_bias").Identical(bias));
  TrainClassifier("frozen", "--max-steps 0 --init-weights {d}/w.npz --freeze fc2_bias");
  EXPECT_TRUE(Weight("{d}/frozen/model.onnx", "fc2_bias").Identical(bias));
  const CommandResult unknown = line_.Run(Words("check {m}/classifier_loss.onnxtxt --init-weights {d}/w.npz"));
  EXPECT_EQ(unknown.exit_code, 4);
  EXPECT_NE(unknown.err.find("'fc2_bias' is no initializer of the model, did you mean 'fc_bias'"), std::string::npos);
}

TEST_F(TrainCommandTest, DryRunWritesNothing) {
  EXPECT_EQ(RunJson(Words("train {m}/classifier.onnxtxt --dry-run --max-steps 5") + kTrain)["steps"], 5);
}

}  // namespace
}  // namespace onnxtrain
