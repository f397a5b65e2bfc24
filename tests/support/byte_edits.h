// SPDX-License-Identifier: Apache-2.0
// Seeded damage to byte strings.
#ifndef ONNXTRAIN_TESTS_SUPPORT_BYTE_EDITS_H_
#define ONNXTRAIN_TESTS_SUPPORT_BYTE_EDITS_H_

#include <cstddef>
#include <random>
#include <vector>

namespace onnxtrain {

// One to four edits: flip a bit, overwrite with an extreme byte, insert, delete, duplicate a piece, or cut the end.
std::vector<std::byte> Mutate(const std::vector<std::byte>& bytes, std::mt19937_64& random);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_TESTS_SUPPORT_BYTE_EDITS_H_
