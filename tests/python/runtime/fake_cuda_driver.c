/*
 * A CUDA driver without a device: memory is the host's, kernels take time and compute nothing. What
 * goes wrong is told by the environment, and how many kernels were launched by the size of a file,
 * so that a device is lost for all processes at once.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef int Status;

enum { kSuccess = 0, kInvalidValue = 1 };

/* Errors of a context stay with its process. */
static Status sticky = kSuccess;

static long Option(const char* name, long otherwise) {
  const char* text = getenv(name);
  return text == NULL || *text == 0 ? otherwise : atol(text);
}

/* Launches of all processes so far. */
static long Launches(void) {
  struct stat facts;
  const char* path = getenv("FAKE_CUDA_LAUNCHES");
  return path != NULL && stat(path, &facts) == 0 ? (long)facts.st_size : 0;
}

static void CountLaunch(void) {
  const char* path = getenv("FAKE_CUDA_LAUNCHES");
  int file = path == NULL ? -1 : open(path, O_WRONLY | O_APPEND | O_CREAT, 0644);
  if (file < 0) return;
  if (write(file, "x", 1) != 1) abort();
  close(file);
}

/* Launch FAKE_CUDA_FAIL_FROM and those after it fail; FAKE_CUDA_FAILURES of them, if that is set. */
static int FailsNow(void) {
  long first = Option("FAKE_CUDA_FAIL_FROM", -1), now = Launches();
  return first >= 0 && now >= first && now < first + Option("FAKE_CUDA_FAILURES", 1L << 40);
}

static Status Now(void) {
  /* A device that is lost for good answers no new process either. */
  if (sticky == kSuccess && getenv("FAKE_CUDA_FAILURES") == NULL && FailsNow()) {
    sticky = (Status)Option("FAKE_CUDA_ERROR", 719);
  }
  return sticky;
}

Status cuInit(unsigned flags) {
  (void)flags;
  return kSuccess;
}
Status cuDriverGetVersion(int* version) {
  *version = (int)Option("FAKE_CUDA_VERSION", 13020);
  return kSuccess;
}
/* The compiler of kernels asks for more than the interface has, and does without it. */
Status cuGetExportTable(const void** table, const void* id) {
  (void)id;
  *table = NULL;
  return kInvalidValue;
}
Status cuGetErrorName(Status status, const char** name) {
  switch (status) {
    case 46:
      *name = "CUDA_ERROR_DEVICE_UNAVAILABLE";
      return kSuccess;
    case 214:
      *name = "CUDA_ERROR_ECC_UNCORRECTABLE";
      return kSuccess;
    case 719:
      *name = "CUDA_ERROR_LAUNCH_FAILED";
      return kSuccess;
    default:
      return kInvalidValue;
  }
}
Status cuGetErrorString(Status status, const char** text) {
  (void)status;
  *text = "as the test wants it";
  return kSuccess;
}
Status cuDeviceGetCount(int* count) {
  *count = (int)Option("FAKE_CUDA_DEVICES", 1);
  return kSuccess;
}
Status cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return kSuccess;
}
Status cuDeviceGetName(char* name, int length, int device) {
  (void)device;
  snprintf(name, (size_t)length, "Fake A100");
  return kSuccess;
}
Status cuDeviceGetAttribute(int* value, int attribute, int device) {
  (void)device;
  switch (attribute) {
    case 1: /* threads of a block */
      *value = 1024;
      break;
    case 2: /* threads of a block along x, y and z */
    case 3:
      *value = 1024;
      break;
    case 4:
      *value = 64;
      break;
    case 8: /* shared memory of a block */
      *value = 48 << 10;
      break;
    case 10: /* lanes of a warp */
      *value = 32;
      break;
    case 12: /* registers of a block */
      *value = 65536;
      break;
    case 13: /* clock rate */
      *value = 1410000;
      break;
    case 16: /* multiprocessors */
      *value = 108;
      break;
    case 38: /* bytes of the L2 cache */
      *value = 40 << 20;
      break;
    case 75: /* compute capability */
      *value = 8;
      break;
    case 76:
      *value = 0;
      break;
    case 97: /* shared memory of a block that asks for it */
      *value = 163 << 10;
      break;
    default:
      return kInvalidValue;
  }
  return kSuccess;
}
Status cuDeviceTotalMem_v2(size_t* bytes, int device) {
  (void)device;
  *bytes = (size_t)40 << 30;
  return kSuccess;
}
Status cuDevicePrimaryCtxRetain(void** context, int device) {
  (void)device;
  static int made;
  *context = &made;
  return Now();
}
Status cuCtxSetCurrent(void* context) {
  (void)context;
  return Now();
}

