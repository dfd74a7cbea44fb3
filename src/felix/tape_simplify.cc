/*!
 * \file tape_simplify.cc
 */
#include "tape_simplify.h"

#include <tvm/arith/egg_simpl.h>
#include <tvm/runtime/container.h>
#include <tvm/runtime/logging.h>
#include <tvm/runtime/ndarray.h>
#include <tvm/runtime/registry.h>

#include <memory>
#include <string>

namespace tvm {
namespace felix {

namespace {

/*! \brief A tape owned by the simplifier. */
struct OwnedEggTape : EggTape {
  OwnedEggTape() : EggTape{} {}
  OwnedEggTape(const OwnedEggTape&) = delete;
  OwnedEggTape& operator=(const OwnedEggTape&) = delete;
  ~OwnedEggTape() { egg_free_tape(this); }
};

}  // namespace

TapeData SimplifyTape(const TapeData& tape, const TapeSimplifyOptions& options) {
  std::vector<EggVariable> variables;
  variables.reserve(tape.vars.size());
  for (const TapeVar& var : tape.vars) {
    variables.push_back({var.lower, var.upper, static_cast<uint8_t>(var.is_integer ? 1 : 0)});
  }
  const EggTape input{tape.size(),
                      tape.ops.data(),
                      tape.args.data(),
                      tape.payload.data(),
                      static_cast<int64_t>(tape.roots.size()),
                      tape.roots.data()};
  const EggOptions limits{options.iterations, options.node_limit, 1};
  OwnedEggTape output;
  int32_t stop_reason = kEggSaturated;
  char* message = nullptr;
  const int32_t status =
      egg_simplify_tape(&input, variables.data(), static_cast<int64_t>(variables.size()), &limits,
                        &output, &stop_reason, &message);
  std::unique_ptr<char, void (*)(char*)> text(message, free_str);
  TVM_CHECK(status != kEggInvalidInput, ValueError) << "SimplifyTape: " << text.get();
  ICHECK(status == kEggOk) << "SimplifyTape: " << text.get();
  TapeData result;
  result.ops.assign(output.ops, output.ops + output.size);
  result.args.assign(output.args, output.args + 3 * output.size);
  result.payload.assign(output.payload, output.payload + output.size);
  result.roots.assign(output.roots, output.roots + output.num_roots);
  result.vars = tape.vars;
  return result;
}

namespace {

template <typename T>
std::vector<T> ToVector(const runtime::NDArray& array, const char* what) {
  TVM_CHECK(array.dtype().bytes() == static_cast<int>(sizeof(T)), TypeError)
      << "SimplifyTape: " << what << " has dtype " << array.dtype() << ", expected " << sizeof(T)
      << "-byte values";
  const T* data = static_cast<const T*>(array.data());
  return std::vector<T>(data, data + array.NumElements());
}

template <typename T>
runtime::NDArray ToArray(const std::vector<T>& values, DataType dtype) {
  auto array =
      runtime::NDArray::Empty({static_cast<int64_t>(values.size())}, dtype, Device{kDLCPU, 0});
  array.CopyFromBytes(values.data(), values.size() * sizeof(T));
  return array;
}

}  // namespace

/*
 * Arrays in, arrays out: ops uint8[n], args int32[3n], payload int64[n], roots int32[m], and the
 * variables' lower float64[v], upper float64[v], is_integer uint8[v].
 */
TVM_REGISTER_GLOBAL("felix.SimplifyTape")
    .set_body_typed([](runtime::NDArray ops, runtime::NDArray args, runtime::NDArray payload,
                       runtime::NDArray roots, runtime::NDArray lower, runtime::NDArray upper,
                       runtime::NDArray is_integer, int iterations, int node_limit) {
      TapeData tape;
      tape.ops = ToVector<uint8_t>(ops, "ops");
      tape.args = ToVector<int32_t>(args, "args");
      tape.payload = ToVector<int64_t>(payload, "payload");
      tape.roots = ToVector<int32_t>(roots, "roots");
      const auto lowers = ToVector<double>(lower, "lower");
      const auto uppers = ToVector<double>(upper, "upper");
      const auto integers = ToVector<uint8_t>(is_integer, "is_integer");
      TVM_CHECK(lowers.size() == uppers.size() && lowers.size() == integers.size(), ValueError)
          << "SimplifyTape: lower, upper and is_integer have " << lowers.size() << ", "
          << uppers.size() << " and " << integers.size() << " entries; they must agree";
      TVM_CHECK(tape.args.size() == 3 * tape.ops.size() && tape.payload.size() == tape.ops.size(),
                ValueError)
          << "SimplifyTape: " << tape.ops.size() << " operations need three arguments and one "
          << "payload each, got " << tape.args.size() << " and " << tape.payload.size();
      for (size_t i = 0; i < lowers.size(); ++i) {
        tape.vars.push_back({"", integers[i] != 0, lowers[i], uppers[i]});
      }
      const TapeData result = SimplifyTape(tape, {iterations, node_limit});
      return Array<runtime::NDArray>{
          ToArray(result.ops, DataType::UInt(8)), ToArray(result.args, DataType::Int(32)),
          ToArray(result.payload, DataType::Int(64)), ToArray(result.roots, DataType::Int(32))};
    });

}  // namespace felix
}  // namespace tvm
