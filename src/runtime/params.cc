/*!
 * \file params.cc
 * \brief Named arrays as bytes.
 */
#include "params.h"

#include <tvm/runtime/container/bytes.h>
#include <tvm/runtime/container/map.h>
#include <tvm/runtime/narrow_float.h>
#include <tvm/runtime/registry.h>

#include <algorithm>

namespace tvm {
namespace runtime {
namespace {

constexpr std::string_view kParamsMagic = "TVMPAR01";

Bytes SaveParams(const Map<String, NDArray>& params) {
  ByteWriter writer;
  writer.Raw(kParamsMagic.data(), kParamsMagic.size());
  writer.Word(static_cast<int64_t>(params.size()));
  for (const auto& [name, array] : params) {
    TVM_CHECK(array.defined(), ValueError)
        << "parameters: \"" << name << "\" is None; every parameter must be an array";
    writer.Text(name.str());
    SaveNDArray(array, &writer);
  }
  return Bytes(std::move(writer.bytes));
}

Map<String, NDArray> LoadParams(const std::string& bytes) {
  ByteReader reader("parameters", bytes);
  reader.Expect(kParamsMagic);
  Map<String, NDArray> params;
  for (size_t i = reader.Count(sizeof(int64_t)); i > 0; --i) {
    std::string name = reader.Text();
    params.Set(std::move(name), LoadNDArray(&reader));
  }
  return params;
}

}  // namespace

void SaveNDArray(const NDArray& array, ByteWriter* writer) {
  writer->Value<DLDataType>(array.dtype());
  writer->Words(array.Shape());
  std::string data(array.NumBytes(), '\0');
  array.CopyToBytes(data.data(), data.size());
  writer->Text(data);
}

bool IsElementType(const DLDataType& type) {
  if (type.bits < 1 || type.lanes < 1) return false;
  return type.code <= kDLBfloat || NarrowFloatFormatOf(DataType(type)) != nullptr;
}

NDArray LoadNDArray(ByteReader* reader) {
  const auto dtype = reader->Value<DLDataType>();
  const std::vector<int64_t> shape = reader->Words();
  const size_t size = reader->Count();
  // The size is compared before memory for a shape that nobody checked is asked for.
  double bytes = static_cast<double>(GetElementBytes(dtype));
  for (int64_t extent : shape) bytes *= static_cast<double>(extent);
  const bool negative = std::any_of(shape.begin(), shape.end(), [](int64_t n) { return n < 0; });
  if (negative || bytes != static_cast<double>(size)) {
    reader->Refuse("an array of " + std::to_string(size) + " bytes has another shape");
  }
  // The text form exists for known types only.
  if (!IsElementType(dtype)) reader->Refuse("an array has an unknown type");
  NDArray array = NDArray::Empty(shape, DataType(dtype), Device{kDLCPU, 0});
  array.CopyFromBytes(reader->Raw(size), size);
  return array;
}

TVM_REGISTER_GLOBAL("runtime.SaveParams").set_body_typed([](Map<String, NDArray> params) {
  return SaveParams(params);
});

TVM_REGISTER_GLOBAL("runtime.LoadParams").set_body_typed([](std::string bytes) {
  return LoadParams(bytes);
});

}  // namespace runtime
}  // namespace tvm
