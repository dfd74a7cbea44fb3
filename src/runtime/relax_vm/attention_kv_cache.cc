/*!
 * \file attention_kv_cache.cc
 * \brief Rows of keys or values that programs append to and look at; sampling of tokens.
 */
#include <tvm/runtime/container/shape_tuple.h>
#include <tvm/runtime/logging.h>
#include <tvm/runtime/ndarray.h>
#include <tvm/runtime/registry.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

namespace tvm {
namespace runtime {
namespace relax_vm {

/*! \brief Rows in memory that doubles when it is full. */
class AttentionKVCacheObj final : public Object {
 public:
  /*! \brief Shape (room for rows, extents of a row). */
  NDArray data;
  int64_t num_rows = 0;
  /*! \brief Where a window goes on that is full, see Override. */
  int64_t window_position = 0;

  /*! \brief The rows, in memory that the next Append may leave behind. */
  NDArray View(const std::vector<int64_t>& shape) const {
    int64_t elements = 1;
    for (int64_t extent : shape) elements *= extent;
    TVM_CHECK(elements >= 0 && elements <= num_rows * RowElements(), ValueError)
        << "vm.builtin.attention_kv_cache_view: the cache has " << num_rows << " rows of "
        << RowElements() << " elements, a shape of " << elements << " elements is asked for";
    return data.CreateView(shape, data.dtype());
  }
  NDArray View() const {
    std::vector<int64_t> shape = data.Shape();
    shape[0] = num_rows;
    return View(shape);
  }
  void Append(const NDArray& rows) {
    CheckRows("vm.builtin.attention_kv_cache_append", rows);
    const int64_t needed = num_rows + rows.Shape()[0];
    if (needed > data.Shape()[0]) Grow(needed);
    if (rows.Shape()[0] > 0) Rows(num_rows, rows.Shape()).CopyFrom(rows.tensor());
    num_rows = needed;
  }
  /*! \brief Put other rows in the place of all that are there. */
  void Update(const NDArray& rows) {
    const char* who = "vm.builtin.attention_kv_cache_update";
    CheckRows(who, rows);
    TVM_CHECK(rows.Shape()[0] == num_rows, ValueError)
        << who << ": the cache has " << num_rows << " rows, " << rows.Shape()[0] << " are given";
    if (num_rows > 0) Rows(0, rows.Shape()).CopyFrom(rows.tensor());
  }
  /*!
   * \brief Append rows to a window, and write over its oldest ones when it is full.
   * \param window The most rows that the cache holds.
   * \param sinks The first rows of the window, which stay.
   */
  void Override(const char* who, const NDArray& rows, int64_t window, int64_t sinks) {
    CheckRows(who, rows);
    const std::vector<int64_t> shape = rows.Shape();
    TVM_CHECK(sinks >= 0 && shape[0] <= window - sinks, ValueError)
        << who << ": " << shape[0] << " rows for a window of " << window << ", of which " << sinks
        << " stay";
    const int64_t needed = std::min(num_rows + shape[0], window);
    if (needed > data.Shape()[0]) Grow(needed);
    const int64_t row_bytes = RowElements() * GetElementBytes(data.dtype());
    for (int64_t done = 0; done < shape[0];) {
      if (window_position == window) window_position = sinks;
      std::vector<int64_t> piece = shape;
      piece[0] = std::min(shape[0] - done, window - window_position);
      const NDArray from = rows.CreateView(piece, rows.dtype(), done * row_bytes);
      Rows(window_position, piece).CopyFrom(from.tensor());
      done += piece[0];
      window_position += piece[0];
    }
    num_rows = needed;
  }
  void Clear() { num_rows = window_position = 0; }

  TVM_DECLARE_OBJECT(AttentionKVCacheObj, Object, "relax.vm.AttentionKVCache");

