/*!
 * \file paged_kv_cache.cc
 * \brief Keys and values of several sequences in pages, and attention over them.
 *
 * A sequence has a list of pages, as in vLLM (Kwon et al., SOSP 2023). Sequences that were forked
 * share the pages of what they have in common; one that several hold is copied before tokens are
 * added to it. What is computed of keys and values are kernels that the network brings.
 */
#include <tvm/runtime/container/shape_tuple.h>
#include <tvm/runtime/logging.h>
#include <tvm/runtime/ndarray.h>
#include <tvm/runtime/packed_func.h>
#include <tvm/runtime/registry.h>

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "kv_state.h"

namespace tvm {
namespace runtime {
namespace relax_vm {

class PagedKVCacheObj final : public KVStateObj {
 public:
  PagedKVCacheObj(const ShapeTuple& limits, int64_t num_layers, int64_t num_query_heads,
                  int64_t num_heads, int64_t head_dim, const NDArray& like, PackedFunc append,
                  PackedFunc attention)
      : max_sequences_(limits[0]),
        max_step_(limits[2]),
        page_size_(limits[3]),
        with_windows_(limits[4] != 0),
        num_query_heads_(num_query_heads),
        num_heads_(num_heads),
        head_dim_(head_dim),
        append_(std::move(append)),
        attention_(std::move(attention)) {
    // Each sequence may leave its last page nearly empty.
    num_pages_ = (limits[1] + page_size_ - 1) / page_size_ + max_sequences_;
    for (int64_t layer = 0; layer < num_layers; ++layer) {
      pages_.push_back(NDArray::Empty({num_pages_, 2, num_heads, page_size_, head_dim},
                                      like.dtype(), like.device()));
    }
    Clear();
  }

  void Clear() final {
    sequences_.clear();
    step_.clear();
    holders_.assign(num_pages_, 0);
    free_.resize(num_pages_);
    // The last of the list is taken first.
    std::iota(free_.rbegin(), free_.rend(), 0);
  }

  void AddSequence(int64_t id) final {
    TVM_CHECK(sequences_.count(id) == 0, ValueError)
        << "paged KV cache: sequence " << id << " is there already";
    TVM_CHECK(static_cast<int64_t>(sequences_.size()) < max_sequences_, ValueError)
        << "paged KV cache: there are " << max_sequences_
        << " sequences, as many as the cache was made for; remove one first";
    sequences_[id];
  }

  void RemoveSequence(int64_t id) final {
    Shorten(&Find(id), 0);
    EndStepOf(id);
    sequences_.erase(id);
  }

  void ForkSequence(int64_t parent_id, int64_t child_id, int64_t position) final {
    const int64_t length = Find(parent_id).length;
    TVM_CHECK(position >= -1 && position <= length, ValueError)
        << "paged KV cache: sequence " << parent_id << " has " << length
        << " tokens, it cannot be forked at " << position;
    CheckSeen(parent_id, position < 0 ? length : position);
    AddSequence(child_id);
    const Sequence& parent = Find(parent_id);
    Sequence& child = Find(child_id);
    child = parent;
    for (int32_t page : child.pages) {
      if (page >= 0) ++holders_[page];
    }
    if (position >= 0) Shorten(&child, position);
  }

  void PopN(int64_t id, int64_t count) final {
    Sequence& sequence = Find(id);
    TVM_CHECK(count >= 0 && count <= sequence.length, ValueError)
        << "paged KV cache: sequence " << id << " has " << sequence.length << " tokens, " << count
        << " cannot be taken from it";
    CheckSeen(id, sequence.length - count);
    Shorten(&sequence, sequence.length - count);
    EndStepOf(id);
  }

  void EnableWindow(int64_t id, int64_t window, int64_t sinks) {
    Sequence& sequence = Find(id);
    TVM_CHECK(with_windows_, ValueError)
        << "paged KV cache: it was made without support_sliding_window";
    TVM_CHECK(window > 0 && sinks == 0, ValueError)
        << "paged KV cache: a window shows at least one token and no attention sinks, got a window "
        << "of " << window << " with " << sinks << " sinks";
    const int64_t before = std::exchange(sequence.window, window);
    if (FirstSeen(sequence, sequence.length) < sequence.dropped * page_size_) {
      sequence.window = before;
      TVM_FATAL(ValueError) << "paged KV cache: the window of sequence " << id << " was " << before
                            << " tokens, and those that one of " << window << " shows are gone";
    }
  }

