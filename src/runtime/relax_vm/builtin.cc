/*!
 * \file builtin.cc
 * \brief Functions that programs of the virtual machine call: shapes, tensors, tuples, closures.
 *
 * Names and arguments are those that programs compiled by TVM call.
 */
#include <tvm/runtime/container/shape_tuple.h>
#include <tvm/runtime/logging.h>
#include <tvm/runtime/module.h>
#include <tvm/runtime/ndarray.h>
#include <tvm/runtime/registry.h>

#include <cstring>
#include <iostream>
#include <limits>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace tvm {
namespace runtime {
namespace relax_vm {
namespace {

/*! \brief What match_shape does with an extent. */
enum class MatchCode : int64_t { kEqualToNumber = 0, kStore = 1, kNothing = 2, kEqualToStored = 3 };
/*! \brief Where make_shape takes an extent from. */
enum class MakeCode : int64_t { kNumber = 0, kStored = 1 };

/*! \brief The numbers that a call of a function keeps for its symbolic extents. */
class Heap {
 public:
  Heap(const char* who, const Any& value) : who_(who) {
    // A function without symbolic extents has none.
    if (value.defined()) array_ = value.cast<NDArray>();
    const bool fits =
        !array_.defined() || (array_.ndim() == 1 && array_.dtype() == DataType::Int(64) &&
                              array_.device().device_type == kDLCPU);
    TVM_CHECK(fits, TypeError) << who << ": the heap of a shape must be one axis of int64";
  }
  int64_t& operator[](int64_t slot) const {
    TVM_CHECK(array_.defined() && slot >= 0 && slot < array_.Shape()[0], IndexError)
        << who_ << ": the heap has no slot " << slot;
    return static_cast<int64_t*>(array_.data())[slot];
  }

