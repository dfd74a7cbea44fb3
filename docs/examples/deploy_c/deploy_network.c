/* Runs a compiled network on the numbers 0, 1, ..., 7: deploy_network network.so */
#include <stdio.h>
#include <stdlib.h>
#include <tvm/runtime/c_host_api.h>

static void check(int status) {
  if (status != 0) {
    fprintf(stderr, "%s\n", TVMGetLastError());
    exit(1);
  }
}

int main(int argc, char** argv) {
  const int64_t shape[2] = {2, 4};
  const DLDataType float32 = {kDLFloat, 32, 1};
  const DLDevice cpu = {kDLCPU, 0};
  float values[8];
  TVMModuleHandle network;
  TVMFunctionHandle load, run;
  TVMAny device = TVMArgDevice(kDLCPU, 0), machine, input, output;
  DLTensor* tensor;
  int64_t i, elements = 1;

  /* The library holds an executable; a virtual machine runs it on a device. */
  check(TVMModLoadFromFile(argc > 1 ? argv[1] : "network.so", NULL, &network));
  check(TVMModGetFunction(network, "vm_load_executable", 0, &load));
  check(TVMFuncCall(load, &device, 1, &machine));
  check(TVMModGetFunction(machine.v_handle, "main", 0, &run));

  for (i = 0; i < 8; ++i) values[i] = (float)i;
  check(TVMArrayAlloc(shape, 2, float32, cpu, &input));
  check(TVMAnyGetTensor(&input, &tensor));
  check(TVMArrayCopyFromBytes(tensor, values, sizeof(values)));

  check(TVMFuncCall(run, &input, 1, &output));
  check(TVMAnyGetTensor(&output, &tensor));
  for (i = 0; i < tensor->ndim; ++i) elements *= tensor->shape[i];
  for (i = 0; i < elements; ++i) printf("%g\n", ((const float*)tensor->data)[i]);

  TVMAnyFree(&output);
  TVMAnyFree(&input);
  TVMAnyFree(&machine);
  check(TVMObjectFree(run));
  check(TVMObjectFree(load));
  check(TVMObjectFree(network));
  return 0;
}
