#include <tvm/runtime/container.h>
#include <tvm/runtime/container/bytes.h>
#include <unistd.h>

#include "bindings.h"
#include "runtime/backtrace.h"

namespace tvm {
namespace bindings {
namespace {

/*! \brief Drop a reference, held with the interpreter's lock; null is fine. */
__attribute__((noinline)) void Drop(PyObject* value) {
  StopsUnwinding here;
  Py_XDECREF(value);
}

__attribute__((noinline)) PyGILState_STATE TakeLock() {
  StopsUnwinding here;
  return PyGILState_Ensure();
}

/*! \brief Holds the interpreter's lock, on any thread. */
class GilHeld {
 public:
  GilHeld() : state_(TakeLock()) {}
  GilHeld(const GilHeld&) = delete;
  ~GilHeld() {
    StopsUnwinding::WaitIfEnded();
    PyGILState_Release(state_);
  }

 private:
  PyGILState_STATE state_;
};

/*! \brief Owning reference to a Python object. */
class PyRef {
 public:
  explicit PyRef(PyObject* ptr) : ptr_(ptr) {}
  PyRef(const PyRef&) = delete;
  ~PyRef() {
    StopsUnwinding::WaitIfEnded();
    Drop(ptr_);
  }
  PyObject* get() const { return ptr_; }
  explicit operator bool() const { return ptr_ != nullptr; }

 private:
  PyObject* ptr_;
};

/*! \brief Any Python object, kept alive. */
class PyHolderObj final : public Object {
 public:
  explicit PyHolderObj(PyObject* value) : value_(value) { Py_INCREF(value); }
  ~PyHolderObj() override {
    // At exit the interpreter may be gone, and its objects with it.
    if (!Py_IsInitialized()) return;
    GilHeld gil;
    Drop(value_);
  }
  TVM_DECLARE_OBJECT(PyHolderObj, Object, "ffi.PyObject");

 private:
  PyObject* value_;
};

/*! \brief Calls a Python callable from any thread. */
class PyCallableObj final : public runtime::PackedFuncObj {
 public:
  explicit PyCallableObj(PyObject* callable) : callable_(callable) { Py_INCREF(callable); }
  ~PyCallableObj() override {
    if (!Py_IsInitialized()) return;
    GilHeld gil;
    Drop(callable_);
  }
  PyObject* callable() const { return callable_; }

  void CallPacked(Args args, RetValue* ret) const override {
    TVM_CHECK(Py_IsInitialized(), RuntimeError)
        << "a Python function was called after the interpreter shut down";
    GilHeld gil;
    constexpr int kOnStack = 12;
    // One slot before the arguments is free for the callee, as vectorcall allows.
    PyObject* on_stack[kOnStack + 1];
    std::vector<PyObject*> on_heap;
    PyObject** values = on_stack;
    if (args.size() > kOnStack) {
      on_heap.resize(static_cast<size_t>(args.size()) + 1);
      values = on_heap.data();
    }
    int converted = 0;
    PyObject* result = nullptr;
    for (; converted < args.size(); ++converted) {
      values[converted + 1] = ToPython(args[converted]);
      if (values[converted + 1] == nullptr) break;
    }
    if (converted == args.size()) {
      result = PyObject_Vectorcall(
          callable_, values + 1, static_cast<size_t>(args.size()) | PY_VECTORCALL_ARGUMENTS_OFFSET,
          nullptr);
    }
    for (int i = 0; i < converted; ++i) Py_DECREF(values[i + 1]);
    if (result == nullptr) throw TakePythonError();
    PyRef owned(result);
    try {
      *ret = FromPython(result);
    } catch (const PythonErrorSet&) {
      throw TakePythonError();
    }
  }
  TVM_DECLARE_OBJECT(PyCallableObj, runtime::PackedFuncObj, "ffi.PyCallable");

