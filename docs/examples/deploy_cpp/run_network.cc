// Runs a compiled network on numbers 0, 1, 2, ...: run_network network.so EXTENT [EXTENT ...]
#include <tvm/runtime/module.h>
#include <tvm/runtime/ndarray.h>

#include <cstdlib>
#include <iostream>
#include <numeric>
#include <string>
#include <vector>

using tvm::runtime::Module;
using tvm::runtime::NDArray;

int main(int argc, char** argv) {
  if (argc < 3) {
    std::cerr << "usage: run_network network.so EXTENT [EXTENT ...]\n";
    return 2;
  }
  const DLDevice cpu{kDLCPU, 0};
  std::vector<int64_t> shape;
  for (int i = 2; i < argc; ++i) shape.push_back(std::atoll(argv[i]));
  int64_t elements = 1;
  for (int64_t extent : shape) elements *= extent;
  std::vector<float> values(elements);
  std::iota(values.begin(), values.end(), 0.0f);
  try {
    // The library holds an executable with its weights; a virtual machine runs it on a device.
    Module executable = Module::LoadFromFile(argv[1]);
    // They may also lie in a file of their own, beside the library.
    const tvm::runtime::String weights = executable.GetFunction("weights_file")();
    if (weights.size() > 0) {
      const std::string library = argv[1];
      const std::string folder = library.substr(0, library.rfind('/') + 1);
      executable.GetFunction("load_weights")(folder + weights.str());
    }
    Module machine = executable.GetFunction("vm_load_executable")(cpu);
    NDArray input = NDArray::Empty(shape, tvm::DataType::Float(32), cpu);
    input.CopyFromBytes(values.data(), values.size() * sizeof(float));
    NDArray output = machine.GetFunction("main")(input);
    std::vector<float> results(output.NumBytes() / sizeof(float));
    output.CopyToBytes(results.data(), output.NumBytes());
    for (float result : results) std::cout << result << '\n';
  } catch (const tvm::Error& error) {
    std::cerr << "refused: " << error.what() << '\n';
    return 1;
  }
  return 0;
}