 private:
  const char* who_;
  NDArray array_;
};

std::string Context(const Any& value) {
  const std::optional<std::string> text = value.TryCast<std::string>();
  return text.has_value() && !text->empty() ? *text + " " : "VirtualMachine: a value ";
}

std::string Text(const std::vector<int64_t>& extents) {
  std::string text = "(";
  for (size_t i = 0; i < extents.size(); ++i) text += (i ? ", " : "") + std::to_string(extents[i]);
  return text + (extents.size() == 1 ? ",)" : ")");
}

std::vector<int64_t> ExtentsOf(const Any& value, const std::string& context) {
  if (const auto* shape = value.as<ShapeTupleObj>()) return shape->data;
  if (const std::optional<DLTensor*> tensor = value.TryCast<DLTensor*>(); tensor && *tensor) {
    return {(*tensor)->shape, (*tensor)->shape + (*tensor)->ndim};
  }
  if (const auto shape = value.TryCast<ShapeTuple>(); shape && shape->defined()) {
    return {shape->begin(), shape->end()};
  }
  TVM_FATAL(TypeError) << context << "must be a tensor or a shape, got " << value.TypeName();
}

/*! \brief Compare or keep one extent. */
void MatchExtent(const Heap& heap, int64_t code, int64_t operand, int64_t extent,
                 const std::string& context, const std::string& where) {
  switch (static_cast<MatchCode>(code)) {
    case MatchCode::kStore:
      heap[operand] = extent;
      return;
    case MatchCode::kNothing:
      return;
    case MatchCode::kEqualToNumber:
    case MatchCode::kEqualToStored: {
      const bool stored = static_cast<MatchCode>(code) == MatchCode::kEqualToStored;
      const int64_t wanted = stored ? heap[operand] : operand;
      TVM_CHECK(extent == wanted, ValueError)
          << context << "has " << where << " " << extent << ", must be " << wanted
          << (stored ? ", as another value says" : "");
      return;
    }
  }
  TVM_FATAL(ValueError) << "vm.builtin.match_shape: no code " << code;
}

/*! \brief (tensor or shape, heap, count, code and operand of each extent, context). */
void MatchShape(Args args, RetValue*) {
  const std::string context = Context(args[args.size() - 1]);
  const std::vector<int64_t> extents = ExtentsOf(args[0], context);
  const Heap heap("vm.builtin.match_shape", args[1]);
  const int64_t count = ReadArg<int64_t>("vm.builtin.match_shape", args, 2);
  TVM_CHECK(static_cast<int64_t>(extents.size()) == count, ValueError)
      << context << "must have " << count << " axes, has the shape " << Text(extents);
  for (int64_t i = 0; i < count; ++i) {
    const auto code = ReadArg<int64_t>("vm.builtin.match_shape", args, static_cast<int>(3 + 2 * i));
    const auto operand =
        ReadArg<int64_t>("vm.builtin.match_shape", args, static_cast<int>(4 + 2 * i));
    MatchExtent(heap, code, operand, extents[i], context, "extent " + std::to_string(i) + " of");
  }
}

/*! \brief (tensor or shape, axis, least, most, context): refuse an extent outside of a range. */
void CheckExtent(Args args, RetValue*) {
  const char* who = "vm.builtin.check_extent";
  const std::string context = Context(args[4]);
  const std::vector<int64_t> extents = ExtentsOf(args[0], context);
  const auto axis = ReadArg<int64_t>(who, args, 1);
  const auto least = ReadArg<int64_t>(who, args, 2), most = ReadArg<int64_t>(who, args, 3);
  TVM_CHECK(axis >= 0 && axis < static_cast<int64_t>(extents.size()), IndexError)
      << context << "has the shape " << Text(extents) << ", and no axis " << axis;
  const bool is_bounded = most != std::numeric_limits<int64_t>::max();
  TVM_CHECK(extents[axis] >= least && extents[axis] <= most, ValueError)
      << context << "has extent " << axis << " of " << extents[axis] << ", must be in [" << least
      << ", " << (is_bounded ? std::to_string(most) + "]" : "...)");
}

/*! \brief (value, heap, code, operand, context). */
void MatchPrimValue(Args args, RetValue*) {
  const std::string context = Context(args[4]);
  const std::optional<int64_t> value = args[0].TryCast<int64_t>();
  TVM_CHECK(value.has_value(), TypeError)
      << context << "must be an integer, got " << args[0].TypeName();
  MatchExtent(Heap("vm.builtin.match_prim_value", args[1]),
              ReadArg<int64_t>("vm.builtin.match_prim_value", args, 2),
              ReadArg<int64_t>("vm.builtin.match_prim_value", args, 3), *value, context,
              "the value");
}

int64_t MakeExtent(const Heap& heap, const char* who, Args args, int at) {
  const auto code = static_cast<MakeCode>(ReadArg<int64_t>(who, args, at));
  const int64_t operand = ReadArg<int64_t>(who, args, at + 1);
  TVM_CHECK(code == MakeCode::kNumber || code == MakeCode::kStored, ValueError)
      << who << ": no code " << static_cast<int64_t>(code);
  return code == MakeCode::kNumber ? operand : heap[operand];
}

/*! \brief (heap, count, code and operand of each extent) -> shape. */
void MakeShape(Args args, RetValue* ret) {
  const char* who = "vm.builtin.make_shape";
  const Heap heap(who, args[0]);
  std::vector<int64_t> extents;
  for (int64_t i = 0; i < ReadArg<int64_t>(who, args, 1); ++i) {
    extents.push_back(MakeExtent(heap, who, args, static_cast<int>(2 + 2 * i)));
  }
  *ret = ShapeTuple(std::move(extents));
}

/*! \brief (value, number of axes or -1, element type if it is known, context). */
void CheckTensorInfo(Args args, RetValue*) {
  const char* who = "vm.builtin.check_tensor_info";
  const std::string context = Context(args[args.size() - 1]);
  const std::optional<DLTensor*> given = args[0].TryCast<DLTensor*>();
  TVM_CHECK(given.has_value() && *given != nullptr, TypeError)
      << context << "must be a tensor, got " << args[0].TypeName();
  const DLTensor& tensor = **given;
  const int64_t ndim = ReadArg<int64_t>(who, args, 1);
  TVM_CHECK(ndim == -1 || tensor.ndim == ndim, ValueError)
      << context << "must have " << ndim << " axes, has the shape "
      << Text({tensor.shape, tensor.shape + tensor.ndim});
  if (args.size() < 4) return;
  const DataType type = ReadArg<DataType>(who, args, 2);
  TVM_CHECK(type.is_void() || DataType(tensor.dtype) == type, ValueError)
      << context << "must be " << type << ", is " << DataType(tensor.dtype);
}

/*! \brief (value, number of extents or -1, context). */
void CheckShapeInfo(Args args, RetValue*) {
  const std::string context = Context(args[2]);
  const auto shape = args[0].TryCast<ShapeTuple>();
  TVM_CHECK(shape.has_value() && shape->defined(), TypeError)
      << context << "must be a shape, got " << args[0].TypeName();
  const int64_t ndim = ReadArg<int64_t>("vm.builtin.check_shape_info", args, 1);
  TVM_CHECK(ndim == -1 || static_cast<int64_t>(shape->size()) == ndim, ValueError)
      << context << "must have " << ndim << " extents, has " << shape->size();
}

/*! \brief (value, type, context). */
void CheckPrimValueInfo(Args args, RetValue*) {
  const DataType type = ReadArg<DataType>("vm.builtin.check_prim_value_info", args, 1);
  const bool fits = type.is_float() ? args[0].TryCast<double>().has_value()
                                    : args[0].TryCast<int64_t>().has_value();
  TVM_CHECK(fits, TypeError) << Context(args[2]) << "must be a number of type " << type << ", got "
                             << args[0].TypeName();
}

/*! \brief (value, number of fields, context). */
void CheckTupleInfo(Args args, RetValue*) {
  const std::string context = Context(args[2]);
  const auto fields = args[0].TryCast<Array<Any>>();
  TVM_CHECK(fields.has_value() && fields->defined(), TypeError)
      << context << "must be a tuple, got " << args[0].TypeName();
  const int64_t size = ReadArg<int64_t>("vm.builtin.check_tuple_info", args, 1);
  TVM_CHECK(static_cast<int64_t>(fields->size()) == size, ValueError)
      << context << "must have " << size << " fields, has " << fields->size();
}

/*! \brief (value, context). */
void CheckFuncInfo(Args args, RetValue*) {
  TVM_CHECK(args[0].as<PackedFuncObj>() != nullptr, TypeError)
      << Context(args[1]) << "must be a function, got " << args[0].TypeName();
}

/*! \brief Memory of a number of bytes: (machine, shape, device, type, memory scope). */
NDArray AllocStorage(Args args) {
  const char* who = "vm.builtin.alloc_storage";
  const ShapeTuple shape = ReadArg<ShapeTuple>(who, args, 1);
  const DataType type = args.size() > 3 ? ReadArg<DataType>(who, args, 3) : DataType::UInt(8);
  TVM_CHECK(shape.size() == 1 && shape[0] >= 0, ValueError)
      << who << ": takes one number of bytes, got a shape of " << shape.size() << " extents";
  // The type is a hint of the alignment; the size is in bytes.
  (void)type;
  return NDArray::Empty({shape[0]}, DataType::UInt(8), Device{kDLCPU, 0});
}

Any AllocTensor(NDArray storage, int64_t offset, ShapeTuple shape, DataType type) {
  return storage.CreateView({shape.begin(), shape.end()}, type, static_cast<size_t>(offset));
}

/*! \brief (shape, type) -> a tensor in memory of its own. */
NDArray NewTensor(ShapeTuple shape, DataType type) {
  return NDArray::Empty({shape.begin(), shape.end()}, type, Device{kDLCPU, 0});
}

NDArray Reshape(NDArray data, ShapeTuple shape) {
  TVM_CHECK(shape.Product() == data.NumElements(), ValueError)
      << "vm.builtin.reshape: " << Text(data.Shape()) << " has other elements than "
      << Text({shape.begin(), shape.end()});
  return data.CreateView({shape.begin(), shape.end()}, data.dtype());
}

/*! \brief The only element of a tensor, as a number. */
int64_t IfCondition(Any value) {
  if (const std::optional<int64_t> number = value.TryCast<int64_t>()) return *number;
  const NDArray array = value.cast<NDArray>().CopyTo(Device{kDLCPU, 0});
  TVM_CHECK(array.NumElements() == 1, ValueError)
      << "a condition must have one element, has the shape " << Text(array.Shape());
  int64_t number = 0;
  TVM_CHECK(array.NumBytes() <= sizeof(number), TypeError)
      << "a condition must be a bool or an integer, is " << array.dtype();
  array.CopyToBytes(&number, array.NumBytes());
  return number != 0;
}

/*! \brief (machine, function, arguments that come first...) -> function. */
void MakeClosure(Args args, RetValue* ret) {
  PackedFunc function = ReadArg<PackedFunc>("vm.builtin.make_closure", args, 1);
  const Args rest = args.slice(2);
  std::vector<Any> captured(rest.begin(), rest.end());
  *ret = PackedFunc([function, captured = std::move(captured)](Args more, RetValue* result) {
    std::vector<Any> all = captured;
    all.insert(all.end(), more.begin(), more.end());
    function.CallPacked(Args(all.data(), static_cast<int32_t>(all.size())), result);
  });
}

/*! \brief (machine, function, arguments..., shape): the extents become the last arguments. */
void CallTirDyn(Args args, RetValue* ret) {
  const char* who = "vm.builtin.call_tir_dyn";
  const PackedFunc function = ReadArg<PackedFunc>(who, args, 1);
  std::vector<Any> all(args.begin() + 2, args.end() - 1);
  for (int64_t extent : ReadArg<ShapeTuple>(who, args, args.size() - 1)) all.emplace_back(extent);
  function.CallPacked(Args(all.data(), static_cast<int32_t>(all.size())), ret);
}

/*!
 * \brief (leading axes, mask of tensors, number of kernels, rows and kernel of each, tensors...).
 *
 * The tensors of the mask have the same leading axes, whose places are the rows. A kernel takes
 * that many of them, one behind the other; the first is the largest, and the last takes one. Rows
 * at the end that fill no kernel are computed with some before them once more, where there are as
 * many.
 */
void CallTirRows(Args args, RetValue*) {
  const char* who = "vm.builtin.call_tir_rows";
  const auto leading = ReadArg<int64_t>(who, args, 0), mask = ReadArg<int64_t>(who, args, 1);
  const auto count = static_cast<int>(ReadArg<int64_t>(who, args, 2));
  const int first = 3 + 2 * count, num_tensors = args.size() - first;
  TVM_CHECK(leading > 0 && count > 0 && num_tensors > 0 && num_tensors < 63, ValueError)
      << who << ": takes kernels and at most 62 tensors";
  std::vector<DLTensor> tensors(num_tensors);
  std::vector<std::vector<int64_t>> shapes(num_tensors);
  std::vector<int64_t> row_bytes(num_tensors, 0);
  std::vector<Any> given(num_tensors);
  int64_t rows = -1;
  for (int i = 0; i < num_tensors; ++i) {
    const std::optional<DLTensor*> tensor = args[first + i].TryCast<DLTensor*>();
    TVM_CHECK(tensor && *tensor, TypeError)
        << who << ": takes tensors, got " << args[first + i].TypeName();
    TVM_CHECK(IsContiguous(**tensor), ValueError) << who << ": takes arrays without gaps";
    tensors[i] = **tensor;
    tensors[i].strides = nullptr;
    shapes[i].assign(tensors[i].shape, tensors[i].shape + tensors[i].ndim);
    given[i] = Any(&tensors[i]);
    if (!(mask >> i & 1)) continue;
    TVM_CHECK(static_cast<int64_t>(shapes[i].size()) >= leading, ValueError)
        << who << ": a tensor of the shape " << Text(shapes[i]) << " has no " << leading << " axes";
    int64_t own = 1;
    for (int64_t k = 0; k < leading; ++k) own *= std::exchange(shapes[i][k], 1);
    TVM_CHECK(rows == -1 || rows == own, ValueError)
        << who << ": tensors have " << rows << " and " << own << " rows";
    rows = own;
    row_bytes[i] = rows == 0 ? 0 : static_cast<int64_t>(NumBytes(**tensor)) / rows;
    tensors[i].shape = shapes[i].data();
  }
  std::vector<void*> begins(num_tensors);
  for (int i = 0; i < num_tensors; ++i) begins[i] = tensors[i].data;
  const auto run = [&](const PackedFunc& kernel, int64_t start, int64_t size) {
    for (int i = 0; i < num_tensors; ++i) {
      if (!(mask >> i & 1)) continue;
      shapes[i][leading - 1] = size;
      tensors[i].data = static_cast<char*>(begins[i]) + start * row_bytes[i];
    }
    Any nothing;
    kernel.CallPacked(Args(given.data(), num_tensors), &nothing);
  };
  for (int64_t k = 0, start = 0; k < count && start < rows; ++k) {
    const auto size = ReadArg<int64_t>(who, args, static_cast<int>(3 + 2 * k));
    const auto kernel = ReadArg<PackedFunc>(who, args, static_cast<int>(4 + 2 * k));
    TVM_CHECK(size > 0 && (size == 1 || k + 1 < count), ValueError)
        << who << ": the last kernel must take one row";
    for (; start + size <= rows; start += size) run(kernel, start, size);
    // Few rows of a large kernel are cheaper by smaller ones.
    if (start < rows && size <= rows && 2 * (rows - start) > size) {
      run(kernel, rows - size, size);
      start = rows;
    }
  }
}

Any TupleGetItem(Array<Any> fields, int64_t index) {
  TVM_CHECK(index >= 0 && index < static_cast<int64_t>(fields.size()), IndexError)
      << "vm.builtin.tuple_getitem: no field " << index << " of " << fields.size();
  return fields[index];
}

/*! \brief A tensor of one axis of int64 as a shape. */
ShapeTuple TensorToShape(NDArray data) {
  const NDArray array = data.CopyTo(Device{kDLCPU, 0});
  TVM_CHECK(array.ndim() == 1 && array.dtype() == DataType::Int(64), ValueError)
      << "vm.builtin.tensor_to_shape: takes one axis of int64, got " << array.dtype()
      << " of shape " << Text(array.Shape());
  std::vector<int64_t> extents(array.NumElements());
  array.CopyToBytes(extents.data(), array.NumBytes());
  return ShapeTuple(std::move(extents));
}

int64_t Axis(const char* where, const NDArray& data, int64_t axis) {
  TVM_CHECK(axis >= 0 && axis < data.ndim(), IndexError)
      << where << ": axis " << axis << " of a tensor of " << data.ndim() << " dimensions";
  return axis;
}

/*! \brief Elements between neighbours along a dimension; a tensor without strides is dense. */
int64_t StrideOf(NDArray data, int64_t axis) {
  axis = Axis("strides", data, axis);
  if (data.get()->tensor.strides != nullptr) return data.get()->tensor.strides[axis];
  int64_t stride = 1;
  for (int64_t d = axis + 1; d < data.ndim(); ++d) stride *= data.Shape()[d];
  return stride;
}

int64_t ElemOffset(NDArray data) {
  const int64_t bits = int64_t{data.dtype().bits()} * data.dtype().lanes();
  return static_cast<int64_t>(data.get()->tensor.byte_offset) * 8 / bits;
}

NDArray ShapeToTensor(ShapeTuple shape) {
  NDArray array =
      NDArray::Empty({static_cast<int64_t>(shape.size())}, DataType::Int(64), Device{kDLCPU, 0});
  array.CopyFromBytes(shape->data.data(), shape.size() * sizeof(int64_t));
  return array;
}

double Element(const NDArray& array, int64_t index) {
  const char* at = static_cast<const char*>(array.data()) + index * GetElementBytes(array.dtype());
  const DataType type = array.dtype();
  auto read = [at](auto number) {
    std::memcpy(&number, at, sizeof(number));
    return static_cast<double>(number);
  };
  if (type == DataType::Float(32)) return read(float{});
  if (type == DataType::Float(64)) return read(double{});
  if (type.bits() == 64) return read(int64_t{});
  if (type == DataType::Int(32)) return read(int32_t{});
  if (type == DataType::UInt(32)) return read(uint32_t{});
  if (type == DataType::Int(16)) return read(int16_t{});
  if (type == DataType::UInt(16)) return read(uint16_t{});
  if (type == DataType::Int(8)) return read(int8_t{});
  if (type.bits() <= 8) return read(uint8_t{});
  TVM_FATAL(TypeError) << "printing of " << type << " is not known; convert it first";
}

void PrintElements(const NDArray& array, int axis, int64_t* next, std::ostream& os) {
  if (axis == array.ndim()) {
    const double value = Element(array, (*next)++);
    if (array.dtype().is_bool()) {
      os << (value != 0 ? "True" : "False");
    } else {
      os << value;
    }
    return;
  }
  os << "[";
  for (int64_t i = 0; i < array.Shape()[axis]; ++i) {
    if (i > 0) os << ", ";
    PrintElements(array, axis + 1, next, os);
  }
  os << "]";
}

std::string ValueText(const Any& value) {
  std::ostringstream os;
  if (value.as<NDArrayObj>() != nullptr) {
    const NDArray array = value.cast<NDArray>().CopyTo(Device{kDLCPU, 0});
    int64_t next = 0;
    PrintElements(array, 0, &next, os);
  } else if (const auto* shape = value.as<ShapeTupleObj>()) {
    os << Text(shape->data);
  } else if (const auto fields = value.TryCast<Array<Any>>(); fields && fields->defined()) {
    os << "(";
    for (size_t i = 0; i < fields->size(); ++i) os << (i ? ", " : "") << ValueText((*fields)[i]);
    os << ")";
  } else if (const auto text = value.TryCast<std::string>()) {
    os << *text;
  } else if (value.type_code() == kTVMBool) {
    os << (value.cast<bool>() ? "True" : "False");
  } else if (value.type_code() == kTVMInt) {
    os << value.cast<int64_t>();
  } else if (value.type_code() == kTVMFloat) {
    os << value.cast<double>();
  } else {
    os << value.TypeName();
  }
  return os.str();
}

/*! \brief The text with values in the places of {}; the values alone if it is empty. */
std::string Formatted(const std::string& format, Args values) {
  if (format.empty()) {
    std::string text;
    for (const Any& value : values) text += (text.empty() ? "" : " ") + ValueText(value);
    return text;
  }
  std::string text;
  int next = 0;
  for (size_t i = 0; i < format.size(); ++i) {
    const char c = format[i];
    const char after = i + 1 < format.size() ? format[i + 1] : '\0';
    if ((c == '{' || c == '}') && after == c) {
      text += c;
      ++i;
    } else if (c == '{' && after == '}') {
      text += ValueText(values[next++]);
      ++i;
    } else {
      text += c;
    }
  }
  return text;
}

/*! \brief (format, values...). */
void Print(Args args, RetValue*) {
  std::cout << Formatted(ReadArg<std::string>("relax.run.print", args, 0), args.slice(1))
            << std::endl;
}

/*! \brief (condition, format, values...). */
void Assert(Args args, RetValue*) {
  const char* who = "relax.run.assert_op";
  if (IfCondition(args[0])) return;
  const std::string format = args.size() > 1 ? ReadArg<std::string>(who, args, 1) : "";
  const std::string text =
      args.size() > 2 || !format.empty() ? Formatted(format, args.slice(2)) : std::string();
  TVM_FATAL(AssertionError) << (text.empty() ? "Assertion Failed" : text);
}

}  // namespace

TVM_REGISTER_GLOBAL("vm.builtin.match_shape").set_body(MatchShape);
TVM_REGISTER_GLOBAL("vm.builtin.check_extent").set_body(CheckExtent);
TVM_REGISTER_GLOBAL("vm.builtin.match_prim_value").set_body(MatchPrimValue);
TVM_REGISTER_GLOBAL("vm.builtin.make_shape").set_body(MakeShape);
TVM_REGISTER_GLOBAL("vm.builtin.make_prim_value").set_body([](Args args, RetValue* ret) {
  const char* who = "vm.builtin.make_prim_value";
  *ret = MakeExtent(Heap(who, args[0]), who, args, 1);
});
TVM_REGISTER_GLOBAL("vm.builtin.check_tensor_info").set_body(CheckTensorInfo);
TVM_REGISTER_GLOBAL("vm.builtin.check_shape_info").set_body(CheckShapeInfo);
TVM_REGISTER_GLOBAL("vm.builtin.check_prim_value_info").set_body(CheckPrimValueInfo);
TVM_REGISTER_GLOBAL("vm.builtin.check_tuple_info").set_body(CheckTupleInfo);
TVM_REGISTER_GLOBAL("vm.builtin.check_func_info").set_body(CheckFuncInfo);
TVM_REGISTER_GLOBAL("vm.builtin.alloc_shape_heap").set_body([](Args args, RetValue* ret) {
  const int64_t slots = ReadArg<int64_t>("vm.builtin.alloc_shape_heap", args, 1);
  *ret = NDArray::Empty({slots}, DataType::Int(64), Device{kDLCPU, 0});
});
TVM_REGISTER_GLOBAL("vm.builtin.alloc_storage").set_body([](Args args, RetValue* ret) {
  *ret = AllocStorage(args);
});
TVM_REGISTER_GLOBAL("vm.builtin.alloc_tensor").set_body_typed(AllocTensor);
TVM_REGISTER_GLOBAL("vm.builtin.new_tensor").set_body_typed(NewTensor);
TVM_REGISTER_GLOBAL("vm.builtin.reshape").set_body_typed(Reshape);
TVM_REGISTER_GLOBAL("vm.builtin.read_if_cond").set_body_typed(IfCondition);
TVM_REGISTER_GLOBAL("vm.builtin.make_closure").set_body(MakeClosure);
TVM_REGISTER_GLOBAL("vm.builtin.invoke_closure").set_body([](Args args, RetValue* ret) {
  ReadArg<PackedFunc>("vm.builtin.invoke_closure", args, 1).CallPacked(args.slice(2), ret);
});
TVM_REGISTER_GLOBAL("vm.builtin.call_tir_dyn").set_body(CallTirDyn);
TVM_REGISTER_GLOBAL("vm.builtin.call_tir_rows").set_body(CallTirRows);
TVM_REGISTER_GLOBAL("vm.builtin.copy").set_body_typed([](Any value) { return value; });
TVM_REGISTER_GLOBAL("vm.builtin.null_value").set_body([](Args, RetValue* ret) { *ret = Any(); });
TVM_REGISTER_GLOBAL("vm.builtin.make_tuple").set_body([](Args args, RetValue* ret) {
  Array<Any> fields;
  for (const Any& field : args) fields.push_back(field);
  *ret = fields;
});
TVM_REGISTER_GLOBAL("vm.builtin.tuple_getitem").set_body_typed(TupleGetItem);
TVM_REGISTER_GLOBAL("vm.builtin.shape_of").set_body_typed([](NDArray data) {
  return ShapeTuple(data.Shape());
});
TVM_REGISTER_GLOBAL("vm.builtin.tensor_to_shape").set_body_typed(TensorToShape);
TVM_REGISTER_GLOBAL("relax.run.shape_to_tensor").set_body_typed(ShapeToTensor);
TVM_REGISTER_GLOBAL("relax.run.tensor_dtype_code").set_body_typed([](NDArray x) {
  return static_cast<int64_t>(x.dtype().code());
});
TVM_REGISTER_GLOBAL("relax.run.tensor_dtype_bits").set_body_typed([](NDArray x) {
  return int64_t{x.dtype().bits()};
});
TVM_REGISTER_GLOBAL("relax.run.tensor_dtype_lanes").set_body_typed([](NDArray x) {
  return int64_t{x.dtype().lanes()};
});
TVM_REGISTER_GLOBAL("relax.run.tensor_ndim").set_body_typed([](NDArray x) {
  return int64_t{x.ndim()};
});
TVM_REGISTER_GLOBAL("relax.run.tensor_shape_i").set_body_typed([](NDArray x, int64_t axis) {
  return x.Shape()[Axis("shape", x, axis)];
});
TVM_REGISTER_GLOBAL("relax.run.tensor_stride_i").set_body_typed(StrideOf);
TVM_REGISTER_GLOBAL("relax.run.tensor_byte_offset").set_body_typed([](NDArray x) {
  return static_cast<int64_t>(x.get()->tensor.byte_offset);
});
TVM_REGISTER_GLOBAL("relax.run.tensor_elem_offset").set_body_typed(ElemOffset);
TVM_REGISTER_GLOBAL("relax.run.print").set_body(Print);
TVM_REGISTER_GLOBAL("relax.run.assert_op").set_body(Assert);
/*! \brief (place in the program, value). */
TVM_REGISTER_GLOBAL("vm.builtin.debug_print").set_body([](Args args, RetValue*) {
  std::cout << ReadArg<std::string>("vm.builtin.debug_print", args, 0) << ": " << ValueText(args[1])
            << std::endl;
});
TVM_REGISTER_GLOBAL("vm.builtin.to_device")
    .set_body_typed([](NDArray data, int64_t type, int64_t id) {
      const Device device{static_cast<DLDeviceType>(type), static_cast<int32_t>(id)};
      const Device own = data.device();
      if (own.device_type == device.device_type && own.device_id == device.device_id) return data;
      return data.CopyTo(device);
    });
/*! \brief (io effect, name of a function, place in the program, values...) -> io effect. */
TVM_REGISTER_GLOBAL("vm.builtin.invoke_debug_func").set_body([](Args args, RetValue* ret) {
  const std::string name = ReadArg<std::string>("vm.builtin.invoke_debug_func", args, 1);
  Any ignored;
  Registry::Require(name).CallPacked(args.slice(2), &ignored);
  *ret = args[0];
});

}  // namespace relax_vm
}  // namespace runtime
}  // namespace tvm
