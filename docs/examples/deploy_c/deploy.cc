// Adds two vectors with a compiled kernel: deploy_cc add.so
#include <tvm/runtime/module.h>
#include <tvm/runtime/ndarray.h>

#include <iostream>
#include <numeric>
#include <vector>

using tvm::runtime::Module;
using tvm::runtime::NDArray;
using tvm::runtime::PackedFunc;

int main(int argc, char** argv) {
  std::vector<float> values(8);
  std::iota(values.begin(), values.end(), 0.0f);
  auto new_array = [] { return NDArray::Empty({8}, tvm::DataType::Float(32), {kDLCPU, 0}); };
  NDArray a = new_array(), b = new_array(), c = new_array();
  a.CopyFromBytes(values.data(), values.size() * sizeof(float));
  b.CopyFromBytes(values.data(), values.size() * sizeof(float));
  try {
    PackedFunc add = Module::LoadFromFile(argc > 1 ? argv[1] : "add.so").GetFunction("add");
    add(a, b, c);
    c.CopyToBytes(values.data(), values.size() * sizeof(float));
    for (float value : values) std::cout << value << '\n';
    add(a, b);
  } catch (const tvm::Error& error) {
    std::cerr << "refused: " << error.what() << '\n';
  }
  return 0;
}
