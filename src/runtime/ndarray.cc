#include <tvm/runtime/container/shape_tuple.h>
#include <tvm/runtime/device_api.h>
#include <tvm/runtime/ndarray.h>
#include <tvm/runtime/registry.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <sstream>

#include "rpc/remote_device.h"

namespace tvm {
namespace runtime {
namespace {

std::string Describe(const DLTensor& tensor) {
  std::ostringstream os;
  os << DataType(tensor.dtype) << "(";
  for (int i = 0; i < tensor.ndim; ++i) os << (i ? ", " : "") << tensor.shape[i];
  os << ")";
  return os.str();
}

std::vector<int64_t> RowMajorStrides(const std::vector<int64_t>& shape) {
  std::vector<int64_t> strides(shape.size());
  int64_t step = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = step;
    step *= shape[i];
  }
  return strides;
}

ObjectPtr<NDArrayObj> NewArray(std::vector<int64_t> shape, DataType dtype, Device device) {
  auto bytes = static_cast<int64_t>(GetElementBytes(dtype));
  for (int64_t extent : shape) {
    TVM_CHECK(extent >= 0, ValueError) << "NDArray: negative extent " << extent << " in the shape";
    // Extents of zero first would let an overflow of the strides through.
    TVM_CHECK(!__builtin_mul_overflow(bytes, std::max<int64_t>(extent, 1), &bytes), ValueError)
        << "NDArray: a tensor of the given shape has more bytes than can be counted";
  }
  auto node = make_object<NDArrayObj>();
  node->shape = std::move(shape);
  node->strides = RowMajorStrides(node->shape);
  node->tensor.device = device;
  node->tensor.dtype = dtype;
  node->tensor.ndim = static_cast<int32_t>(node->shape.size());
  node->tensor.shape = node->shape.data();
  node->tensor.strides = node->strides.data();
  return node;
}

void* FirstElement(const DLTensor& tensor) {
  return static_cast<char*>(tensor.data) + tensor.byte_offset;
}

// Copies element by element along the last axis; only host memory can be walked like this.
void CopyStrided(const DLTensor& from, const DLTensor& to, int axis, int64_t from_at, int64_t to_at,
                 size_t element) {
  if (axis == from.ndim) {
    std::memcpy(static_cast<char*>(FirstElement(to)) + to_at * static_cast<int64_t>(element),
                static_cast<char*>(FirstElement(from)) + from_at * static_cast<int64_t>(element),
                element);
    return;
  }
  auto step = [axis](const DLTensor& t) {
    if (t.strides != nullptr) return t.strides[axis];
    int64_t stride = 1;
    for (int i = axis + 1; i < t.ndim; ++i) stride *= t.shape[i];
    return stride;
  };
  int64_t from_step = step(from), to_step = step(to);
  for (int64_t i = 0; i < from.shape[axis]; ++i) {
    CopyStrided(from, to, axis + 1, from_at + i * from_step, to_at + i * to_step, element);
  }
}

void CopyTensor(const DLTensor& from, const DLTensor& to) {
  bool same = from.ndim == to.ndim && DataType(from.dtype) == DataType(to.dtype);
  for (int i = 0; same && i < from.ndim; ++i) same = from.shape[i] == to.shape[i];
  TVM_CHECK(same, ValueError) << "NDArray: cannot copy " << Describe(from) << " to " << Describe(to)
                              << "; shapes and types must agree";
  if (IsContiguous(from) && IsContiguous(to)) {
    // Another machine's memory is reached through its session, whatever is at the other end.
    const bool takes = from.device.device_type == kDLCPU || rpc::IsRemote(to.device);
    const Device device = takes ? to.device : from.device;
    DeviceAPI::Get(device)->CopyBytes(FirstElement(from), from.device, FirstElement(to), to.device,
                                      NumBytes(from), nullptr);
    DeviceAPI::Get(device)->StreamSync(device, nullptr);
    return;
  }
  TVM_CHECK(from.device.device_type == kDLCPU && to.device.device_type == kDLCPU, ValueError)
      << "NDArray: strided tensors can only be copied on the cpu; copy to a compact array first";
  CopyStrided(from, to, 0, 0, 0, GetElementBytes(from.dtype));
}

}  // namespace

NDArrayObj::~NDArrayObj() {
  if (owns_data) {
    DeviceAPI::Get(tensor.device)->FreeDataSpace(tensor.device, tensor.data);
  } else if (foreign != nullptr && foreign->deleter != nullptr) {
    foreign->deleter(foreign);
  }
}

bool IsContiguous(const DLTensor& tensor) {
  if (tensor.strides == nullptr) return true;
  // Strides between no elements mean nothing, and libraries fill them in differently.
  if (std::find(tensor.shape, tensor.shape + tensor.ndim, 0) != tensor.shape + tensor.ndim) {
    return true;
  }
  int64_t expected = 1;
  for (int i = tensor.ndim; i-- > 0;) {
    // The stride of an axis with one element is never used.
    if (tensor.shape[i] != 1 && tensor.strides[i] != expected) return false;
    expected *= tensor.shape[i];
  }
  return true;
}

NDArray NDArray::Empty(std::vector<int64_t> shape, DataType dtype, Device device,
                       Optional<String> mem_scope) {
  if (mem_scope) {
    TVM_CHECK(mem_scope.value() == "global", ValueError)
        << "NDArray: memory scope \"" << mem_scope.value() << "\" is not available on "
        << DeviceName(device.device_type) << "; use \"global\"";
  }
  auto node = NewArray(std::move(shape), dtype, device);
  DeviceAPI* api = DeviceAPI::Get(device);
  node->tensor.data = api->AllocDataSpace(device, runtime::NumBytes(node->tensor), kAllocAlignment);
  node->owns_data = true;
  return NDArray(ObjectPtr<Object>(node));
}

NDArray NDArray::FromDLPack(DLManagedTensor* managed) {
  const DLTensor& source = managed->dl_tensor;
  TVM_CHECK(source.dtype.code != kDLComplex, ValueError)
      << "NDArray: complex numbers have no type here; give their parts as an axis of two, as "
         "torch.view_as_real does";
  auto node = make_object<NDArrayObj>();
  node->tensor = source;
  // DLPack has a code of its own for booleans, which take one byte each.
  if (source.dtype.code == kDLBool) node->tensor.dtype = DataType::Bool(source.dtype.lanes);
  node->shape.assign(source.shape, source.shape + source.ndim);
  node->strides = source.strides == nullptr
                      ? RowMajorStrides(node->shape)
                      : std::vector<int64_t>(source.strides, source.strides + source.ndim);
  node->tensor.shape = node->shape.data();
  node->tensor.strides = node->strides.data();
  node->foreign = managed;
  return NDArray(ObjectPtr<Object>(node));
}

DLManagedTensor* NDArray::ToDLPack() const {
  struct Holder {
    DLManagedTensor managed;
    NDArray array;
  };
  auto* holder = new Holder{};
  holder->array = *this;
  holder->managed.dl_tensor = get()->tensor;
  if (dtype().is_bool()) {
    holder->managed.dl_tensor.dtype = DLDataType{kDLBool, 8, get()->tensor.dtype.lanes};
  }
  holder->managed.manager_ctx = holder;
  holder->managed.deleter = [](DLManagedTensor* self) {
    delete static_cast<Holder*>(self->manager_ctx);
  };
  return &holder->managed;
}

NDArray NDArray::CreateView(std::vector<int64_t> shape, DataType dtype, size_t byte_offset) const {
  TVM_CHECK(IsContiguous(), ValueError) << "NDArray: only a compact array can be viewed";
  auto node = NewArray(std::move(shape), dtype, device());
  size_t needed = runtime::NumBytes(node->tensor) + byte_offset;
  TVM_CHECK(needed <= NumBytes(), ValueError)
      << "NDArray: the view " << Describe(node->tensor) << " needs " << needed
      << " bytes, the array has " << NumBytes();
  node->tensor.data = get()->tensor.data;
  node->tensor.byte_offset = get()->tensor.byte_offset + byte_offset;
  node->base = *this;
  return NDArray(ObjectPtr<Object>(node));
}

void NDArray::CopyFrom(const DLTensor* source) const { CopyTensor(*source, get()->tensor); }

void NDArray::CopyTo(DLTensor* destination) const { CopyTensor(get()->tensor, *destination); }

NDArray NDArray::CopyTo(Device device) const {
  NDArray out = Empty(Shape(), dtype(), device);
  CopyTo(out.tensor());
  return out;
}

namespace {
DLTensor HostTensor(const NDArray& like, void* data, size_t bytes) {
  TVM_CHECK(bytes == like.NumBytes(), ValueError)
      << "NDArray: " << Describe(*like.tensor()) << " takes " << like.NumBytes() << " bytes, got "
      << bytes;
  DLTensor host = *like.tensor();
  host.data = data;
  host.byte_offset = 0;
  host.strides = nullptr;
  host.device = Device{kDLCPU, 0};
  return host;
}
}  // namespace

void NDArray::CopyFromBytes(const void* data, size_t bytes) const {
  CopyTensor(HostTensor(*this, const_cast<void*>(data), bytes), get()->tensor);
}

void NDArray::CopyToBytes(void* data, size_t bytes) const {
  CopyTensor(get()->tensor, HostTensor(*this, data, bytes));
}

TVM_REGISTER_GLOBAL("runtime.NDArrayEmpty")
    .set_body_typed([](Array<int64_t> shape, DataType dtype, Device device,
                       Optional<String> mem_scope) {
      return NDArray::Empty({shape.begin(), shape.end()}, dtype, device, mem_scope);
    });

TVM_REGISTER_GLOBAL("runtime.TVMArrayAllocWithScope")
    .set_body_typed([](ShapeTuple shape, DataType dtype, Device device,
                       Optional<String> mem_scope) {
      TVM_CHECK(shape.defined(), TypeError) << "TVMArrayAllocWithScope: the shape is None";
      return NDArray::Empty({shape.begin(), shape.end()}, dtype, device, mem_scope);
    });

TVM_REGISTER_GLOBAL("runtime.NDArrayCopyTo").set_body_typed([](NDArray array, Device device) {
  return array.CopyTo(device);
});

TVM_REGISTER_GLOBAL("runtime.NDArrayCopyFrom").set_body_typed([](NDArray array, NDArray source) {
  array.CopyFrom(source.tensor());
});

TVM_REGISTER_GLOBAL("runtime.NDArrayCreateView")
    .set_body_typed([](NDArray array, Array<int64_t> shape, DataType dtype, int64_t offset) {
      TVM_CHECK(offset >= 0, ValueError)
          << "NDArray: a view begins at byte 0 or later, got " << offset;
      return array.CreateView({shape.begin(), shape.end()}, dtype, static_cast<size_t>(offset));
    });

// (array, shape or None, type or None, bytes from its beginning or None). Without a shape, the last
// axis has as many elements of the new type as fill it.
TVM_REGISTER_GLOBAL("runtime.TVMArrayCreateView").set_body([](Args args, RetValue* ret) {
  const char* who = "runtime.TVMArrayCreateView";
  const NDArray array = ReadArg<NDArray>(who, args, 0);
  const bool same_type = args.size() < 3 || args[2].is_null();
  const DataType dtype = same_type ? array.dtype() : ReadArg<DataType>(who, args, 2);
  std::vector<int64_t> shape;
  if (args.size() > 1 && !args[1].is_null()) {
    const ShapeTuple given = ReadArg<ShapeTuple>(who, args, 1);
    shape.assign(given.begin(), given.end());
  } else {
    const std::vector<int64_t> known = array.Shape();
    shape.assign(known.begin(), known.end());
    const int64_t from = array.dtype().bytes() * array.dtype().lanes();
    const int64_t to = dtype.bytes() * dtype.lanes();
    if (from != to) {
      TVM_CHECK(!shape.empty() && shape.back() * from % to == 0, ValueError)
          << who << ": the last axis of " << Describe(*array.tensor())
          << " does not hold whole elements of " << dtype << "; give a shape";
      shape.back() = shape.back() * from / to;
    }
  }
  const int64_t offset =
      args.size() > 3 && !args[3].is_null() ? ReadArg<int64_t>(who, args, 3) : int64_t{0};
  TVM_CHECK(offset >= 0, ValueError) << who << ": a view begins at byte 0 or later, got " << offset;
  *ret = array.CreateView(std::move(shape), dtype, static_cast<size_t>(offset));
});

// The array itself, or one of the same memory whose address is that of its first element.
TVM_REGISTER_GLOBAL("vm.builtin.ensure_zero_offset").set_body_typed([](NDArray array) {
  if (array.tensor()->byte_offset == 0) return array;
  const int32_t kind = array.device().device_type;
  const bool has_addresses = kind == kDLCPU || kind == kDLCUDA || kind == kDLROCM;
  // Handles of other devices cannot be moved along.
  if (!has_addresses) return array.CopyTo(array.device());
  NDArray view = array.CreateView(array.Shape(), array.dtype(), 0);
  DLTensor* tensor = view.tensor();
  tensor->data = static_cast<char*>(tensor->data) + tensor->byte_offset;
  tensor->byte_offset = 0;
  return view;
});

TVM_REGISTER_GLOBAL("runtime.NDArrayShape").set_body_typed([](NDArray array) {
  return Array<int64_t>(array.Shape().begin(), array.Shape().end());
});

TVM_REGISTER_GLOBAL("runtime.NDArrayDType").set_body_typed([](NDArray array) {
  return array.dtype();
});

TVM_REGISTER_GLOBAL("runtime.NDArrayDevice").set_body_typed([](NDArray array) {
  return array.device();
});

TVM_REGISTER_GLOBAL("runtime.NDArrayIsContiguous").set_body_typed([](NDArray array) {
  return array.IsContiguous();
});

/*! \brief Address of the first element, to pass to code outside. */
TVM_REGISTER_GLOBAL("runtime.NDArrayData").set_body_typed([](NDArray array) {
  return reinterpret_cast<int64_t>(array.data());
});

}  // namespace runtime
}  // namespace tvm
