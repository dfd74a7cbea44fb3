/*!
 * \file src/tir/transforms/pointer_offsets.cc
 * \brief The table of instructions that take pointers with offsets.
 */
#include "pointer_offsets.h"

#include <limits>
#include <string>
#include <unordered_map>

namespace tvm {
namespace tir {

const PointerOffsets* PointerOffsetsOf(const CallNode* call) {
  static const auto* table = new std::unordered_map<std::string, PointerOffsets>{
      {"tir.tvm_access_ptr", {{1, 2}}},
      {"tir.tvm_load_matrix_sync", {{0, 4}}},
      {"tir.tvm_store_matrix_sync", {{0, 4}}},
      {"tir.tvm_fill_fragment", {{0, 4}}},
      {"tir.tvm_mma_sync", {{0, 1}, {2, 3}, {4, 5}, {6, 7}}},
      {"tir.ptx_mma", {{6, 7}, {8, 9}, {10, 11}}},
      {"tir.ptx_mma_sp", {{6, 7}, {8, 9}, {10, 11}, {12, 13}}},
      {"tir.ptx_ldmatrix", {{3, 4}, {5, 6}}},
      {"tir.ptx_cp_async", {{0, 1}, {2, 3}}},
      {"tir.ptx_cp_async_bulk", {{0, 1}, {2, 3}}},
      {"tir.mma_store", {{3, 4}}},
      {"tir.mma_fill", {{1, 2}}},
  };
  const auto* op = call->op.as<OpNode>();
  if (op == nullptr) return nullptr;
  auto it = table->find(op->name);
  return it == table->end() ? nullptr : &it->second;
}

size_t OffsetOfPointer(const PointerOffsets* offsets, size_t argument) {
  if (offsets != nullptr) {
    for (const auto& [pointer, offset] : *offsets) {
      if (pointer == argument) return offset;
    }
  }
  return std::numeric_limits<size_t>::max();
}

}  // namespace tir
}  // namespace tvm
