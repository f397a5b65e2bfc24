// SPDX-License-Identifier: Apache-2.0
#include "tests/support/golden.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "graph/digest.h"
#include "graph/program_text.h"
#include "graph/verifier.h"
#include "passes/pass_registry.h"
#include "tests/support/planned_runner.h"
#include "tests/support/program_runner.h"

namespace onnxtrain {
namespace {

constexpr std::string_view kBefore = ".before.onnxtxt";
constexpr std::string_view kAfter = ".after.onnxtxt";
constexpr std::string_view kError = ".error.txt";
constexpr std::string_view kRefuses = "refuses_";
constexpr std::string_view kPassLine = "# pass:";
constexpr std::string_view kNotRun = "# not run:";
constexpr std::string_view kTolerance = "# tolerance:";
constexpr uint64_t kSeed = 7;

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

void WriteFile(const std::string& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

bool Updating() {
  const char* update = std::getenv("UPDATE_GOLDEN");
  return update != nullptr && std::string_view(update) == "1";
}

bool EndsWith(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

// The rest of the first line that starts with `prefix`; "" when there is none.
std::string LineAfter(const std::string& text, std::string_view prefix) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.substr(0, prefix.size()) == prefix) return line.substr(prefix.size());
  }
  return "";
}

std::string TextOf(const Program& program) { return WriteProgramText(program, {.full = true}); }

// Expects the text of the file, or writes it.
void ExpectFile(const std::string& path, const std::string& text) {
  if (Updating()) {
    WriteFile(path, text);
    return;
  }
  ASSERT_TRUE(std::filesystem::exists(path)) << "no " << path << "; UPDATE_GOLDEN=1 writes it. The result is:\n"
                                             << text;
  EXPECT_EQ(text, ReadFile(path)) << "in " << path;
}

// Seeded by name, step and slice; integers are 0 or 1, which is an index or a class of nearly everything.
FeedSource SeededFeeds(int step, int accumulation, bool same_slices) {
  return [=](const Value& input, int rank, int micro_batch) {
    const uint64_t slice = same_slices ? 0 : static_cast<uint64_t>(rank * accumulation + micro_batch);
    const uint64_t seed = Fnv1a(input.name(), kSeed + 1000 * static_cast<uint64_t>(step) + slice);
    const bool floating = IsFloating(input.type().dtype);
    return RandomTensor(input.type().dtype, input.type().shape, seed, floating ? -1 : 0, 1);
  };
}

// What one program did: everything that may be compared with another.
struct Behaviour {
  NamedTensors state;
  std::vector<NamedTensors> outputs;  // by rank, of the last training graph
  NamedTensors roles;                 // rank 0; not of a planned run, which fetches outputs only
  NamedTensors eval;                  // outputs of eval on rank 0
};

std::set<std::string> BufferNames(const Program& program) {
  std::set<std::string> names;
  for (const StateEntry& entry : program.states()) {
    if (entry.state_class == StateClass::kBuffer) names.insert(CanonicalName(entry));
  }
  return names;
}

Status ReadRoles(const Program& program, const ProgramRunner& runner, Behaviour& behaviour) {
  const Graph* graph = program.FindGraph(program.accumulation == 1 ? "step" : "last");
  for (const auto& [role, value] : graph->roles()) {
    ASSIGN_OR_RETURN(Tensor tensor, runner.ValueOf(0, value->name()));
    behaviour.roles.emplace(role, std::move(tensor));
  }
  return OkStatus();
}

Status ReadRoles(const Program&, const PlannedRunner&, Behaviour&) { return OkStatus(); }

struct RunOptions {
  bool same_slices = false;
  int steps = 2;
};

template <typename Runner>
StatusOr<Behaviour> Behave(const Program& program, const NamedTensors& initial, const RunOptions& options) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Runner> runner, Runner::Create(program, initial));
  Behaviour behaviour;
  const bool trains = program.FindGraph("step") != nullptr || program.FindGraph("last") != nullptr;
  for (int step = 0; trains && step < options.steps; ++step) {
    RETURN_IF_ERROR(runner->Step(SeededFeeds(step, program.accumulation, options.same_slices)));
  }
  if (trains) {
    for (int rank = 0; rank < program.world_size; ++rank) behaviour.outputs.push_back(runner->OutputsOf(rank));
    RETURN_IF_ERROR(ReadRoles(program, *runner, behaviour));
  }
  ASSIGN_OR_RETURN(behaviour.state, runner->CanonicalState());
  if (program.FindGraph("eval") != nullptr) {
    RETURN_IF_ERROR(runner->Evaluate(SeededFeeds(options.steps, program.accumulation, options.same_slices)));
    behaviour.eval = runner->OutputsOf(0);
  }
  return behaviour;
}

