// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/npy.h"

#include <cctype>
#include <cstring>
#include <utility>
#include <vector>

#include "runtime/data/byte_reader.h"

namespace onnxtrain {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr uint64_t kLongestHeader = 1 << 20;

// The Python dict of the header: string keys; values are strings, True, False, or a tuple of unsigned integers.
class HeaderParser {
 public:
  HeaderParser(std::string_view text, uint64_t offset, std::string_view file)
      : text_(text), offset_(offset), file_(file) {}

  Status Parse();

  std::string descr;
  bool fortran_order = false;
  std::vector<uint64_t> shape;
  uint64_t descr_offset = 0;

 private:
  Status Error(std::string_view what) const { return DataErrorAt(file_, offset_ + at_, what); }
  void SkipSpace() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
  }
  bool Take(char wanted) {
    SkipSpace();
    if (at_ >= text_.size() || text_[at_] != wanted) return false;
    ++at_;
    return true;
  }
  StatusOr<std::string> String();
  StatusOr<bool> Bool();
  StatusOr<uint64_t> Number();
  Status Tuple();
  Status Entry();
  Status Descr();

  std::string_view text_;
  uint64_t offset_;
  std::string_view file_;
  size_t at_ = 0;
  unsigned seen_ = 0;  // one bit a key
};

StatusOr<std::string> HeaderParser::String() {
  SkipSpace();
  if (at_ >= text_.size() || (text_[at_] != '\'' && text_[at_] != '"')) return Error("a quoted string is expected");
  const size_t end = text_.find(text_[at_], at_ + 1);
  if (end == std::string_view::npos) return Error("a string of the npy header does not end");
  std::string result(text_.substr(at_ + 1, end - at_ - 1));
  at_ = end + 1;
  return result;
}

StatusOr<bool> HeaderParser::Bool() {
  SkipSpace();
  for (const auto& [word, value] : {std::pair("True", true), std::pair("False", false)}) {
    if (text_.substr(at_).starts_with(word)) {
      at_ += std::strlen(word);
      return value;
    }
  }
  return Error("True or False is expected for fortran_order");
}

StatusOr<uint64_t> HeaderParser::Number() {
  SkipSpace();
  const size_t start = at_;
  uint64_t value = 0;
  while (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])) != 0) {
    if (value > (UINT64_MAX - 9) / 10) return Error("a dimension is too large");
    value = value * 10 + static_cast<uint64_t>(text_[at_++] - '0');
  }
  if (at_ == start) return Error("a dimension (a whole number from 0) is expected");
  if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // Python 2
  return value;
}

Status HeaderParser::Tuple() {
  if (!Take('(')) return Error("a tuple is expected for the shape");
  while (!Take(')')) {
    ASSIGN_OR_RETURN(const uint64_t dim, Number());
    shape.push_back(dim);
    if (!Take(',')) {
      if (!Take(')')) return Error("',' or ')' is expected in the shape");
      return OkStatus();
    }
  }
  return OkStatus();
}

Status HeaderParser::Descr() {
  SkipSpace();
  descr_offset = offset_ + at_;
  if (at_ < text_.size() && text_[at_] == '[') {
    return Error("structured types are not supported; save each field as an array of its own");
  }
  ASSIGN_OR_RETURN(descr, String());
  return OkStatus();
}

Status HeaderParser::Entry() {
  ASSIGN_OR_RETURN(const std::string key, String());
  if (!Take(':')) return Error("':' is expected after '" + key + "'");
  const unsigned bit = key == "descr" ? 1 : key == "fortran_order" ? 2 : key == "shape" ? 4 : 0;
  if (bit == 0) return Error("unknown key '" + key + "'; expected descr, fortran_order and shape");
  if ((seen_ & bit) != 0) return Error("key '" + key + "' is given twice");
  seen_ |= bit;
  if (bit == 1) return Descr();
  if (bit == 4) return Tuple();
  ASSIGN_OR_RETURN(fortran_order, Bool());
  return OkStatus();
}

