#include <dlfcn.h>
#include <pybind11/pybind11.h>
#include <tvm/runtime/c_runtime_api.h>
#include <tvm/runtime/container.h>
#include <tvm/runtime/registry.h>

#include "bindings.h"

namespace py = pybind11;

namespace tvm {
namespace bindings {
namespace {

// pybind11 takes over when the Python error is already set.
template <typename F>
py::object Guarded(F&& f) {
  PyObject* result = Guard<PyObject*>(nullptr, std::forward<F>(f));
  if (result == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(result);
}

PyObject* NewNone() { return Py_NewRef(Py_None); }

template <typename T>
const T* Expect(py::handle value, const char* where) {
  const Object* object = IsHandle(value.ptr()) ? HandleOf(value.ptr()) : nullptr;
  TVM_CHECK(object != nullptr && object->IsInstance<T>(), TypeError)
      << where << ": expected " << T::_type_key << ", got " << Py_TYPE(value.ptr())->tp_name;
  return static_cast<const T*>(object);
}

PyObject* GetGlobalFunc(const std::string& name, bool allow_missing) {
  const PackedFunc* func = Registry::Get(name);
  if (func == nullptr && allow_missing) return NewNone();
  return WrapObject(Registry::Require(name).get());
}

PyObject* ArrayToList(py::handle value) {
  const auto* array = Expect<ArrayNode>(value, "array_to_list");
  PyObject* list = PyList_New(static_cast<Py_ssize_t>(array->size()));
  for (size_t i = 0; list != nullptr && i < array->size(); ++i) {
    PyObject* item = ToPython(array->at(i));
    if (item == nullptr) {
      Py_DECREF(list);
      return nullptr;
    }
    PyList_SET_ITEM(list, static_cast<Py_ssize_t>(i), item);
  }
  return list;
}

PyObject* MapToList(py::handle value) {
  const auto* map = Expect<MapNode>(value, "map_to_list");
  py::list out;
  for (const auto& [key, item] : map->entries()) {
    PyObject* k = ToPython(key);
    PyObject* v = k == nullptr ? nullptr : ToPython(item);
    if (v == nullptr) {
      Py_XDECREF(k);
      return nullptr;
    }
    out.append(
        py::make_tuple(py::reinterpret_steal<py::object>(k), py::reinterpret_steal<py::object>(v)));
  }
  return out.release().ptr();
}

constexpr const char* kFresh = "dltensor";
constexpr const char* kUsed = "used_dltensor";

PyObject* ToCapsule(py::handle value) {
  const auto* node = Expect<runtime::NDArrayObj>(value, "to_dlpack");
  DLManagedTensor* managed = GetRef<runtime::NDArray>(node).ToDLPack();
  return PyCapsule_New(managed, kFresh, [](PyObject* capsule) {
    // A consumed capsule has been renamed, and its new owner calls the deleter.
    if (!PyCapsule_IsValid(capsule, kFresh)) return;
    auto* tensor = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule, kFresh));
    tensor->deleter(tensor);
  });
}

PyObject* FromCapsule(py::handle capsule) {
  TVM_CHECK(PyCapsule_IsValid(capsule.ptr(), kFresh), ValueError)
      << "from_dlpack: expected a capsule named \"dltensor\" that was not consumed before";
  auto* managed = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule.ptr(), kFresh));
  runtime::NDArray array = runtime::NDArray::FromDLPack(managed);
  // Only now, so that the capsule frees what is refused.
  PyCapsule_SetName(capsule.ptr(), kUsed);
  return WrapObject(array.get());
}

}  // namespace

