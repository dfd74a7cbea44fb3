/*!
 * \file tape_builder.h
 * \brief Append operations to a tape, sharing equal ones and folding constants.
 */
#ifndef TVM_FELIX_TAPE_BUILDER_H_
#define TVM_FELIX_TAPE_BUILDER_H_

#include <tvm/felix/tape.h>
#include <tvm/ir/expr.h>

#include <array>
#include <string>
#include <unordered_map>

namespace tvm {
namespace felix {

class TapeBuilder {
 public:
  using Index = int32_t;

  Index Int(int64_t value);
  Index Real(double value);
  /*! \brief A constant, as an integer where it is one. */
  Index Number(double value);
  /*! \brief The variable of this name, added to the table when it is new. */
  Index Var(const TapeVar& var);
  Index Op(TapeOp op, Index a, Index b = -1, Index c = -1);

  bool IsConst(Index i) const;
  double ConstValue(Index i) const;
  /*! \brief Whether entry i is the constant `value`. */
  bool IsConst(Index i, double value) const { return IsConst(i) && ConstValue(i) == value; }

  void AddRoot(Index i) { tape_.roots.push_back(i); }
  const TapeData& tape() const { return tape_; }
  /*! \brief The tape without entries that no root needs. */
  TapeData Finish() const;

 private:
  using Key = std::array<int64_t, 5>;
  struct KeyHash {
    size_t operator()(const Key& key) const {
      size_t h = 0;
      for (int64_t k : key) h = (h ^ static_cast<size_t>(k)) * 0x9e3779b97f4a7c15ull, h ^= h >> 30;
      return h;
    }
  };
  Index Intern(TapeOp op, Index a, Index b, Index c, int64_t payload);
  Index Fold(TapeOp op, Index a, Index b, Index c);

  TapeData tape_;
  std::unordered_map<Key, Index, KeyHash> entries_;
  std::unordered_map<std::string, int64_t> var_ids_;
};

/*! \brief Translates expressions over size variables into entries of a tape. */
class ExprToTape {
 public:
  /*! \param ranges Bounds of variables by name; a SizeVar that is not among them is in [1, inf). */
  explicit ExprToTape(TapeBuilder* builder,
                      const std::unordered_map<std::string, TapeVar>* ranges = nullptr)
      : builder_(builder), ranges_(ranges) {}

  /*! \brief The entry for `e`; ValueError names a construct that tapes do not have. */
  TapeBuilder::Index Convert(const PrimExpr& e);

 private:
  TapeBuilder::Index ConvertUncached(const PrimExpr& e);

  TapeBuilder* builder_;
  const std::unordered_map<std::string, TapeVar>* ranges_;
  std::unordered_map<const Object*, TapeBuilder::Index> memo_;
  // Keeps every visited node alive, so that its address stays its own.
  std::vector<PrimExpr> visited_;
};

}  // namespace felix
}  // namespace tvm
#endif  // TVM_FELIX_TAPE_BUILDER_H_
