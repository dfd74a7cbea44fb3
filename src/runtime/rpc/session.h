/*!
 * \file session.h
 * \brief Session: one end of a connection over which functions, modules and arrays of the other end
 * are used.
 *
 * Both ends are of this class. The serving one gives out functions by name; the other one only lets
 * the functions be called that it passed as arguments. Requests are answered in their order, and
 * while an end waits for an answer it serves requests, so calls nest.
 *
 * Objects stay where they are made. They are called by a number, and given back when the last
 * reference at the other end is gone. See docs/rpc.md for the messages.
 */
#ifndef TVM_RUNTIME_RPC_SESSION_H_
#define TVM_RUNTIME_RPC_SESSION_H_

#include <tvm/runtime/device_api.h>
#include <tvm/runtime/module.h>

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "wire.h"

namespace tvm {
namespace runtime {
namespace rpc {

/*! \brief Devices of another machine have the type of the device plus a multiple of this. */
constexpr int kSessionMask = 128;

/*! \brief Finds what the other end may call by name: null if there is nothing, an error if it is
 *         not allowed. */
using FunctionFinder = std::function<PackedFunc(const std::string& name)>;

class Session final : public Object {
 public:
  /*! \param find What the other end may ask for by name; null unless this end serves. */
  Session(std::unique_ptr<Wire> wire, FunctionFinder find, Limits limits = {});
  ~Session() override;
  /*! \brief Make it known to devices and arrays by its number. */
  static ObjectPtr<Session> Make(std::unique_ptr<Wire> wire, FunctionFinder find,
                                 Limits limits = {});
  /*! \brief The session that a device belongs to; RPCError if it is gone. */
  static ObjectPtr<Session> Of(Device device);

  /*! \brief Answer requests until the other end closes the connection. */
  void Serve();

  /*! \brief A function of the other end, or null. */
  PackedFunc GetFunction(const std::string& name);
  /*! \brief A function of a module of the other end, or null. */
  PackedFunc GetMember(int64_t module, const std::string& name, bool query_imports);
  Any Call(int64_t function, Args args);
  /*! \brief Call a function by name; AttributeError if the other end has none. */
  template <typename... A>
  Any CallByName(const std::string& name, A&&... args) {
    return RequireFunction(name)(std::forward<A>(args)...);
  }
  PackedFunc RequireFunction(const std::string& name);
  void Free(int64_t handle);

  /*! \brief Memory of the other end behind an address that means something to this class only. */
  void* Allocate(Device device, size_t bytes, size_t alignment);
  void FreeMemory(void* address);
  void Write(const void* from, void* to, size_t bytes);
  void Read(const void* from, void* to, size_t bytes);
  void Copy(const void* from, void* to, size_t bytes);
  Any DeviceAttribute(Device device, int kind);
  void Synchronize(Device device);

  void Close();
  bool closed() const { return wire_->closed(); }
  /*! \brief Seconds that a call may take from now on; 0 for any. */
  void SetTimeLimit(double seconds);
  const std::string& peer() const { return wire_->peer(); }
  int number() const { return number_; }
  Device Mask(Device device) const {
    return Device{device.device_type + kSessionMask * (number_ + 1), device.device_id};
  }

  TVM_DECLARE_OBJECT(Session, Object, "rpc.Session");

 private:
  friend class Encoder;
  friend class Decoder;
  /*! \brief Memory of the other end: its number there and its size. */
  struct Memory {
    int64_t handle;
    size_t bytes;
  };
  struct Place {
    int64_t handle;
    size_t at;
  };
  struct Answer {
    json::Value value;
    std::string blob;
    uint64_t blob_bytes = 0;
  };

