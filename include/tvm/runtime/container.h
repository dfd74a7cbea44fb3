/*!
 * \file tvm/runtime/container.h
 * \brief All containers.
 */
#ifndef TVM_RUNTIME_CONTAINER_H_
#define TVM_RUNTIME_CONTAINER_H_

#include <tvm/runtime/container/array.h>
#include <tvm/runtime/container/map.h>
#include <tvm/runtime/container/optional.h>
#include <tvm/runtime/container/string.h>

#endif  // TVM_RUNTIME_CONTAINER_H_
