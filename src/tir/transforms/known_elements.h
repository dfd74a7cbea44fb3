/*!
 * \file src/tir/transforms/known_elements.h
 * \brief What elements of buffers hold at a point of a program.
 */
#ifndef TVM_SRC_TIR_TRANSFORMS_KNOWN_ELEMENTS_H_
#define TVM_SRC_TIR_TRANSFORMS_KNOWN_ELEMENTS_H_

#include <tvm/arith/analyzer.h>
#include <tvm/expr/op.h>
#include <tvm/tir/stmt.h>

#include <optional>
#include <unordered_map>
#include <vector>

namespace tvm {
namespace tir {

/*!
 * \brief Elements of buffers whose values are known, from stores and from assumptions.
 *
 * A fact is `buffer[indices] == value`, where a guard holds, for all values of the variables of
 * loops that have ended. Everything in it is pure, so that it changes with stores only.
 */
class KnownElements {
 public:
  /*! \param value What is stored; nothing is known afterwards if it is not pure. */
  void Store(const BufferStoreNode* op, const PrimExpr& value, arith::Analyzer* analyzer);
  void Assume(const BufferLoadNode* load, const PrimExpr& value, const PrimExpr& guard);
  /*! \brief Facts in terms of a variable are not known where it is another one. */
  void ForgetVar(const VarNode* var);
  /*! \brief Everything that `stmt` may write. */
  void ForgetWrites(const Stmt& stmt);

  /*! \brief The value of an element, or an undefined expression. */
  PrimExpr Lookup(const BufferLoadNode* op, arith::Analyzer* analyzer) const;
  bool empty() const { return facts_.empty(); }

  /*! \brief What is known after a branch whose other side ends with `other`.
   *  \param condition Of this side; undefined if it may change meanwhile.
   */
  void Meet(const KnownElements& other, const PrimExpr& condition);

  /*!
   * \brief Leaves what is known at the beginning of any trip of a loop.
   * \return What is known after the loop of that which is known before it.
   */
  KnownElements EnterLoop(const ForNode* loop, arith::Analyzer* analyzer);
  /*!
   * \brief Goes from the end of any trip to what is known after the loop.
   * \param first What EnterLoop left.
   * \param after What EnterLoop returned.
   */
  void LeaveLoop(const ForNode* loop, const KnownElements& first, KnownElements after,
                 arith::Analyzer* analyzer);

 private:
  struct Fact {
    Buffer buffer;
    Array<PrimExpr> indices;
    PrimExpr value;
    PrimExpr guard;
    /*! \brief Variables for all of whose values this holds. */
    Map<Var, Range> over;
  };
  /*! \brief A store inside of a loop, the variables that move within a trip, and a condition
   *         without them under which alone it runs. */
  struct Write {
    const BufferStoreNode* store;
    Map<Var, Range> inner;
    PrimExpr condition;
  };
  using Writes = std::unordered_map<const VarNode*, std::vector<Write>>;

  static bool Same(const Fact& a, const Fact& b);
  bool Has(const Fact& fact) const;
  static bool Differ(const Fact& fact, const BufferStoreNode* op, arith::Analyzer* analyzer);
  static PrimExpr ValueAt(const Fact& fact, const Array<PrimExpr>& at, arith::Analyzer* analyzer);
  /*! \brief The stores of a body by their memory; nothing if other things may write, too. */
  static std::optional<Writes> WritesOf(const Stmt& body);
  void Forget(const VarNode* data);

  std::vector<Fact> facts_;
};

}  // namespace tir
}  // namespace tvm
#endif  // TVM_SRC_TIR_TRANSFORMS_KNOWN_ELEMENTS_H_