  void BeginForward(const ShapeTuple& ids, const ShapeTuple& lengths) final {
    CheckStep("paged KV cache", ids, lengths);
    const int64_t total = std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
    TVM_CHECK(total <= max_step_, ValueError)
        << "paged KV cache: a step of " << total << " tokens; the cache was made for " << max_step_
        << " (prefill_chunk_size)";
    int64_t needed = 0;
    for (size_t i = 0; i < ids.size(); ++i) needed += PagesFor(Find(ids[i]), lengths[i]);
    TVM_CHECK(needed <= static_cast<int64_t>(free_.size()), ValueError)
        << "paged KV cache: a step of " << total << " tokens needs " << needed << " pages, "
        << free_.size() << " are free; remove a sequence or make the cache larger";
    step_.assign(ids.begin(), ids.end());
    std::vector<int32_t> positions, slots, first, rows, table;
    for (size_t i = 0; i < ids.size(); ++i) {
      Sequence& sequence = Find(ids[i]);
      const int64_t old = sequence.length;
      Lengthen(&sequence, lengths[i]);
      DropUnseen(&sequence, old);
      for (int64_t position = old; position < sequence.length; ++position) {
        const int64_t page = sequence.pages[position / page_size_];
        positions.push_back(static_cast<int32_t>(position));
        slots.push_back(static_cast<int32_t>(page * page_size_ + position % page_size_));
        first.push_back(static_cast<int32_t>(FirstSeen(sequence, position)));
        rows.push_back(static_cast<int32_t>(table.size()));
      }
      table.insert(table.end(), sequence.pages.begin(), sequence.pages.end());
    }
    const Device device = pages_.front().device();
    positions_ = IntsOn(device, positions);
    slots_ = IntsOn(device, slots);
    first_ = IntsOn(device, first);
    rows_ = IntsOn(device, rows);
    table_ = IntsOn(device, table);
  }

  void EndForward() final { step_.clear(); }

  /*! \brief Keep the keys and values of the step's tokens, and let its queries look at all. */
  void Attention(int64_t layer, double factor, const NDArray& qkv, const NDArray& output) {
    const char* who = "paged KV cache: attention";
    CheckInStep(who);
    TVM_CHECK(layer >= 0 && layer < static_cast<int64_t>(pages_.size()), IndexError)
        << who << " of layer " << layer << " of " << pages_.size();
    const int64_t count = positions_.NumElements();
    const std::vector<int64_t> wanted{count, num_query_heads_ + 2 * num_heads_, head_dim_};
    const std::vector<int64_t> given{count, num_query_heads_, head_dim_};
    const NDArray& pages = pages_[layer];
    TVM_CHECK(qkv.Shape() == wanted && output.Shape() == given && qkv.dtype() == pages.dtype() &&
                  output.dtype() == pages.dtype(),
              ValueError)
        << who << " of " << count << " tokens takes " << pages.dtype() << " of shape (" << wanted[0]
        << ", " << wanted[1] << ", " << wanted[2] << "), and gives " << given[1] << " heads; got "
        << qkv.dtype() << " of " << qkv.NumElements() << " elements";
    const NDArray queries = NDArray::Empty(given, pages.dtype(), pages.device());
    append_(qkv, positions_, slots_, pages, queries);
    attention_(queries, positions_, first_, rows_, table_, pages, factor, output);
  }

  NDArray QueryPositions() const {
    CheckInStep("paged KV cache: get_query_positions");
    return positions_;
  }
  int64_t NumFreePages() const { return static_cast<int64_t>(free_.size()); }
  int64_t TotalLength() const {
    int64_t total = 0;
    for (const auto& [id, sequence] : sequences_) total += sequence.length;
    return total;
  }

  /*! \brief Copy keys and values of tokens begin to end - 1, as stored: (layer, token, head, i). */
  void Read(int64_t id, int64_t begin, int64_t end, const NDArray& keys, const NDArray& values) {
    const Sequence& sequence = Find(id);
    if (end == -1) end = sequence.length;
    TVM_CHECK(begin >= 0 && begin <= end && end <= sequence.length, ValueError)
        << "paged KV cache: sequence " << id << " has " << sequence.length << " tokens, " << begin
        << " to " << end << " are asked for";
    const std::vector<int64_t> shape{static_cast<int64_t>(pages_.size()), end - begin, num_heads_,
                                     head_dim_};
    const DataType type = pages_.front().dtype();
    for (const NDArray& array : {keys, values}) {
      TVM_CHECK(array.Shape() == shape && array.dtype() == type, ValueError)
          << "paged KV cache: keys and values are " << type << " of shape (layers, tokens, heads, "
          << "head_dim)";
    }
    const size_t row = head_dim_ * GetElementBytes(type);
    for (int64_t layer = 0; layer < shape[0]; ++layer) {
      for (int64_t at = begin; at < end; ++at) {
        const int64_t page = sequence.pages[at / page_size_];
        TVM_CHECK(page >= 0, ValueError)
            << "paged KV cache: token " << at << " of sequence " << id << " left the window";
        for (int64_t head = 0; head < num_heads_; ++head) {
          const int64_t to = ((layer * (end - begin) + at - begin) * num_heads_ + head) * row;
          for (int64_t which = 0; which < 2; ++which) {
            const int64_t from =
                (((page * 2 + which) * num_heads_ + head) * page_size_ + at % page_size_) * row;
            View(which == 0 ? keys : values, {head_dim_}, to)
                .CopyFrom(View(pages_[layer], {head_dim_}, from).tensor());
          }
        }
      }
    }
  }

