#include <tvm/runtime/graph_executor/graph_executor.h>
#include <tvm/runtime/logging.h>
#include <tvm/runtime/registry.h>
#include <tvm/runtime/relax_vm/executable.h>

#include <algorithm>
#include <sstream>
#include <utility>

#include "literal.h"
#include "runtime/params.h"
#include "weights_file.h"
#include "word_reader.h"

namespace tvm {
namespace runtime {
namespace relax_vm {
namespace {

constexpr std::string_view kExecutableMagic = "TVMRLX04";

void PutList(const std::vector<int64_t>& items, std::vector<int64_t>* words) {
  words->push_back(static_cast<int64_t>(items.size()));
  words->insert(words->end(), items.begin(), items.end());
}

}  // namespace

namespace {

/*! \brief Bytes of a tensor; refuses types and extents that no tensor has. */
int64_t CheckedBytes(const std::string& name, const TensorSpec& spec) {
  const DLDataType& type = spec.dtype;
  bool valid = IsElementType(type) && type.bits <= 128;
  int64_t bytes = (int64_t{type.bits} * type.lanes + 7) / 8;
  for (int64_t extent : spec.shape) {
    valid = valid && extent >= 0 && !__builtin_mul_overflow(bytes, extent, &bytes);
  }
  TVM_CHECK(valid, ValueError) << "relax executable: '" << name
                               << "' has a tensor of an impossible type or shape; the file is "
                               << "damaged, export it again";
  return bytes;
}

// Tensors that share memory must not reach beyond it, whatever the file says of them.
void CheckPlaces(const VMFunction& function, const ExecutableNode& executable) {
  auto same_bytes = [&](int64_t a, int64_t b) {
    return CheckedBytes(function.name, function.tensors[a]) ==
           CheckedBytes(function.name, function.tensors[b]);
  };
  auto demand = [&](bool holds, const char* what) {
    TVM_CHECK(holds, ValueError) << "relax executable: '" << function.name << "' " << what
                                 << "; the file is damaged, export it again";
  };
  demand(function.arena_bytes >= 0, "has an arena of negative size");
  demand(function.returns_tuple || !function.outputs.empty(), "has no result");
  for (size_t id = 0; id < function.tensors.size(); ++id) {
    const TensorSpec& spec = function.tensors[id];
    const int64_t bytes = CheckedBytes(function.name, spec);
    if (spec.place == TensorPlace::kInput) {
      demand(same_bytes(static_cast<int64_t>(id), function.inputs[spec.index]),
             "has two sizes for one input");
    } else if (spec.place == TensorPlace::kConstant) {
      demand(static_cast<int64_t>(executable.constants[spec.index].NumBytes()) == bytes,
             "has a constant of another size");
    } else if (spec.place == TensorPlace::kArena) {
      demand(spec.index >= 0 && spec.index <= function.arena_bytes &&
                 bytes <= function.arena_bytes - spec.index,
             "has a tensor outside its memory");
    } else {
      demand(spec.index >= 0 && spec.index < static_cast<int64_t>(function.outputs.size()) &&
                 same_bytes(static_cast<int64_t>(id), function.outputs[spec.index]),
             "has a result of another size");
    }
  }
  for (const Instruction& instruction : function.instructions) {
    demand(instruction.kernel != kCopy || same_bytes(instruction.args[0], instruction.args[1]),
           "copies between tensors of different sizes");
  }
}

}  // namespace

VMFunction DecodeFunction(std::string name, std::vector<std::string> input_names,
                          const std::vector<int64_t>& words, const ExecutableNode& executable) {
  VMFunction function;
  WordReader reader(name, words);
  const std::vector<int64_t> inputs = reader.NextList();
  const int64_t num_tensors = reader.Next();
  const int64_t num_inputs = static_cast<int64_t>(inputs.size());
  const int64_t num_constants = static_cast<int64_t>(executable.constants.size());
  for (int64_t i = 0; i < num_tensors; ++i) {
    TensorSpec spec;
    spec.dtype.code = static_cast<uint8_t>(reader.Next());
    spec.dtype.bits = static_cast<uint8_t>(reader.Next());
    spec.dtype.lanes = static_cast<uint16_t>(reader.Next());
    spec.place = static_cast<TensorPlace>(reader.NextBelow(0, 4, "place"));
    if (spec.place == TensorPlace::kInput) {
      spec.index = reader.NextBelow(0, num_inputs, "input");
    } else if (spec.place == TensorPlace::kConstant) {
      spec.index = reader.NextBelow(0, num_constants, "constant");
    } else {
      spec.index = reader.Next();
    }
    spec.shape = reader.NextList();
    function.tensors.push_back(std::move(spec));
  }
  for (int64_t input : inputs) {
    TVM_CHECK(input >= 0 && input < num_tensors, ValueError)
        << "relax executable: '" << name << "' names tensor " << input << " of " << num_tensors
        << " as an input; the file is damaged, export it again";
  }
  const int64_t num_instructions = reader.Next();
  const int64_t num_kernels = static_cast<int64_t>(executable.kernels.size());
  for (int64_t i = 0; i < num_instructions; ++i) {
    Instruction instruction;
    instruction.kernel = reader.NextBelow(kCopy, num_kernels, "kernel");
    instruction.num_outputs = reader.Next();
    instruction.args = reader.NextTensors(num_tensors);
    TVM_CHECK(instruction.num_outputs >= 0 &&
                  instruction.num_outputs <= static_cast<int64_t>(instruction.args.size()),
              ValueError)
        << "relax executable: a call in '" << name << "' has " << instruction.num_outputs
        << " outputs among " << instruction.args.size()
        << " arguments; the file is damaged, export it again";
    TVM_CHECK(instruction.kernel != kCopy || instruction.args.size() == 2, ValueError)
        << "relax executable: a copy in '" << name << "' has " << instruction.args.size()
        << " arguments; the file is damaged, export it again";
    function.instructions.push_back(std::move(instruction));
  }
  function.outputs = reader.NextTensors(num_tensors);
  function.returns_tuple = reader.Next() != 0;
  function.arena_bytes = reader.Next();
  function.inputs = inputs;
  function.input_names = std::move(input_names);
  function.name = std::move(name);
  TVM_CHECK(function.input_names.size() == inputs.size(), ValueError)
      << "relax executable: '" << function.name << "' has " << inputs.size() << " inputs but "
      << function.input_names.size() << " names";
  CheckPlaces(function, executable);
  return function;
}

std::vector<int64_t> EncodeFunction(const VMFunction& function) {
  std::vector<int64_t> words;
  PutList(function.inputs, &words);
  words.push_back(static_cast<int64_t>(function.tensors.size()));
  for (const TensorSpec& spec : function.tensors) {
    words.insert(words.end(), {spec.dtype.code, spec.dtype.bits, spec.dtype.lanes,
                               static_cast<int64_t>(spec.place), spec.index});
    PutList(spec.shape, &words);
  }
  words.push_back(static_cast<int64_t>(function.instructions.size()));
  for (const Instruction& instruction : function.instructions) {
    words.push_back(instruction.kernel);
    words.push_back(instruction.num_outputs);
    PutList(instruction.args, &words);
  }
  PutList(function.outputs, &words);
  words.push_back(function.returns_tuple);
  words.push_back(function.arena_bytes);
  return words;
}

namespace {

/*! \brief The same program, whose functions take the constants as inputs after their own. */
Module WithoutConstants(const ExecutableNode& executable) {
  TVM_CHECK(executable.programs.empty(), ValueError)
      << "remove_params: function '" << executable.programs[0].name
      << "' takes or makes other values than tensors of fixed shapes, so its constants stay inside";
  auto copy = make_object<ExecutableNode>(executable);
  for (VMFunction& function : copy->functions) {
    const auto own = static_cast<int64_t>(function.inputs.size());
    std::vector<int64_t> whole(executable.constants.size(), -1);
    for (size_t id = 0; id < function.tensors.size(); ++id) {
      TensorSpec& spec = function.tensors[id];
      if (spec.place != TensorPlace::kConstant) continue;
      if (spec.shape == executable.constants[spec.index].Shape()) {
        whole[spec.index] = static_cast<int64_t>(id);
      }
      spec.place = TensorPlace::kInput;
      spec.index += own;
    }
    for (size_t i = 0; i < whole.size(); ++i) {
      const NDArray& constant = executable.constants[i];
      if (whole[i] < 0) {
        whole[i] = static_cast<int64_t>(function.tensors.size());
        function.tensors.push_back({constant.dtype(), constant.Shape(), TensorPlace::kInput,
                                    own + static_cast<int64_t>(i)});
      }
      function.inputs.push_back(whole[i]);
      function.input_names.push_back("p" + std::to_string(i));
    }
  }
  copy->constants.clear();
  return Module(ObjectPtr<Object>(copy));
}

}  // namespace

String ExecutableNode::GetSource(const String& format) {
  std::string text;
  for (const Module& kernels : imports()) {
    const std::string part = kernels->GetSource(format);
    if (!text.empty() && !part.empty()) text += "\n";
    text += part;
  }
  return text;
}

PackedFunc ExecutableNode::GetFunction(const String& name, const ObjectPtr<Object>& self) {
  if (name == "weights_file") {
    return PackedFunc([this, self](Args, RetValue* ret) { *ret = String(weights_file); });
  }
  if (name == "load_weights") {
    return PackedFunc([this, self](Args args, RetValue*) {
      LoadWeights(ReadArg<String>("load_weights", args, 0).str());
    });
  }
  const bool needs_none = name == "function_names" || name == "input_names";
  const Array<String> known = ListFunctionNames();
  const bool is_known = std::find(known.begin(), known.end(), name) != known.end();
  TVM_CHECK(!weights_missing || needs_none || !is_known, ValueError)
      << "relax executable: the weights are in a file of their own, \"" << weights_file
      << "\"; call load_weights with its path first";
  if (name == "vm_load_executable") {
    Module executable{ObjectPtr<Object>(self)};
    return PackedFunc([executable](Args args, RetValue* ret) {
      *ret = CreateVirtualMachine(executable, ReadArg<DLDevice>("vm_load_executable", args, 0));
    });
  }
  // A library of one function gives the executor under that function's name too.
  if (name == "default" || (functions.size() == 1 && name == functions[0].name)) {
    Module executable{ObjectPtr<Object>(self)};
    return PackedFunc([executable](Args args, RetValue* ret) {
      *ret = CreateGraphExecutor(executable, ReadArg<DLDevice>("default", args, 0));
    });
  }
  if (name == "debug_create") {
    Module executable{ObjectPtr<Object>(self)};
    return PackedFunc([this, executable](Args args, RetValue* ret) {
      const String module_name = ReadArg<String>("debug_create", args, 0);
      TVM_CHECK(
          module_name == "default" || (functions.size() == 1 && module_name == functions[0].name),
          ValueError)
          << "debug_create: the library has no network \"" << module_name << '"';
      *ret = CreateDebugExecutor(executable, ReadArg<DLDevice>("debug_create", args, 1));
    });
  }
  if (name == "cuda_graph_create") {
    Module executable{ObjectPtr<Object>(self)};
    return PackedFunc([executable](Args args, RetValue* ret) {
      *ret = CreateCudaGraphExecutor(executable, ReadArg<DLDevice>("cuda_graph_create", args, 0));
    });
  }
  // What factories of TVM's ahead-of-time executor answer: the networks that it makes executors of.
  if (name == "list_module_names") {
    return PackedFunc([](Args, RetValue* ret) { *ret = Array<String>{"default"}; });
  }
  if (name == "function_names") {
    return PackedFunc([this, self](Args, RetValue* ret) { *ret = FunctionNames(); });
  }
  if (name == "input_names") {
    return PackedFunc([this, self](Args args, RetValue* ret) {
      const std::string function = ReadArg<String>("input_names", args, 0).str();
      Array<String> names;
      for (const VMFunction& known : functions) {
        if (known.name != function) continue;
        for (const std::string& input : known.input_names) names.push_back(input);
      }
      for (const Program& known : programs) {
        if (known.name != function) continue;
        for (const std::string& input : known.input_names) names.push_back(input);
      }
      *ret = names;
    });
  }
  if (name == "remove_params") {
    return PackedFunc([this, self](Args, RetValue* ret) { *ret = WithoutConstants(*this); });
  }
  if (name == "get_graph_json") {
    return PackedFunc([this, self](Args, RetValue* ret) { *ret = GraphJSON(*this); });
  }
  if (name == "get_graph_params") {
    return PackedFunc([this, self](Args, RetValue* ret) { *ret = GraphParams(*this); });
  }
  return PackedFunc();
}

Array<String> ExecutableNode::ListFunctionNames() {
  return {"weights_file",   "load_weights",     "vm_load_executable", "function_names",
          "input_names",    "default",          "debug_create",       "cuda_graph_create",
          "get_graph_json", "get_graph_params", "remove_params",      "list_module_names"};
}

Array<String> ExecutableNode::FunctionNames() const {
  Array<String> names;
  for (const VMFunction& function : functions) names.push_back(function.name);
  for (const Program& program : programs) names.push_back(program.name);
  return names;
}

namespace {

/*! \brief The arrays, small ones side by side in one block of memory. */
std::vector<NDArray> SideBySide(std::vector<NDArray> arrays) {
  constexpr size_t kAlign = 64, kLarge = size_t{1} << 21;
  auto is_small = [](const NDArray& array) {
    return array.NumBytes() < kLarge && array.device().device_type == kDLCPU;
  };
  size_t total = 0;
  for (const NDArray& array : arrays) {
    if (is_small(array)) total += (array.NumBytes() + kAlign - 1) / kAlign * kAlign;
  }
  if (total >= kLarge) {
    // In one block they get large pages, which each of them is too small for.
    NDArray block =
        NDArray::Empty({static_cast<int64_t>(total)}, DataType::UInt(8), Device{kDLCPU, 0});
    size_t offset = 0;
    for (NDArray& array : arrays) {
      if (!is_small(array)) continue;
      NDArray view = block.CreateView(array.Shape(), array.dtype(), offset);
      view.CopyFrom(array.tensor());
      offset += (array.NumBytes() + kAlign - 1) / kAlign * kAlign;
      array = view;
    }
  }
  return arrays;
}

}  // namespace

void ExecutableNode::SaveToBinary(ByteWriter* writer) {
  writer->Raw(kExecutableMagic.data(), kExecutableMagic.size());
  writer->Text(weights_file);
  writer->Word(weights_id);
  writer->Texts(kernels);
  writer->Word(static_cast<int64_t>(constants.size()));
  const bool outside = !weights_file.empty();
  for (const NDArray& constant : constants) {
    if (outside) {
      SaveOutline(constant, writer);
    } else {
      SaveNDArray(constant, writer);
    }
  }
  writer->Word(static_cast<int64_t>(functions.size()));
  for (const VMFunction& function : functions) {
    writer->Text(function.name);
    writer->Texts(function.input_names);
    writer->Words(EncodeFunction(function));
  }
  writer->Texts(callees);
  writer->Word(static_cast<int64_t>(literals.size()));
  for (const Any& literal : literals) SaveLiteral(literal, outside, writer);
  writer->Word(static_cast<int64_t>(programs.size()));
  for (const Program& program : programs) {
    writer->Text(program.name);
    writer->Texts(program.input_names);
    writer->Words(EncodeProgram(program));
  }
}

namespace {

/*! \brief The arrays that a file of weights has, in its order. */
std::vector<NDArray> AllArrays(const ExecutableNode& executable) {
  std::vector<NDArray> arrays = executable.constants;
  for (const Any& literal : executable.literals) {
    if (literal.as<NDArrayObj>() != nullptr) arrays.push_back(literal.cast<NDArray>());
  }
  return arrays;
}

}  // namespace

Module ExecutableNode::MoveWeights(const std::string& path) const {
  auto copy = make_object<ExecutableNode>(*this);
  copy->weights_id = WriteWeights(path, AllArrays(*this));
  copy->weights_file = path.substr(path.rfind('/') + 1);
  return Module(ObjectPtr<Object>(copy));
}

void ExecutableNode::LoadWeights(const std::string& path) {
  TVM_CHECK(!weights_file.empty(), ValueError)
      << "relax executable: the weights are inside; there is no file to load";
  std::vector<NDArray> arrays = MapWeights(path, weights_id, AllArrays(*this));
  auto next = arrays.begin();
  for (NDArray& constant : constants) constant = *next++;
  for (Any& literal : literals) {
    if (literal.as<NDArrayObj>() != nullptr) literal = Any(*next++);
  }
  weights_missing = false;
}

Module ExecutableNode::LoadFromBinary(std::string_view bytes) {
  ByteReader reader("relax executable", bytes);
  reader.Expect(kExecutableMagic);
  auto node = make_object<ExecutableNode>();
  node->weights_file = reader.Text();
  node->weights_id = reader.Word();
  node->weights_missing = !node->weights_file.empty();
  node->kernels = reader.Texts();
  std::vector<NDArray> constants;
  for (size_t i = reader.Count(sizeof(int64_t)); i > 0; --i) {
    constants.push_back(node->weights_missing ? LoadOutline(&reader) : LoadNDArray(&reader));
  }
  node->constants = node->weights_missing ? constants : SideBySide(std::move(constants));
  for (size_t i = reader.Count(sizeof(int64_t)); i > 0; --i) {
    std::string name = reader.Text();
    std::vector<std::string> input_names = reader.Texts();
    node->functions.push_back(
        DecodeFunction(std::move(name), std::move(input_names), reader.Words(), *node));
  }
  node->callees = reader.Texts();
  for (size_t i = reader.Count(sizeof(int64_t)); i > 0; --i) {
    node->literals.push_back(LoadLiteral(&reader));
  }
  const ProgramLimits limits{node->callees.size(), node->literals.size()};
  for (size_t i = reader.Count(sizeof(int64_t)); i > 0; --i) {
    std::string name = reader.Text();
    std::vector<std::string> input_names = reader.Texts();
    node->programs.push_back(
        DecodeProgram(std::move(name), std::move(input_names), reader.Words(), limits));
  }
  return Module(node);
}

namespace {

ExecutableNode* AsExecutable(const Module& module) {
  TVM_CHECK(module.defined() && module->IsInstance<ExecutableNode>(), TypeError)
      << "expected a relax executable, got a module of kind "
      << (module.defined() ? module->type_key() : "None");
  return static_cast<ExecutableNode*>(module.get());
}

}  // namespace

namespace {

std::vector<std::string> Strings(const Array<String>& texts) {
  return {texts.begin(), texts.end()};
}

std::vector<int64_t> Words(const Array<Any>& values) {
  std::vector<int64_t> words;
  words.reserve(values.size());
  for (const Any& value : values) words.push_back(value.cast<int64_t>());
  return words;
}

}  // namespace

TVM_REGISTER_GLOBAL("runtime.module.loadbinary_relax.Executable").set_body_typed([](String bytes) {
  return ExecutableNode::LoadFromBinary(bytes.str());
});
TVM_REGISTER_GLOBAL("runtime.relax_vm.Executable")
    .set_body_typed([](Module kernels, Array<String> kernel_names, Array<NDArray> constants) {
      auto node = make_object<ExecutableNode>();
      for (const String& name : kernel_names) node->kernels.push_back(name);
      node->constants = SideBySide({constants.begin(), constants.end()});
      if (kernels.defined()) node->Import(std::move(kernels));
      return Module(node);
    });
TVM_REGISTER_GLOBAL("runtime.relax_vm.AddFunction")
    .set_body_typed([](Module module, String name, Array<String> input_names, Array<Any> program) {
      ExecutableNode* executable = AsExecutable(module);
      executable->functions.push_back(
          DecodeFunction(name.str(), Strings(input_names), Words(program), *executable));
    });
/*! \brief (executable, path) -> the executable without its arrays, which go to the file. */
TVM_REGISTER_GLOBAL("runtime.relax_vm.MoveWeights").set_body_typed([](Module module, String path) {
  return AsExecutable(module)->MoveWeights(path.str());
});
TVM_REGISTER_GLOBAL("runtime.relax_vm.FunctionNames").set_body_typed([](Module module) {
  Array<String> names;
  return AsExecutable(module)->FunctionNames();
});
/*! \brief (executable, names of callees, literals): what its programs refer to. */
TVM_REGISTER_GLOBAL("runtime.relax_vm.SetProgramTables")
    .set_body_typed([](Module module, Array<String> callees, Array<Any> literals) {
      ExecutableNode* executable = AsExecutable(module);
      executable->callees.assign(callees.begin(), callees.end());
      executable->literals.assign(literals.begin(), literals.end());
    });
TVM_REGISTER_GLOBAL("runtime.relax_vm.AddProgram")
    .set_body_typed([](Module module, String name, Array<String> input_names, Array<Any> program) {
      ExecutableNode* executable = AsExecutable(module);
      executable->programs.push_back(
          DecodeProgram(name.str(), Strings(input_names), Words(program),
                        {executable->callees.size(), executable->literals.size()}));
    });
/*! \brief (executable) -> how much there is of what, a line each. */
TVM_REGISTER_GLOBAL("runtime.relax_vm.Statistics").set_body_typed([](Module module) {
  const ExecutableNode& executable = *AsExecutable(module);
  std::ostringstream os;
  os << "Lists of kernels: " << executable.functions.size() << "\n"
     << "Programs: " << executable.programs.size() << "\n"
     << "Kernels: " << executable.kernels.size() << "\n"
     << "Constants: " << executable.constants.size() << "\n"
     << "Literals: " << executable.literals.size() << "\n"
     << "Functions that programs call:";
  for (const std::string& name : executable.callees) os << " " << name;
  os << "\n";
  return String(os.str());
});
/*! \brief (executable) -> the name, number of registers and steps of each program, as text. */
TVM_REGISTER_GLOBAL("runtime.relax_vm.ProgramText").set_body_typed([](Module module) {
  const ExecutableNode& executable = *AsExecutable(module);
  std::string text;
  for (const Program& program : executable.programs) {
    text += ProgramText(program, executable.callees);
  }
  return String(text);
});
/*! \brief (executable) -> Python that builds its programs. */
TVM_REGISTER_GLOBAL("runtime.relax_vm.ProgramPython").set_body_typed([](Module module) {
  const ExecutableNode& executable = *AsExecutable(module);
  std::string text = "ib = relax.ExecBuilder()\n";
  for (const Program& program : executable.programs) {
    text += ProgramPython(program, executable.callees);
  }
  return String(text);
});

}  // namespace relax_vm
}  // namespace runtime
}  // namespace tvm
