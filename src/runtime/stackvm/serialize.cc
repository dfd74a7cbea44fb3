/*!
 * \file serialize.cc
 * \brief Programs of the stackvm as bytes.
 */
#include <tvm/runtime/serializer.h>

#include "runtime/stackvm/bytecode.h"

namespace tvm {
namespace runtime {
namespace stackvm {
namespace {

constexpr std::string_view kMagic = "TVMSVM01";

/*! \brief One description of the format for both directions: `io` reads or writes each field. */
template <typename IO>
void Transfer(IO& io, Instr& instr) {
  io.Enum(instr.op);
  io.Enum(instr.type);
  io.Enum(instr.type2);
  io.Number(instr.flags);
  for (int32_t* field :
       {&instr.lanes, &instr.a, &instr.b, &instr.c, &instr.d, &instr.index, &instr.list}) {
    io.Number(*field);
  }
  io.Number(instr.imm);
}

template <typename IO>
void Transfer(IO& io, Function& function) {
  io.Text(function.name);
  io.Enum(function.kind);
  io.List(function.params, [&](Parameter& param) {
    io.Number(param.slot);
    io.Enum(param.type);
    io.Text(param.name);
  });
  io.List(function.constants, [&](Constant& constant) {
    io.Number(constant.slot);
    io.Enum(constant.type);
    io.Number(constant.bits);
  });
  io.Number(function.num_slots);
  io.List(function.code, [&](Instr& instr) { Transfer(io, instr); });
  io.List(function.launch_params, [&](std::string& tag) { io.Text(tag); });
}

template <typename IO>
void Transfer(IO& io, Program& program) {
  io.List(program.functions, [&](Function& function) { Transfer(io, function); });
  io.List(program.strings, [&](std::string& text) { io.Text(text); });
  io.List(program.buffers, [&](BufferInfo& buffer) {
    io.Text(buffer.name);
    io.Text(buffer.dtype);
  });
  io.List(program.lists, [&](std::vector<int64_t>& list) {
    io.List(list, [&](int64_t& item) { io.Number(item); });
  });
  io.Number(program.limits.warp_size);
  io.Number(program.limits.max_threads_per_block);
  io.Number(program.limits.max_shared_memory_per_block);
  io.Number(program.limits.check_races);
}

class Writer {
 public:
  template <typename T>
  void Number(T& value) {
    out.Value(value);
  }
  template <typename T>
  void Enum(T& value) {
    out.Value(value);
  }
  void Text(std::string& text) { out.Text(text); }
  template <typename T, typename F>
  void List(std::vector<T>& items, F each) {
    out.Word(static_cast<int64_t>(items.size()));
    for (T& item : items) each(item);
  }
  ByteWriter out;
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : in("stackvm", bytes) {}
  template <typename T>
  void Number(T& value) {
    value = in.Value<T>();
  }
  // Link refuses numbers that stand for nothing.
  template <typename T>
  void Enum(T& value) {
    value = in.Value<T>();
  }
  void Text(std::string& text) { text = in.Text(); }
  template <typename T, typename F>
  void List(std::vector<T>& items, F each) {
    items.resize(in.Count());
    for (T& item : items) each(item);
  }
  ByteReader in;
};

}  // namespace

std::string Serialize(const Program& program) {
  Writer writer;
  writer.out.Raw(kMagic.data(), kMagic.size());
  // One description serves both directions; this one only reads the program.
  Transfer(writer, const_cast<Program&>(program));
  return std::move(writer.out.bytes);
}

Program Deserialize(std::string_view bytes) {
  Reader reader(bytes);
  reader.in.Expect(kMagic);
  Program program;
  Transfer(reader, program);
  TVM_CHECK(reader.in.AtEnd(), ValueError)
      << "stackvm: the data goes on after the program; the file is damaged, export it again";
  return program;
}

}  // namespace stackvm
}  // namespace runtime
}  // namespace tvm
