// Graph functions: what is inferred, what is equal, what is refused, how they print.
#include <gtest/gtest.h>
#include <tvm/expr/op.h>
#include <tvm/node/repr_printer.h>
#include <tvm/node/structural_equal.h>
#include <tvm/node/structural_hash.h>
#include <tvm/relax/expr.h>

#include <string>

namespace tvm {
namespace relax {
namespace {

TensorStructInfo Matrix(int rows, int columns) {
  return TensorStructInfo(ShapeExpr({rows, columns}), DataType::Float(32));
}

/*! \brief `name(x) = op(x, x)`, its value bound to a variable. */
Function Doubled(const std::string& op, int rows) {
  Var x("x", Matrix(rows, 2));
  DataflowVar y("y", Matrix(rows, 2));
  Var out("out", Matrix(rows, 2));
  Call call(ExternFunc(op), {x, x}, DictAttrs(), {Matrix(rows, 2)}, Matrix(rows, 2));
  DataflowBlock block({VarBinding(y, call), VarBinding(out, y)});
  return Function({x}, SeqExpr({block}, out), StructInfo(), true, DictAttrs());
}

TEST(Function, TakesItsResultFromItsBody) {
  Function func = Doubled("add", 3);
  EXPECT_TRUE(StructuralEqual()(func->ret_struct_info, Matrix(3, 2)));
}

TEST(Function, EqualityLooksAtStructureAndNotAtNames) {
  Function func = Doubled("add", 3), same = Doubled("add", 3);
  EXPECT_TRUE(StructuralEqual()(func, same));
  EXPECT_EQ(StructuralHash()(func), StructuralHash()(same));
  EXPECT_FALSE(StructuralEqual()(func, Doubled("multiply", 3)));
  EXPECT_FALSE(StructuralEqual()(func, Doubled("add", 4)));
}

TEST(Function, PrintsItsBindings) {
  std::string text = AsRepr(Doubled("add", 3));
  EXPECT_NE(text.find("\"add\""), std::string::npos) << text;
  EXPECT_NE(text.find("out: R.Tensor((3, 2), dtype=\"float32\") = y"), std::string::npos) << text;
}

TEST(Constant, KnowsItsShapeAndType) {
  Constant constant(runtime::NDArray::Empty({4, 5}, DataType::Int(8), Device{kDLCPU, 0}));
  StructInfo info = GetStructInfo(constant);
  EXPECT_TRUE(StructuralEqual()(info, TensorStructInfo(ShapeExpr({4, 5}), DataType::Int(8))));
}

TEST(TupleGetItem, HasTheFieldsKnowledgeAndRefusesOthers) {
  Var x("x", Matrix(1, 2)), y("y", Matrix(3, 4));
  Tuple both({x, y});
  EXPECT_TRUE(StructuralEqual()(GetStructInfo(TupleGetItem(both, 1)), Matrix(3, 4)));
  try {
    TupleGetItem(both, 2);
    FAIL() << "a field that is not there was accepted";
  } catch (const runtime::Error& error) {
    EXPECT_EQ(error.kind(), "IndexError");
  }
}

TEST(TensorStructInfo, TakesShapesOnly) {
  Var x("x", Matrix(1, 2));
  try {
    TensorStructInfo(x, DataType::Float(32));
    FAIL() << "a tensor was accepted as a shape";
  } catch (const runtime::Error& error) {
    EXPECT_EQ(error.kind(), "ValueError");
  }
}

}  // namespace
}  // namespace relax
}  // namespace tvm
