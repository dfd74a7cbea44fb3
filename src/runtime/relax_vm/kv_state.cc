#include "kv_state.h"

#include <tvm/runtime/logging.h>
#include <tvm/runtime/registry.h>

#include <set>

namespace tvm {
namespace runtime {
namespace relax_vm {

NDArray IntsOn(Device device, const std::vector<int32_t>& numbers) {
  NDArray array = NDArray::Empty({static_cast<int64_t>(numbers.size())}, DataType::Int(32), device);
  if (!numbers.empty()) array.CopyFromBytes(numbers.data(), numbers.size() * sizeof(int32_t));
  return array;
}

void CheckStep(const std::string& who, const ShapeTuple& sequences, const ShapeTuple& lengths) {
  TVM_CHECK(sequences.size() == lengths.size() && sequences.size() > 0, ValueError)
      << who << ": takes a number of tokens for each sequence, got " << sequences.size()
      << " sequences and " << lengths.size() << " numbers";
  std::set<int64_t> seen;
  for (size_t i = 0; i < sequences.size(); ++i) {
    TVM_CHECK(lengths[i] > 0, ValueError)
        << who << ": sequence " << sequences[i] << " takes " << lengths[i] << " tokens";
    TVM_CHECK(seen.insert(sequences[i]).second, ValueError)
        << who << ": sequence " << sequences[i] << " is there twice";
  }
}

TVM_REGISTER_GLOBAL("vm.builtin.kv_state_clear").set_body_typed([](KVState state) {
  state->Clear();
});
TVM_REGISTER_GLOBAL("vm.builtin.kv_state_add_sequence")
    .set_body_typed([](KVState state, int64_t sequence) { state->AddSequence(sequence); });
TVM_REGISTER_GLOBAL("vm.builtin.kv_state_remove_sequence")
    .set_body_typed([](KVState state, int64_t sequence) { state->RemoveSequence(sequence); });
/*! \brief (state, parent, child), or with how many tokens of the parent the child begins. */
TVM_REGISTER_GLOBAL("vm.builtin.kv_state_fork_sequence").set_body([](Args args, RetValue*) {
  const char* who = "vm.builtin.kv_state_fork_sequence";
  ReadArg<KVState>(who, args, 0)
      ->ForkSequence(ReadArg<int64_t>(who, args, 1), ReadArg<int64_t>(who, args, 2),
                     args.size() > 3 ? ReadArg<int64_t>(who, args, 3) : -1);
});
TVM_REGISTER_GLOBAL("vm.builtin.kv_state_popn")
    .set_body_typed([](KVState state, int64_t sequence, int64_t count) {
      state->PopN(sequence, count);
    });
TVM_REGISTER_GLOBAL("vm.builtin.kv_state_begin_forward")
    .set_body_typed([](KVState state, ShapeTuple sequences, ShapeTuple lengths) {
      state->BeginForward(sequences, lengths);
    });
TVM_REGISTER_GLOBAL("vm.builtin.kv_state_end_forward").set_body_typed([](KVState state) {
  state->EndForward();
});

}  // namespace relax_vm
}  // namespace runtime
}  // namespace tvm
