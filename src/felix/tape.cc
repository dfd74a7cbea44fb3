/*!
 * \file tape.cc
 * \brief The table of operations, and tapes as objects.
 */
#include <tvm/felix/tape.h>
#include <tvm/runtime/logging.h>
#include <tvm/runtime/registry.h>

#include <algorithm>
#include <array>

namespace tvm {
namespace felix {

using runtime::NDArray;

TVM_REGISTER_NODE(TapeNode);

void TapeNode::Init() { GetRef<Tape>(this).Data(); }

const std::vector<TapeOpInfo>& TapeOps() {
  static const std::vector<TapeOpInfo> table = {
#define TVM_TAPE_LEAF(code, Name) {TapeOp::k##Name, #Name},
#define TVM_TAPE_OP(code, Name, spelling, arity, commutes, cost, value, da, db, dc) \
  {TapeOp::k##Name, #Name, arity, commutes, cost, #value, {#da, #db, #dc}},
#include <tvm/felix/tape_ops.def>
  };
  return table;
}

const TapeOpInfo* FindTapeOp(uint8_t code) {
  static const auto rows = [] {
    std::array<const TapeOpInfo*, 256> rows{};
    for (const TapeOpInfo& row : TapeOps()) rows[static_cast<uint8_t>(row.op)] = &row;
    return rows;
  }();
  return rows[code];
}

namespace {

template <typename T>
NDArray ToArray(const std::vector<T>& values, std::vector<int64_t> shape, DataType dtype) {
  NDArray array = NDArray::Empty(std::move(shape), dtype, Device{kDLCPU, 0});
  array.CopyFromBytes(values.data(), values.size() * sizeof(T));
  return array;
}

template <typename T>
std::vector<T> ToVector(const NDArray& array, const char* what, DataType dtype, int64_t size) {
  TVM_CHECK(array.defined(), TypeError) << "Tape: " << what << " is missing";
  TVM_CHECK(array.dtype() == dtype, TypeError)
      << "Tape: " << what << " must be an array of " << dtype << ", got " << array.dtype();
  TVM_CHECK(array.IsContiguous() && (size < 0 || array.NumElements() == size), ValueError)
      << "Tape: " << what << " must be compact and have " << size << " elements, got "
      << array.NumElements();
  const T* data = static_cast<const T*>(array.data());
  return std::vector<T>(data, data + array.NumElements());
}

void CheckTape(const TapeData& tape) {
  const auto num_vars = static_cast<int64_t>(tape.vars.size());
  for (int32_t i = 0; i < tape.size(); ++i) {
    const int code = tape.ops[i];
    const TapeOpInfo* info = FindTapeOp(tape.ops[i]);
    TVM_CHECK(info, ValueError) << "Tape: entry " << i << " has operation code " << code
                                << ", which no operation has";
    for (int k = 0; k < info->arity; ++k) {
      const int32_t arg = tape.args[3 * i + k];
      TVM_CHECK(arg >= 0 && arg < i, ValueError)
          << "Tape: entry " << i << " (" << info->name << ") has argument " << arg
          << "; an argument must be an earlier entry";
    }
    TVM_CHECK(info->op != TapeOp::kVar || (tape.payload[i] >= 0 && tape.payload[i] < num_vars),
              ValueError)
        << "Tape: entry " << i << " reads variable " << tape.payload[i] << " of " << num_vars;
  }
  for (size_t k = 0; k < tape.roots.size(); ++k) {
    TVM_CHECK(tape.roots[k] >= 0 && tape.roots[k] < tape.size(), ValueError)
        << "Tape: root " << k << " is entry " << tape.roots[k] << " of " << tape.size();
  }
}

}  // namespace

Tape::Tape(const TapeData& data) {
  auto node = make_object<TapeNode>();
  const int64_t n = data.size(), v = static_cast<int64_t>(data.vars.size());
  node->ops = ToArray(data.ops, {n}, DataType::UInt(8));
  node->args = ToArray(data.args, {n, 3}, DataType::Int(32));
  node->payload = ToArray(data.payload, {n}, DataType::Int(64));
  node->roots = ToArray(data.roots, {static_cast<int64_t>(data.roots.size())}, DataType::Int(32));
  std::vector<double> lower, upper;
  std::vector<uint8_t> integer;
  for (const TapeVar& var : data.vars) {
    node->var_names.push_back(var.name);
    lower.push_back(var.lower);
    upper.push_back(var.upper);
    integer.push_back(var.is_integer ? 1 : 0);
  }
  node->var_lower = ToArray(lower, {v}, DataType::Float(64));
  node->var_upper = ToArray(upper, {v}, DataType::Float(64));
  node->var_integer = ToArray(integer, {v}, DataType::UInt(8));
  data_ = std::move(node);
}

TapeData Tape::Data() const {
  const TapeNode* node = get();
  TapeData out;
  out.ops = ToVector<uint8_t>(node->ops, "ops", DataType::UInt(8), -1);
  const auto n = static_cast<int64_t>(out.ops.size());
  out.args = ToVector<int32_t>(node->args, "args", DataType::Int(32), 3 * n);
  out.payload = ToVector<int64_t>(node->payload, "payload", DataType::Int(64), n);
  out.roots = ToVector<int32_t>(node->roots, "roots", DataType::Int(32), -1);
  const auto v = static_cast<int64_t>(node->var_names.size());
  const auto lower = ToVector<double>(node->var_lower, "var_lower", DataType::Float(64), v);
  const auto upper = ToVector<double>(node->var_upper, "var_upper", DataType::Float(64), v);
  const auto integer = ToVector<uint8_t>(node->var_integer, "var_integer", DataType::UInt(8), v);
  for (int64_t i = 0; i < v; ++i) {
    out.vars.push_back({node->var_names[i], integer[i] != 0, lower[i], upper[i]});
  }
  CheckTape(out);
  return out;
}

/* Rows of tape_ops.def: [code, name, arity, cost, value, derivatives...]. */
TVM_REGISTER_GLOBAL("felix.TapeOps").set_body_typed([] {
  Array<Any> rows;
  for (const TapeOpInfo& row : TapeOps()) {
    Array<Any> out{static_cast<int64_t>(row.op), String(row.name), static_cast<int64_t>(row.arity),
                   static_cast<int64_t>(row.cost), String(row.value)};
    for (const char* derivative : row.derivatives) out.push_back(String(derivative));
    rows.push_back(out);
  }
  return rows;
});

}  // namespace felix
}  // namespace tvm
