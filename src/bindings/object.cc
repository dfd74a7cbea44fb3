#include <tvm/runtime/container/bytes.h>
#include <tvm/runtime/registry.h>

#include <cstring>
#include <unordered_map>
#include <vector>

#include "bindings.h"

namespace tvm {
namespace bindings {

PythonClasses& Classes() {
  static PythonClasses classes;
  return classes;
}

namespace {

// ---- fields as attributes ---------------------------------------------------------------------

// Fields belong to the compiler library, which is asked through the registry: with the runtime
// library alone there are none, and the same bindings serve.
const std::vector<FieldInfo>& FieldsOf(const runtime::TypeInfo* type) {
  static const std::vector<FieldInfo> none;
  if (type->reflection == nullptr) return none;
  static const PackedFunc table = Registry::Require("node.FieldTable");
  const void* fields = table(String(type->key)).cast<void*>();
  return fields == nullptr ? none : *static_cast<const std::vector<FieldInfo>*>(fields);
}

struct PyField {
  PyObject_HEAD const FieldInfo* field;
  const runtime::TypeInfo* owner;
};

PyTypeObject* field_type = nullptr;

PyObject* ReadField(const Object* object, const FieldInfo& field) {
  if (field.is_object) {
    const ObjectRef& ref = field.GetRef(object);
    if (!ref.defined()) Py_RETURN_NONE;
    return WrapObject(ref.get());
  }
  return Guard<PyObject*>(nullptr, [&] { return ToPython(field.Get(object)); });
}

PyObject* FieldGet(PyObject* self, PyObject* instance, PyObject*) {
  auto* descriptor = reinterpret_cast<PyField*>(self);
  if (instance == nullptr || instance == Py_None) {
    Py_INCREF(self);
    return self;
  }
  const Object* object = IsHandle(instance) ? HandleOf(instance) : nullptr;
  // A class may be used before its handle is set, or for a type it was not registered for.
  if (object == nullptr || !object->type_info()->IsDerivedFrom(descriptor->owner)) {
    PyErr_Format(PyExc_AttributeError, "%s: the object has no handle yet; call its constructor",
                 descriptor->field->name);
    return nullptr;
  }
  return ReadField(object, *descriptor->field);
}

int FieldSet(PyObject* self, PyObject*, PyObject*) {
  auto* descriptor = reinterpret_cast<PyField*>(self);
  PyErr_Format(PyExc_AttributeError, "%s.%s is read-only: objects do not change, make a new one",
               descriptor->owner->key.c_str(), descriptor->field->name);
  return -1;
}

PyObject* FieldRepr(PyObject* self) {
  auto* descriptor = reinterpret_cast<PyField*>(self);
  return PyUnicode_FromFormat("<field %s of %s>", descriptor->field->name,
                              descriptor->owner->key.c_str());
}

void FieldDealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyType_Slot field_slots[] = {
    {Py_tp_descr_get, reinterpret_cast<void*>(FieldGet)},
    {Py_tp_descr_set, reinterpret_cast<void*>(FieldSet)},
    {Py_tp_repr, reinterpret_cast<void*>(FieldRepr)},
    {Py_tp_dealloc, reinterpret_cast<void*>(FieldDealloc)},
    {0, nullptr},
};
PyType_Spec field_spec = {"tvm._ffi._core.Field", sizeof(PyField), 0, Py_TPFLAGS_DEFAULT,
                          field_slots};

// ---- the object type --------------------------------------------------------------------------

void ObjectDealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  if (Object* object = HandleOf(self)) {
    // The end of an object may call Python, as that of memory of a device defined there does, and
    // it may come while an exception is on its way.
    PyObject *kind, *value, *traceback;
    PyErr_Fetch(&kind, &value, &traceback);
    object->DecRef();
    PyErr_Restore(kind, value, traceback);
  }
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* ObjectRepr(PyObject* self) {
  const Object* object = HandleOf(self);
  if (object == nullptr) return PyUnicode_FromFormat("<%s without handle>", Py_TYPE(self)->tp_name);
  return Guard<PyObject*>(nullptr, [&] {
    const PackedFunc* as_repr = Registry::Get("node.AsRepr");
    if (as_repr == nullptr) {
      return PyUnicode_FromFormat("<%s at %p>", object->GetTypeKey().c_str(), object);
    }
    std::string text = (*as_repr)(GetRef<ObjectRef>(object));
    return PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace");
  });
}

Py_hash_t ObjectHash(PyObject* self) {
  auto hash = static_cast<Py_hash_t>(reinterpret_cast<uintptr_t>(HandleOf(self)) >> 4);
  return hash == -1 ? -2 : hash;
}

PyObject* ObjectCompare(PyObject* self, PyObject* other, int op) {
  if ((op != Py_EQ && op != Py_NE) || !IsHandle(other)) Py_RETURN_NOTIMPLEMENTED;
  bool same = HandleOf(self) == HandleOf(other);
  return PyBool_FromLong(same == (op == Py_EQ));
}

// Ordinary lookup first; then the fields, for types without a class of their own.
PyObject* ObjectGetAttr(PyObject* self, PyObject* name) {
  PyObject* found = PyObject_GenericGetAttr(self, name);
  if (found != nullptr || !PyErr_ExceptionMatches(PyExc_AttributeError)) return found;
  const Object* object = HandleOf(self);
  if (object == nullptr) return nullptr;
  const char* text = PyUnicode_AsUTF8(name);
  if (text == nullptr) return nullptr;
  for (const FieldInfo& field : FieldsOf(object->type_info())) {
    if (std::strcmp(field.name, text) != 0) continue;
    PyErr_Clear();
    return ReadField(object, field);
  }
  return nullptr;
}

PyObject* ObjectSameAs(PyObject* self, PyObject* other) {
  return PyBool_FromLong(IsHandle(other) && HandleOf(self) == HandleOf(other));
}

// The constructor of a node is a packed function; the object it returns becomes this one.
PyObject* ObjectInitByConstructor(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  if (count < 1 || !PyObject_TypeCheck(args[0], Classes().packed_func)) {
    PyErr_SetString(PyExc_TypeError,
                    "__init_handle_by_constructor__: expected a packed function first");
    return nullptr;
  }
  return Guard<PyObject*>(nullptr, [&]() -> PyObject* {
    const auto* func = static_cast<const runtime::PackedFuncObj*>(HandleOf(args[0]));
    Any result = CallReleased(func, args + 1, static_cast<size_t>(count - 1));
    TVM_CHECK(result.is_object(), TypeError)
        << "__init_handle_by_constructor__: the constructor of " << Py_TYPE(self)->tp_name
        << " returned " << result.TypeName();
    Object* old = std::exchange(HandleOf(self), static_cast<Object*>(result.MoveToRaw().v_handle));
    if (old != nullptr) old->DecRef();
    Py_RETURN_NONE;
  });
}

// Used by pickling and by constructors written in Python: become another reference to `other`.
PyObject* ObjectTakeHandle(PyObject* self, PyObject* other) {
  if (!IsHandle(other)) {
    PyErr_SetString(PyExc_TypeError, "_take_handle: expected an object");
    return nullptr;
  }
  Object* object = HandleOf(other);
  if (object != nullptr) object->IncRef();
  Object* old = std::exchange(HandleOf(self), object);
  if (old != nullptr) old->DecRef();
  Py_RETURN_NONE;
}

PyObject* ObjectDir(PyObject* self, PyObject*) {
  const Object* object = HandleOf(self);
  PyObject* names =
      PyObject_CallMethod(reinterpret_cast<PyObject*>(&PyBaseObject_Type), "__dir__", "O", self);
  if (names == nullptr || object == nullptr) return names;
  for (const FieldInfo& field : FieldsOf(object->type_info())) {
    PyObject* text = PyUnicode_FromString(field.name);
    if (text == nullptr || PyList_Append(names, text) != 0) {
      Py_XDECREF(text);
      Py_DECREF(names);
      return nullptr;
    }
    Py_DECREF(text);
  }
  return names;
}

PyObject* ObjectTypeKey(PyObject* self, void*) {
  const Object* object = HandleOf(self);
  if (object == nullptr) Py_RETURN_NONE;
  return PyUnicode_FromString(object->GetTypeKey().c_str());
}

PyObject* ObjectAddress(PyObject* self, void*) { return PyLong_FromVoidPtr(HandleOf(self)); }

PyMethodDef object_methods[] = {
    {"same_as", ObjectSameAs, METH_O, "True if both stand for the same object."},
    {"__init_handle_by_constructor__",
     reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(ObjectInitByConstructor)),
     METH_FASTCALL, "Call a packed constructor and become the object it returns."},
    {"_take_handle", ObjectTakeHandle, METH_O, "Become another reference to the given object."},
    {"__dir__", ObjectDir, METH_NOARGS, "Attributes, fields included."},
    {nullptr, nullptr, 0, nullptr},
};
PyGetSetDef object_properties[] = {
    {"type_key", ObjectTypeKey, nullptr, "Key of the object's type.", nullptr},
    {"handle", ObjectAddress, nullptr, "Address of the object.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyType_Slot object_slots[] = {
    {Py_tp_dealloc, reinterpret_cast<void*>(ObjectDealloc)},
    {Py_tp_repr, reinterpret_cast<void*>(ObjectRepr)},
    {Py_tp_hash, reinterpret_cast<void*>(ObjectHash)},
    {Py_tp_richcompare, reinterpret_cast<void*>(ObjectCompare)},
    {Py_tp_getattro, reinterpret_cast<void*>(ObjectGetAttr)},
    {Py_tp_methods, object_methods},
    {Py_tp_getset, object_properties},
    {Py_tp_new, reinterpret_cast<void*>(PyType_GenericNew)},
    {0, nullptr},
};
PyType_Spec object_spec = {"tvm._ffi._core.ObjectBase", sizeof(PyHandle), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, object_slots};

// ---- the function type ------------------------------------------------------------------------

PyMemberDef function_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(PyFunctionHandle, call), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};
PyType_Slot function_slots[] = {
    {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
    {Py_tp_members, function_members},
    {Py_tp_doc, const_cast<char*>("A function of any arguments, registered in C++ or Python.")},
    {0, nullptr},
};
// Not a base type: a subclass would lose the fast call.
PyType_Spec function_spec = {"tvm.runtime.PackedFunc", sizeof(PyFunctionHandle), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL, function_slots};

// ---- classes by type --------------------------------------------------------------------------

// Class of each type index, null when not resolved yet. Cleared when a class is registered.
std::vector<PyTypeObject*> class_cache;

PyTypeObject* ClassOf(const runtime::TypeInfo* type) {
  if (type->index < class_cache.size() && class_cache[type->index] != nullptr) {
    return class_cache[type->index];
  }
  PyTypeObject* cls = Classes().object_base;
  for (const auto* at = type; at != nullptr; at = at->parent) {
    PyObject* found = PyDict_GetItemString(Classes().object_classes, at->key.c_str());
    if (found != nullptr) {
      cls = reinterpret_cast<PyTypeObject*>(found);
      break;
    }
  }
  if (class_cache.size() <= type->index) class_cache.resize(runtime::TypeInfo::Count(), nullptr);
  class_cache[type->index] = cls;
  return cls;
}

}  // namespace

PyObject* WrapObject(const Object* object) {
  if (object->IsInstance<StringObj>()) {
    const std::string& text = static_cast<const StringObj*>(object)->data;
    if (object->IsInstance<BytesObj>()) {
      return PyBytes_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size()));
    }
    return PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()),
                                "surrogateescape");
  }
  if (object->IsInstance<runtime::PackedFuncObj>()) {
    PyTypeObject* type = Classes().packed_func;
    PyObject* self = type->tp_alloc(type, 0);
    if (self == nullptr) return nullptr;
    object->IncRef();
    HandleOf(self) = const_cast<Object*>(object);
    reinterpret_cast<PyFunctionHandle*>(self)->call = CallPackedVector;
    return self;
  }
  PyTypeObject* cls = ClassOf(object->type_info());
  PyObject* self = cls->tp_alloc(cls, 0);
  if (self == nullptr) return nullptr;
  object->IncRef();
  HandleOf(self) = const_cast<Object*>(object);
  return self;
}

