/*!
 * \file handlers_math.cc
 * \brief Elementary functions of the stackvm.
 */
#include <cmath>
#include <iterator>

#include "runtime/stackvm/machine.h"
#include "runtime/stackvm/scalar_types.h"

namespace tvm {
namespace runtime {
namespace stackvm {
namespace {

// Functions the C library does not have under our name.
template <typename T>
T exp10(T x) {
  return std::pow(T(10), x);
}
template <typename T>
T sigmoid(T x) {
  return T(1) / (T(1) + std::exp(-x));
}
template <typename T>
T rsqrt(T x) {
  return T(1) / std::sqrt(x);
}
template <typename T>
T ldexp(T x, T power) {
  return std::ldexp(x, static_cast<int>(power));
}

// Unqualified names in a function find those above and, for types of std, those of the library.
#define TVM_STACKVM_CALL1(Name) \
  +[](T x) -> T {               \
    using namespace std;        \
    return Name(x);             \
  },
#define TVM_STACKVM_CALL2(Name) \
  +[](T x, T y) -> T {          \
    using namespace std;        \
    return Name(x, y);          \
  },

template <typename T>
using Function1 = T (*)(T);
template <typename T>
using Function2 = T (*)(T, T);

template <typename T>
Function1<T> Find1(int64_t number) {
  static const Function1<T> table[] = {TVM_STACKVM_MATH1(TVM_STACKVM_CALL1)};
  bool known = number >= 0 && number < static_cast<int64_t>(std::size(table));
  return known ? table[number] : nullptr;
}
template <typename T>
Function2<T> Find2(int64_t number) {
  static const Function2<T> table[] = {TVM_STACKVM_MATH2(TVM_STACKVM_CALL2)};
  bool known = number >= 0 && number < static_cast<int64_t>(std::size(table));
  return known ? table[number] : nullptr;
}

template <typename Lane>
const Instr* Math1(Machine& m, const Instr* i) {
  using T = typename Lane::Register;
  T* __restrict out = m.Reg<T>(i->a);
  const T* x = m.Reg<T>(i->b);
  Function1<T> f = Find1<T>(i->imm);
  const int begin = m.mask.begin * i->lanes, end = m.mask.end * i->lanes;
  for (int k = begin; k < end; ++k) out[k] = Lane::Round(f(x[k]));
  return i + 1;
}

template <typename Lane>
const Instr* Math2(Machine& m, const Instr* i) {
  using T = typename Lane::Register;
  T* __restrict out = m.Reg<T>(i->a);
  const T* x = m.Reg<T>(i->b);
  const T* y = m.Reg<T>(i->c);
  Function2<T> f = Find2<T>(i->imm);
  const int begin = m.mask.begin * i->lanes, end = m.mask.end * i->lanes;
  for (int k = begin; k < end; ++k) out[k] = Lane::Round(f(x[k], y[k]));
  return i + 1;
}

/*! \brief x * y + z, rounded once. */
template <typename Lane, typename T>
T FusedMultiplyAdd(T x, T y, T z) {
  if constexpr (std::is_same_v<Lane, Float16Lane> || std::is_same_v<Lane, BFloat16Lane>) {
    return Lane::Round(RoundToOdd(
        std::fma(static_cast<double>(x), static_cast<double>(y), static_cast<double>(z))));
  } else {
    return std::fma(x, y, z);
  }
}

template <typename Lane>
const Instr* Fma(Machine& m, const Instr* i) {
  using T = typename Lane::Register;
  T* __restrict out = m.Reg<T>(i->a);
  const T* x = m.Reg<T>(i->b);
  const T* y = m.Reg<T>(i->c);
  const T* z = m.Reg<T>(i->d);
  const int begin = m.mask.begin * i->lanes, end = m.mask.end * i->lanes;
  for (int k = begin; k < end; ++k) out[k] = FusedMultiplyAdd<Lane>(x[k], y[k], z[k]);
  return i + 1;
}

template <typename Lane>
const Instr* IsNan(Machine& m, const Instr* i) {
  using T = typename Lane::Register;
  uint8_t* __restrict out = m.Reg<uint8_t>(i->a);
  const T* x = m.Reg<T>(i->b);
  const int begin = m.mask.begin * i->lanes, end = m.mask.end * i->lanes;
  for (int k = begin; k < end; ++k) out[k] = x[k] != x[k];
  return i + 1;
}

}  // namespace

Handler MathHandler(const Instr& instr) {
  return DispatchLane(instr.type, [&](auto lane) -> Handler {
    using Lane = decltype(lane);
    using T = typename Lane::Register;
    if constexpr (std::is_floating_point_v<T>) {
      if (instr.op == Opcode::kMath1 && Find1<T>(instr.imm) != nullptr) return &Math1<Lane>;
      if (instr.op == Opcode::kMath2 && Find2<T>(instr.imm) != nullptr) return &Math2<Lane>;
      if (instr.op == Opcode::kFma) return &Fma<Lane>;
      if (instr.op == Opcode::kIsNan) return &IsNan<Lane>;
    }
    return nullptr;
  });
}

int MathFunction(const std::string& name, int num_args) {
#define TVM_STACKVM_NAME(Name) #Name,
  static const char* const kOne[] = {TVM_STACKVM_MATH1(TVM_STACKVM_NAME)};
  static const char* const kTwo[] = {TVM_STACKVM_MATH2(TVM_STACKVM_NAME)};
#undef TVM_STACKVM_NAME
  const char* const* names = num_args == 1 ? kOne : kTwo;
  const size_t count = num_args == 1 ? std::size(kOne) : std::size(kTwo);
  for (size_t i = 0; i < count; ++i) {
    if (name == names[i]) return static_cast<int>(i);
  }
  return -1;
}

}  // namespace stackvm
}  // namespace runtime
}  // namespace tvm
