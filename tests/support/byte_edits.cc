// SPDX-License-Identifier: Apache-2.0
#include "tests/support/byte_edits.h"

#include <algorithm>
#include <cstdint>
#include <iterator>

namespace onnxtrain {
namespace {

void EditOnce(std::vector<std::byte>& bytes, std::mt19937_64& random) {
  constexpr uint8_t kExtremes[] = {0x00, 0x01, 0x7f, 0x80, 0xff, '0', '9', '-', '[', '"', ',', '{'};
  const auto below = [&](size_t bound) { return static_cast<size_t>(random() % bound); };
  const std::byte extreme{kExtremes[below(std::size(kExtremes))]};
  if (bytes.empty()) {
    bytes.push_back(extreme);
    return;
  }
  const size_t at = below(bytes.size());
  const size_t length = std::min(bytes.size() - at, below(16) + 1);
  const auto place = bytes.begin() + static_cast<std::ptrdiff_t>(at);
  switch (below(6)) {
    case 0:
      bytes[at] ^= std::byte{1} << static_cast<int>(below(8));
      break;
    case 1:
      std::fill_n(place, std::min(length, below(8) + 1), extreme);
      break;
    case 2:
      bytes.insert(place, below(8) + 1, extreme);
      break;
    case 3:
      bytes.erase(place, place + static_cast<std::ptrdiff_t>(length));
      break;
    case 4: {
      const std::vector<std::byte> piece(place, place + static_cast<std::ptrdiff_t>(length));
      bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(below(bytes.size() + 1)), piece.begin(), piece.end());
      break;
    }
    default:
      bytes.resize(at);
      break;
  }
}

}  // namespace

std::vector<std::byte> Mutate(const std::vector<std::byte>& bytes, std::mt19937_64& random) {
  std::vector<std::byte> result = bytes;
  for (uint64_t edits = random() % 4 + 1; edits > 0; --edits) EditOnce(result, random);
  return result;
}

}  // namespace onnxtrain