// Sums in another order: of doubles where nothing in the program is narrower.
double Tolerance(const Program& program) {
  const bool narrow = std::any_of(program.states().begin(), program.states().end(),
                                  [](const StateEntry& entry) { return entry.type.dtype == DType::kFloat; });
  return narrow ? 2e-5 : 1e-9;
}

// Tensors that both have; `what` names the kind in messages. Returns how many were compared.
int ExpectCommonNear(const NamedTensors& before, const NamedTensors& after, double tolerance, const std::string& what,
                     const std::set<std::string>& except = {}) {
  int compared = 0;
  for (const auto& [name, tensor] : after) {
    auto found = before.find(name);
    if (found == before.end() || except.contains(name)) continue;
    SCOPED_TRACE(what + " " + name + " after the pass, against before");
    ExpectNear(tensor, found->second, tolerance);
    ++compared;
  }
  return compared;
}

// Passes that build the step up: what they add has no twin before them. One step is run, since afterwards the state may
// differ, and roles and outputs are compared.
bool Extends(std::string_view pass) {
  return pass == "set_mode" || pass == "append_loss" || pass == "build_backward" || pass == "append_optimizer" ||
         pass == "append_evaluation" || pass == "mixed_precision";
}

void ExpectIdenticalTensors(const NamedTensors& planned, const NamedTensors& interpreted, const std::string& what) {
  EXPECT_EQ(planned.size(), interpreted.size()) << what;
  for (const auto& [name, tensor] : interpreted) {
    SCOPED_TRACE(what + " " + name + " of the planned run, against the interpreter");
    ASSERT_TRUE(planned.contains(name));
    ExpectIdentical(planned.at(name), tensor);
  }
}

// The plans of all graphs, proved and carried out by rank threads, give the interpreter's bits.
void ExpectPlannedRunAgrees(const Program& program, const NamedTensors& initial, const RunOptions& options,
                            const Behaviour& interpreted) {
  StatusOr<Behaviour> planned = Behave<PlannedRunner>(program, initial, options);
  ASSERT_TRUE(planned.ok()) << "planned run: " << planned.status().message();
  ExpectIdenticalTensors(planned->state, interpreted.state, "state");
  ExpectIdenticalTensors(planned->eval, interpreted.eval, "eval output");
  ASSERT_EQ(planned->outputs.size(), interpreted.outputs.size());
  for (size_t rank = 0; rank < planned->outputs.size(); ++rank) {
    ExpectIdenticalTensors(planned->outputs[rank], interpreted.outputs[rank], "output");
  }
}

void ExpectSameMeaning(const GoldenCase& golden, const Program& before, const Program& after, double near) {
  const bool spreads = before.world_size != after.world_size || before.accumulation != after.accumulation;
  const RunOptions options{.same_slices = spreads, .steps = Extends(golden.pass) ? 1 : 2};
  NamedTensors initial = SeededState(before, kSeed);
  StatusOr<Behaviour> was = Behave<ProgramRunner>(before, initial, options);
  StatusOr<Behaviour> is = Behave<ProgramRunner>(after, initial, options);
  ASSERT_TRUE(was.ok()) << "before: " << was.status().message();
  ASSERT_TRUE(is.ok()) << "after: " << is.status().message();
  const std::set<std::string> by_micro_batch =
      before.accumulation == after.accumulation ? std::set<std::string>() : BufferNames(before);
  int compared = ExpectCommonNear(was->eval, is->eval, near, "eval output");
  const size_t ranks = spreads ? std::min<size_t>(1, was->outputs.size()) : was->outputs.size();
  const bool replaces_outputs = golden.pass == "append_optimizer";
  for (size_t rank = 0; rank < ranks && !replaces_outputs; ++rank) {
    compared += ExpectCommonNear(was->outputs[rank], is->outputs[rank], near, "output");
  }
  if (Extends(golden.pass)) {
    compared += ExpectCommonNear(was->roles, is->roles, near, "role");
  } else {
    compared += ExpectCommonNear(was->state, is->state, near, "state", by_micro_batch);
    for (const auto& [name, tensor] : was->state) EXPECT_TRUE(is->state.contains(name)) << name << " is gone";
  }
  EXPECT_GT(compared, 0) << "nothing to compare";
  ExpectPlannedRunAgrees(after, initial, options, *is);
}

