// SPDX-License-Identifier: Apache-2.0
#include "tests/support/data_parsers.h"

#include <zlib.h>

#include <utility>

#include "graph/tensor.h"
#include "runtime/data/byte_reader.h"
#include "runtime/data/csv.h"
#include "runtime/data/idx.h"
#include "runtime/data/json_literal.h"
#include "runtime/data/mapping.h"
#include "runtime/data/npy.h"
#include "runtime/data/npz.h"
#include "runtime/data/safetensors.h"
#include "runtime/data/token_file.h"
#include "runtime/file_system.h"
#include "tests/support/temporary_folder.h"

namespace onnxtrain {
namespace {

using Bytes = std::vector<std::byte>;

std::string_view Text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Bytes Npy(const Tensor& tensor) {
  Bytes bytes = ToBytes(NpyHeaderFor(tensor.type()));
  bytes.insert(bytes.end(), tensor.data(), tensor.data() + tensor.bytes());
  return bytes;
}

std::vector<NamedTensor> SmallTensors() {
  std::vector<NamedTensor> tensors;
  tensors.emplace_back("a/b", Tensor::FromVector<float>({2, 3}, {1, 2, 3, 4, 5, 6}));
  tensors.emplace_back("empty", Tensor::FromVector<int64_t>({0, 5}, {}));
  tensors.emplace_back("flag", Tensor::Scalar<bool>(true));
  return tensors;
}

Bytes Npz(bool always_zip64) {
  const TemporaryFolder folder;
  PosixFileSystem files;
  const auto tensors = SmallTensors();
  CHECK(WriteNpz(files, folder.Path("x.npz"), tensors, {always_zip64}).ok());
  return ReadBytes(folder.Path("x.npz"));
}

Bytes Safetensors() {
  const TemporaryFolder folder;
  PosixFileSystem files;
  CHECK(WriteSafetensors(files, folder.Path("x"), SmallTensors(), {{"made by", "a test"}}).ok());
  return ReadBytes(folder.Path("x"));
}

// A zip with one deflated array, laid out by hand.
Bytes DeflatedNpz() {
  const Bytes array = Npy(Tensor::FromVector<int32_t>({3}, {7, 8, 9}));
  std::string packed(compressBound(array.size()), '\0');
  uLongf packed_bytes = packed.size();
  CHECK(compress(reinterpret_cast<Bytef*>(packed.data()), &packed_bytes, reinterpret_cast<const Bytef*>(array.data()),
                 array.size()) == Z_OK);
  packed = packed.substr(2, packed_bytes - 6);  // zlib's own frame around the deflate stream
  const uLong crc = crc32(0, reinterpret_cast<const Bytef*>(array.data()), static_cast<uInt>(array.size()));
  std::string common;  // what local header and directory entry share
  for (uint64_t value : {20, 0, 8, 0, 0}) AppendLittle(common, value, 2);
  AppendLittle(common, crc, 4);
  AppendLittle(common, packed.size(), 4);
  AppendLittle(common, array.size(), 4);
  AppendLittle(common, 5, 2);
  AppendLittle(common, 0, 2);
  std::string directory = "PK\1\2";
  AppendLittle(directory, 20, 2);
  directory += common + std::string(14, '\0') + "x.npy";
  std::string file = "PK\3\4" + common + "x.npy" + packed;
  const size_t directory_offset = file.size();
  file += directory + "PK\5\6" + std::string(4, '\0');
  AppendLittle(file, 1, 2);
  AppendLittle(file, 1, 2);
  AppendLittle(file, directory.size(), 4);
  AppendLittle(file, directory_offset, 4);
  AppendLittle(file, 0, 2);
  return ToBytes(file);
}

Bytes Idx() { return ToBytes(std::string("\0\0\x0b\2\0\0\0\2\0\0\0\3\0\1\0\2\0\3\0\4\0\5\0\6", 24)); }

Bytes Gzip(const Bytes& plain) {
  z_stream stream = {};
  CHECK(deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  Bytes packed(deflateBound(&stream, plain.size()));
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(plain.data()));
  stream.avail_in = static_cast<uInt>(plain.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  CHECK(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

Bytes LlmcTokens(uint32_t magic, uint32_t version, size_t width) {
  std::string file;
  for (uint32_t word : {magic, version, 3u}) AppendLittle(file, word, 4);
  file.resize(1024);
  for (uint64_t token : {5, 6, 7}) AppendLittle(file, token, width);
  return ToBytes(file);
}

}  // namespace

std::vector<DataParser> DataParsers() {
  std::vector<DataParser> parsers;
  parsers.push_back({"npy",
                     [](auto bytes) { return ParseNpy(bytes, "fuzz", DType::kBfloat16).status(); },
                     {Npy(Tensor::FromVector<float>({2, 3}, {1, 2, 3, 4, 5, 6})), Npy(Tensor::Scalar<bool>(true)),
                      Npy(Tensor::FromVector<int64_t>({0}, {}))}});
  // Cutting the header of an empty or one-byte array can only happen at its end, which is why the samples above differ.
  parsers.push_back(
      {"npz", [](auto bytes) { return ParseNpz(bytes, "fuzz").status(); }, {Npz(false), Npz(true), DeflatedNpz()}});
  parsers.push_back({"idx", [](auto bytes) { return ParseIdx(bytes, "fuzz").status(); }, {Idx(), Gzip(Idx())}});
  parsers.push_back(
      {"safetensors", [](auto bytes) { return ParseSafetensors(bytes, "fuzz").status(); }, {Safetensors()}});
  parsers.push_back({"tokens",
                     [](auto bytes) { return ParseTokenLayout(bytes, "fuzz").status(); },
                     {LlmcTokens(20240520, 1, 2), LlmcTokens(20240801, 7, 4)},
                     false});
  parsers.push_back({"csv",
                     [](auto bytes) {
                       RETURN_IF_ERROR(CsvNames(bytes, "fuzz").status());
                       RETURN_IF_ERROR(ParseCsv(bytes, "fuzz", "1").status());
                       return ParseCsv(bytes, "fuzz").status();
                     },
                     {ToBytes("a,b\n1,2.5\n\"3\", 4\r\n"), ToBytes("1;2\n3;4")},
                     false});
  parsers.push_back({"json_literal",
                     [](auto bytes) {
                       RETURN_IF_ERROR(ParseJsonLiteral(Text(bytes), "fuzz", DType::kInt32).status());
                       return ParseJsonLiteral(Text(bytes), "fuzz").status();
                     },
                     {ToBytes("[[1,2],[3,4]]"), ToBytes("[1]")}});
  parsers.push_back({"mapping",
                     [](auto bytes) { return Mapping::Parse(std::string(Text(bytes))).status(); },
                     {ToBytes("f32,/255,mean=.1;2,std=1,flatten,reshape=1x28x28,onehot=10,nhwc2nchw,[10:20],*2")},
                     false});
  return parsers;
}

}  // namespace onnxtrain