  TVM_DECLARE_OBJECT(PagedKVCacheObj, KVStateObj, "relax.vm.PagedAttentionKVCache");

 private:
  struct Sequence {
    int64_t length = 0;
    /*! \brief How many of the last tokens a token looks at; 0 for all. */
    int64_t window = 0;
    /*! \brief How many of the first pages are no longer held, which are -1. */
    int64_t dropped = 0;
    std::vector<int32_t> pages;
  };

  /*! \brief Let no more attention be computed for a step whose pages may become another's. */
  void EndStepOf(int64_t id) {
    if (std::find(step_.begin(), step_.end(), id) != step_.end()) step_.clear();
  }
  static NDArray View(const NDArray& array, std::vector<int64_t> shape, int64_t offset) {
    return array.CreateView(std::move(shape), array.dtype(), static_cast<size_t>(offset));
  }
  Sequence& Find(int64_t id) {
    const auto found = sequences_.find(id);
    TVM_CHECK(found != sequences_.end(), ValueError)
        << "paged KV cache: there is no sequence " << id;
    return found->second;
  }
  void CheckInStep(const char* who) const {
    TVM_CHECK(!step_.empty(), ValueError)
        << who << " is only between begin_forward and end_forward";
  }
  /*! \brief Check that what a token at a position looks at is still held. */
  void CheckSeen(int64_t id, int64_t position) {
    const Sequence& sequence = Find(id);
    TVM_CHECK(position == 0 || FirstSeen(sequence, position) >= sequence.dropped * page_size_,
              ValueError)
        << "paged KV cache: sequence " << id << " cannot go on from token " << position
        << ", since its window has moved on; tokens before " << sequence.dropped * page_size_
        << " are gone";
  }
  static int64_t FirstSeen(const Sequence& sequence, int64_t position) {
    return sequence.window == 0 ? 0 : std::max<int64_t>(0, position - sequence.window + 1);
  }

  bool LastPageIsShared(const Sequence& sequence) const {
    return sequence.length % page_size_ != 0 && holders_[sequence.pages.back()] > 1;
  }
  /*! \brief How many free pages `count` more tokens take. */
  int64_t PagesFor(const Sequence& sequence, int64_t count) const {
    const int64_t pages = (sequence.length + count + page_size_ - 1) / page_size_;
    return pages - static_cast<int64_t>(sequence.pages.size()) + LastPageIsShared(sequence);
  }
  int32_t TakePage() {
    const int32_t page = free_.back();
    free_.pop_back();
    holders_[page] = 1;
    return page;
  }
  void Release(int32_t page) {
    if (page >= 0 && --holders_[page] == 0) free_.push_back(page);
  }

  void Lengthen(Sequence* sequence, int64_t count) {
    if (LastPageIsShared(*sequence)) {
      const int32_t copy = TakePage(), shared = sequence->pages.back();
      for (const NDArray& pages : pages_) {
        const std::vector<int64_t> shape{2, num_heads_, page_size_, head_dim_};
        const int64_t bytes = pages.NumBytes() / num_pages_;
        View(pages, shape, copy * bytes).CopyFrom(View(pages, shape, shared * bytes).tensor());
      }
      Release(shared);
      sequence->pages.back() = copy;
    }
    sequence->length += count;
    while (static_cast<int64_t>(sequence->pages.size()) * page_size_ < sequence->length) {
      sequence->pages.push_back(TakePage());
    }
  }

  void Shorten(Sequence* sequence, int64_t length) {
    sequence->length = length;
    const int64_t pages = (length + page_size_ - 1) / page_size_;
    while (static_cast<int64_t>(sequence->pages.size()) > pages) {
      Release(sequence->pages.back());
      sequence->pages.pop_back();
    }
    sequence->dropped = std::min(sequence->dropped, pages);
  }

  /*! \brief Give up the pages that no token from `position` on looks at. */
  void DropUnseen(Sequence* sequence, int64_t position) {
    const int64_t seen = FirstSeen(*sequence, position) / page_size_;
    for (; sequence->dropped < seen; ++sequence->dropped) {
      int32_t& page = sequence->pages[sequence->dropped];
      Release(page);
      page = -1;
    }
  }

