#include "literal.h"

#include <tvm/runtime/container/shape_tuple.h>
#include <tvm/runtime/ndarray.h>

#include <optional>
#include <string>

#include "runtime/params.h"
#include "weights_file.h"

namespace tvm {
namespace runtime {
namespace relax_vm {
namespace {

/*! \brief How a literal is written: this, then its value. */
enum class LiteralTag : int64_t {
  kNull = 0,
  kInt = 1,
  kFloat = 2,
  kText = 3,
  kShape = 4,
  kType = 5,
  kArray = 6,
  kOutline = 7,
};

}  // namespace

void SaveLiteral(const Any& literal, bool outlines, ByteWriter* writer) {
  auto tag = [writer](LiteralTag value) { writer->Word(static_cast<int64_t>(value)); };
  if (literal.is_null()) {
    tag(LiteralTag::kNull);
  } else if (const auto* shape = literal.as<ShapeTupleObj>()) {
    tag(LiteralTag::kShape);
    writer->Words(shape->data);
  } else if (literal.as<NDArrayObj>() != nullptr) {
    tag(outlines ? LiteralTag::kOutline : LiteralTag::kArray);
    const NDArray array = literal.cast<NDArray>();
    if (outlines) {
      SaveOutline(array, writer);
    } else {
      SaveNDArray(array, writer);
    }
  } else if (literal.type_code() == kTVMDataType) {
    tag(LiteralTag::kType);
    writer->Value<DLDataType>(literal.cast<DataType>());
  } else if (literal.type_code() == kTVMInt || literal.type_code() == kTVMBool) {
    tag(LiteralTag::kInt);
    writer->Word(literal.cast<int64_t>());
  } else if (literal.type_code() == kTVMFloat) {
    tag(LiteralTag::kFloat);
    writer->Value<double>(literal.cast<double>());
  } else {
    std::optional<std::string> text = literal.TryCast<std::string>();
    TVM_CHECK(text.has_value(), TypeError)
        << "relax executable: a literal of a program must be a number, a text, a type, a shape or "
        << "an array, got " << literal.TypeName();
    tag(LiteralTag::kText);
    writer->Text(*text);
  }
}

Any LoadLiteral(ByteReader* reader) {
  switch (static_cast<LiteralTag>(reader->Word())) {
    case LiteralTag::kNull:
      return Any();
    case LiteralTag::kInt:
      return Any(reader->Word());
    case LiteralTag::kFloat:
      return Any(reader->Value<double>());
    case LiteralTag::kText:
      return Any(String(reader->Text()));
    case LiteralTag::kShape:
      return Any(ShapeTuple(reader->Words()));
    case LiteralTag::kType: {
      const auto type = reader->Value<DLDataType>();
      if (type.code > DataType::kBFloat || type.bits == 0 || type.lanes == 0) {
        reader->Refuse("a literal has an unknown type");
      }
      return Any(DataType(type));
    }
    case LiteralTag::kArray:
      return Any(LoadNDArray(reader));
    case LiteralTag::kOutline:
      return Any(LoadOutline(reader));
    default:
      reader->Refuse("a literal is of no known kind");
  }
}

}  // namespace relax_vm
}  // namespace runtime
}  // namespace tvm
