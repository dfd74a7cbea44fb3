/*!
 * \file codegen_cuda_ptx.cc
 * \brief Instructions of NVIDIA's processors by their names: matrix products of a warp, copies that
 * go on by themselves, barriers in shared memory. PTX ISA, chapters "Warp Level Matrix Multiply",
 * "Data Movement" and "Parallel Synchronization: mbarrier".
 */
#include <tvm/expr/op.h>
#include <tvm/ir/type.h>

#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "codegen/source/codegen_cuda.h"

namespace tvm {
namespace codegen {

using namespace tir;  // NOLINT(*)

namespace {

constexpr int kWarp = 32;

/*! \brief An element type of a matrix, and the registers that hold it. */
struct MatrixType {
  const char* ptx;
  int bits;
  /*! \brief Bits and constraint letter of a register, and its type in C. */
  int register_bits;
  char constraint;
  const char* c_type;
  /*! \brief Products "m8n8k4"; "" where the type is only that of sums. */
  std::vector<std::string> dense, sparse;
};

const MatrixType& TypeOfMatrix(const PrimExpr& arg) {
  static const std::vector<std::string> none;
  static const std::vector<std::string> k8 = {"m16n8k8", "m16n8k16"};
  static const std::vector<std::string> k16 = {"m16n8k16", "m16n8k32"};
  static const std::vector<std::string> bytes = {"m8n8k16", "m16n8k16", "m16n8k32"};
  static const std::vector<std::string> bytes_sparse = {"m16n8k32", "m16n8k64"};
  static const std::vector<std::string> nibbles = {"m8n8k32", "m16n8k32", "m16n8k64"};
  static const std::vector<std::string> nibbles_sparse = {"m16n8k64", "m16n8k128"};
  static const std::unordered_map<std::string, MatrixType> types = {
      {"f64", {"f64", 64, 64, 'd', "double", {"m8n8k4"}, none}},
      {"f16", {"f16", 16, 32, 'r', "unsigned", {"m8n8k4", "m16n8k8", "m16n8k16"}, k16}},
      {"bf16", {"bf16", 16, 32, 'r', "unsigned", k8, k16}},
      {"tf32", {"tf32", 32, 32, 'r', "unsigned", {"m16n8k4", "m16n8k8"}, k8}},
      {"s8", {"s8", 8, 32, 'r', "unsigned", bytes, bytes_sparse}},
      {"u8", {"u8", 8, 32, 'r', "unsigned", bytes, bytes_sparse}},
      {"s4", {"s4", 4, 32, 'r', "unsigned", nibbles, nibbles_sparse}},
      {"u4", {"u4", 4, 32, 'r', "unsigned", nibbles, nibbles_sparse}},
      {"b1", {"b1", 1, 32, 'r', "unsigned", {"m8n8k128", "m16n8k128", "m16n8k256"}, none}},
      {"s32", {"s32", 32, 32, 'r', "int", none, none}},
      {"f32", {"f32", 32, 32, 'f', "float", none, none}},
  };
  static const std::unordered_map<std::string, std::string> spellings = {
      {"fp64", "f64"}, {"float64", "f64"}, {"fp16", "f16"},      {"float16", "f16"},
      {"fp32", "f32"}, {"float32", "f32"}, {"bfloat16", "bf16"}, {"int8", "s8"},
      {"uint8", "u8"}, {"int4", "s4"},     {"uint4", "u4"},      {"int1", "b1"},
      {"uint1", "b1"}, {"int32", "s32"},
  };
  std::string name = Downcast<StringImm>(arg)->value;
  if (!name.empty() && name[0] == '.') name = name.substr(1);
  if (auto it = spellings.find(name); it != spellings.end()) name = it->second;
  auto found = types.find(name);
  TVM_CHECK(found != types.end(), ValueError)
      << "cuda code generator: there are no matrices of \"" << name
      << "\"; for example \"fp16\", \"bf16\", \"tf32\", \"fp32\", \"fp64\", \"int8\", \"int32\"";
  return found->second;
}

/*! \brief m, n and k of "m16n8k8". */
std::vector<int> ProductShape(const std::string& shape) {
  std::vector<int> extents;
  for (char c : shape) {
    if (c == 'm' || c == 'n' || c == 'k') {
      extents.push_back(0);
    } else if (c >= '0' && c <= '9' && !extents.empty()) {
      extents.back() = extents.back() * 10 + (c - '0');
    }
  }
  return extents;
}

std::string ListOfShapes(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text.empty() ? "none" : text;
}

/*! \brief An instruction under construction: its operands are numbered as they come. */
class Assembly {
 public:
  explicit Assembly(std::string instruction) : text_(std::move(instruction)) {}
  /*! \brief Registers {%0, %1, ...} of neighbouring elements behind a pointer. */
  std::string Registers(const std::string& pointer, const MatrixType& type, int count, bool out) {
    std::string names;
    for (int i = 0; i < count; ++i) {
      std::string place =
          "((" + std::string(type.c_type) + "*)(" + pointer + "))[" + std::to_string(i) + "]";
      names += (i == 0 ? "" : ", ") + Operand(std::string(1, type.constraint), place, out);
    }
    return "{" + names + "}";
  }
  std::string Operand(const std::string& constraint, const std::string& value, bool out = false) {
    std::string& list = out ? outputs_ : inputs_;
    if (!list.empty()) list += ", ";
    list += "\"" + std::string(out ? "=" : "") + constraint + "\"(" + value + ")";
    return "%" + std::to_string(count_++);
  }
  void Append(const std::string& text) { text_ += text; }
  std::string Finish(bool memory) const {
    // A block of instructions ends with its brace.
    std::string end = text_.front() == '{' ? "" : ";";
    return "asm volatile(\"" + text_ + end + "\" : " + outputs_ + " : " + inputs_ +
           (memory ? " : \"memory\");" : ");");
  }