void ExpectRoundTrip(const std::string& text) {
  StatusOr<Program> read = ReadProgramText(text);
  ASSERT_TRUE(read.ok()) << read.status().message() << "\n" << text;
  EXPECT_EQ(TextOf(*read), text) << "write, read, write";
}

// Every pass of the line, one by one, with the third demand between them.
Status RunPasses(const PassPipeline& pipeline, Program& program) {
  for (const auto& pass : pipeline.passes()) {
    const std::string before = TextOf(program);
    ASSIGN_OR_RETURN(const bool changed, pass->Run(program));
    EXPECT_EQ(changed, TextOf(program) != before) << "what " << pass->name() << " says of having changed something";
  }
  return OkStatus();
}

void ExpectFixedPoint(const PassPipeline& pipeline, Program& program) {
  const std::string before = TextOf(program);
  for (const auto& pass : pipeline.passes()) {
    StatusOr<bool> changed = pass->Run(program);
    ASSERT_TRUE(changed.ok()) << "second run: " << changed.status().message();
    EXPECT_FALSE(*changed) << "second run of " << pass->name();
  }
  EXPECT_EQ(TextOf(program), before) << "second run";
}

}  // namespace

void PrintTo(const GoldenCase& golden, std::ostream* out) { *out << golden.pass << "/" << golden.name; }

std::vector<GoldenCase> FindGoldens(const std::string& root) {
  std::vector<GoldenCase> cases;
  for (const auto& folder : std::filesystem::directory_iterator(root)) {
    if (!folder.is_directory()) continue;
    const std::string pass = folder.path().filename().string();
    if (pass == "plan" || pass == "schedule") continue;  // of tests/runtime
    for (const auto& file : std::filesystem::directory_iterator(folder.path())) {
      const std::string name = file.path().filename().string();
      if (!EndsWith(name, kBefore)) {
        CHECK_WITH(EndsWith(name, kAfter) || EndsWith(name, kError) || !EndsWith(name, ".onnxtxt"), name);
        continue;
      }
      cases.push_back({pass, name.substr(0, name.size() - kBefore.size()), folder.path().string()});
    }
  }
  std::sort(cases.begin(), cases.end(),
            [](const auto& a, const auto& b) { return std::tie(a.pass, a.name) < std::tie(b.pass, b.name); });
  return cases;
}

void CheckGolden(const GoldenCase& golden) {
  const std::string stem = golden.folder + "/" + golden.name;
  const std::string source = ReadFile(stem + std::string(kBefore));
  StatusOr<PassPipeline> pipeline = PassRegistry::Default().MakePipeline(LineAfter(source, kPassLine));
  ASSERT_TRUE(pipeline.ok()) << pipeline.status().message();
  ASSERT_FALSE(pipeline->passes().empty()) << "the first line must name the pass: '" << kPassLine << " ...'";
  StatusOr<Program> before = ReadProgramText(source);
  ASSERT_TRUE(before.ok()) << before.status().message();
  const Status valid = VerifyProgram(*before);
  ASSERT_TRUE(valid.ok()) << "before: " << valid.message();

  Program after = before->Clone();
  const Status run = RunPasses(*pipeline, after);
  if (golden.name.substr(0, kRefuses.size()) == kRefuses) {
    ASSERT_FALSE(run.ok()) << "the pass was to refuse";
    ExpectFile(stem + std::string(kError), run.message() + "\n");
    return;
  }
  ASSERT_TRUE(run.ok()) << run.message();
  const Status still_valid = VerifyProgram(after);
  ASSERT_TRUE(still_valid.ok()) << "after: " << still_valid.message() << "\n" << TextOf(after);
  const std::string text = TextOf(after);
  ExpectFile(stem + std::string(kAfter), text);
  ExpectRoundTrip(TextOf(*before));
  ExpectRoundTrip(text);
  const std::string stated = LineAfter(source, kTolerance);
  const double near = stated.empty() ? Tolerance(*before) : std::strtod(stated.c_str(), nullptr);
  if (LineAfter(source, kNotRun).empty()) ExpectSameMeaning(golden, *before, after, near);
  ExpectFixedPoint(*pipeline, after);
}

}  // namespace onnxtrain