 private:
  PyObject* callable_;
};

/*! \brief The exception object a C++ error stands for. */
struct PythonOrigin {
  PyObject* exception;
  explicit PythonOrigin(PyObject* e) : exception(e) {}
  ~PythonOrigin() {
    if (!Py_IsInitialized()) return;
    GilHeld gil;
    Drop(exception);
  }
};

std::string TextOf(PyObject* value) {
  PyRef text(PyObject_Str(value));
  Py_ssize_t size = 0;
  const char* data = text ? PyUnicode_AsUTF8AndSize(text.get(), &size) : nullptr;
  if (data == nullptr) {
    PyErr_Clear();
    return "(no text)";
  }
  return std::string(data, static_cast<size_t>(size));
}

// "file.py:12" of the innermost frame.
std::string InnermostFrame(PyObject* traceback) {
  if (traceback == nullptr || traceback == Py_None) return "";
  PyObject* innermost = Py_NewRef(traceback);
  for (;;) {
    PyObject* next = PyObject_GetAttrString(innermost, "tb_next");
    if (next == nullptr || next == Py_None) {
      Py_XDECREF(next);
      break;
    }
    Py_DECREF(innermost);
    innermost = next;
  }
  PyRef at(innermost);
  PyRef line(PyObject_GetAttrString(at.get(), "tb_lineno"));
  PyRef frame(PyObject_GetAttrString(at.get(), "tb_frame"));
  PyRef code(frame ? PyObject_GetAttrString(frame.get(), "f_code") : nullptr);
  PyRef file(code ? PyObject_GetAttrString(code.get(), "co_filename") : nullptr);
  if (!line || !file) {
    PyErr_Clear();
    return "";
  }
  return TextOf(file.get()) + ":" + TextOf(line.get());
}

[[noreturn]] void ThrowTypeError(PyObject* value) {
  const char* name = Py_TYPE(value)->tp_name;
  const char* hint = "";
  if (PyObject_HasAttrString(value, "__dlpack__")) {
    hint = "; wrap tensors with tvm.nd.array (copy) or tvm.nd.from_dlpack (no copy)";
  }
  PyErr_Format(PyExc_TypeError, "cannot pass a value of type %s to a packed function%s", name,
               hint);
  throw PythonErrorSet();
}

Any FromSequence(PyObject* value) {
  PyRef fast(PySequence_Fast(value, "expected a sequence"));
  if (!fast) throw PythonErrorSet();
  Py_ssize_t size = PySequence_Fast_GET_SIZE(fast.get());
  auto node = make_object<ArrayNode>();
  node->data.reserve(static_cast<size_t>(size));
  for (Py_ssize_t i = 0; i < size; ++i) {
    node->data.push_back(FromPython(PySequence_Fast_GET_ITEM(fast.get(), i)));
  }
  return Any(ObjectRef(node));
}

Any FromDict(PyObject* value) {
  auto node = make_object<MapNode>();
  PyObject* key = nullptr;
  PyObject* item = nullptr;
  Py_ssize_t at = 0;
  while (PyDict_Next(value, &at, &key, &item)) node->Set(FromPython(key), FromPython(item));
  return Any(ObjectRef(node));
}

Any FromInt(PyObject* value) {
  int overflow = 0;
  long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
  if (overflow != 0) {
    PyErr_Format(PyExc_OverflowError, "%R does not fit a 64-bit integer", value);
    throw PythonErrorSet();
  }
  if (number == -1 && PyErr_Occurred()) throw PythonErrorSet();
  return Any(static_cast<int64_t>(number));
}

Any FromDevice(PyObject* value) {
  PyRef type(PyObject_GetAttrString(value, "device_type"));
  PyRef id(PyObject_GetAttrString(value, "device_id"));
  if (!type || !id) throw PythonErrorSet();
  return Any(Device{static_cast<int32_t>(PyLong_AsLong(type.get())),
                    static_cast<int32_t>(PyLong_AsLong(id.get()))});
}

bool IsInstance(PyObject* value, PyObject* cls) {
  return cls != nullptr && PyObject_IsInstance(value, cls) == 1;
}

Any FromResultOf(PyObject* result) {
  if (result == nullptr) throw PythonErrorSet();
  PyRef owned(result);
  return FromPython(result);
}

/*! \brief `ctypes.c_void_p`, which addresses are on the side of Python; null if it is not there. */
PyObject* PointerClass() {
  static PyObject* const pointer_class = [] {
    PyRef ctypes(PyImport_ImportModule("ctypes"));
    return ctypes ? PyObject_GetAttrString(ctypes.get(), "c_void_p") : nullptr;
  }();
  return pointer_class;
}

// Everything that is not one of the common kinds.
Any FromOther(PyObject* value) {
  PythonClasses& classes = Classes();
  if (IsInstance(value, classes.device)) return FromDevice(value);
  if (IsInstance(value, classes.numpy_generic)) {
    return FromResultOf(PyObject_CallMethod(value, "item", nullptr));
  }
  if (IsInstance(value, classes.numpy_dtype)) {
    return FromResultOf(PyObject_GetAttrString(value, "name"));
  }
  if (PyType_Check(value) && classes.numpy_generic != nullptr &&
      PyObject_IsSubclass(value, classes.numpy_generic) == 1) {
    // np.float32 given where a type is expected.
    return FromResultOf(PyObject_CallFunctionObjArgs(classes.numpy_dtype, value, nullptr));
  }
  if (IsInstance(value, PointerClass())) {
    PyRef address(PyObject_GetAttrString(value, "value"));
    if (!address || address.get() == Py_None) return Any();
    return Any(PyLong_AsVoidPtr(address.get()));
  }
  PyErr_Clear();
  // Objects that stand for one of ours, such as a slice of a tensor.
  PyRef method(PyType_Check(value) ? nullptr : PyObject_GetAttrString(value, "asobject"));
  if (method) return FromResultOf(PyObject_CallNoArgs(method.get()));
  PyErr_Clear();
  if (PyCallable_Check(value)) return Any(WrapCallable(value));
  ThrowTypeError(value);
}

}  // namespace

void StopsUnwinding::WaitForExit() {
  for (;;) pause();
}

PackedFunc WrapCallable(PyObject* callable) {
  return PackedFunc(ObjectPtr<Object>(make_object<PyCallableObj>(callable)));
}

ObjectRef HoldPython(PyObject* value) { return ObjectRef(make_object<PyHolderObj>(value)); }

Any FromPython(PyObject* value) {
  if (value == Py_None) return Any();
  if (PyBool_Check(value)) return Any(value == Py_True);
  if (PyLong_Check(value)) return FromInt(value);
  if (PyFloat_Check(value)) return Any(PyFloat_AS_DOUBLE(value));
  if (PyUnicode_Check(value)) {
    Py_ssize_t size = 0;
    if (const char* text = PyUnicode_AsUTF8AndSize(value, &size)) {
      return Any(String(std::string(text, static_cast<size_t>(size))));
    }
    // Text made of bytes that are not UTF-8, such as a file name, goes back to the same bytes.
    PyErr_Clear();
    PyRef bytes(PyUnicode_AsEncodedString(value, "utf-8", "surrogateescape"));
    if (!bytes) throw PythonErrorSet();
    return Any(String(std::string(PyBytes_AS_STRING(bytes.get()),
                                  static_cast<size_t>(PyBytes_GET_SIZE(bytes.get())))));
  }
  if (IsHandle(value)) {
    Object* object = HandleOf(value);
    if (object == nullptr) {
      PyErr_Format(PyExc_ValueError, "the %s has no handle: its constructor did not run",
                   Py_TYPE(value)->tp_name);
      throw PythonErrorSet();
    }
    return Any(GetRef<ObjectRef>(object));
  }
  if (PyList_Check(value) || PyTuple_Check(value)) return FromSequence(value);
  if (PyDict_Check(value)) return FromDict(value);
  if (PyFunction_Check(value) || PyMethod_Check(value)) return Any(WrapCallable(value));
  if (PyBytes_Check(value)) {
    return Any(
        Bytes(std::string(PyBytes_AS_STRING(value), static_cast<size_t>(PyBytes_GET_SIZE(value)))));
  }
  if (PyByteArray_Check(value)) {
    return Any(Bytes(std::string(PyByteArray_AS_STRING(value),
                                 static_cast<size_t>(PyByteArray_GET_SIZE(value)))));
  }
  return FromOther(value);
}

PyObject* ToPython(const Any& value) {
  switch (value.type_code()) {
    case kTVMNull:
      Py_RETURN_NONE;
    case kTVMBool:
      return PyBool_FromLong(value.raw().v_int64 != 0);
    case kTVMInt:
      return PyLong_FromLongLong(value.raw().v_int64);
    case kTVMFloat:
      return PyFloat_FromDouble(value.raw().v_float64);
    case kTVMDataType: {
      std::string text = DataType(value.raw().v_dtype).ToString();
      if (Classes().data_type == nullptr) return PyUnicode_FromString(text.c_str());
      return PyObject_CallFunction(Classes().data_type, "s", text.c_str());
    }
    case kTVMDevice:
      return PyObject_CallFunction(Classes().device, "ii", value.raw().v_device.device_type,
                                   value.raw().v_device.device_id);
    case kTVMOpaqueHandle: {
      PyRef address(PyLong_FromVoidPtr(value.raw().v_handle));
      if (!address || PointerClass() == nullptr) return nullptr;
      return PyObject_CallOneArg(PointerClass(), address.get());
    }
    case kTVMStr:
      return PyUnicode_DecodeUTF8(value.raw().v_str,
                                  static_cast<Py_ssize_t>(std::strlen(value.raw().v_str)),
                                  "surrogateescape");
    case kTVMDLTensor: {
      // The elements are the caller's for the duration of the call. What says where they are is
      // copied, so that a callee that keeps the array can still ask for its shape.
      auto node = make_object<runtime::NDArrayObj>();
      node->tensor = *static_cast<DLTensor*>(value.raw().v_handle);
      node->shape.assign(node->tensor.shape, node->tensor.shape + node->tensor.ndim);
      node->tensor.shape = node->shape.data();
      if (node->tensor.strides != nullptr) {
        node->strides.assign(node->tensor.strides, node->tensor.strides + node->tensor.ndim);
        node->tensor.strides = node->strides.data();
      }
      return WrapObject(node.get());
    }
    default:
      break;
  }
  if (const auto* held = value.as<PyCallableObj>()) return Py_NewRef(held->callable());
  return WrapObject(value.object());
}

Error TakePythonError() {
  PyObject* type = nullptr;
  PyObject* exception = nullptr;
  PyObject* traceback = nullptr;
  PyErr_Fetch(&type, &exception, &traceback);
  PyErr_NormalizeException(&type, &exception, &traceback);
  if (traceback != nullptr) PyException_SetTraceback(exception, traceback);
  std::string kind = reinterpret_cast<PyTypeObject*>(type)->tp_name;
  kind = kind.substr(kind.rfind('.') + 1);
  Error error(kind, TextOf(exception),
              InnermostFrame(traceback) + "\n" + runtime::CaptureBacktrace(),
              std::make_shared<PythonOrigin>(exception));
  Py_XDECREF(type);
  Py_XDECREF(traceback);
  return error;
}

namespace {
// Text that Python prints below the exception (from 3.11 on), and keeps in __notes__.
void AddNote(PyObject* exception, const std::string& text) {
  PyRef notes(PyObject_GetAttrString(exception, "__notes__"));
  PyErr_Clear();
  PyRef list(notes && PyList_Check(notes.get()) ? Py_NewRef(notes.get()) : PyList_New(0));
  PyRef note(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
  if (list && note && PyList_Append(list.get(), note.get()) == 0) {
    PyObject_SetAttrString(exception, "__notes__", list.get());
  }
  // An exception that takes no attributes goes on without the note.
  PyErr_Clear();
}
}  // namespace

void SetPythonError(const Error& error) {
  if (error.origin() != nullptr) {
    PyObject* exception = static_cast<PythonOrigin*>(error.origin().get())->exception;
    AddNote(exception, "Raised in a Python function that C++ called, at " + error.backtrace());
    Py_INCREF(exception);
    PyErr_Restore(Py_NewRef(reinterpret_cast<PyObject*>(Py_TYPE(exception))), exception,
                  PyException_GetTraceback(exception));
    return;
  }
  PyObject* cls = PyDict_GetItemString(Classes().errors, error.kind().c_str());
  if (cls == nullptr) cls = PyDict_GetItemString(Classes().errors, "TVMError");
  if (cls == nullptr) cls = PyExc_RuntimeError;
  std::string message = error.message();
  // A bug of ours is reported with the place it was noticed.
  if (error.kind() == "InternalError") message += "\n  at " + error.backtrace();
  // Messages quote what they were given, which need not be text.
  PyRef text(
      PyUnicode_DecodeUTF8(message.data(), static_cast<Py_ssize_t>(message.size()), "replace"));
  if (!text) return;
  PyRef exception(PyObject_CallOneArg(cls, text.get()));
  if (!exception) return;
  PyRef backtrace(PyUnicode_FromString(error.backtrace().c_str()));
  if (backtrace) PyObject_SetAttrString(exception.get(), "backtrace", backtrace.get());
  PyErr_SetObject(cls, exception.get());
}

__attribute__((noinline)) void TakeLockBack(PyThreadState* state) {
  StopsUnwinding here;
  PyEval_RestoreThread(state);
}

Any CallReleased(const runtime::PackedFuncObj* func, PyObject* const* args, size_t count) {
  constexpr size_t kOnStack = 8;
  Any on_stack[kOnStack];
  std::vector<Any> on_heap;
  Any* values = on_stack;
  if (count > kOnStack) {
    on_heap.resize(count);
    values = on_heap.data();
  }
  for (size_t i = 0; i < count; ++i) values[i] = FromPython(args[i]);
  Any result;
  {
    GilReleased other_threads_run;
    func->CallPacked(Args(values, static_cast<int32_t>(count)), &result);
  }
  return result;
}

PyObject* CallPackedVector(PyObject* self, PyObject* const* args, size_t nargsf,
                           PyObject* kwnames) {
  if (kwnames != nullptr && PyTuple_GET_SIZE(kwnames) != 0) {
    PyErr_SetString(PyExc_TypeError, "a packed function takes positional arguments only");
    return nullptr;
  }
  return Guard<PyObject*>(nullptr, [&] {
    const auto* func = static_cast<const runtime::PackedFuncObj*>(HandleOf(self));
    return ToPython(CallReleased(func, args, static_cast<size_t>(PyVectorcall_NARGS(nargsf))));
  });
}

}  // namespace bindings
}  // namespace tvm
