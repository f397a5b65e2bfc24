// SPDX-License-Identifier: Apache-2.0
#include "passes/parameter_groups.h"

#include <algorithm>

#include "graph/glob.h"
#include "graph/nearest_name.h"

namespace onnxtrain {
namespace {

constexpr std::string_view kLowRank = "rank<2";

bool Matches(const std::string& pattern, const NamedParameter& parameter) {
  if (pattern == kLowRank) return parameter.type.rank() < 2;
  return MatchesGlob(pattern, parameter.name);
}

Status DemandMatch(const std::string& option, const std::string& pattern,
                   const std::vector<NamedParameter>& parameters) {
  std::vector<std::string> names;
  for (const NamedParameter& parameter : parameters) {
    if (Matches(pattern, parameter)) return OkStatus();
    names.push_back(parameter.name);
  }
  if (pattern == kLowRank) return OkStatus();  // a rule for what may not be there
  return UsageError(option + " '" + pattern + "' matches none of " + std::to_string(names.size()) +
                    " trained parameters" + DidYouMean(pattern, names));
}

Status DemandMatches(const std::vector<NamedParameter>& parameters, const AppendOptimizerOptions& options) {
  for (const std::string& pattern : options.no_decay) RETURN_IF_ERROR(DemandMatch("--no-decay", pattern, parameters));
  for (const OptimizerGroup& group : options.groups) {
    RETURN_IF_ERROR(DemandMatch("--param-group", group.pattern, parameters));
    if (group.lr.has_value() && options.schedule.lr == 0 && *group.lr != 0) {
      return UsageError("--param-group '" + group.pattern + "': its lr is a multiple of --lr, which is 0");
    }
  }
  return OkStatus();
}

ParameterSettings SettingsOf(const NamedParameter& parameter, const AppendOptimizerOptions& options,
                             double weight_decay) {
  ParameterSettings settings{weight_decay, 1};
  const bool decay_free = std::any_of(options.no_decay.begin(), options.no_decay.end(),
                                      [&](const std::string& pattern) { return Matches(pattern, parameter); });
  if (decay_free) settings.weight_decay = 0;
  for (const OptimizerGroup& group : options.groups) {
    if (!Matches(group.pattern, parameter)) continue;
    if (group.weight_decay.has_value()) settings.weight_decay = *group.weight_decay;
    if (group.lr.has_value() && options.schedule.lr != 0) settings.lr_multiplier = *group.lr / options.schedule.lr;
    break;
  }
  return settings;
}

}  // namespace

StatusOr<std::map<std::string, ParameterSettings>> AssignGroups(const std::vector<NamedParameter>& parameters,
                                                                const AppendOptimizerOptions& options,
                                                                double weight_decay) {
  RETURN_IF_ERROR(DemandMatches(parameters, options));
  std::map<std::string, ParameterSettings> settings;
  for (const NamedParameter& parameter : parameters) {
    settings[parameter.name] = SettingsOf(parameter, options, weight_decay);
  }
  return settings;
}

}  // namespace onnxtrain
