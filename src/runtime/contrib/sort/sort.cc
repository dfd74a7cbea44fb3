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
#include <type_traits>
#include <utility>
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

/*! \brief Elements whose type C++ has no name for. */
struct Half {
  uint16_t bits;
};
struct BFloat {
  uint16_t bits;
};

template <typename To, typename From>
To BitsOf(From value) {
  To bits;
  static_assert(sizeof(To) == sizeof(From));
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

/*!
 * \brief An unsigned number for the bits of a float, in the order of the floats, without a branch.
 *
 * Zeros of both signs are equal, and NaN is above everything. \p infinity has the bits of infinity.
 */
template <typename Key>
Key OrderOfFloat(Key bits, Key infinity) {
  constexpr int kLast = 8 * sizeof(Key) - 1;
  constexpr Key kSign = static_cast<Key>(Key{1} << kLast);
  const Key magnitude = static_cast<Key>(bits & static_cast<Key>(~kSign));
  const Key negative = static_cast<Key>(Key{0} - static_cast<Key>(bits >> kLast));
  const Key order = static_cast<Key>(bits ^ static_cast<Key>(negative | kSign));
  const Key number = magnitude == 0 ? kSign : order;
  return magnitude > infinity ? static_cast<Key>(~Key{0}) : number;
}

uint32_t OrderOf(float value) { return OrderOfFloat(BitsOf<uint32_t>(value), 0x7F800000u); }
uint64_t OrderOf(double value) {
  return OrderOfFloat(BitsOf<uint64_t>(value), uint64_t{0x7FF} << 52);
}
uint32_t OrderOf(Half value) { return OrderOfFloat<uint16_t>(value.bits, 0x7C00u); }
uint32_t OrderOf(BFloat value) { return OrderOfFloat<uint16_t>(value.bits, 0x7F80u); }

template <typename T>
auto OrderOf(T value) {
  using Key = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
  constexpr Key kLowest = std::is_signed_v<T> ? Key{1} << (8 * sizeof(Key) - 1) : Key{0};
  return static_cast<Key>(value) ^ kLowest;
}

/*! \brief An element's order with its position below, in one number: a total and stable order. */
struct Short {
  using Entry = uint64_t;
  static Entry Make(uint32_t order, int64_t position) {
    return static_cast<uint64_t>(order) << 32 | static_cast<uint64_t>(position);
  }
  static uint32_t Order(Entry entry) { return static_cast<uint32_t>(entry >> 32); }
  static int64_t Position(Entry entry) { return static_cast<int64_t>(entry & 0xFFFFFFFFu); }
};
/*! \brief The same of longer elements or rows. */
struct Long {
  using Entry = std::pair<uint64_t, int64_t>;
  static Entry Make(uint64_t order, int64_t position) { return {order, position}; }
  static uint64_t Order(const Entry& entry) { return entry.first; }
  static int64_t Position(const Entry& entry) { return entry.second; }
};

/*! \brief Memory that the rows of one thread share. */
template <typename Form>
struct Scratch {
  std::vector<typename Form::Entry> entries, others;
};

/*! \brief Entries, which stand by position, by their upper halves. */
template <int kBits>
void RadixSort(std::vector<uint64_t>* entries, std::vector<uint64_t>* others) {
  constexpr int kPasses = (32 + kBits - 1) / kBits;
  constexpr size_t kDigits = size_t{1} << kBits;
  auto digit = [](uint64_t entry, int pass) {
    return static_cast<size_t>(entry >> (32 + pass * kBits)) & (kDigits - 1);
  };
  std::vector<uint32_t> counts(kPasses * kDigits, 0);
  for (uint64_t entry : *entries) {
    for (int pass = 0; pass < kPasses; ++pass) ++counts[pass * kDigits + digit(entry, pass)];
  }
  others->resize(entries->size());
  for (int pass = 0; pass < kPasses; ++pass) {
    uint32_t* count = counts.data() + pass * kDigits;
    // Where all have the same digit there is nothing to move.
    if (count[digit(entries->front(), pass)] == entries->size()) continue;
    uint32_t begin = 0;
    for (size_t d = 0; d < kDigits; ++d) begin += std::exchange(count[d], begin);
    for (uint64_t entry : *entries) (*others)[count[digit(entry, pass)]++] = entry;
    entries->swap(*others);
  }
}

/*! \brief Entries that stand by position. */
template <typename Form>
void SortAll(Scratch<Form>* scratch) {
  auto& entries = scratch->entries;
  if constexpr (std::is_same_v<Form, Short>) {
    // Measured: where the tables of digits cost less than comparing.
    constexpr size_t kFewDigits = 128, kManyDigits = 4096;
    if (entries.size() >= kManyDigits) return RadixSort<11>(&entries, &scratch->others);
    if (entries.size() >= kFewDigits) return RadixSort<8>(&entries, &scratch->others);
  }
  std::sort(entries.begin(), entries.end());
}

/*! \brief Leave the first of the entries, in any order. */
template <typename Entries>
void KeepFirst(size_t keep, Entries* entries) {
  if (keep >= entries->size()) return;
  std::nth_element(entries->begin(), entries->begin() + keep, entries->end());
  entries->resize(keep);
}

/*! \brief Elements of a row that are looked at together. */
constexpr int64_t kBlock = 64;

/*! \brief Orders of a row's elements, in blocks, of which those without a better one are left out.
 */
template <typename T>
class OrderedBlocks {
 public:
  using Key = decltype(OrderOf(T{}));

  OrderedBlocks(const Rows& rows, const T* source)
      : rows_(rows), source_(source), flip_(rows.ascending ? Key{0} : static_cast<Key>(~Key{0})) {}

  /*! \brief Call \p visit with order and position of what may lie before `*worst`. */
  template <typename Visit>
  void ForEach(const Key* worst, const Visit& visit) const {
    Key orders[kBlock];
    for (int64_t begin = 0; begin < rows_.extent; begin += kBlock) {
      const int64_t length = std::min(kBlock, rows_.extent - begin);
      if (length == kBlock && rows_.inner == 1) {
        int64_t better = 0;
        for (int64_t i = 0; i < kBlock; ++i) {
          orders[i] = static_cast<Key>(OrderOf(source_[begin + i]) ^ flip_);
        }
        for (int64_t i = 0; i < kBlock; ++i) better += orders[i] < *worst ? 1 : 0;
        // The first so many are visited whatever they are.
        if (better == 0 && begin >= rows_.keep) continue;
      } else {
        for (int64_t i = 0; i < length; ++i) {
          orders[i] = static_cast<Key>(OrderOf(source_[(begin + i) * rows_.inner]) ^ flip_);
        }
      }
      for (int64_t i = 0; i < length; ++i) visit(orders[i], begin + i);
    }
  }

 private:
  const Rows& rows_;
  const T* source_;
  const Key flip_;
};

/*! \brief The first entries of a row into the scratch, in order: each new one goes to its place. */
template <typename Form, typename T>
void InsertFirst(const Rows& rows, const T* source, Scratch<Form>* scratch) {
  using Key = typename OrderedBlocks<T>::Key;
  auto& entries = scratch->entries;
  const size_t keep = static_cast<size_t>(rows.keep);
  Key worst = static_cast<Key>(~Key{0});
  entries.clear();
  OrderedBlocks<T>(rows, source).ForEach(&worst, [&](Key order, int64_t position) {
    if (entries.size() < keep) {
      entries.push_back({});
    } else if (order >= worst) {
      // Of equal ones the earlier come first.
      return;
    }
    const typename Form::Entry entry = Form::Make(order, position);
    size_t at = entries.size() - 1;
    for (; at != 0 && entry < entries[at - 1]; --at) entries[at] = entries[at - 1];
    entries[at] = entry;
    if (entries.size() == keep) worst = static_cast<Key>(Form::Order(entries.back()));
  });
}

/*!
 * \brief The first entries of a row into the scratch, in any order.
 *
 * Candidates are collected; when there are twice as many as wanted, all but the first are dropped.
 */
template <typename Form, typename T>
void CollectFirst(const Rows& rows, const T* source, Scratch<Form>* scratch) {
  using Key = typename OrderedBlocks<T>::Key;
  auto& entries = scratch->entries;
  const size_t keep = static_cast<size_t>(rows.keep);
  const size_t room = std::max<size_t>(2 * keep, kBlock);
  Key worst = static_cast<Key>(~Key{0});
  entries.clear();
  OrderedBlocks<T>(rows, source).ForEach(&worst, [&](Key order, int64_t position) {
    // Of equal ones the earlier come first, but only once there are enough.
    if (order >= worst && entries.size() >= keep) return;
    entries.push_back(Form::Make(order, position));
    if (entries.size() < room) return;
    KeepFirst(keep, &entries);
    worst = static_cast<Key>(Form::Order(*std::max_element(entries.begin(), entries.end())));
  });
  KeepFirst(keep, &entries);
}

template <typename Form, typename T, typename Index>
void SortRow(const Rows& rows, int64_t row, Scratch<Form>* scratch) {
  const int64_t start = row / rows.inner * rows.extent * rows.inner + row % rows.inner;
  const int64_t out_start = row / rows.inner * rows.keep * rows.inner + row % rows.inner;
  const T* source = static_cast<const T*>(rows.data) + start;
  auto& entries = scratch->entries;
  // Below, to part the candidates again and again costs more than to sort all.
  constexpr int64_t kFew = 4;
  // Above, to move entries to make room for one costs more than to part them.
  constexpr int64_t kInserted = 16;
  if (rows.keep <= kInserted) {
    InsertFirst<Form>(rows, source, scratch);
  } else if (rows.keep * kFew <= rows.extent) {
    CollectFirst<Form>(rows, source, scratch);
    std::sort(entries.begin(), entries.end());
  } else {
    entries.resize(static_cast<size_t>(rows.extent));
    for (int64_t i = 0; i < rows.extent; ++i) {
      const auto order = OrderOf(source[i * rows.inner]);
      entries[i] = Form::Make(rows.ascending ? order : ~order, i);
    }
    SortAll<Form>(scratch);
  }
  for (int64_t i = 0; i < rows.keep; ++i) {
    const int64_t at = out_start + i * rows.inner;
    const int64_t position = Form::Position(entries[i]);
    if (rows.values) static_cast<T*>(rows.values)[at] = source[position * rows.inner];
    if (rows.indices) static_cast<Index*>(rows.indices)[at] = static_cast<Index>(position);
  }
}

template <typename Form, typename T, typename Index>
void SortRowsAs(const Rows& rows) {
  const int64_t count = rows.outer * rows.inner;
  auto sort = [&](int64_t begin, int64_t end) {
    Scratch<Form> scratch;
    for (int64_t row = begin; row < end; ++row) SortRow<Form, T, Index>(rows, row, &scratch);
  };
  // Below this many elements, starting the threads takes longer than sorting.
  constexpr int64_t kParallelElements = 1 << 13;
  if (count > 1 && count * rows.extent >= kParallelElements) {
    // A few ranges for each thread rather than one call for each row.
    const int64_t ranges = std::min<int64_t>(count, 64);
    threading::ParallelFor(static_cast<int>(ranges), [&](int range) {
      sort(count * range / ranges, count * (range + 1) / ranges);
    });
  } else {
    sort(0, count);
  }
}

template <typename T, typename Index>
void SortRows(const Rows& rows) {
  if constexpr (sizeof(T) < 8) {
    if (rows.extent <= int64_t{1} << 32) return SortRowsAs<Short, T, Index>(rows);
  }
  SortRowsAs<Long, T, Index>(rows);
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
  if (rows.keep == 0) return;
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
