// SPDX-License-Identifier: Apache-2.0
// Name patterns of options (--freeze, --no-decay, --param-group): `*` matches any characters, '/', '.' and "::" included;
// everything else matches itself.
#ifndef ONNXTRAIN_GRAPH_GLOB_H_
#define ONNXTRAIN_GRAPH_GLOB_H_

#include <string>
#include <string_view>
#include <vector>

namespace onnxtrain {

bool MatchesGlob(std::string_view pattern, std::string_view text);

// The candidate with the fewest edits to `name`, for messages about what was meant; "" without candidates.
std::string ClosestName(std::string_view name, const std::vector<std::string>& candidates);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_GRAPH_GLOB_H_
