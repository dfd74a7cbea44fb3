/* Adds two vectors with a compiled kernel: deploy add.so */
#include <stdio.h>
#include <stdlib.h>
#include <tvm/runtime/c_host_api.h>

static void check(int status) {
  if (status != 0) {
    fprintf(stderr, "%s\n", TVMGetLastError());
    exit(1);
  }
}

/* A tensor over memory of this program. */
static DLTensor vector(float* data, int64_t* size) {
  DLTensor tensor = {0};
  tensor.data = data;
  tensor.device.device_type = kDLCPU;
  tensor.ndim = 1;
  tensor.dtype.code = kDLFloat;
  tensor.dtype.bits = 32;
  tensor.dtype.lanes = 1;
  tensor.shape = size;
  return tensor;
}

int main(int argc, char** argv) {
  /* Compiled code loads whole vectors, so memory starts at a multiple of 64 bytes. */
  _Alignas(64) float a[8], b[8], c[8];
  int64_t size = 8;
  DLTensor tensors[3] = {vector(a, &size), vector(b, &size), vector(c, &size)};
  TVMAny args[3], ret;
  TVMModuleHandle module;
  TVMFunctionHandle add;
  int i;

  for (i = 0; i < 8; ++i) {
    a[i] = (float)i;
    b[i] = 10.0f * (float)i;
  }
  for (i = 0; i < 3; ++i) args[i] = TVMArgTensor(&tensors[i]);

  check(TVMModLoadFromFile(argc > 1 ? argv[1] : "add.so", NULL, &module));
  check(TVMModGetFunction(module, "add", 0, &add));
  check(TVMFuncCall(add, args, 3, &ret));
  for (i = 0; i < 8; ++i) printf("%g\n", c[i]);

  /* A call that is wrong fails with a message. */
  if (TVMFuncCall(add, args, 2, &ret) != 0) fprintf(stderr, "refused: %s\n", TVMGetLastError());

  check(TVMObjectFree(add));
  check(TVMObjectFree(module));
  return 0;
}
