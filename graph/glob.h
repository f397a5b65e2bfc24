// SPDX-License-Identifier: Apache-2.0
// Name patterns of options (--freeze, --no-decay, --param-group): `*` matches any characters, '/', '.' and "::"
// included; everything else matches itself.
#ifndef ONNXTRAIN_GRAPH_GLOB_H_
#define ONNXTRAIN_GRAPH_GLOB_H_

#include <string_view>

namespace onnxtrain {

bool MatchesGlob(std::string_view pattern, std::string_view text);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_GRAPH_GLOB_H_