Status HeaderParser::Parse() {
  if (!Take('{')) return Error("the npy header is not a Python dict");
  while (!Take('}')) {
    RETURN_IF_ERROR(Entry());
    if (!Take(',')) {
      if (!Take('}')) return Error("',' or '}' is expected in the npy header");
      break;
    }
  }
  SkipSpace();
  if (at_ != text_.size()) return Error("text after the dict of the npy header");
  if (seen_ != 7) return Error("the npy header needs descr, fortran_order and shape");
  return OkStatus();
}

DType TypeOfCode(std::string_view code, DType void_type) {
  constexpr std::pair<std::string_view, DType> kCodes[] = {
      {"f2", DType::kFloat16}, {"f4", DType::kFloat},  {"f8", DType::kDouble}, {"u1", DType::kUint8},
      {"u2", DType::kUint16},  {"u4", DType::kUint32}, {"u8", DType::kUint64}, {"i1", DType::kInt8},
      {"i2", DType::kInt16},   {"i4", DType::kInt32},  {"i8", DType::kInt64},  {"b1", DType::kBool}};
  for (const auto& [name, dtype] : kCodes) {
    if (name == code) return dtype;
  }
  return code == "V2" ? void_type : DType::kUndefined;
}

std::string WhyRefused(const std::string& descr) {
  if (descr.size() > 1 && descr[1] == 'O') return "Python objects are not supported; convert to a numeric type";
  if (descr.ends_with("V2")) {
    return "'" + descr + "' has no element type (bfloat16 is saved like this); save float32, or use safetensors";
  }
  return "element type '" + descr + "' is not supported; expected f2 f4 f8 i1 i2 i4 i8 u1 u2 u4 u8 or b1";
}

std::string_view CodeOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return "<f2";
    case DType::kFloat:
      return "<f4";
    case DType::kDouble:
      return "<f8";
    case DType::kUint8:
      return "|u1";
    case DType::kUint16:
      return "<u2";
    case DType::kUint32:
      return "<u4";
    case DType::kUint64:
      return "<u8";
    case DType::kInt8:
      return "|i1";
    case DType::kInt16:
      return "<i2";
    case DType::kInt32:
      return "<i4";
    case DType::kInt64:
      return "<i8";
    case DType::kBool:
      return "|b1";
    case DType::kBfloat16:
      return "|V2";
    default:
      break;
  }
  internal::CheckFailed(__FILE__, __LINE__, "a numeric type", std::string(NameOf(dtype)));
}

// From first-axis-fastest to last-axis-fastest.
Tensor ToRowMajor(const Tensor& source) {
  const Shape& shape = source.shape();
  const size_t width = SizeOf(source.dtype());
  Tensor result(source.type());
  std::vector<int64_t> index(shape.size(), 0);
  const int64_t count = source.elements();
  for (int64_t to = 0; to < count; ++to) {
    int64_t from = 0;
    for (size_t axis = shape.size(); axis-- > 0;) from = from * shape[axis] + index[axis];
    std::memcpy(result.data() + to * width, source.data() + from * width, width);
    for (size_t axis = shape.size(); axis-- > 0;) {
      if (++index[axis] < shape[axis]) break;
      index[axis] = 0;
    }
  }
  return result;
}

}  // namespace

bool IsNpy(std::span<const std::byte> bytes) {
  return bytes.size() >= kMagic.size() && std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) == 0;
}

StatusOr<size_t> NpyDataOffset(std::span<const std::byte> prefix, std::string_view file) {
  if (!IsNpy(prefix)) return DataErrorAt(file, 0, "not an npy file (it does not start with \\x93NUMPY)");
  ByteReader reader(prefix, file);
  RETURN_IF_ERROR(reader.Seek(kMagic.size(), "the version"));
  ASSIGN_OR_RETURN(const uint16_t version, reader.Little16("the npy version"));
  const unsigned major = version & 0xff;
  if (major < 1 || major > 3) {
    return DataErrorAt(file, kMagic.size(), "npy version " + std::to_string(major) + "; versions 1 to 3 are known");
  }
  uint64_t length = 0;
  if (major == 1) {
    ASSIGN_OR_RETURN(length, reader.Little16("the npy header length"));
  } else {
    ASSIGN_OR_RETURN(length, reader.Little32("the npy header length"));
  }
  if (length > kLongestHeader) {
    return reader.Error("an npy header of " + std::to_string(length) + " bytes; at most 1048576 are accepted");
  }
  return static_cast<size_t>(reader.offset() + length);
}