Status cuMemAlloc_v2(unsigned long long* data, size_t bytes) {
  *data = (unsigned long long)(uintptr_t)aligned_alloc(256, (bytes + 255) / 256 * 256);
  return Now();
}
Status cuMemFree_v2(unsigned long long data) {
  free((void*)(uintptr_t)data);
  return Now();
}
Status cuPointerGetAttribute(void* value, int attribute, unsigned long long data) {
  (void)attribute;
  (void)data;
  *(int*)value = 0;
  return Now();
}
static Status Copy(void* to, const void* from, size_t bytes) {
  memcpy(to, from, bytes);
  return Now();
}
Status cuMemcpyHtoDAsync_v2(unsigned long long to, const void* from, size_t bytes, void* stream) {
  (void)stream;
  return Copy((void*)(uintptr_t)to, from, bytes);
}
Status cuMemcpyDtoHAsync_v2(void* to, unsigned long long from, size_t bytes, void* stream) {
  (void)stream;
  return Copy(to, (void*)(uintptr_t)from, bytes);
}
Status cuMemcpyDtoDAsync_v2(unsigned long long to, unsigned long long from, size_t bytes,
                            void* stream) {
  (void)stream;
  return Copy((void*)(uintptr_t)to, (void*)(uintptr_t)from, bytes);
}
Status cuMemcpyPeerAsync(unsigned long long to, void* to_context, unsigned long long from,
                         void* from_context, size_t bytes, void* stream) {
  (void)to_context;
  (void)from_context;
  (void)stream;
  return Copy((void*)(uintptr_t)to, (void*)(uintptr_t)from, bytes);
}

Status cuStreamCreate(void** stream, unsigned flags) {
  (void)flags;
  *stream = malloc(1);
  return Now();
}
Status cuStreamDestroy_v2(void* stream) {
  free(stream);
  return Now();
}
Status cuStreamSynchronize(void* stream) {
  (void)stream;
  return Now();
}
Status cuStreamBeginCapture_v2(void* stream, int mode) {
  (void)stream;
  (void)mode;
  return Now();
}
Status cuStreamEndCapture(void* stream, void** graph) {
  (void)stream;
  *graph = NULL;
  return Now();
}
Status cuGraphInstantiateWithFlags(void** program, void* graph, unsigned long long flags) {
  (void)graph;
  (void)flags;
  *program = NULL;
  return Now();
}
Status cuGraphLaunch(void* program, void* stream) {
  (void)program;
  (void)stream;
  return Now();
}
Status cuGraphExecDestroy(void* program) {
  (void)program;
  return Now();
}
Status cuGraphDestroy(void* graph) {
  (void)graph;
  return Now();
}
Status cuStreamWaitEvent(void* stream, void* event, unsigned flags) {
  (void)stream;
  (void)event;
  (void)flags;
  return Now();
}
Status cuEventCreate(void** event, unsigned flags) {
  (void)flags;
  *event = malloc(1);
  return Now();
}
Status cuEventDestroy_v2(void* event) {
  free(event);
  return Now();
}
Status cuEventRecord(void* event, void* stream) {
  (void)event;
  (void)stream;
  return Now();
}
Status cuEventSynchronize(void* event) {
  (void)event;
  return Now();
}
Status cuEventElapsedTime(float* milliseconds, void* begin, void* end) {
  (void)begin;
  (void)end;
  *milliseconds = 2.0f;
  return Now();
}

Status cuModuleLoadData(void** module, const void* image) {
  (void)image;
  *module = malloc(1);
  return Now();
}
Status cuModuleUnload(void* module) {
  free(module);
  return Now();
}
Status cuModuleGetFunction(void** function, void* module, const char* name) {
  (void)name;
  *function = module;
  return Now();
}
Status cuFuncSetAttribute(void* function, int attribute, int value) {
  (void)function;
  (void)attribute;
  (void)value;
  return Now();
}
Status cuFuncGetAttribute(int* value, int attribute, void* function) {
  (void)attribute;
  (void)function;
  *value = 32;
  return Now();
}
Status cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, void* function, int threads,
                                                   size_t shared) {
  (void)function;
  (void)threads;
  (void)shared;
  *blocks = 2;
  return Now();
}
Status cuLaunchKernel(void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                      unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                      void* stream, void** params, void** extra) {
  (void)function;
  (void)grid_x;
  (void)grid_y;
  (void)grid_z;
  (void)block_x;
  (void)block_y;
  (void)block_z;
  (void)shared;
  (void)stream;
  (void)params;
  (void)extra;
  if (sticky == kSuccess && FailsNow()) sticky = (Status)Option("FAKE_CUDA_ERROR", 719);
  CountLaunch();
  return sticky;
}