 private:
  void CheckRows(const char* who, const NDArray& rows) const {
    TVM_CHECK(
        rows.ndim() == data.ndim() && rows.dtype() == data.dtype() &&
            std::equal(rows.Shape().begin() + 1, rows.Shape().end(), data.Shape().begin() + 1),
        ValueError)
        << who << ": takes rows as those of the cache, which are " << data.dtype() << " of "
        << RowElements() << " elements";
  }
  int64_t RowElements() const { return data.NumElements() / std::max<int64_t>(data.Shape()[0], 1); }
  NDArray Rows(int64_t first, const std::vector<int64_t>& shape) const {
    const size_t row_bytes = RowElements() * GetElementBytes(data.dtype());
    return data.CreateView(shape, data.dtype(), first * row_bytes);
  }
  void Grow(int64_t needed) {
    const NDArray old = View();
    std::vector<int64_t> shape = data.Shape();
    shape[0] = std::max(needed, 2 * shape[0]);
    data = NDArray::Empty(shape, data.dtype(), data.device());
    if (num_rows > 0) Rows(0, old.Shape()).CopyFrom(old.tensor());
  }
};

class AttentionKVCache : public ObjectRef {
 public:
  TVM_DEFINE_MUTABLE_REF(AttentionKVCache, ObjectRef, AttentionKVCacheObj);
};

namespace {

/*! \brief First rows, the shape of the memory to begin with, how many rows are there: 0 or all. */
AttentionKVCache Create(NDArray rows, ShapeTuple shape, int64_t num_rows) {
  TVM_CHECK(shape.size() >= 1 && shape[0] > 0, ValueError)
      << "vm.builtin.attention_kv_cache_create: the first extent is the room for rows, at least 1";
  TVM_CHECK(num_rows >= 0 && num_rows <= rows.Shape()[0] && num_rows <= shape[0], ValueError)
      << "vm.builtin.attention_kv_cache_create: " << num_rows << " rows of " << rows.Shape()[0];
  auto cache = make_object<AttentionKVCacheObj>();
  cache->data = NDArray::Empty({shape.begin(), shape.end()}, rows.dtype(), rows.device());
  std::vector<int64_t> first = rows.Shape();
  first[0] = num_rows;
  if (num_rows > 0) cache->Append(rows.CreateView(first, rows.dtype()));
  return AttentionKVCache(ObjectPtr<Object>(cache));
}

/*! \brief Rows of probabilities on the cpu, float32. */
NDArray Rows(const char* who, const NDArray& given) {
  const NDArray array = given.CopyTo(Device{kDLCPU, 0});
  TVM_CHECK(array.ndim() == 2 && array.dtype() == DataType::Float(32), ValueError)
      << who << ": takes rows of float32 of shape (rows, choices)";
  return array;
}

/*! \brief For each row, the first choice whose summed probability exceeds the row's number. */
NDArray FromUniform(NDArray probabilities, NDArray numbers) {
  const char* who = "vm.builtin.multinomial_from_uniform";
  const NDArray rows = Rows(who, probabilities), limits = Rows(who, numbers);
  TVM_CHECK(limits.Shape()[0] == rows.Shape()[0] && limits.Shape()[1] == 1, ValueError)
      << who << ": takes one number for each row of probabilities";
  const int64_t count = rows.Shape()[0], choices = rows.Shape()[1];
  std::vector<int64_t> chosen(count, choices - 1);
  for (int64_t row = 0; row < count; ++row) {
    const float* at = static_cast<const float*>(rows.data()) + row * choices;
    const float limit = static_cast<const float*>(limits.data())[row];
    float sum = 0;
    for (int64_t i = 0; i < choices; ++i) {
      sum += at[i];
      if (sum > limit) {
        chosen[row] = i;
        break;
      }
    }
  }
  NDArray result = NDArray::Empty({count, 1}, DataType::Int(64), Device{kDLCPU, 0});
  result.CopyFromBytes(chosen.data(), chosen.size() * sizeof(int64_t));
  return result;
}

/*! \brief One of the likeliest choices that make up `top_p` of the probability. */
int64_t SampleTopP(std::vector<float> probabilities, double top_p, double number) {
  std::vector<int64_t> order(probabilities.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return probabilities[a] > probabilities[b]; });
  double kept = 0;
  size_t count = 0;
  while (count < order.size() && (count == 0 || kept < top_p))
    kept += probabilities[order[count++]];
  double left = number * kept;
  for (size_t i = 0; i < count; ++i) {
    left -= probabilities[order[i]];
    if (left < 0) return order[i];
  }
  return order[count - 1];
}

std::vector<float> OneRow(const char* who, const NDArray& given) {
  const NDArray array = given.CopyTo(Device{kDLCPU, 0});
  TVM_CHECK(array.dtype() == DataType::Float(32) && array.NumElements() > 0, ValueError)
      << who << ": takes one row of float32";
  std::vector<float> values(array.NumElements());
  array.CopyToBytes(values.data(), array.NumBytes());
  return values;
}

std::vector<int32_t> Tokens(const char* who, const NDArray& given) {
  const NDArray array = given.CopyTo(Device{kDLCPU, 0});
  TVM_CHECK(array.dtype() == DataType::Int(32), ValueError)
      << who << ": tokens and counts are int32, got " << array.dtype();
  std::vector<int32_t> values(array.NumElements());
  array.CopyToBytes(values.data(), array.NumBytes());
  return values;
}

/*! \brief Change the logit of each token, in place: (which token of the list, old) -> new. */
void ChangeLogits(const char* who, NDArray logits, const std::vector<int32_t>& tokens,
                  const std::function<double(size_t, double)>& change) {
  std::vector<float> values = OneRow(who, logits);
  for (size_t i = 0; i < tokens.size(); ++i) {
    TVM_CHECK(tokens[i] >= 0 && tokens[i] < static_cast<int64_t>(values.size()), ValueError)
        << who << ": token " << tokens[i] << " of " << values.size();
    float& value = values[tokens[i]];
    value = static_cast<float>(change(i, value));
  }
  logits.CopyFromBytes(values.data(), values.size() * sizeof(float));
}

/*! \brief Probabilities of logits; a temperature of 0 leaves the largest alone. */
std::vector<float> Softmax(std::vector<float> logits, double temperature) {
  const float most = *std::max_element(logits.begin(), logits.end());
  const double scale = 1.0 / std::max(temperature, 1e-6);
  double sum = 0;
  for (float& value : logits) {
    value = static_cast<float>(std::exp((value - most) * scale));
    sum += value;
  }
  for (float& value : logits) value = static_cast<float>(value / sum);
  return logits;
}

}  // namespace

TVM_REGISTER_GLOBAL("vm.builtin.attention_kv_cache_create").set_body_typed(Create);
/*! \brief (cache), or (cache, shape). */
TVM_REGISTER_GLOBAL("vm.builtin.attention_kv_cache_view").set_body([](Args args, RetValue* ret) {
  const char* who = "vm.builtin.attention_kv_cache_view";
  const auto cache = ReadArg<AttentionKVCache>(who, args, 0);
  if (args.size() == 1) {
    *ret = cache->View();
  } else {
    const auto shape = ReadArg<ShapeTuple>(who, args, 1);
    *ret = cache->View({shape.begin(), shape.end()});
  }
});
TVM_REGISTER_GLOBAL("vm.builtin.attention_kv_cache_append")
    .set_body_typed([](AttentionKVCache cache, NDArray rows) {
      cache->Append(rows);
      return cache;
    });
/*! \brief Forget the last rows of each cache. */
TVM_REGISTER_GLOBAL("vm.builtin.attention_kv_cache_array_popn")
    .set_body_typed([](Array<AttentionKVCache> caches, int64_t count) {
      for (const AttentionKVCache& cache : caches) {
        TVM_CHECK(count >= 0 && count <= cache->num_rows, ValueError)
            << "vm.builtin.attention_kv_cache_array_popn: " << count << " rows of "
            << cache->num_rows;
        cache->num_rows -= count;
      }
    });
TVM_REGISTER_GLOBAL("vm.builtin.attention_kv_cache_array_clear")
    .set_body_typed([](Array<AttentionKVCache> caches) {
      for (const AttentionKVCache& cache : caches) cache->Clear();
    });
TVM_REGISTER_GLOBAL("vm.builtin.attention_kv_cache_update")
    .set_body_typed([](AttentionKVCache cache, NDArray rows) {
      cache->Update(rows);
      return cache;
    });
TVM_REGISTER_GLOBAL("vm.builtin.attention_kv_cache_window_override")
    .set_body_typed([](AttentionKVCache cache, NDArray rows, int64_t window) {
      cache->Override("vm.builtin.attention_kv_cache_window_override", rows, window, 0);
      return cache;
    });
TVM_REGISTER_GLOBAL("vm.builtin.attention_kv_cache_window_override_with_sinks")
    .set_body_typed([](AttentionKVCache cache, NDArray rows, int64_t window, int64_t sinks) {
      const char* who = "vm.builtin.attention_kv_cache_window_override_with_sinks";
      cache->Override(who, rows, window, sinks);
      return cache;
    });
/*! \brief Make tokens that were there less likely, in place: (logits, tokens, factor). */
TVM_REGISTER_GLOBAL("vm.builtin.apply_repetition_penalty")
    .set_body_typed([](NDArray logits, NDArray tokens, double penalty) {
      const char* who = "vm.builtin.apply_repetition_penalty";
      ChangeLogits(who, logits, Tokens(who, tokens), [&](size_t, double value) {
        return value <= 0 ? value * penalty : value / penalty;
      });
    });
/*!
 * \brief The same by what is taken off: once for each token that was there, and as often as it was:
 * (logits, tokens, how often, penalty of presence, penalty of frequency).
 */
TVM_REGISTER_GLOBAL("vm.builtin.apply_presence_and_frequency_penalty")
    .set_body_typed([](NDArray logits, NDArray tokens, NDArray counts, double presence,
                       double frequency) {
      const char* who = "vm.builtin.apply_presence_and_frequency_penalty";
      const std::vector<int32_t> known = Tokens(who, tokens), times = Tokens(who, counts);
      TVM_CHECK(known.size() == times.size(), ValueError)
          << who << ": " << known.size() << " tokens and " << times.size() << " counts";
      ChangeLogits(who, logits, known,
                   [&](size_t i, double value) { return value - times[i] * frequency - presence; });
    });
/*! \brief Probabilities in the place of logits: (logits, temperature). */
TVM_REGISTER_GLOBAL("vm.builtin.apply_softmax_with_temperature")
    .set_body_typed([](NDArray logits, double temperature) {
      const char* who = "vm.builtin.apply_softmax_with_temperature";
      const std::vector<float> values = Softmax(OneRow(who, logits), temperature);
      logits.CopyFromBytes(values.data(), values.size() * sizeof(float));
    });
TVM_REGISTER_GLOBAL("vm.builtin.multinomial_from_uniform").set_body_typed(FromUniform);
/*! \brief (logits, temperature, share of the probability, number in [0, 1)) -> choice. */
TVM_REGISTER_GLOBAL("vm.builtin.sample_top_p_from_logits")
    .set_body_typed([](NDArray logits, double temperature, double top_p, double number) {
      return SampleTopP(Softmax(OneRow("vm.builtin.sample_top_p_from_logits", logits), temperature),
                        top_p, number);
    });
TVM_REGISTER_GLOBAL("vm.builtin.sample_top_p_from_prob")
    .set_body_typed([](NDArray probabilities, double top_p, double number) {
      return SampleTopP(OneRow("vm.builtin.sample_top_p_from_prob", probabilities), top_p, number);
    });

}  // namespace relax_vm
}  // namespace runtime
}  // namespace tvm