StatusOr<NpyHeader> ParseNpyHeader(std::span<const std::byte> bytes, std::string_view file, DType void_type) {
  NpyHeader header;
  ASSIGN_OR_RETURN(header.data_offset, NpyDataOffset(bytes, file));
  const size_t text_offset = bytes[kMagic.size()] == std::byte{1} ? 10 : 12;
  ByteReader reader(bytes, file);
  RETURN_IF_ERROR(reader.Seek(text_offset, "the header"));
  ASSIGN_OR_RETURN(const auto text, reader.Bytes(header.data_offset - text_offset, "the npy header"));
  HeaderParser parser({reinterpret_cast<const char*>(text.data()), text.size()}, text_offset, file);
  RETURN_IF_ERROR(parser.Parse());
  const std::string& descr = parser.descr;
  const bool known_order = !descr.empty() && std::string_view("<>=|").find(descr[0]) != std::string_view::npos;
  const DType dtype = TypeOfCode(known_order ? std::string_view(descr).substr(1) : descr, void_type);
  if (dtype == DType::kUndefined) return DataErrorAt(file, parser.descr_offset, WhyRefused(descr));
  ASSIGN_OR_RETURN(header.type, CheckedType(dtype, parser.shape, file, text_offset));
  header.big_endian = descr[0] == '>' && SizeOf(dtype) > 1;
  header.fortran_order = parser.fortran_order && parser.shape.size() > 1;
  return header;
}

StatusOr<Tensor> ReadNpyElements(const NpyHeader& header, std::string_view file,
                                 const std::function<Status(std::span<std::byte>)>& read) {
  Tensor tensor(header.type);
  const std::span<std::byte> bytes(tensor.data(), tensor.bytes());
  RETURN_IF_ERROR(read(bytes));
  RETURN_IF_ERROR(CheckBools(tensor.dtype(), bytes, file, header.data_offset));
  if (header.big_endian) SwapByteOrder(bytes, SizeOf(tensor.dtype()));
  if (header.fortran_order) return ToRowMajor(tensor);
  return tensor;
}

StatusOr<Tensor> ParseNpy(std::span<const std::byte> bytes, std::string_view file, DType void_type) {
  ASSIGN_OR_RETURN(const NpyHeader header, ParseNpyHeader(bytes, file, void_type));
  const auto elements = bytes.subspan(header.data_offset);
  if (elements.size() != header.type.bytes()) {
    return DataErrorAt(file, header.data_offset,
                       ToString(header.type) + " needs " + std::to_string(header.type.bytes()) + " bytes, found " +
                           std::to_string(elements.size()));
  }
  return ReadNpyElements(header, file, [&](std::span<std::byte> out) {
    if (!out.empty()) std::memcpy(out.data(), elements.data(), out.size());
    return OkStatus();
  });
}

std::string NpyHeaderFor(const TensorType& type) {
  std::string dict = "{'descr': '" + std::string(CodeOf(type.dtype)) + "', 'fortran_order': False, 'shape': (";
  for (int64_t dim : type.shape) dict += std::to_string(dim) + ", ";
  if (type.shape.size() > 1) dict.resize(dict.size() - 2);
  if (type.shape.size() == 1) dict.pop_back();
  dict += "), }";
  const size_t unpadded = 10 + dict.size() + 1;
  dict.append((64 - unpadded % 64) % 64, ' ');
  dict += '\n';
  std::string header = std::string(kMagic) + std::string("\x01\x00", 2);
  AppendLittle(header, dict.size(), 2);
  return header + dict;
}

Status WriteNpy(FileSystem& files, const std::string& path, const Tensor& tensor) {
  return WriteFileAtomically(files, path, [&](WritableFile& file) {
    RETURN_IF_ERROR(file.Append(NpyHeaderFor(tensor.type())));
    return file.Append(std::span<const std::byte>(tensor.data(), tensor.bytes()));
  });
}

}  // namespace onnxtrain
