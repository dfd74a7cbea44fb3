/*!
 * \file bindings.h
 * \brief The Python side of objects, functions and values.
 *
 * The hot types are written against CPython directly: a call through pybind11's dispatcher costs
 * more than a whole packed call may. pybind11 binds the module's functions.
 */
#ifndef TVM_BINDINGS_BINDINGS_H_
#define TVM_BINDINGS_BINDINGS_H_

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>
#include <tvm/node/reflection.h>
#include <tvm/runtime/ndarray.h>
#include <tvm/runtime/packed_func.h>

namespace tvm {
namespace bindings {

/*! \brief Layout of every Python object that stands for one of ours. */
struct PyHandle {
  PyObject_HEAD
      /*! \brief One reference is owned; null before __init__ ran. */
      Object* object;
};

/*! \brief Layout of the function type, which is called without an argument tuple. */
struct PyFunctionHandle {
  PyHandle base;
  vectorcallfunc call;
};

/*! \brief Thrown by conversions after they set the Python error. */
struct PythonErrorSet {};

/*! \brief Python classes the bindings create or look for; set while the package is imported. */
struct PythonClasses {
  PyTypeObject* object_base = nullptr;
  PyTypeObject* packed_func = nullptr;
  PyObject* device = nullptr;
  PyObject* data_type = nullptr;
  PyObject* numpy_generic = nullptr;
  PyObject* numpy_dtype = nullptr;
  /*! \brief dict: kind -> exception class. */
  PyObject* errors = nullptr;
  /*! \brief dict: type key -> class. */
  PyObject* object_classes = nullptr;
};
PythonClasses& Classes();

inline bool IsHandle(PyObject* value) { return PyObject_TypeCheck(value, Classes().object_base); }
inline Object*& HandleOf(PyObject* value) { return reinterpret_cast<PyHandle*>(value)->object; }

/*! \brief Create the base types. */
void InitTypes(PyObject* module);
/*! \brief Make `cls` the class of objects of a type, and give it the type's fields. */
void RegisterObjectClass(PyObject* type_key, PyObject* cls);

/*! \brief New reference to an object of the class registered for the type or its ancestors. */
PyObject* WrapObject(const Object* object);
/*! \brief New reference. Null with a Python error set on failure. */
PyObject* ToPython(const Any& value);
/*! \brief Convert an argument; throws PythonErrorSet. */
Any FromPython(PyObject* value);

/*! \brief A Python callable as a function of ours. */
PackedFunc WrapCallable(PyObject* callable);
/*! \brief Keeps any Python object alive on the C++ side. */
ObjectRef HoldPython(PyObject* value);

/*! \brief The Python error that is set, as a C++ error that remembers the exception. Clears it. */
Error TakePythonError();
/*! \brief Set the Python error for a C++ error; the original exception if it came from Python. */
void SetPythonError(const Error& error);

/*!
 * \brief Stops the unwinding of a thread that the interpreter ends because it shuts down.
 *
 * That happens wherever code of Python runs, or the lock is taken, on another thread than the main
 * one. What would run on the way up (references dropped, the lock released) needs the interpreter,
 * so the thread waits here for the process to end. A destructor, because the C++ runtime ends the
 * process when such an unwinding is caught inside the handler of another exception. It does the
 * same when the unwinding reaches a function that is noexcept, destructors included, so this has to
 * stand in a function that is not and is not inlined into one.
 */
struct StopsUnwinding {
  StopsUnwinding() = default;
  StopsUnwinding(const StopsUnwinding&) = delete;
  ~StopsUnwinding() { WaitIfEnded(); }

  static void WaitIfEnded() {
    // A thread that is not being ended holds the lock here.
    if (!PyGILState_Check()) WaitForExit();
  }

 private:
  [[noreturn]] static void WaitForExit();
};

/*! \brief Take the interpreter's lock for a thread that gave it up. */
void TakeLockBack(PyThreadState* state);

/*!
 * \brief Lets other Python threads run while nothing of Python is touched.
 *
 * Whatever may wait for another process has to: a session over TLS waits for a thread of Python.
 */
class GilReleased {
 public:
  GilReleased() = default;
  GilReleased(const GilReleased&) = delete;
  ~GilReleased() { TakeLockBack(state_); }

 private:
  PyThreadState* state_ = PyEval_SaveThread();
};

/*! \brief Run `f`; on a C++ exception set the Python error and return `failed`. */
template <typename R, typename F>
R Guard(R failed, F&& f) {
  StopsUnwinding here;
  try {
    return f();
  } catch (const PythonErrorSet&) {
  } catch (const Error& error) {
    SetPythonError(error);
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& error) {
    SetPythonError(Error("InternalError", error.what()));
  }
  return failed;
}

/*! \brief The entry point of calls from Python. */
PyObject* CallPackedVector(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* kwnames);
/*! \brief Call with converted arguments while other Python threads run; throws tvm::Error. */
Any CallReleased(const runtime::PackedFuncObj* func, PyObject* const* args, size_t count);

}  // namespace bindings
}  // namespace tvm

#endif  // TVM_BINDINGS_BINDINGS_H_
