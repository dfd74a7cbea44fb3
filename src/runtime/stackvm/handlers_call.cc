/*!
 * \file handlers_call.cc
 * \brief Calls of the stackvm: PackedFuncs, functions of the program, structs of the C interface.
 */
#include <cstddef>
#include <cstring>

#include "runtime/stackvm/machine.h"
#include "runtime/stackvm/scalar_types.h"

namespace tvm {
namespace runtime {
namespace stackvm {
namespace {

/*! \brief Nested calls of the program's functions before we take it for endless recursion. */
constexpr int kMaxDepth = 1000;

/*! \brief Where a field of a struct is; the numbers are those of tir::builtin::StructField. */
struct Field {
  size_t size, offset;
  ScalarType type;
};

bool FindField(int64_t kind, ScalarType wanted, Field* out) {
  const size_t dtype = offsetof(DLTensor, dtype), device = offsetof(DLTensor, device);
  switch (kind) {
    case 0:
      *out = {sizeof(TVMAny), offsetof(TVMAny, type_code), ScalarType::kInt32};
      return true;
    case 1: {
      // Numbers are kept as int64 or float64 whatever the parameter's own type.
      bool real = wanted == ScalarType::kFloat16 || wanted == ScalarType::kBFloat16 ||
                  wanted == ScalarType::kFloat32 || wanted == ScalarType::kFloat64;
      *out = {sizeof(TVMAny), offsetof(TVMAny, v_int64),
              real ? ScalarType::kFloat64 : ScalarType::kInt64};
      return true;
    }
    case 2:
      *out = {sizeof(TVMAny), offsetof(TVMAny, v_handle), ScalarType::kHandle};
      return true;
    case 3:
      *out = {sizeof(DLTensor), offsetof(DLTensor, data), ScalarType::kHandle};
      return true;
    case 4:
      *out = {sizeof(DLTensor), offsetof(DLTensor, ndim), ScalarType::kInt32};
      return true;
    case 5:
      *out = {sizeof(DLTensor), dtype + offsetof(DLDataType, code), ScalarType::kUInt8};
      return true;
    case 6:
      *out = {sizeof(DLTensor), dtype + offsetof(DLDataType, bits), ScalarType::kUInt8};
      return true;
    case 7:
      *out = {sizeof(DLTensor), dtype + offsetof(DLDataType, lanes), ScalarType::kUInt16};
      return true;
    case 8:
      *out = {sizeof(DLTensor), offsetof(DLTensor, shape), ScalarType::kHandle};
      return true;
    case 9:
      *out = {sizeof(DLTensor), offsetof(DLTensor, strides), ScalarType::kHandle};
      return true;
    case 10:
      *out = {sizeof(DLTensor), offsetof(DLTensor, byte_offset), ScalarType::kUInt64};
      return true;
    case 11:
      *out = {sizeof(DLTensor), device + offsetof(DLDevice, device_type), ScalarType::kInt32};
      return true;
    case 12:
      *out = {sizeof(DLTensor), device + offsetof(DLDevice, device_id), ScalarType::kInt32};
      return true;
    case 13:
      *out = {sizeof(int64_t), 0, ScalarType::kInt64};
      return true;
    default:
      return false;
  }
}

uint8_t* FieldAddress(const Machine& m, const Instr* i, int thread, const Field& field) {
  uint8_t* base = m.At<uint8_t*>(i->b, thread);
  TVM_CHECK(base != nullptr, ValueError)
      << "stackvm: " << m.Where(thread) << ": " << OpcodeName(i->op) << " of a null pointer";
  const int64_t index =
      i->type2 == ScalarType::kInt64 ? m.At<int64_t>(i->c, thread) : m.At<int32_t>(i->c, thread);
  return base + index * static_cast<int64_t>(field.size) + field.offset;
}

template <typename Lane>
const Instr* StructGet(Machine& m, const Instr* i) {
  using T = typename Lane::Register;
  Field field;
  FindField(i->imm, i->type, &field);
  m.ForEachActive([&](int t) {
    const uint8_t* address = FieldAddress(m, i, t, field);
    m.At<T>(i->a, t) = DispatchLane(field.type, [&](auto stored) -> T {
      using S = decltype(stored);
      typename S::Memory value;
      std::memcpy(&value, address, sizeof(value));
      return Lane::Round(static_cast<T>(S::FromMemory(value)));
    });
  });
  return i + 1;
}

template <typename Lane>
const Instr* StructSet(Machine& m, const Instr* i) {
  using T = typename Lane::Register;
  Field field;
  FindField(i->imm, i->type, &field);
  m.ForEachActive([&](int t) {
    uint8_t* address = FieldAddress(m, i, t, field);
    DispatchLane(field.type, [&](auto stored) {
      using S = decltype(stored);
      auto value = S::ToMemory(static_cast<typename S::Register>(m.At<T>(i->a, t)));
      std::memcpy(address, &value, sizeof(value));
    });
  });
  return i + 1;
}

const Instr* StackAllocate(Machine& m, const Instr* i) {
  const int64_t count = m.At<int64_t>(i->b, 0);
  TVM_CHECK(count >= 0 && count < (1 << 20), ValueError)
      << "stackvm: " << m.Where(0) << ": a stack of " << count << " arguments";
  m.stack_memory.emplace_back(new uint8_t[sizeof(TVMAny) * static_cast<size_t>(count) + 1]());
  m.At<uint8_t*>(i->a, 0) = m.stack_memory.back().get();
  return i + 1;
}

const Instr* String(Machine& m, const Instr* i) {
  const char* text = m.program.strings[i->index].c_str();
  for (int t = m.mask.begin; t < m.mask.end; ++t) m.At<const char*>(i->a, t) = text;
  return i + 1;
}

/*! \brief Put the number a PackedFunc returned into a register. */
void StoreResult(Machine& m, const Instr* i, const Any& result) {
  DispatchLane(i->type, [&](auto lane) {
    using Lane = decltype(lane);
    using T = typename Lane::Register;
    T value = 0;
    double real;
    int64_t integer;
    if (result.type_code() == kTVMOpaqueHandle) {
      value = static_cast<T>(reinterpret_cast<uintptr_t>(result.raw().v_handle));
    } else if (AnyToInt(result, &integer)) {
      value = Lane::Round(static_cast<T>(integer));
    } else if (AnyToFloat(result, &real)) {
      value = Lane::Round(static_cast<T>(real));
    }
    m.At<T>(i->a, 0) = value;
  });
}

const Instr* CallPacked(Machine& m, const Instr* i) {
  const std::vector<int64_t>& list = m.program.lists[i->list];
  std::vector<TVMAny> values;
  for (size_t k = 0; k + 1 < list.size(); k += 2) {
    TVMAny value{kTVMInt, 0, {0}};
    const int slot = static_cast<int>(list[k + 1]);
    if (list[k] < 0) {
      value.type_code = kTVMStr;
      value.v_str = m.program.strings[list[k + 1]].c_str();
    } else {
      const ScalarType type = static_cast<ScalarType>(list[k]);
      DispatchLane(type, [&](auto lane) {
        using T = typename decltype(lane)::Register;
        if constexpr (std::is_floating_point_v<T>) {
          value.type_code = kTVMFloat;
          value.v_float64 = m.At<T>(slot, 0);
        } else {
          value.type_code = type == ScalarType::kHandle ? kTVMOpaqueHandle
                            : type == ScalarType::kBool ? kTVMBool
                                                        : kTVMInt;
          value.v_int64 = static_cast<int64_t>(m.At<T>(slot, 0));
        }
      });
    }
    values.push_back(value);
  }
  Any result;
  m.find_packed(m.program.strings[i->index])
      .CallPacked(
          Args(reinterpret_cast<const Any*>(values.data()), static_cast<int>(values.size())),
          &result);
  StoreResult(m, i, result);
  return i + 1;
}

const Instr* CallPackedLowered(Machine& m, const Instr* i) {
  Any* stack = m.At<Any*>(i->b, 0);
  const int64_t begin = m.At<int64_t>(i->c, 0), end = m.At<int64_t>(i->d, 0);
  TVM_CHECK(stack != nullptr && begin >= 0 && begin <= end, ValueError)
      << "stackvm: " << m.Where(0) << ": call of " << m.program.strings[i->index]
      << " with arguments " << begin << " to " << end;
  Any result;
  m.find_packed(m.program.strings[i->index])
      .CallPacked(Args(stack + begin, static_cast<int>(end - begin)), &result);
  StoreResult(m, i, result);
  // The caller may look at the result as it is; objects cannot be owned by plain memory.
  if (!result.is_object())
    std::memcpy(static_cast<void*>(stack + end), &result.raw(), sizeof(TVMAny));
  return i + 1;
}

const Instr* CallFunction(Machine& m, const Instr* i) {
  const Function& callee = m.program.functions[i->index];
  TVM_CHECK(m.depth < kMaxDepth, ValueError)
      << "stackvm: function " << callee.name << " calls itself more than " << kMaxDepth
      << " times in a row";
  Machine inner(m.program, callee, 1);
  inner.find_packed = m.find_packed;
  inner.depth = m.depth + 1;
  const std::vector<int64_t>& list = m.program.lists[i->list];
  for (size_t k = 0; k < callee.params.size(); ++k) {
    std::memcpy(inner.Reg<uint8_t>(callee.params[k].slot),
                m.Reg<uint8_t>(static_cast<int>(list[k])), 8);
  }
  inner.Run();
  std::memcpy(m.Reg<uint8_t>(i->a), &inner.return_value, 8);
  return i + 1;
}

const Instr* Assert(Machine& m, const Instr* i) {
  m.ForEachActive([&](int t) {
    if (m.At<uint8_t>(i->a, t)) return;
    const std::string& format = m.program.strings[i->index];
    std::string text;
    size_t next = 0;
    for (size_t k = 0; k < format.size(); ++k) {
      if (format.compare(k, 2, "{}") == 0 && next < m.program.lists[i->list].size()) {
        text +=
            std::to_string(m.At<int64_t>(static_cast<int>(m.program.lists[i->list][next++]), t));
        ++k;
      } else {
        text += format[k];
      }
    }
    // The text may begin with the kind of error, as for all compiled functions.
    TVMAPISetLastError(text.c_str());
    ThrowLastError();
  });
  return i + 1;
}

}  // namespace

Handler CallHandler(const Instr& instr) {
  Field field;
  switch (instr.op) {
    case Opcode::kStructGet:
      if (!FindField(instr.imm, instr.type, &field)) return nullptr;
      return DispatchLane(instr.type,
                          [](auto lane) -> Handler { return &StructGet<decltype(lane)>; });
    case Opcode::kStructSet:
      if (!FindField(instr.imm, instr.type, &field)) return nullptr;
      return DispatchLane(instr.type,
                          [](auto lane) -> Handler { return &StructSet<decltype(lane)>; });
    case Opcode::kStackAllocate:
      return &StackAllocate;
    case Opcode::kString:
      return &String;
    case Opcode::kCallPacked:
      return &CallPacked;
    case Opcode::kCallPackedLowered:
      return &CallPackedLowered;
    case Opcode::kCallFunction:
      return &CallFunction;
    case Opcode::kAssert:
      return &Assert;
    default:
      return nullptr;
  }
}

}  // namespace stackvm
}  // namespace runtime
}  // namespace tvm
