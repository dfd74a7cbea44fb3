/*!
 * \file rnn_state.cc
 * \brief States of recurrent networks for several sequences, with those of some steps before.
 */
#include <tvm/runtime/container/array.h>
#include <tvm/runtime/logging.h>
#include <tvm/runtime/packed_func.h>
#include <tvm/runtime/registry.h>

#include <algorithm>
#include <deque>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "kv_state.h"

namespace tvm {
namespace runtime {
namespace relax_vm {

/*!
 * \brief Each sequence has a slot, which holds the states after its last steps in a ring.
 *
 * Kernels of the network read and write a ring: f_get(storage, slots, places, output) takes the
 * states at the places, f_set(storage, slots, places, data) puts those of this step behind them.
 */
class RNNStateObj final : public KVStateObj {
 public:
  RNNStateObj(int64_t num_layers, int64_t max_sequences, int64_t max_history,
              std::vector<PackedFunc> gets, std::vector<PackedFunc> sets,
              std::vector<NDArray> initial)
      : max_sequences_(max_sequences),
        max_history_(max_history),
        gets_(std::move(gets)),
        sets_(std::move(sets)),
        initial_(std::move(initial)) {
    for (int64_t layer = 0; layer < num_layers; ++layer) {
      std::vector<NDArray> states;
      for (const NDArray& value : initial_) {
        std::vector<int64_t> shape{max_sequences_, max_history_};
        for (int64_t extent : value.Shape()) shape.push_back(extent);
        states.push_back(NDArray::Empty(shape, value.dtype(), value.device()));
      }
      storage_.push_back(std::move(states));
    }
    Clear();
  }

  void Clear() final {
    sequences_.clear();
    step_.clear();
    free_.resize(max_sequences_);
    std::iota(free_.rbegin(), free_.rend(), 0);
  }

  void AddSequence(int64_t id) final {
    const int64_t slot = NewSequence(id).slot;
    for (const std::vector<NDArray>& states : storage_) {
      for (size_t i = 0; i < states.size(); ++i) {
        StateAt(states[i], slot, 0).CopyFrom(initial_[i].tensor());
      }
    }
  }

  void RemoveSequence(int64_t id) final {
    free_.push_back(Find(id).slot);
    sequences_.erase(id);
  }

  void ForkSequence(int64_t parent_id, int64_t child_id, int64_t position) final {
    const Sequence parent = Find(parent_id);
    const size_t behind = position < 0 ? 0 : StepsBehind(parent_id, parent, position);
    Sequence& child = NewSequence(child_id);
    const int64_t slot = child.slot;
    child = parent;
    child.slot = slot;
    StepBack(&child, behind);
    for (const std::vector<NDArray>& states : storage_) {
      for (const NDArray& state : states) {
        SlotOf(state, slot).CopyFrom(SlotOf(state, parent.slot).tensor());
      }
    }
  }

  void PopN(int64_t id, int64_t count) final {
    Sequence& sequence = Find(id);
    TVM_CHECK(count >= 0 && count <= sequence.lengths.back(), ValueError)
        << "RNN state: sequence " << id << " has " << sequence.lengths.back() << " tokens, "
        << count << " cannot be taken from it";
    StepBack(&sequence, StepsBehind(id, sequence, sequence.lengths.back() - count));
  }

  void BeginForward(const ShapeTuple& ids, const ShapeTuple& lengths) final {
    CheckStep("RNN state", ids, lengths);
    std::vector<int32_t> slots, places;
    for (int64_t id : ids) {
      const Sequence& sequence = Find(id);
      slots.push_back(static_cast<int32_t>(sequence.slot));
      places.push_back(static_cast<int32_t>(sequence.place));
    }
    step_.clear();
    for (size_t i = 0; i < ids.size(); ++i) step_.emplace_back(ids[i], lengths[i]);
    const Device device = storage_.front().front().device();
    slots_ = IntsOn(device, slots);
    places_ = IntsOn(device, places);
  }

  void EndForward() final {
    for (const auto& [id, length] : step_) {
      Sequence& sequence = Find(id);
      sequence.place = (sequence.place + 1) % max_history_;
      sequence.lengths.push_back(sequence.lengths.back() + length);
      if (static_cast<int64_t>(sequence.lengths.size()) > max_history_) {
        sequence.lengths.pop_front();
      }
    }
    step_.clear();
  }

  void Get(int64_t layer, int64_t state, const NDArray& output) {
    const NDArray& storage = At("vm.builtin.rnn_state_get", layer, state);
    gets_[state](storage, slots_, places_, output);
  }
  void Set(int64_t layer, int64_t state, const NDArray& data) {
    const NDArray& storage = At("vm.builtin.rnn_state_set", layer, state);
    sets_[state](storage, slots_, places_, data);
  }
  /*! \brief The state of a sequence after its last step. */
  NDArray Read(int64_t layer, int64_t state, int64_t id) {
    CheckPlace("vm.builtin.rnn_state_debug_get", layer, state);
    const Sequence& sequence = Find(id);
    const NDArray& like = initial_[state];
    NDArray copy = NDArray::Empty(like.Shape(), like.dtype(), like.device());
    copy.CopyFrom(StateAt(storage_[layer][state], sequence.slot, sequence.place).tensor());
    return copy;
  }

  TVM_DECLARE_OBJECT(RNNStateObj, KVStateObj, "relax.vm.RNNState");

 private:
  struct Sequence {
    int64_t slot = 0;
    /*! \brief Where in the ring the last state is. */
    int64_t place = 0;
    /*! \brief Tokens that the states in the ring have seen, the last one at the end. */
    std::deque<int64_t> lengths{0};
  };