void RegisterObjectClass(PyObject* type_key, PyObject* cls) {
  PythonClasses& classes = Classes();
  if (!PyType_Check(cls) ||
      !PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(cls), classes.object_base)) {
    PyErr_SetString(PyExc_TypeError, "register_object: the class must derive from tvm.Object");
    throw PythonErrorSet();
  }
  if (PyDict_SetItem(classes.object_classes, type_key, cls) != 0) throw PythonErrorSet();
  class_cache.clear();
  const char* key = PyUnicode_AsUTF8(type_key);
  if (key == nullptr) throw PythonErrorSet();
  const runtime::TypeInfo* type = runtime::TypeInfo::Find(key);
  if (type == nullptr) return;
  for (const FieldInfo& field : FieldsOf(type)) {
    // What the class or its bases define under the name has precedence.
    PyObject* existing = PyObject_GetAttrString(cls, field.name);
    if (existing != nullptr) {
      Py_DECREF(existing);
      continue;
    }
    PyErr_Clear();
    PyObject* descriptor = field_type->tp_alloc(field_type, 0);
    if (descriptor == nullptr) throw PythonErrorSet();
    reinterpret_cast<PyField*>(descriptor)->field = &field;
    reinterpret_cast<PyField*>(descriptor)->owner = type;
    int status = PyObject_SetAttrString(cls, field.name, descriptor);
    Py_DECREF(descriptor);
    if (status != 0) throw PythonErrorSet();
  }
}

void InitTypes(PyObject* module) {
  PythonClasses& classes = Classes();
  auto make = [&](PyType_Spec* spec, PyObject* bases, const char* name) {
    PyObject* type = PyType_FromSpecWithBases(spec, bases);
    if (type == nullptr || PyModule_AddObjectRef(module, name, type) != 0) throw PythonErrorSet();
    return reinterpret_cast<PyTypeObject*>(type);
  };
  field_type = make(&field_spec, nullptr, "Field");
  classes.object_base = make(&object_spec, nullptr, "ObjectBase");
  classes.packed_func =
      make(&function_spec, reinterpret_cast<PyObject*>(classes.object_base), "PackedFunc");
  classes.object_classes = PyDict_New();
  classes.errors = PyDict_New();
  if (classes.object_classes == nullptr || classes.errors == nullptr) throw PythonErrorSet();
}

}  // namespace bindings
}  // namespace tvm