  /*! \brief Send a request and take the answer's text. Its blob goes to `to` if it is given. */
  Answer Request(json::ObjectValue message, const std::vector<Piece>& blob, void* to = nullptr,
                 size_t to_bytes = 0);
  Answer WaitForAnswer(void* to, size_t to_bytes);
  /*! \brief Take one message; false if it was a request, which is answered by then. */
  bool Take(Answer* answer, void* to, size_t to_bytes);
  void TakeUnasked();
  /*! \brief Answer a request; its blob is still to be received. */
  void Handle(const json::Value& request, uint64_t blob_bytes);
  json::Value Perform(const json::Value& request, uint64_t* blob_left, std::vector<Piece>* blob,
                      std::vector<ObjectRef>* keep);
  json::Value PerformWrite(const json::Value& request, uint64_t* blob_left);
  json::Value PerformRead(const json::Value& request, std::vector<Piece>* blob,
                          std::vector<ObjectRef>* keep);
  std::string ReceiveBlob(uint64_t size);
  void SendFreed();
  std::string TakeFreed();

  int64_t Export(ObjectRef object);
  ObjectRef Exported(int64_t handle) const;
  /*! \brief Bytes of an array that this end keeps; ValueError if there are not as many. */
  NDArray ExportedBytes(int64_t handle, int64_t at, int64_t bytes) const;
  void* Remember(Memory memory);
  Place Find(const void* address, size_t bytes);
  json::Value EncodeDevice(Device device) const;

  std::unique_ptr<Wire> wire_;
  FunctionFinder find_;
  Limits limits_;
  int number_ = -1;
  double time_limit_ = 0;

  std::recursive_mutex mutex_;
  int depth_ = 0;
  int64_t next_handle_ = 1;
  std::unordered_map<int64_t, ObjectRef> exported_;

  // Apart from the requests: an object may be released while another thread waits for an answer.
  std::mutex memory_mutex_;
  std::map<uintptr_t, Memory> memory_;
  uintptr_t next_address_;
  std::vector<int64_t> freed_;
  /*! \brief Arrays know the session by its number only, so it stays as long as there are any. */
  ObjectPtr<Object> self_;
};

/*! \brief A function of the other end. */
class RemoteFunctionObj final : public PackedFuncObj {
 public:
  RemoteFunctionObj(ObjectPtr<Session> session, int64_t handle)
      : session(std::move(session)), handle(handle) {}
  ~RemoteFunctionObj() override { session->Free(handle); }
  void CallPacked(Args args, RetValue* ret) const override { *ret = session->Call(handle, args); }
  ObjectPtr<Session> session;
  int64_t handle;
  TVM_DECLARE_OBJECT(RemoteFunctionObj, PackedFuncObj, "rpc.RemoteFunction");
};

/*! \brief A module of the other end. */
class RemoteModuleNode final : public ModuleNode {
 public:
  RemoteModuleNode(ObjectPtr<Session> session, int64_t handle)
      : session(std::move(session)), handle(handle) {}
  ~RemoteModuleNode() override { session->Free(handle); }
  const char* type_key() const override { return "rpc"; }
  PackedFunc GetFunction(const String& name, const ObjectPtr<Object>&) override {
    return session->GetMember(handle, name, false);
  }
  Array<String> ListFunctionNames() override;
  String GetSource(const String& format) override;
  ObjectPtr<Session> session;
  int64_t handle;
  TVM_DECLARE_OBJECT(RemoteModuleNode, ModuleNode, "rpc.RemoteModule");
};

/*! \brief Any other object of the other end, which can be passed back to its functions. */
class RemoteObjectObj final : public Object {
 public:
  RemoteObjectObj(ObjectPtr<Session> session, int64_t handle, std::string kind)
      : session(std::move(session)), handle(handle), kind(std::move(kind)) {}
  ~RemoteObjectObj() override { session->Free(handle); }
  ObjectPtr<Session> session;
  int64_t handle;
  /*! \brief Type key that the object has there. */
  std::string kind;
  TVM_DECLARE_OBJECT(RemoteObjectObj, Object, "runtime.RPCObjectRef");
};

}  // namespace rpc
}  // namespace runtime
}  // namespace tvm

#endif  // TVM_RUNTIME_RPC_SESSION_H_