 private:
  std::string text_, outputs_, inputs_;
  int count_ = 0;
};

int64_t Constant(const CallNode* op, size_t i, const char* what) {
  const int64_t* value = as_const_int(op->args[i]);
  TVM_CHECK(value != nullptr, ValueError) << "cuda code generator: " << what << " of " << op->op
                                          << " must be a constant, got " << op->args[i];
  return *value;
}

void ExpectArguments(const CallNode* op, size_t least, size_t most) {
  size_t count = op->args.size();
  TVM_CHECK(count >= least && count <= most, ValueError)
      << "cuda code generator: " << op->op << " takes " << least
      << (most > least ? " to " + std::to_string(most) : "") << " arguments, got " << count;
}

/*! \brief The address that instructions on shared memory take. */
std::string SharedAddress(const std::string& pointer) {
  return "(unsigned)__cvta_generic_to_shared(" + pointer + ")";
}

}  // namespace

std::string CodeGenCUDA::ElementAddress(const PrimExpr& data, const PrimExpr& index,
                                        DataType dtype) {
  if (const auto* var = data.as<VarNode>()) {
    // Offsets count what the pointer points to; memory that was merged is bytes.
    const auto* pointer = var->type_annotation.as<PointerTypeNode>();
    const auto* element = pointer ? pointer->element_type.as<PrimTypeNode>() : nullptr;
    if (element != nullptr && !element->dtype.is_void()) dtype = element->dtype;
    return Pointer(GetRef<Var>(var), dtype.element_of()) + " + " + Print(index);
  }
  return "((" + Type(dtype.element_of()) + "*)" + Print(data) + ") + " + Print(index);
}

void CodeGenCUDA::PtxProduct(const CallNode* op, bool sparse) {
  ExpectArguments(op, sparse ? 16 : 13, sparse ? 16 : 14);
  const auto& args = op->args;
  std::string shape = Downcast<StringImm>(args[0])->value;
  std::string layouts[2];
  for (int i = 0; i < 2; ++i) {
    layouts[i] = Downcast<StringImm>(args[i + 1])->value;
    TVM_CHECK(layouts[i] == "row" || layouts[i] == "col", ValueError)
        << "cuda code generator: " << op->op << ": a layout is \"row\" or \"col\", got \""
        << layouts[i] << "\"";
  }
  const MatrixType &a = TypeOfMatrix(args[3]), &b = TypeOfMatrix(args[4]),
                   &c = TypeOfMatrix(args[5]);
  const std::vector<std::string>& shapes = sparse ? a.sparse : a.dense;
  TVM_CHECK(std::find(shapes.begin(), shapes.end(), shape) != shapes.end(), ValueError)
      << "cuda code generator: there is no " << (sparse ? "sparse " : "") << "product " << shape
      << " of " << a.ptx << "; there are " << ListOfShapes(shapes);
  const bool integers = a.bits < 16;
  const bool fits = std::string(c.ptx) == "f64"   ? a.bits == 64
                    : std::string(c.ptx) == "s32" ? integers
                    : std::string(c.ptx) == "f32" ? a.bits == 16 || a.bits == 32
                                                  : std::string(c.ptx) == "f16" && a.ptx == c.ptx;
  const bool same = integers ? a.bits == b.bits : std::string(a.ptx) == b.ptx;
  TVM_CHECK(fits && same, ValueError) << "cuda code generator: there is no product of " << a.ptx
                                      << " and " << b.ptx << " with sums of " << c.ptx;
  // Four products of quarters of a warp, instead of one.
  const bool quarters = shape == "m8n8k4" && a.bits == 16;
  TVM_CHECK(quarters || (layouts[0] == "row" && layouts[1] == "col"), ValueError)
      << "cuda code generator: " << op->op << ": " << shape << " of " << a.ptx
      << " takes rows of the first matrix and columns of the second, \"row\" and \"col\"";
  const std::vector<int> mnk = ProductShape(shape);
  auto registers = [&](int elements, const MatrixType& type) {
    return elements * (quarters ? 4 : 1) * type.bits / (kWarp * type.register_bits);
  };
  const size_t saturate = sparse ? 15 : 12;
  std::string name = std::string("mma") + (sparse ? ".sp" : "") + ".sync.aligned." + shape + "." +
                     layouts[0] + "." + layouts[1];
  if (Constant(op, saturate, "saturation") != 0) {
    TVM_CHECK(integers && a.bits > 1, ValueError)
        << "cuda code generator: " << op->op << " saturates sums of 4- and 8-bit integers only";
    name += ".satfinite";
  }
  for (const MatrixType* type : {&c, &a, &b, &c}) name += std::string(".") + type->ptx;
  if (a.bits == 1) {
    std::string operation = args.size() > 13 ? Downcast<StringImm>(args[13])->value : "xor";
    TVM_CHECK(operation == "xor" || operation == "and", ValueError)
        << "cuda code generator: bits are combined by \"xor\" or \"and\", got \"" << operation
        << "\"";
    name += "." + operation + ".popc";
  }
  Assembly text(name + " ");
  const std::string sums = ElementAddress(args[10], args[11], op->dtype);
  const int out = registers(mnk[0] * mnk[1], c);
  text.Append(text.Registers(sums, c, out, true) + ", ");
  text.Append(text.Registers(ElementAddress(args[6], args[7], op->dtype), a,
                             registers(mnk[0] * mnk[2] / (sparse ? 2 : 1), a), false) +
              ", ");
  text.Append(text.Registers(ElementAddress(args[8], args[9], op->dtype), b,
                             registers(mnk[1] * mnk[2], b), false) +
              ", ");
  text.Append(text.Registers(sums, c, out, false));
  if (sparse) {
    std::string metadata =
        "*(unsigned*)(" + ElementAddress(args[12], args[13], DataType::UInt(32)) + ")";
    text.Append(", " + text.Operand("r", metadata) + ", " +
                text.Operand("n", std::to_string(Constant(op, 14, "the selector"))));
  }
  Line(text.Finish(false));
}

void CodeGenCUDA::PtxLoadMatrix(const CallNode* op) {
  ExpectArguments(op, 7, 7);
  const auto& args = op->args;
  const int64_t count = Constant(op, 1, "the number of matrices");
  TVM_CHECK(count == 1 || count == 2 || count == 4, ValueError)
      << "cuda code generator: " << op->op << " loads 1, 2 or 4 matrices, got " << count;
  const std::string unit = Downcast<StringImm>(args[2])->value;
  TVM_CHECK(unit == ".b16", ValueError)
      << "cuda code generator: " << op->op << " moves pairs of bytes, \".b16\", got " << unit;
  const bool transposed = Constant(op, 0, "transposition") != 0;
  TVM_CHECK(!transposed || op->dtype.element_of().bits() == 16, ValueError)
      << "cuda code generator: " << op->op << " transposes elements of two bytes, not "
      << op->dtype.ToString() << "; lay the matrix out transposed in shared memory";
  static const MatrixType words = {"b32", 32, 32, 'r', "unsigned", {}, {}};
  Assembly text("ldmatrix.sync.aligned.m8n8.x" + std::to_string(count) +
                (transposed ? ".trans" : "") + ".shared.b16 ");
  std::string to = ElementAddress(args[3], args[4], op->dtype);
  text.Append(text.Registers(to, words, static_cast<int>(count), true) + ", ");
  std::string from = SharedAddress(ElementAddress(args[5], args[6], op->dtype));
  text.Append("[" + text.Operand("r", from) + "]");
  Line(text.Finish(true));
}

void CodeGenCUDA::PtxCopy(const CallNode* op) {
  ExpectArguments(op, 5, 6);
  const auto& args = op->args;
  const int64_t bytes = Constant(op, 4, "the number of bytes");
  TVM_CHECK(bytes == 4 || bytes == 8 || bytes == 16, ValueError)
      << "cuda code generator: " << op->op << " copies 4, 8 or 16 bytes, got " << bytes;
  std::string size = std::to_string(bytes);
  // Only copies of 16 bytes may leave the cache next to the processor out.
  Assembly text(std::string("cp.async.") + (bytes == 16 ? "cg" : "ca") + ".shared.global ");
  text.Append("[" + text.Operand("r", SharedAddress(ElementAddress(args[0], args[1], op->dtype))));
  text.Append("], [" + text.Operand("l", ElementAddress(args[2], args[3], op->dtype)) + "], ");
  text.Append(text.Operand("n", size));
  // Of a source of no bytes nothing is read, and zeros are written.
  if (args.size() == 6) {
    text.Append(", " + text.Operand("r", "(" + Print(args[5]) + ") ? " + size + " : 0"));
  }
  Line(text.Finish(true));
}

void CodeGenCUDA::PtxCopyBulk(const CallNode* op) {
  ExpectArguments(op, 6, 6);
  const auto& args = op->args;
  Assembly text("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes ");
  text.Append("[" + text.Operand("r", SharedAddress(ElementAddress(args[0], args[1], op->dtype))));
  text.Append("], [" + text.Operand("l", ElementAddress(args[2], args[3], op->dtype)) + "], ");
  text.Append(text.Operand("r", Print(args[4])) + ", ");
  text.Append("[" + text.Operand("r", Barrier(op, 5)) + "]");
  Line(text.Finish(true));
}

void CodeGenCUDA::PtxLoadGuarded(const CallNode* op) {
  ExpectArguments(op, 4, 4);
  const auto* load = op->args[2].as<BufferLoadNode>();
  const auto* target = op->args[0].as<VarNode>();
  TVM_CHECK(load != nullptr && target != nullptr, ValueError)
      << "cuda code generator: " << op->op << " takes a variable of registers, a condition, a "
      << "buffer's element and a place among the registers, got " << GetRef<PrimExpr>(op);
  TVM_CHECK(load->dtype.is_scalar() && load->dtype.bits() == 32, ValueError)
      << "cuda code generator: " << op->op << " loads elements of 32 bits, got "
      << load->dtype.ToString();
  const std::string from =
      "&" + Element(load->buffer->data, load->dtype,
                    ScalarOffset(load->buffer, load->buffer.ElemOffset(load->indices)));
  Assembly text("{ .reg .pred p; setp.ne.b32 p, ");
  const std::string place =
      "*(unsigned*)(" + ElementAddress(op->args[0], op->args[3], load->dtype) + ")";
  const std::string to = text.Operand("r", place, true);
  text.Append(text.Operand("r", "(int)(" + Print(op->args[1]) + ")"));
  text.Append(", 0; @!p mov.b32 " + to + ", 0; @p ld.global.nc.b32 " + to);
  text.Append(", [" + text.Operand("l", from) + "]; }");
  Line(text.Finish(true));
}

void CodeGenCUDA::StoreSums(const CallNode* op) {
  ExpectArguments(op, 6, 6);
  const auto& args = op->args;
  TVM_CHECK(Constant(op, 0, "m") == 16 && Constant(op, 1, "n") == 16, ValueError)
      << "cuda code generator: " << op->op << " stores sums of 16 x 16, got " << args[0] << " x "
      << args[1];
  const std::string to = ElementAddress(args[2], make_zero(DataType::Int(32)), op->dtype);
  const std::string from = ElementAddress(args[3], args[4], op->dtype);
  const std::string stride = Print(args[5]);
  // A thread holds pairs of neighbours of two rows, eight rows apart, on the left and the right.
  Line("#pragma unroll");
  Block("for (int i = 0; i < 8; ++i)", [&] {
    Line("(" + to + ")[((i & 2) * 4 + (int)threadIdx.x / 4) * " + stride +
         " + (i & 4) * 2 + (int)threadIdx.x % 4 * 2 + (i & 1)] = (" + from + ")[i];");
  });
}

void CodeGenCUDA::FillSums(const CallNode* op) {
  ExpectArguments(op, 3, 3);
  const std::string to = ElementAddress(op->args[1], op->args[2], op->dtype);
  Line("#pragma unroll");
  Block("for (int i = 0; i < " + Print(op->args[0]) + "; ++i)",
        [&] { Line("(" + to + ")[i] = " + CastText("0", DataType::Int(32), op->dtype) + ";"); });
}

std::string CodeGenCUDA::Barrier(const CallNode* op, size_t i) {
  TVM_CHECK(!barriers_.empty(), ValueError)
      << "cuda code generator: " << op->op << " names a barrier, but no create_barriers stands "
      << "before it";
  return SharedAddress("&" + barriers_ + "[" + Print(op->args[i]) + "]");
}

bool CodeGenCUDA::CallBarrier(const std::string& name, const CallNode* op) {
  if (name == "create_barriers") {
    ExpectArguments(op, 1, 1);
    const std::string count = std::to_string(Constant(op, 0, "the number of barriers"));
    barriers_ = NewName("barriers");
    barrier_phases_ = NewName("phases");
    Line("__shared__ __align__(8) unsigned long long " + barriers_ + "[" + count + "];");
    Line("unsigned " + barrier_phases_ + "[" + count + "] = {};");
    return true;
  }
  if (name == "ptx_init_barrier_thread_count") {
    ExpectArguments(op, 2, 2);
    Assembly text("mbarrier.init.shared.b64 ");
    text.Append("[" + text.Operand("r", Barrier(op, 0)) + "], ");
    text.Append(text.Operand("r", Print(op->args[1])));
    Block("if (threadIdx.x == 0 && threadIdx.y == 0 && threadIdx.z == 0)",
          [&] { Line(text.Finish(true)); });
    Line("__syncthreads();");
  } else if (name == "ptx_arrive_barrier") {
    ExpectArguments(op, 1, 1);
    Assembly text("{ .reg .b64 state; mbarrier.arrive.shared.b64 state, ");
    text.Append("[" + text.Operand("r", Barrier(op, 0)) + "]; }");
    Line(text.Finish(true));
  } else if (name == "ptx_arrive_barrier_expect_tx") {
    ExpectArguments(op, 2, 2);
    Assembly text("{ .reg .b64 state; mbarrier.arrive.expect_tx.shared.b64 state, ");
    text.Append("[" + text.Operand("r", Barrier(op, 0)) + "], ");
    text.Append(text.Operand("r", Print(op->args[1])) + "; }");
    Line(text.Finish(true));
  } else if (name == "ptx_cp_async_barrier") {
    ExpectArguments(op, 1, 1);
    Assembly text("cp.async.mbarrier.arrive.shared.b64 ");
    text.Append("[" + text.Operand("r", Barrier(op, 0)) + "]");
    Line(text.Finish(true));
  } else if (name == "ptx_wait_barrier") {
    ExpectArguments(op, 1, 1);
    const std::string helper = Helper(
        "tvm_wait_barrier",
        "void tvm_wait_barrier(unsigned barrier, unsigned phase) {\n  unsigned done = 0;\n"
        "  while (!done) {\n    asm volatile(\"{ .reg .pred p; mbarrier.test_wait.parity.shared.b64"
        " p, [%1], %2; selp.u32 %0, 1, 0, p; }\" : \"=r\"(done) : \"r\"(barrier), \"r\"(phase)"
        " : \"memory\");\n  }\n}");
    // A barrier that is waited for again completes its other phase.
    const std::string phase = barrier_phases_ + "[" + Print(op->args[0]) + "]";
    Line(helper + "(" + Barrier(op, 0) + ", " + phase + ");");
    Line(phase + " ^= 1;");
  } else {
    return false;
  }
  return true;
}

bool CodeGenCUDA::CallPtx(const std::string& name, const CallNode* op) {
  if (name == "ptx_mma" || name == "ptx_mma_sp") {
    PtxProduct(op, name == "ptx_mma_sp");
  } else if (name == "ptx_ldmatrix") {
    PtxLoadMatrix(op);
  } else if (name == "ptx_cp_async") {
    PtxCopy(op);
  } else if (name == "ptx_cp_async_bulk") {
    PtxCopyBulk(op);
  } else if (name == "ptx_ldg32") {
    PtxLoadGuarded(op);
  } else if (name == "ptx_commit_group") {
    Line("asm volatile(\"cp.async.commit_group;\" ::: \"memory\");");
  } else if (name == "ptx_wait_group") {
    ExpectArguments(op, 1, 1);
    Line("asm volatile(\"cp.async.wait_group %0;\" :: \"n\"(" +
         std::to_string(Constant(op, 0, "the number of groups")) + ") : \"memory\");");
  } else if (name == "mma_store") {
    StoreSums(op);
  } else if (name == "mma_fill") {
    FillSums(op);
  } else {
    return CallBarrier(name, op);
  }
  return true;
}

}  // namespace codegen
}  // namespace tvm