  int64_t max_sequences_, max_step_, page_size_;
  bool with_windows_;
  int64_t num_query_heads_, num_heads_, head_dim_, num_pages_;
  PackedFunc append_, attention_;
  /*! \brief For each layer: (page, key or value, head, token of the page, i). */
  std::vector<NDArray> pages_;
  std::vector<int32_t> holders_, free_;
  std::map<int64_t, Sequence> sequences_;
  std::vector<int64_t> step_;
  /*! \brief Of each token of the step: its position in its sequence, its place in the pages, the
   * first position that it looks at, and where the pages of its sequence begin in the table. */
  NDArray positions_, slots_, first_, rows_;
  /*! \brief The pages of the step's sequences, one behind the other. */
  NDArray table_;
};

class PagedKVCache : public KVState {
 public:
  TVM_DEFINE_MUTABLE_REF(PagedKVCache, KVState, PagedKVCacheObj);
};

/*!
 * \brief (sequences, tokens, tokens of a step, tokens of a page, whether there are windows),
 * layers, heads of queries, heads of keys, size of a head, a tensor of the cache's type and device,
 * kernels.
 */
TVM_REGISTER_GLOBAL("vm.builtin.paged_attention_kv_cache_create")
    .set_body_typed([](ShapeTuple limits, int64_t num_layers, int64_t num_query_heads,
                       int64_t num_heads, int64_t head_dim, NDArray like, PackedFunc append,
                       PackedFunc attention) -> KVState {
      const char* who = "vm.builtin.paged_attention_kv_cache_create";
      TVM_CHECK(limits.size() == 5 && std::all_of(limits.begin(), limits.begin() + 4,
                                                  [](int64_t n) { return n > 0; }),
                ValueError)
          << who << ": takes the numbers of sequences, of tokens, of tokens of a step and of a "
          << "page, each at least 1, and whether there are windows";
      // Places of tokens are 32-bit numbers, those of a page for each sequence included.
      const int64_t most = std::numeric_limits<int32_t>::max();
      TVM_CHECK(std::all_of(limits.begin(), limits.end(), [=](int64_t n) { return n <= most; }) &&
                    limits[1] + (limits[0] + 1) * limits[3] <= most,
                ValueError)
          << who << ": " << limits[1] << " tokens of " << limits[0] << " sequences in pages of "
          << limits[3] << " are more than " << most << " places";
      TVM_CHECK(num_layers > 0 && num_heads > 0 && head_dim > 0 && num_query_heads > 0 &&
                    num_query_heads % num_heads == 0,
                ValueError)
          << who << ": " << num_query_heads << " heads of queries over " << num_heads
          << " heads of keys of " << head_dim << " elements in " << num_layers << " layers";
      return PagedKVCache(ObjectPtr<Object>(
          make_object<PagedKVCacheObj>(limits, num_layers, num_query_heads, num_heads, head_dim,
                                       like, std::move(append), std::move(attention))));
    });
/*! \brief (cache, layer, factor of products, queries with keys and values, output). */
TVM_REGISTER_GLOBAL("vm.builtin.attention_kv_cache_attention_with_fused_qkv")
    .set_body_typed([](PagedKVCache cache, int64_t layer, double factor, NDArray qkv,
                       NDArray output) { cache->Attention(layer, factor, qkv, output); });
TVM_REGISTER_GLOBAL("vm.builtin.attention_kv_cache_get_query_positions")
    .set_body_typed([](PagedKVCache cache) { return cache->QueryPositions(); });
TVM_REGISTER_GLOBAL("vm.builtin.attention_kv_cache_get_num_available_pages")
    .set_body_typed([](PagedKVCache cache) { return cache->NumFreePages(); });
TVM_REGISTER_GLOBAL("vm.builtin.attention_kv_cache_get_total_sequence_length")
    .set_body_typed([](PagedKVCache cache) { return cache->TotalLength(); });
TVM_REGISTER_GLOBAL("vm.builtin.attention_kv_cache_enable_sliding_window_for_seq")
    .set_body_typed([](PagedKVCache cache, int64_t sequence, int64_t window, int64_t sinks) {
      cache->EnableWindow(sequence, window, sinks);
    });
/*! \brief (cache, sequence, first token, one past the last or -1, keys, values): fills the arrays.
 */
TVM_REGISTER_GLOBAL("vm.builtin.attention_kv_cache_debug_get_kv")
    .set_body_typed([](PagedKVCache cache, int64_t sequence, int64_t begin, int64_t end,
                       NDArray keys,
                       NDArray values) { cache->Read(sequence, begin, end, keys, values); });

}  // namespace relax_vm
}  // namespace runtime
}  // namespace tvm
