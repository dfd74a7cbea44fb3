/*!
 * \file src/tir/ir/launch.cc
 * \brief Meaning of storage scopes and thread tags.
 */
#include <tvm/tir/launch.h>

namespace tvm {
namespace tir {

StorageRank StorageRankOf(const std::string& scope) {
  if (scope.rfind("shared", 0) == 0) return StorageRank::kShared;
  if (scope.rfind("warp", 0) == 0) return StorageRank::kWarp;
  if (scope.rfind("local", 0) == 0) return StorageRank::kLocal;
  if (scope == "wmma.matrix_a") return StorageRank::kWMMAMatrixA;
  if (scope == "wmma.matrix_b") return StorageRank::kWMMAMatrixB;
  if (scope == "wmma.accumulator") return StorageRank::kWMMAAccumulator;
  return StorageRank::kGlobal;
}

std::string StorageScopeOf(const Var& data) {
  const auto* pointer = data->type_annotation.as<PointerTypeNode>();
  if (pointer == nullptr || pointer->storage_scope.empty()) return "global";
  return pointer->storage_scope;
}

ThreadTag ParseThreadTag(const std::string& tag) {
  size_t dot = tag.find('.');
  std::string family = tag.substr(0, dot);
  std::string axis = dot == std::string::npos ? "" : tag.substr(dot + 1);
  bool has_axis = axis == "x" || axis == "y" || axis == "z";
  int dim = has_axis ? axis[0] - 'x' : 0;
  // Only virtual threads may leave their axis out.
  if (family == "vthread" || family == "cthread") {
    if (has_axis || axis.empty()) return {ThreadKind::kVirtual, dim};
  } else if (has_axis) {
    if (family == "blockIdx") return {ThreadKind::kBlock, dim};
    if (family == "threadIdx") return {ThreadKind::kThread, dim};
  }
  TVM_FATAL(ValueError) << "thread axis: tag \"" << tag
                        << "\" is not one of blockIdx.x/y/z, threadIdx.x/y/z, vthread and cthread";
}

}  // namespace tir
}  // namespace tvm
