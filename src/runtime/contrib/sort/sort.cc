/*!
 * \file src/runtime/contrib/sort/sort.cc
 * \brief Sorting along one dimension, for compiled code: sort, argsort and topk.
 *
 * A tensor is seen as outer x extent x inner elements, row-major, and sorted along the extent. The
 * functions are given addresses, so they serve compiled code only; the operators of topi check
 * shapes and types. Equal elements keep their order. NaN counts as larger than every number, as in
 * PyTorch.
 */
#include <tvm/runtime/data_type.h>
#include <tvm/runtime/logging.h>
#include <tvm/runtime/registry.h>
#include <tvm/runtime/threading_backend.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <type_traits>
#include <vector>

namespace tvm {
namespace runtime {
namespace {

/*! \brief What is sorted, and where the first `keep` of each row go; null where not wanted. */
struct Rows {
  const void* data;
  void* values;
  void* indices;
  DataType index_dtype;
  int64_t outer, extent, inner, keep;
  bool ascending;
};

/*! \brief Elements whose type C++ has no name for, widened for comparing. */
struct Half {
  uint16_t bits;
};
struct BFloat {
  uint16_t bits;
};

float Widen(BFloat value) {
  uint32_t bits = static_cast<uint32_t>(value.bits) << 16;
  float result;
  std::memcpy(&result, &bits, sizeof(result));
  return result;
}

float Widen(Half value) {
  const uint32_t sign = static_cast<uint32_t>(value.bits & 0x8000u) << 16;
  const uint32_t exponent = (value.bits >> 10) & 0x1Fu;
  const uint32_t fraction = value.bits & 0x3FFu;
  float result;
  if (exponent == 0) {
    // Zero and subnormals: fraction * 2^-24.
    result = static_cast<float>(fraction) * 5.9604644775390625e-8f;
    return sign ? -result : result;
  }
  // An exponent of all ones means infinity or NaN in both types.
  const uint32_t wide = exponent == 0x1Fu ? 0xFFu : exponent + (127 - 15);
  const uint32_t bits = sign | wide << 23 | fraction << 13;
  std::memcpy(&result, &bits, sizeof(result));
  return result;
}

template <typename T>
T Widen(T value) {
  return value;
}

template <typename Key>
bool Less(Key a, Key b) {
  if constexpr (std::is_floating_point_v<Key>) {
    return a < b || (b != b && a == a);
  } else {
    return a < b;
  }
}

template <typename T, typename Index>
void SortRow(const Rows& rows, int64_t row) {
  using Key = decltype(Widen(T{}));
  const int64_t start = row / rows.inner * rows.extent * rows.inner + row % rows.inner;
  const int64_t out_start = row / rows.inner * rows.keep * rows.inner + row % rows.inner;
  const T* source = static_cast<const T*>(rows.data) + start;
  std::vector<Key> keys(rows.extent);
  for (int64_t i = 0; i < rows.extent; ++i) keys[i] = Widen(source[i * rows.inner]);
  std::vector<int64_t> order(rows.extent);
  std::iota(order.begin(), order.end(), 0);
  // Positions decide between equal elements, so the order is total and any algorithm is stable.
  auto before = [&](int64_t a, int64_t b) {
    const Key x = rows.ascending ? keys[a] : keys[b];
    const Key y = rows.ascending ? keys[b] : keys[a];
    if (Less(x, y)) return true;
    if (Less(y, x)) return false;
    return a < b;
  };
  if (rows.keep == rows.extent) {
    std::sort(order.begin(), order.end(), before);
  } else {
    std::partial_sort(order.begin(), order.begin() + rows.keep, order.end(), before);
  }
  for (int64_t i = 0; i < rows.keep; ++i) {
    const int64_t at = out_start + i * rows.inner;
    if (rows.values) static_cast<T*>(rows.values)[at] = source[order[i] * rows.inner];
    if (rows.indices) static_cast<Index*>(rows.indices)[at] = static_cast<Index>(order[i]);
  }
}

template <typename T, typename Index>
void SortRows(const Rows& rows) {
  const int64_t count = rows.outer * rows.inner;
  // Below this many elements, starting the threads takes longer than sorting.
  constexpr int64_t kParallelElements = 1 << 13;
  if (count > 1 && count * rows.extent >= kParallelElements) {
    // A few ranges for each thread rather than one call for each row.
    const int64_t ranges = std::min<int64_t>(count, 64);
    threading::ParallelFor(static_cast<int>(ranges), [&](int range) {
      for (int64_t row = count * range / ranges; row < count * (range + 1) / ranges; ++row) {
        SortRow<T, Index>(rows, row);
      }
    });
  } else {
    for (int64_t row = 0; row < count; ++row) SortRow<T, Index>(rows, row);
  }
}

template <typename T>
void SortByIndexType(const Rows& rows) {
  const DataType t = rows.index_dtype;
  if (t == DataType::Int(32)) return SortRows<T, int32_t>(rows);
  if (t == DataType::Int(64)) return SortRows<T, int64_t>(rows);
  if (t == DataType::Float(32)) return SortRows<T, float>(rows);
  if (t == DataType::Float(64)) return SortRows<T, double>(rows);
  TVM_FATAL(TypeError) << "sort: positions are int32, int64, float32 or float64, got "
                       << t.ToString();
}

void Sort(DataType t, const Rows& rows) {
  TVM_CHECK(rows.keep >= 0 && rows.keep <= rows.extent, ValueError)
      << "sort: cannot keep " << rows.keep << " of " << rows.extent << " elements";
  if (t == DataType::Float(32)) return SortByIndexType<float>(rows);
  if (t == DataType::Float(64)) return SortByIndexType<double>(rows);
  if (t.is_float16()) return SortByIndexType<Half>(rows);
  if (t.is_bfloat16()) return SortByIndexType<BFloat>(rows);
  if (t == DataType::Int(8)) return SortByIndexType<int8_t>(rows);
  if (t == DataType::Int(16)) return SortByIndexType<int16_t>(rows);
  if (t == DataType::Int(32)) return SortByIndexType<int32_t>(rows);
  if (t == DataType::Int(64)) return SortByIndexType<int64_t>(rows);
  if (t == DataType::UInt(8) || t.is_bool()) return SortByIndexType<uint8_t>(rows);
  if (t == DataType::UInt(16)) return SortByIndexType<uint16_t>(rows);
  if (t == DataType::UInt(32)) return SortByIndexType<uint32_t>(rows);
  if (t == DataType::UInt(64)) return SortByIndexType<uint64_t>(rows);
  TVM_FATAL(TypeError) << "sort: no order for elements of type " << t.ToString();
}

}  // namespace

TVM_REGISTER_GLOBAL("tvm.contrib.sort.sort")
    .set_body_typed([](void* data, DataType dtype, void* values, int64_t outer, int64_t extent,
                       int64_t inner, bool ascending) {
      Sort(dtype,
           {data, values, nullptr, DataType::Int(32), outer, extent, inner, extent, ascending});
    });

TVM_REGISTER_GLOBAL("tvm.contrib.sort.argsort")
    .set_body_typed([](void* data, DataType dtype, void* indices, DataType index_dtype,
                       int64_t outer, int64_t extent, int64_t inner, bool ascending) {
      Sort(dtype, {data, nullptr, indices, index_dtype, outer, extent, inner, extent, ascending});
    });

TVM_REGISTER_GLOBAL("tvm.contrib.sort.topk")
    .set_body_typed([](void* data, DataType dtype, void* values, void* indices,
                       DataType index_dtype, int64_t outer, int64_t extent, int64_t inner,
                       int64_t k, bool ascending) {
      Sort(dtype, {data, values, indices, index_dtype, outer, extent, inner, k, ascending});
    });

}  // namespace runtime
}  // namespace tvm
