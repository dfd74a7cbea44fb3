/*!
 * \file serialize.cc
 * \brief Programs of the stackvm as bytes.
 */
#include <tvm/runtime/logging.h>

#include <cstring>

#include "runtime/stackvm/bytecode.h"

namespace tvm {
namespace runtime {
namespace stackvm {
namespace {

constexpr char kMagic[] = "TVMSVM01";

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
  io.Enum(function.return_type);
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
  io.List(program.lists,
          [&](std::vector<int64_t>& list) { io.List(list, [&](int64_t& item) { io.Number(item); }); });
  io.Number(program.limits.warp_size);
  io.Number(program.limits.max_threads_per_block);
  io.Number(program.limits.max_shared_memory_per_block);
  io.Number(program.limits.check_races);
}

class Writer {
 public:
  template <typename T>
  void Number(T& value) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  template <typename T>
  void Enum(T& value) {
    Number(value);
  }
  void Text(std::string& text) {
    Size(text.size());
    bytes += text;
  }
  template <typename T, typename F>
  void List(std::vector<T>& items, F each) {
    Size(items.size());
    for (T& item : items) each(item);
  }
  std::string bytes = kMagic;

 private:
  void Size(uint64_t size) { Number(size); }
};

class Reader {
 public:
  explicit Reader(const std::string& bytes) : bytes_(bytes) {
    const size_t size = sizeof(kMagic) - 1;
    TVM_CHECK(bytes.compare(0, size, kMagic) == 0, ValueError)
        << "stackvm: the data does not begin with a program of this version; build it again";
    position_ = size;
  }
  template <typename T>
  void Number(T& value) {
    std::memcpy(&value, Take(sizeof(value)), sizeof(value));
  }
  template <typename T>
  void Enum(T& value) {
    // Link and the switches on these treat unknown numbers as errors.
    Number(value);
  }
  void Text(std::string& text) {
    const size_t size = Size();
    text.assign(Take(size), size);
  }
  template <typename T, typename F>
  void List(std::vector<T>& items, F each) {
    // Items take at least a byte each, so a damaged count cannot ask for more than the data has.
    items.resize(Size());
    for (T& item : items) each(item);
  }
  bool AtEnd() const { return position_ == bytes_.size(); }

 private:
  size_t Size() {
    uint64_t size;
    Number(size);
    Check(size);
    return static_cast<size_t>(size);
  }
  void Check(uint64_t size) const {
    TVM_CHECK(size <= bytes_.size() - position_, ValueError)
        << "stackvm: the data ends after " << bytes_.size()
        << " bytes in the middle of the program; it is damaged, build it again";
  }
  const char* Take(size_t size) {
    Check(size);
    position_ += size;
    return bytes_.data() + position_ - size;
  }
  const std::string& bytes_;
  size_t position_ = 0;
};

}  // namespace

std::string Serialize(const Program& program) {
  Writer writer;
  Transfer(writer, const_cast<Program&>(program));
  return std::move(writer.bytes);
}

Program Deserialize(const std::string& bytes) {
  Reader reader(bytes);
  Program program;
  Transfer(reader, program);
  TVM_CHECK(reader.AtEnd(), ValueError)
      << "stackvm: the data goes on after the program; it is damaged, build it again";
  return program;
}

}  // namespace stackvm
}  // namespace runtime
}  // namespace tvm