PYBIND11_MODULE(_core, m) {
  m.doc() = "Objects, packed functions and the registry of libtvm.";
  // Python loads the runtime for this module alone, but compiled libraries call it without being
  // linked to it, also those that a program loads by itself, such as system libraries.
  Dl_info runtime;
  if (dladdr(reinterpret_cast<void*>(&TVMBackendParallelLaunch), &runtime) != 0) {
    dlopen(runtime.dli_fname, RTLD_LAZY | RTLD_GLOBAL | RTLD_NOLOAD);
  }
  try {
    InitTypes(m.ptr());
  } catch (const PythonErrorSet&) {
    throw py::error_already_set();
  }
  PythonClasses& classes = Classes();
  // The tables live as long as the process.
  m.attr("object_classes") = py::handle(classes.object_classes);
  m.attr("errors") = py::handle(classes.errors);

  // The libraries found this way register what they have; nothing is looked up in them by symbol.
  m.def("load_library", [](const std::string& path) {
    Guarded([&] {
      TVM_CHECK(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL) != nullptr, RuntimeError)
          << "the library cannot be loaded: " << dlerror();
      return NewNone();
    });
  });
  m.def("set_classes", [](py::object device, py::object data_type, py::object numpy_generic,
                          py::object numpy_dtype) {
    PythonClasses& to = Classes();
    to.device = device.release().ptr();
    to.data_type = data_type.release().ptr();
    to.numpy_generic = numpy_generic.release().ptr();
    to.numpy_dtype = numpy_dtype.release().ptr();
  });
  m.def("register_object", [](py::handle type_key, py::handle cls) {
    Guarded([&] {
      RegisterObjectClass(type_key.ptr(), cls.ptr());
      return NewNone();
    });
  });
  m.def("register_func", [](const std::string& name, py::handle func, bool override) {
    Guarded([&] {
      bool packed = PyObject_TypeCheck(func.ptr(), Classes().packed_func);
      TVM_CHECK(packed || PyCallable_Check(func.ptr()), TypeError)
          << "register_func(\"" << name << "\"): expected a callable, got "
          << Py_TYPE(func.ptr())->tp_name;
      PackedFunc body =
          packed ? FromPython(func.ptr()).cast<PackedFunc>() : WrapCallable(func.ptr());
      Registry::Register(name, override).set_body(std::move(body));
      return NewNone();
    });
  });
  m.def("get_global_func", [](const std::string& name, bool allow_missing) {
    return Guarded([&] { return GetGlobalFunc(name, allow_missing); });
  });
  m.def("list_global_func_names", [] {
    py::list names;
    for (const std::string& name : Registry::ListNames()) names.append(name);
    return names;
  });
  m.def("convert_to_object", [](py::handle value) {
    return Guarded([&] { return ToPython(FromPython(value.ptr())); });
  });
  m.def("convert_to_func", [](py::handle value) {
    return Guarded([&] { return WrapObject(WrapCallable(value.ptr()).get()); });
  });
  m.def("hold", [](py::handle value) {
    return Guarded([&] { return WrapObject(HoldPython(value.ptr()).get()); });
  });
  m.def("array_to_list", [](py::handle v) { return Guarded([&] { return ArrayToList(v); }); });
  m.def("map_to_list", [](py::handle v) { return Guarded([&] { return MapToList(v); }); });
  m.def("to_dlpack", [](py::handle v) { return Guarded([&] { return ToCapsule(v); }); });
  m.def("from_dlpack", [](py::handle v) { return Guarded([&] { return FromCapsule(v); }); });
  // Addresses and sizes come from numpy arrays that the caller keeps alive.
  m.def("ndarray_copy_from", [](py::handle array, size_t address, size_t bytes) {
    Guarded([&] {
      const auto to = GetRef<runtime::NDArray>(Expect<runtime::NDArrayObj>(array, "copyfrom"));
      {
        GilReleased other_threads_run;
        to.CopyFromBytes(reinterpret_cast<const void*>(address), bytes);
      }
      return NewNone();
    });
  });
  m.def("ndarray_copy_to", [](py::handle array, size_t address, size_t bytes) {
    Guarded([&] {
      const auto from = GetRef<runtime::NDArray>(Expect<runtime::NDArrayObj>(array, "numpy"));
      {
        GilReleased other_threads_run;
        from.CopyToBytes(reinterpret_cast<void*>(address), bytes);
      }
      return NewNone();
    });
  });
}

}  // namespace bindings
}  // namespace tvm
