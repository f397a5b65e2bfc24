// SPDX-License-Identifier: Apache-2.0
// Text of a Layout:
//   world_size 2
//   bucket float[256] 0=fc.weight[10,3]g0@0 1=fc.bias[10]g1@64
// A member is index=name[shape], its optimizer group, and its first element. In names, every byte that could be taken
// for something else is written as % and two hexadecimal digits.
#include <algorithm>
#include <charconv>
#include <limits>

#include "graph/digest.h"
#include "graph/layout.h"

namespace onnxtrain {
namespace {

// Far below any overflow of bytes or padded lengths in int64.
constexpr int64_t kMaxElements = int64_t{1} << 48;
constexpr int64_t kMaxWorldSize = 1 << 20;

bool IsPlain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("._-/:$").find(c) != std::string_view::npos;
}

std::string Escape(std::string_view name) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string text;
  for (const char c : name) {
    if (IsPlain(c)) {
      text += c;
    } else {
      const auto byte = static_cast<uint8_t>(c);
      text += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  return text;
}

// Reads one text from front to back; the first failure is kept by the caller as a false return.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  size_t position() const { return position_; }
  bool AtEnd() const { return position_ == text_.size(); }
  bool Take(std::string_view token) {
    if (text_.substr(position_, token.size()) != token) return false;
    position_ += token.size();
    return true;
  }
  bool Number(int64_t maximum, int64_t& value) {
    const char* begin = text_.data() + position_;
    const char* end = text_.data() + text_.size();
    const std::from_chars_result result = std::from_chars(begin, end, value);
    if (result.ec != std::errc() || *begin == '-' || value > maximum) return false;
    position_ += static_cast<size_t>(result.ptr - begin);
    return true;
  }
  bool Word(std::string& word) {
    word.clear();
    while (!AtEnd()) {
      const char c = text_[position_];
      if (IsPlain(c)) {
        word += c;
        ++position_;
      } else if (c != '%' || !EscapedByte(word)) {
        return c != '%' && !word.empty();
      }
    }
    return !word.empty();
  }
  bool Shape(onnxtrain::Shape& shape) {
    shape.clear();
    int64_t elements = 1;
    if (!Take("[")) return false;
    if (Take("]")) return true;
    do {
      int64_t dim = 0;
      if (!Number(kMaxElements, dim)) return false;
      if (dim != 0 && elements > kMaxElements / dim) return false;
      elements *= dim;
      shape.push_back(dim);
    } while (Take(","));
    return Take("]");
  }

 private:
  bool EscapedByte(std::string& word) {
    unsigned byte = 0;
    const char* begin = text_.data() + position_ + 1;
    if (text_.size() - position_ < 3) return false;
    const std::from_chars_result result = std::from_chars(begin, begin + 2, byte, 16);
    if (result.ec != std::errc() || result.ptr != begin + 2) return false;
    word += static_cast<char>(byte);
    position_ += 3;
    return true;
  }

  std::string_view text_;
  size_t position_ = 0;
};

struct Member {
  int64_t index = 0;
  LayoutParameter parameter;
};

bool ReadMember(Reader& reader, Member& member) {
  int64_t group = 0;
  if (!reader.Number(std::numeric_limits<int>::max() - 1, member.index) || !reader.Take("=") ||
      !reader.Word(member.parameter.name) || !reader.Shape(member.parameter.type.shape) || !reader.Take("g") ||
      !reader.Number(std::numeric_limits<int>::max(), group) || !reader.Take("@") ||
      !reader.Number(kMaxElements * 2, member.parameter.offset)) {
    return false;
  }
  member.parameter.group = static_cast<int>(group);
  return true;
}

struct BucketLine {
  DType dtype = DType::kUndefined;
  int64_t elements = 0;
  std::vector<Member> members;
};

bool ReadBucket(Reader& reader, BucketLine& bucket) {
  std::string dtype;
  Shape shape;
  if (!reader.Take("bucket ") || !reader.Word(dtype) || !reader.Shape(shape) || shape.size() != 1) return false;
  bucket.elements = shape[0];
  const std::optional<DType> known = DTypeFromName(dtype);
  if (!known || SizeOf(*known) == 0) return false;
  bucket.dtype = *known;
  int64_t total = 0;
  while (reader.Take(" ")) {
    Member member;
    if (!ReadMember(reader, member)) return false;
    member.parameter.type.dtype = bucket.dtype;
    total += member.parameter.type.elements();
    if (total > kMaxElements) return false;
    bucket.members.push_back(std::move(member));
  }
  return !bucket.members.empty();
}

Status Malformed(const std::string& what, size_t position) {
  return InvalidModelError("layout text is malformed at byte " + std::to_string(position) + ": " + what);
}

// Puts the members of all lines where their indices say; fails unless these are 0..n-1, each once.
bool Collect(const std::vector<BucketLine>& lines, std::vector<LayoutParameter>& parameters,
             std::vector<std::vector<int>>& buckets) {
  size_t count = 0;
  for (const BucketLine& line : lines) count += line.members.size();
  parameters.resize(count);
  std::vector<bool> seen(count, false);
  for (const BucketLine& line : lines) {
    std::vector<int>& bucket = buckets.emplace_back();
    for (const Member& member : line.members) {
      const auto index = static_cast<size_t>(member.index);
      if (index >= count || seen[index]) return false;
      seen[index] = true;
      parameters[index] = member.parameter;
      bucket.push_back(static_cast<int>(member.index));
    }
  }
  return true;
}

}  // namespace

std::string Layout::ToString() const {
  std::string text = "world_size " + std::to_string(world_size_);
  for (const LayoutBucket& bucket : buckets_) {
    text += "\nbucket " + onnxtrain::ToString(TensorType{bucket.dtype, {bucket.elements}});
    for (const int index : bucket.parameters) {
      const LayoutParameter& parameter = parameters_[static_cast<size_t>(index)];
      text += " " + std::to_string(index) + "=" + Escape(parameter.name) + onnxtrain::ToString(parameter.type.shape) +
              "g" + std::to_string(parameter.group) + "@" + std::to_string(parameter.offset);
    }
  }
  return text;
}

StatusOr<Layout> Layout::Parse(std::string_view text) {
  Reader reader(text);
  int64_t world_size = 0;
  if (!reader.Take("world_size ") || !reader.Number(kMaxWorldSize, world_size) || world_size == 0) {
    return Malformed("expected 'world_size' and a number from 1 to " + std::to_string(kMaxWorldSize),
                     reader.position());
  }
  std::vector<BucketLine> lines;
  while (reader.Take("\n")) {
    if (!ReadBucket(reader, lines.emplace_back())) {
      return Malformed("expected 'bucket dtype[elements]' and members 'index=name[shape]gGROUP@OFFSET'",
                       reader.position());
    }
  }
  if (!reader.AtEnd()) return Malformed("expected a new line or the end", reader.position());

  std::vector<LayoutParameter> parameters;
  std::vector<std::vector<int>> buckets;
  if (!Collect(lines, parameters, buckets)) {
    return InvalidModelError("layout text: the members' indices are not 0 to n-1, each once");
  }
  Layout layout = Make(std::move(parameters), buckets, static_cast<int>(world_size));
  if (layout.ToString() != text) {
    return InvalidModelError("layout text breaks the placement rules; these parameters must be placed as\n" +
                             layout.ToString());
  }
  return layout;
}

}  // namespace onnxtrain
