// SPDX-License-Identifier: Apache-2.0
// The name that was probably meant, for messages about unknown options, passes, tensors.
#ifndef ONNXTRAIN_GRAPH_NEAREST_NAME_H_
#define ONNXTRAIN_GRAPH_NEAREST_NAME_H_

#include <string>
#include <string_view>
#include <vector>

namespace onnxtrain {

// The name with the smallest edit distance to `given`, the first of equals; "" when none is closer than half its
// length. A '*' in `given` stands for any characters, so that a glob finds what it nearly matches.
std::string NearestName(std::string_view given, const std::vector<std::string>& names);

// ", did you mean 'name'?" or "".
std::string DidYouMean(std::string_view given, const std::vector<std::string>& names);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_GRAPH_NEAREST_NAME_H_