  NDArray SlotOf(const NDArray& storage, int64_t slot) const {
    std::vector<int64_t> shape(storage.Shape().begin() + 1, storage.Shape().end());
    return storage.CreateView(shape, storage.dtype(), slot * storage.NumBytes() / max_sequences_);
  }
  NDArray StateAt(const NDArray& storage, int64_t slot, int64_t place) const {
    const std::vector<int64_t> shape(storage.Shape().begin() + 2, storage.Shape().end());
    const int64_t bytes = storage.NumBytes() / (max_sequences_ * max_history_);
    return storage.CreateView(shape, storage.dtype(), (slot * max_history_ + place) * bytes);
  }

  Sequence& Find(int64_t id) {
    const auto found = sequences_.find(id);
    TVM_CHECK(found != sequences_.end(), ValueError) << "RNN state: there is no sequence " << id;
    return found->second;
  }
  Sequence& NewSequence(int64_t id) {
    TVM_CHECK(sequences_.count(id) == 0, ValueError)
        << "RNN state: sequence " << id << " is there already";
    TVM_CHECK(!free_.empty(), ValueError)
        << "RNN state: there are " << max_sequences_
        << " sequences, as many as it was made for; remove one first";
    Sequence& sequence = sequences_[id];
    sequence.slot = free_.back();
    free_.pop_back();
    return sequence;
  }
  /*! \brief How many steps ago a sequence had a length. */
  size_t StepsBehind(int64_t id, const Sequence& sequence, int64_t length) const {
    const auto found = std::find(sequence.lengths.rbegin(), sequence.lengths.rend(), length);
    TVM_CHECK(found != sequence.lengths.rend(), ValueError)
        << "RNN state: the state of sequence " << id << " after " << length
        << " tokens is not kept; it is one of the last " << max_history_
        << " (max_history) states, each after a whole step";
    return found - sequence.lengths.rbegin();
  }
  void StepBack(Sequence* sequence, size_t count) const {
    sequence->lengths.resize(sequence->lengths.size() - count);
    const int64_t back = sequence->place - static_cast<int64_t>(count);
    sequence->place = (back + max_history_) % max_history_;
  }

  void CheckPlace(const char* who, int64_t layer, int64_t state) const {
    TVM_CHECK(layer >= 0 && layer < static_cast<int64_t>(storage_.size()) && state >= 0 &&
                  state < static_cast<int64_t>(initial_.size()),
              IndexError)
        << who << ": there are " << storage_.size() << " layers of " << initial_.size()
        << " states, got layer " << layer << ", state " << state;
  }
  const NDArray& At(const char* who, int64_t layer, int64_t state) const {
    CheckPlace(who, layer, state);
    TVM_CHECK(!step_.empty(), ValueError)
        << who << " is only between begin_forward and end_forward";
    return storage_[layer][state];
  }

  int64_t max_sequences_, max_history_;
  std::vector<PackedFunc> gets_, sets_;
  std::vector<NDArray> initial_;
  /*! \brief storage_[layer][state]: (slot, place in the ring, extents of the state). */
  std::vector<std::vector<NDArray>> storage_;
  std::map<int64_t, Sequence> sequences_;
  std::vector<int64_t> free_;
  /*! \brief Sequences and numbers of tokens of the step. */
  std::vector<std::pair<int64_t, int64_t>> step_;
  NDArray slots_, places_;
};

class RNNState : public KVState {
 public:
  TVM_DEFINE_MUTABLE_REF(RNNState, KVState, RNNStateObj);
};

/*! \brief layers, sequences, states that are kept of each, and for each state of a layer the
 * kernels and the value that sequences begin with. */
TVM_REGISTER_GLOBAL("vm.builtin.rnn_state_create")
    .set_body_typed([](int64_t num_layers, int64_t max_sequences, int64_t max_history,
                       Array<PackedFunc> gets, Array<PackedFunc> sets,
                       Array<NDArray> initial) -> KVState {
      TVM_CHECK(num_layers > 0 && max_sequences > 0 && max_history > 0, ValueError)
          << "vm.builtin.rnn_state_create: takes at least one layer, sequence and state, got "
          << num_layers << ", " << max_sequences << ", " << max_history;
      TVM_CHECK(
          initial.size() > 0 && gets.size() == initial.size() && sets.size() == initial.size(),
          ValueError)
          << "vm.builtin.rnn_state_create: takes two kernels and a first value for each state, got "
          << gets.size() << ", " << sets.size() << " and " << initial.size();
      return RNNState(ObjectPtr<Object>(make_object<RNNStateObj>(
          num_layers, max_sequences, max_history, std::vector<PackedFunc>(gets.begin(), gets.end()),
          std::vector<PackedFunc>(sets.begin(), sets.end()),
          std::vector<NDArray>(initial.begin(), initial.end()))));
    });
/*! \brief (states, layer, state of the layer, output). */
TVM_REGISTER_GLOBAL("vm.builtin.rnn_state_get")
    .set_body_typed([](RNNState states, int64_t layer, int64_t state, NDArray output) {
      states->Get(layer, state, output);
    });
/*! \brief (states, layer, state of the layer, data) -> states. */
TVM_REGISTER_GLOBAL("vm.builtin.rnn_state_set")
    .set_body_typed([](RNNState states, int64_t layer, int64_t state, NDArray data) {
      states->Set(layer, state, data);
      return states;
    });
/*! \brief (states, layer, state of the layer, sequence). */
TVM_REGISTER_GLOBAL("vm.builtin.rnn_state_debug_get")
    .set_body_typed([](RNNState states, int64_t layer, int64_t state, int64_t sequence) {
      return states->Read(layer, state, sequence);
    });

}  // namespace relax_vm
}  // namespace runtime
}  // namespace tvm
