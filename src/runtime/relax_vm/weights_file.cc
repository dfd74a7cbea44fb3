#include "weights_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <tvm/runtime/logging.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

#include "runtime/params.h"

namespace tvm {
namespace runtime {
namespace relax_vm {
namespace {

constexpr std::string_view kWeightsMagic = "TVMWGT01";

/*! \brief A file in memory, as long as somebody looks at it. */
class MappedFileObj final : public Object {
 public:
  MappedFileObj() = default;
  MappedFileObj(const MappedFileObj&) = delete;
  ~MappedFileObj() override {
    if (data != nullptr) munmap(data, size);
  }
  void* data = nullptr;
  size_t size = 0;
  TVM_DECLARE_OBJECT(MappedFileObj, Object, "runtime.MappedFile");
};

size_t Aligned(size_t offset) {
  return (offset + kAllocAlignment - 1) / kAllocAlignment * kAllocAlignment;
}

/*! \brief What stands in front of the arrays: the number, then type, shape and place of each. */
std::string Header(int64_t id, const std::vector<NDArray>& arrays) {
  ByteWriter writer;
  writer.Raw(kWeightsMagic.data(), kWeightsMagic.size());
  writer.Word(id);
  writer.Word(static_cast<int64_t>(arrays.size()));
  size_t size = writer.bytes.size();
  for (const NDArray& array : arrays) {
    size += sizeof(DLDataType) + (array.Shape().size() + 2) * sizeof(int64_t);
  }
  size_t offset = Aligned(size);
  for (const NDArray& array : arrays) {
    SaveOutline(array, &writer);
    writer.Word(static_cast<int64_t>(offset));
    offset = Aligned(offset + array.NumBytes());
  }
  writer.bytes.resize(Aligned(writer.bytes.size()), '\0');
  return std::move(writer.bytes);
}

/*! \brief FNV-1a over types, shapes and elements. */
class Fingerprint {
 public:
  void Add(const void* data, size_t size) {
    const auto* bytes = static_cast<const unsigned char*>(data);
    for (size_t i = 0; i < size; ++i) value_ = (value_ ^ bytes[i]) * 0x100000001b3ULL;
  }
  int64_t value() const { return static_cast<int64_t>(value_); }

 private:
  uint64_t value_ = 0xcbf29ce484222325ULL;
};

ObjectPtr<MappedFileObj> Map(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  TVM_CHECK(file >= 0, RuntimeError)
      << "weights: cannot open \"" << path << "\": " << std::strerror(errno);
  struct stat status{};
  auto mapped = make_object<MappedFileObj>();
  if (fstat(file, &status) == 0 && status.st_size > 0) {
    mapped->size = static_cast<size_t>(status.st_size);
    void* data = mmap(nullptr, mapped->size, PROT_READ, MAP_SHARED, file, 0);
    if (data != MAP_FAILED) mapped->data = data;
  }
  const int reason = errno;
  close(file);
  TVM_CHECK(mapped->data != nullptr, RuntimeError)
      << "weights: cannot map \"" << path << "\": " << std::strerror(reason);
  return mapped;
}

bool SameOutline(const NDArray& a, const NDArray& b) {
  return a.dtype() == b.dtype() && a.Shape() == b.Shape();
}

}  // namespace

NDArray WithoutMemory(std::vector<int64_t> shape, DataType type) {
  auto array = make_object<NDArrayObj>();
  array->shape = std::move(shape);
  array->tensor.device = Device{kDLCPU, 0};
  array->tensor.dtype = type;
  array->tensor.ndim = static_cast<int32_t>(array->shape.size());
  array->tensor.shape = array->shape.data();
  return NDArray(ObjectPtr<Object>(array));
}

void SaveOutline(const NDArray& array, ByteWriter* writer) {
  writer->Value<DLDataType>(array.dtype());
  writer->Words(array.Shape());
}

NDArray LoadOutline(ByteReader* reader) {
  const auto type = reader->Value<DLDataType>();
  std::vector<int64_t> shape = reader->Words();
  bool valid = IsElementType(type);
  int64_t bytes = static_cast<int64_t>(GetElementBytes(type));
  for (int64_t extent : shape) {
    valid = valid && extent >= 0 && !__builtin_mul_overflow(bytes, extent, &bytes);
  }
  if (!valid) reader->Refuse("an array has an impossible type or shape");
  return WithoutMemory(std::move(shape), DataType(type));
}

int64_t WriteWeights(const std::string& path, const std::vector<NDArray>& arrays) {
  Fingerprint fingerprint;
  const std::string outlines = Header(0, arrays);
  fingerprint.Add(outlines.data(), outlines.size());
  std::vector<NDArray> here;
  for (const NDArray& array : arrays) {
    here.push_back(array.device().device_type == kDLCPU && array.IsContiguous()
                       ? array
                       : array.CopyTo(Device{kDLCPU, 0}));
    fingerprint.Add(here.back().data(), here.back().NumBytes());
  }
  const std::string header = Header(fingerprint.value(), arrays);
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(header.data(), static_cast<std::streamsize>(header.size()));
  for (const NDArray& array : here) {
    const size_t size = array.NumBytes();
    file.write(static_cast<const char*>(array.data()), static_cast<std::streamsize>(size));
    const std::string padding(Aligned(size) - size, '\0');
    file.write(padding.data(), static_cast<std::streamsize>(padding.size()));
  }
  file.close();
  TVM_CHECK(!file.fail(), RuntimeError) << "weights: cannot write \"" << path << '"';
  return fingerprint.value();
}

std::vector<NDArray> MapWeights(const std::string& path, int64_t id,
                                const std::vector<NDArray>& expected) {
  ObjectPtr<MappedFileObj> mapped = Map(path);
  const std::string what = "weights \"" + path + "\"";
  ByteReader reader(what, {static_cast<const char*>(mapped->data), mapped->size});
  reader.Expect(kWeightsMagic);
  const int64_t found = reader.Word();
  TVM_CHECK(found == id, ValueError)
      << what << " are those of another executable; use the file that was written beside it";
  if (reader.Count() != expected.size()) reader.Refuse("there is another number of arrays");
  auto whole = make_object<NDArrayObj>();
  whole->shape = {static_cast<int64_t>(mapped->size)};
  whole->tensor.data = mapped->data;
  whole->tensor.device = Device{kDLCPU, 0};
  whole->tensor.dtype = DataType::UInt(8);
  whole->tensor.ndim = 1;
  whole->tensor.shape = whole->shape.data();
  const size_t size = mapped->size;
  whole->base = ObjectRef(ObjectPtr<Object>(std::move(mapped)));
  const NDArray file{ObjectPtr<Object>(whole)};
  std::vector<NDArray> arrays;
  for (const NDArray& outline : expected) {
    if (!SameOutline(LoadOutline(&reader), outline)) reader.Refuse("an array is another one");
    const int64_t offset = reader.Word();
    const bool inside = offset >= 0 && offset % static_cast<int64_t>(kAllocAlignment) == 0 &&
                        static_cast<size_t>(offset) <= size &&
                        outline.NumBytes() <= size - static_cast<size_t>(offset);
    if (!inside) reader.Refuse("an array lies outside");
    arrays.push_back(
        file.CreateView(outline.Shape(), outline.dtype(), static_cast<size_t>(offset)));
  }
  return arrays;
}

}  // namespace relax_vm
}  // namespace runtime
}  // namespace tvm
