// SPDX-License-Identifier: Apache-2.0
#include "runtime/plan_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "graph/op_registry.h"

namespace onnxtrain {
namespace {

using Json = nlohmann::ordered_json;

std::vector<const Node*> NodesOf(const Graph& graph) {
  std::vector<const Node*> nodes;
  for (const std::unique_ptr<Node>& node : graph.nodes()) nodes.push_back(node.get());
  return nodes;
}

// From the beginning of the run to the end of the first all-gather that compute had to wait for, less what compute did.
double FirstGatherExposed(const ExecutionPlan& plan, const std::vector<const Node*>& nodes,
                          const Simulation& simulation) {
  double gather_ends = -1;
  double computed = 0;
  for (const TimedStep& timed : simulation.steps) {
    const PlanStep& step = plan.steps[timed.step];
    const bool gathers =
        step.kind == StepKind::kLaunch && nodes[static_cast<size_t>(step.node)]->op() == "onnxtrain.AllGather";
    if (gathers && gather_ends < 0) gather_ends = timed.end_us;
  }
  if (gather_ends < 0) return 0;
  for (const TimedStep& timed : simulation.steps) {
    if (plan.steps[timed.step].stream != 0 || timed.start_us >= gather_ends) continue;
    computed += std::min(timed.end_us, gather_ends) - timed.start_us;
  }
  return std::max(0.0, gather_ends - computed);
}

Json PlaceJson(const Placement& place) {
  return {{"region", place.region == Region::kPersistent ? "persistent" : "transient"},
          {"offset", place.offset},
          {"bytes", place.bytes}};
}

std::string_view KindName(StepKind kind) {
  switch (kind) {
    case StepKind::kFeed:
      return "feed";
    case StepKind::kFetch:
      return "fetch";
    case StepKind::kZeroFill:
      return "zero_fill";
    case StepKind::kCopy:
      return "copy";
    case StepKind::kLaunch:
      return "launch";
    case StepKind::kRecord:
      return "record";
    case StepKind::kWait:
      return "wait";
  }
  return "";
}

Json NamesJson(const std::vector<Value*>& values) {
  Json names = Json::array();
  for (const Value* value : values) names.push_back(value == nullptr ? "" : value->name());
  return names;
}

Json StepJson(const PlanStep& step, const PlanReport& report, const std::vector<const Node*>& nodes) {
  Json json = {{"kind", KindName(step.kind)}, {"stream", step.stream}};
  switch (step.kind) {
    case StepKind::kFeed:
      json["value"] = report.graph->inputs()[static_cast<size_t>(step.value)]->name();
      break;
    case StepKind::kFetch:
      json["value"] = report.graph->outputs()[static_cast<size_t>(step.value)]->name();
      break;
    case StepKind::kZeroFill:
      json["range"] = PlaceJson(step.range);
      break;
    case StepKind::kCopy:
      json["range"] = PlaceJson(step.range);
      json["target"] = PlaceJson(step.target);
      break;
    case StepKind::kLaunch: {
      const Node& node = *nodes[static_cast<size_t>(step.node)];
      json["op"] = node.op();
      json["inputs"] = NamesJson(node.inputs());
      json["outputs"] = NamesJson(node.outputs());
      break;
    }
    case StepKind::kRecord:
    case StepKind::kWait:
      json["event"] = step.event;
      break;
  }
  return json;
}

Json StepsJson(const PlanReport& report) {
  const std::vector<const Node*> nodes = NodesOf(*report.graph);
  Json steps = Json::array();
  size_t timed = 0;
  for (size_t i = 0; i < report.plan->steps.size(); ++i) {
    Json step = StepJson(report.plan->steps[i], report, nodes);
    if (timed < report.simulation.steps.size() && report.simulation.steps[timed].step == i) {
      step["start_us"] = report.simulation.steps[timed].start_us;
      step["end_us"] = report.simulation.steps[timed].end_us;
      ++timed;
    }
    steps.push_back(std::move(step));
  }
  return steps;
}

size_t BytesOf(const LayoutBucket& bucket) { return static_cast<size_t>(bucket.elements) * SizeOf(bucket.dtype); }

Json BucketsJson(const Layout& layout) {
  Json buckets = Json::array();
  for (const LayoutBucket& bucket : layout.buckets()) {
    Json parameters = Json::array();
    for (int index : bucket.parameters) parameters.push_back(layout.parameters()[static_cast<size_t>(index)].name);
    buckets.push_back({{"dtype", NameOf(bucket.dtype)},
                       {"elements", bucket.elements},
                       {"bytes", BytesOf(bucket)},
                       {"parameters", std::move(parameters)}});
  }
  return buckets;
}

Json MemoryJson(const MemoryReport& memory) {
  Json classes = Json::array();
  for (const MemoryLine& line : memory.lines) {
    Json entry = {{"name", line.name}, {"bytes", line.bytes}};
    if (!line.formula.empty()) {
      entry["formula"] = line.formula;
      entry["formula_bytes"] = line.expected;
    }
    classes.push_back(std::move(entry));
  }
  return {{"persistent_bytes", memory.persistent_bytes},
          {"transient_bytes", memory.transient_bytes},
          {"transient_lower_bound", memory.transient_lower_bound},
          {"padding", memory.padding},
          {"formulas_hold", memory.FormulasHold()},
          {"classes", std::move(classes)}};
}

Json LinksJson(const std::vector<LinkReport>& links) {
  Json json = Json::array();
  for (const LinkReport& link : links) {
    json.push_back({{"gbps", link.gbps},
                    {"exposed_us", link.exposed_us},
                    {"bound_us", link.bound_us},
                    {"makespan_us", link.makespan_us},
                    {"compute_us", link.compute_us},
                    {"first_gather_exposed_us", link.first_gather_exposed_us}});
  }
  return json;
}

std::string HexOf(uint64_t digest) { return fmt::format("{:016x}", digest); }

}  // namespace

PlanReport MakePlanReport(const Program& program, const PersistentPlacements& persistent, const Graph& graph,
                          const ExecutionPlan& plan, int stage, const CostModel& costs,
                          const std::vector<double>& link_gbps) {
  CHECK(!link_gbps.empty());
  PlanReport report{&program, &graph, &plan, Digest(program), ReportMemory(program, persistent, graph, plan, stage),
                    {},       {}};
  for (double gbps : link_gbps) {
    CostModel model = costs;
    model.link_gbps = gbps;
    model.world_size = program.world_size;
    const SimulationCosts simulated = CostsOf(model);
    Simulation simulation = Simulate(plan, graph, simulated);
    report.links.push_back({gbps, simulation.makespan_us, simulation.compute_us, simulation.exposed_us,
                            ExposedBound(plan, graph, simulated),
                            FirstGatherExposed(plan, NodesOf(graph), simulation)});
    if (report.links.size() == 1) report.simulation = std::move(simulation);
  }
  return report;
}

std::string PlanJson(const PlanReport& report) {
  const Json document = {{"graph", report.graph->name()},
                         {"digest", HexOf(report.digest)},
                         {"exposed_us", report.links[0].exposed_us},
                         {"bound_us", report.links[0].bound_us},
                         {"links", LinksJson(report.links)},
                         {"memory", MemoryJson(report.memory)},
                         {"buckets", BucketsJson(report.program->layout())},
                         {"streams", report.plan->streams},
                         {"steps", StepsJson(report)}};
  return document.dump(1, ' ', false, Json::error_handler_t::replace);
}

std::string PlanText(const PlanReport& report) {
  const Layout& layout = report.program->layout();
  std::string text =
      fmt::format("graph {}  ranks {}  digest {}\n\nmemory of a rank, in bytes\n{}", report.graph->name(),
                  report.program->world_size, HexOf(report.digest), ToString(report.memory));
  if (!layout.buckets().empty()) text += "\nbuckets, in order of release\n";
  for (size_t i = 0; i < layout.buckets().size(); ++i) {
    const LayoutBucket& bucket = layout.buckets()[i];
    text +=
        fmt::format("{:3}  {:>12} bytes  {:4} parameters, the last is {}\n", i, BytesOf(bucket),
                    bucket.parameters.size(), layout.parameters()[static_cast<size_t>(bucket.parameters.back())].name);
  }
  text += "\nsimulated step, in microseconds\n";
  for (const LinkReport& link : report.links) {
    text += fmt::format("{:6g} Gbit/s  step {:.1f}  compute {:.1f}  exposed {:.1f}  bound {:.1f}", link.gbps,
                        link.makespan_us, link.compute_us, link.exposed_us, link.bound_us);
    if (link.first_gather_exposed_us > 0) text += fmt::format("  first gather {:.1f}", link.first_gather_exposed_us);
    text += "\n";
  }
  return text + "\n" + ToString(*report.plan, *report.graph);
}

}  // namespace onnxtrain
