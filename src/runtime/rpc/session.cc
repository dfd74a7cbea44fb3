#include "session.h"

#include <sys/socket.h>
#include <tvm/runtime/registry.h>

#include <algorithm>
#include <shared_mutex>
#include <stdexcept>

#include "value.h"

namespace tvm {
namespace runtime {
namespace rpc {
namespace {

using json::ArrayValue;
using json::ObjectValue;
using json::Value;

// Calls that call back, which call back, and so on.
constexpr int kMaxDepth = 64;
// Addresses of another machine's memory look like none of this one: nobody may follow them.
constexpr uintptr_t kFirstAddress = uintptr_t{1} << 60;
constexpr uintptr_t kPage = 4096;
// What is asked for in pieces, so that a size alone costs no memory.
constexpr uint64_t kBlobStep = 8 << 20;

/*! \brief Sessions by number. A session that is gone is not here. */
struct Sessions {
  std::shared_mutex mutex;
  std::unordered_map<int, Session*> by_number;
  int next = 0;

  static Sessions& Global() {
    // Never destroyed: arrays may outlive everything else.
    static auto* sessions = new Sessions;
    return *sessions;
  }
};

Value Text(const char* text) { return Value(std::string(text)); }

Device DeviceIn(const Value& message) {
  const auto& pair = message.At("device", "message").Expect<ArrayValue>("device");
  TVM_CHECK(pair.size() == 2, ValueError) << "message: a device is a type and a number";
  const int64_t type = pair[0].Expect<int64_t>("type"), id = pair[1].Expect<int64_t>("number");
  TVM_CHECK(type > 0 && type < kSessionMask && id >= 0 && id < 1 << 16, ValueError)
      << "rpc: there is no device of type " << type << " and number " << id;
  return Device{static_cast<int32_t>(type), static_cast<int32_t>(id)};
}

/*! \brief The kind of an error that came over the wire, if it looks like one. */
std::string KindOf(const Value& message) {
  const Value* kind = message.Find("kind");
  const auto* text = kind == nullptr ? nullptr : kind->as<std::string>();
  const bool good =
      text != nullptr && !text->empty() && text->size() < 64 &&
      std::all_of(
          text->begin(), text->end(),
          [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; });
  return good ? *text : "RPCError";
}

}  // namespace

Session::Session(std::unique_ptr<Wire> wire, FunctionFinder find, Limits limits)
    : wire_(std::move(wire)),
      find_(std::move(find)),
      limits_(limits),
      next_address_(kFirstAddress) {}

Session::~Session() {
  Sessions& all = Sessions::Global();
  std::unique_lock lock(all.mutex);
  all.by_number.erase(number_);
}

ObjectPtr<Session> Session::Make(std::unique_ptr<Wire> wire, FunctionFinder find, Limits limits) {
  auto session = make_object<Session>(std::move(wire), std::move(find), limits);
  Sessions& all = Sessions::Global();
  std::unique_lock lock(all.mutex);
  TVM_CHECK(all.next < (1 << 24) - 2, RPCError)
      << "rpc: this process has had as many sessions as there are numbers; start a new one";
  session->number_ = all.next++;
  all.by_number[session->number_] = session.get();
  return session;
}

ObjectPtr<Session> Session::Of(Device device) {
  Sessions& all = Sessions::Global();
  std::shared_lock lock(all.mutex);
  auto found = all.by_number.find(device.device_type / kSessionMask - 1);
  TVM_CHECK(found != all.by_number.end(), RPCError)
      << "rpc: the session of this device has ended; ask the session for its devices again";
  return ObjectPtr<Session>(found->second);
}

void Session::SetTimeLimit(double seconds) {
  time_limit_ = seconds;
  if (seconds <= 0) wire_->SetTimeLimit(0);
}

void Session::Close() {
  std::unique_lock lock(mutex_, std::try_to_lock);
  if (lock.owns_lock() && depth_ == 0) {
    wire_->Close();
  } else if (!wire_->closed()) {
    // Another thread is in a call: it sees the end of the stream and closes.
    shutdown(wire_->socket(), SHUT_RDWR);
  }
}

// ------------------------------------------------------------------------------- asking

Session::Answer Session::Request(ObjectValue message, const std::vector<Piece>& blob, void* to,
                                 size_t to_bytes) {
  std::lock_guard lock(mutex_);
  TVM_CHECK(depth_ < kMaxDepth, RecursionError)
      << "rpc: calls between two processes are nested more than " << kMaxDepth << " deep";
  if (time_limit_ > 0 && depth_ == 0) wire_->SetTimeLimit(time_limit_);
  // Why the session ended may have come meanwhile, and cannot be read after a failure to send.
  while (depth_ == 0 && wire_->Ready()) TakeUnasked();
  SendFreed();
  std::string text;
  Value(std::move(message)).Write(&text);
  ++depth_;
  struct Leave {
    int* depth;
    ~Leave() { --*depth; }
  } leave{&depth_};
  wire_->Send(text, blob);
  return WaitForAnswer(to, to_bytes);
}

Session::Answer Session::WaitForAnswer(void* to, size_t to_bytes) {
  for (;;) {
    Answer answer;
    if (!Take(&answer, to, to_bytes)) continue;
    if (const Value* error = answer.value.Find("error")) {
      const auto* reason = error->as<std::string>();
      throw Error(KindOf(answer.value), reason != nullptr ? *reason : "rpc: an error without text",
                  "the session with " + peer());
    }
    return answer;
  }
}

void Session::TakeUnasked() {
  Answer answer;
  if (!Take(&answer, nullptr, 0)) return;
  wire_->Close();
  TVM_FATAL(RPCError) << "rpc: " << peer() << " answered what was not asked";
}

bool Session::Take(Answer* answer, void* to, size_t to_bytes) {
  const std::optional<std::string> text = wire_->ReceiveText(limits_, &answer->blob_bytes);
  if (!text) {
    wire_->Close();
    TVM_FATAL(RPCError) << "rpc: " << peer() << " closed the session; its log may say why";
  }
  // Whatever cannot be read leaves the stream at an unknown place.
  try {
    answer->value = Value::Parse(*text, limits_.nesting);
    if (answer->value.Find("op") != nullptr) {
      Handle(answer->value, answer->blob_bytes);
      return false;
    }
    if (const Value* end = answer->value.Find("end")) {
      throw Error(KindOf(answer->value),
                  "rpc: " + peer() + " ended the session: " + end->Expect<std::string>("end"));
    }
    if (to != nullptr && answer->value.Find("error") == nullptr) {
      TVM_CHECK(answer->blob_bytes == to_bytes, ValueError)
          << "message: " << answer->blob_bytes << " bytes came, not " << to_bytes;
      wire_->ReceiveBytes(to, to_bytes);
    } else {
      answer->blob = ReceiveBlob(answer->blob_bytes);
    }
    return true;
  } catch (const Error& error) {
    wire_->Close();
    if (error.kind() != "ValueError") throw;
    TVM_FATAL(RPCError) << "rpc: what " << peer() << " sent cannot be read (" << error.message()
                        << "), so the session was ended";
  }
}

std::string Session::ReceiveBlob(uint64_t size) {
  TVM_CHECK(size <= limits_.blob_bytes, ValueError)
      << "rpc: " << size << " bytes came at once, " << limits_.blob_bytes << " are allowed";
  std::string blob;
  while (blob.size() < size) {
    const size_t old = blob.size();
    blob.resize(old + static_cast<size_t>(std::min(size - old, kBlobStep)));
    wire_->ReceiveBytes(blob.data() + old, blob.size() - old);
  }
  return blob;
}

PackedFunc Session::GetFunction(const std::string& name) {
  const Answer answer = Request({{"op", Text("get")}, {"name", Value(name)}}, {});
  return Decoder(this, answer.blob).Decode(answer.value.At("ok", "answer")).cast<PackedFunc>();
}

PackedFunc Session::GetMember(int64_t module, const std::string& name, bool query_imports) {
  const Answer answer = Request({{"op", Text("member")},
                                 {"h", Value(module)},
                                 {"name", Value(name)},
                                 {"imports", Value(query_imports)}},
                                {});
  return Decoder(this, answer.blob).Decode(answer.value.At("ok", "answer")).cast<PackedFunc>();
}

PackedFunc Session::RequireFunction(const std::string& name) {
  PackedFunc function = GetFunction(name);
  TVM_CHECK(function.defined(), AttributeError)
      << "rpc: " << peer() << " has no function \"" << name << '"';
  return function;
}

Any Session::Call(int64_t function, Args args) {
  std::lock_guard lock(mutex_);
  Encoder encoder(this);
  ArrayValue values;
  for (const Any& arg : args) values.push_back(encoder.Encode(arg));
  const Answer answer =
      Request({{"op", Text("call")}, {"h", Value(function)}, {"args", Value(std::move(values))}},
              encoder.pieces());
  return Decoder(this, answer.blob).Decode(answer.value.At("ok", "answer"));
}

void Session::Free(int64_t handle) {
  {
    std::lock_guard lock(memory_mutex_);
    freed_.push_back(handle);
  }
  // In the middle of a call the next request says it.
  std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock() || depth_ > 0 || wire_->closed()) return;
  try {
    SendFreed();
  } catch (const Error&) {
    // The other end is gone, and with it what it kept.
    wire_->Close();
  }
}

void Session::SendFreed() {
  const std::string text = TakeFreed();
  if (!text.empty()) wire_->Send(text);
}

std::string Session::TakeFreed() {
  std::lock_guard lock(memory_mutex_);
  if (freed_.empty()) return "";
  ArrayValue handles;
  for (int64_t handle : freed_) handles.push_back(Value(handle));
  freed_.clear();
  std::string text;
  Value(ObjectValue{{"op", Text("free")}, {"handles", Value(std::move(handles))}}).Write(&text);
  return text;
}

Value Session::EncodeDevice(Device device) const {
  return Value(ArrayValue{Value(static_cast<int64_t>(device.device_type % kSessionMask)),
                          Value(static_cast<int64_t>(device.device_id))});
}

void* Session::Allocate(Device device, size_t bytes, size_t alignment) {
  const Answer answer = Request({{"op", Text("alloc")},
                                 {"device", EncodeDevice(device)},
                                 {"bytes", Value(static_cast<int64_t>(bytes))}},
                                {});
  return Remember({answer.value.At("ok", "answer").Expect<int64_t>("ok"), bytes});
}

void* Session::Remember(Memory memory) {
  std::lock_guard lock(memory_mutex_);
  if (memory_.empty()) self_ = ObjectPtr<Object>(this);
  const uintptr_t address = next_address_;
  // An empty array has an address of its own too.
  next_address_ += (memory.bytes / kPage + 1) * kPage;
  memory_[address] = memory;
  return reinterpret_cast<void*>(address);
}

void Session::FreeMemory(void* address) {
  ObjectPtr<Object> last;
  int64_t handle = 0;
  {
    std::lock_guard lock(memory_mutex_);
    auto found = memory_.find(reinterpret_cast<uintptr_t>(address));
    if (found == memory_.end()) return;
    handle = found->second.handle;
    memory_.erase(found);
    if (memory_.empty()) last = std::move(self_);
  }
  Free(handle);
}

Session::Place Session::Find(const void* address, size_t bytes) {
  const auto wanted = reinterpret_cast<uintptr_t>(address);
  std::lock_guard lock(memory_mutex_);
  auto after = memory_.upper_bound(wanted);
  TVM_CHECK(after != memory_.begin(), ValueError) << "rpc: memory of no array of this session";
  const auto& [base, memory] = *--after;
  const size_t at = wanted - base;
  TVM_CHECK(at <= memory.bytes && bytes <= memory.bytes - at, ValueError)
      << "rpc: " << bytes << " bytes from " << at << " on are outside of an array of "
      << memory.bytes;
  return {memory.handle, at};
}

void Session::Write(const void* from, void* to, size_t bytes) {
  const Place place = Find(to, bytes);
  Request({{"op", Text("write")},
           {"h", Value(place.handle)},
           {"at", Value(static_cast<int64_t>(place.at))}},
          {{from, bytes}});
}

void Session::Read(const void* from, void* to, size_t bytes) {
  const Place place = Find(from, bytes);
  Request({{"op", Text("read")},
           {"h", Value(place.handle)},
           {"at", Value(static_cast<int64_t>(place.at))},
           {"bytes", Value(static_cast<int64_t>(bytes))}},
          {}, to, bytes);
}

void Session::Copy(const void* from, void* to, size_t bytes) {
  const Place source = Find(from, bytes), target = Find(to, bytes);
  Request({{"op", Text("copy")},
           {"h", Value(source.handle)},
           {"at", Value(static_cast<int64_t>(source.at))},
           {"to", Value(target.handle)},
           {"to_at", Value(static_cast<int64_t>(target.at))},
           {"bytes", Value(static_cast<int64_t>(bytes))}},
          {});
}

Any Session::DeviceAttribute(Device device, int kind) {
  const Answer answer = Request({{"op", Text("attribute")},
                                 {"device", EncodeDevice(device)},
                                 {"kind", Value(static_cast<int64_t>(kind))}},
                                {});
  return Decoder(this, answer.blob).Decode(answer.value.At("ok", "answer"));
}

void Session::Synchronize(Device device) {
  Request({{"op", Text("sync")}, {"device", EncodeDevice(device)}}, {});
}

// ------------------------------------------------------------------------------ serving

void Session::Serve() {
  for (;;) {
    uint64_t blob_bytes = 0;
    const std::optional<std::string> text = wire_->ReceiveText(limits_, &blob_bytes);
    if (!text) return;
    Handle(Value::Parse(*text, limits_.nesting), blob_bytes);
  }
}

void Session::Handle(const Value& request, uint64_t blob_bytes) {
  const std::string& operation = TextOf(request, "op");
  if (operation == "free") {
    for (const Value& handle : request.At("handles", "message").Expect<ArrayValue>("handles")) {
      exported_.erase(handle.Expect<int64_t>("handle"));
    }
    return wire_->Skip(blob_bytes);
  }
  // An answer keeps what it sends, and a request that fails leaves no part of it unread.
  std::vector<Piece> blob;
  std::vector<ObjectRef> keep;
  ObjectValue answer;
  auto fail = [&](const std::string& kind, const std::string& message) {
    blob.clear();
    answer = {{"error", Value(message)}, {"kind", Value(kind)}};
  };
  try {
    answer.emplace_back("ok", Perform(request, &blob_bytes, &blob, &keep));
  } catch (const Error& error) {
    if (wire_->closed()) throw;
    fail(error.kind(), error.message());
  } catch (const std::bad_alloc&) {
    fail("MemoryError", "rpc: there is not enough memory at the other end");
  } catch (const std::length_error&) {
    fail("MemoryError", "rpc: there is not enough memory at the other end");
  }
  wire_->Skip(blob_bytes);
  std::string text;
  Value(std::move(answer)).Write(&text);
  wire_->Send(text, blob);
}

Value Session::Perform(const Value& request, uint64_t* blob_left, std::vector<Piece>* blob,
                       std::vector<ObjectRef>* keep) {
  const std::string& operation = TextOf(request, "op");
  Encoder encoder(this);
  auto encode = [&](const Any& value) {
    Value out = encoder.Encode(value);
    *blob = encoder.pieces();
    return out;
  };
  if (operation == "call") {
    std::string received = ReceiveBlob(*blob_left);
    *blob_left = 0;
    const ObjectRef object = Exported(IntegerOf(request, "h"));
    const auto* function = object.as<PackedFuncObj>();
    TVM_CHECK(function != nullptr, ValueError) << "message: what is called is no function";
    Decoder decoder(this, received);
    std::vector<Any> args;
    for (const Value& value : request.At("args", "message").Expect<ArrayValue>("args")) {
      args.push_back(decoder.Decode(value));
    }
    received = std::string();
    Any result;
    ++depth_;
    struct Leave {
      int* depth;
      ~Leave() { --*depth; }
    } leave{&depth_};
    TVM_CHECK(depth_ <= kMaxDepth, RecursionError)
        << "rpc: calls between two processes are nested more than " << kMaxDepth << " deep";
    function->CallPacked(Args(args.data(), static_cast<int32_t>(args.size())), &result);
    Value out = encode(result);
    if (result.is_object()) keep->push_back(result.ref());
    return out;
  }
  TVM_CHECK(find_ != nullptr, RPCError) << "rpc: this end gives out nothing but what it passes";
  if (operation == "write") return PerformWrite(request, blob_left);
  TVM_CHECK(*blob_left == 0, ValueError) << "message: \"" << operation << "\" takes no bytes";
  if (operation == "read") return PerformRead(request, blob, keep);
  if (operation == "get") return encode(find_(TextOf(request, "name")));
  if (operation == "member") {
    const ObjectRef object = Exported(IntegerOf(request, "h"));
    TVM_CHECK(object.as<ModuleNode>() != nullptr, ValueError) << "message: a module is none";
    return encode(Module(object.object_ptr())
                      .GetFunction(TextOf(request, "name"),
                                   request.At("imports", "message").Expect<bool>("imports")));
  }
  if (operation == "alloc") {
    const int64_t bytes = IntegerOf(request, "bytes");
    NDArray array = NDArray::Empty({bytes}, DataType::UInt(8), DeviceIn(request));
    return Value(Export(std::move(array)));
  }
  if (operation == "copy") {
    const int64_t bytes = IntegerOf(request, "bytes");
    const NDArray from = ExportedBytes(IntegerOf(request, "h"), IntegerOf(request, "at"), bytes);
    ExportedBytes(IntegerOf(request, "to"), IntegerOf(request, "to_at"), bytes)
        .CopyFrom(from.tensor());
    return Value();
  }
  if (operation == "attribute") {
    const Device device = DeviceIn(request);
    const auto kind = static_cast<DeviceAttrKind>(IntegerOf(request, "kind"));
    DeviceAPI* api = DeviceAPI::TryGet(device.device_type);
    if (api == nullptr && kind == DeviceAttrKind::kExist) return Value(false);
    return encode(DeviceAPI::Get(device)->GetAttr(device, kind));
  }
  TVM_CHECK(operation == "sync", ValueError) << "message: unknown operation \"" << operation << '"';
  const Device device = DeviceIn(request);
  DeviceAPI::Get(device)->StreamSync(device, nullptr);
  return Value();
}

Value Session::PerformWrite(const Value& request, uint64_t* blob_left) {
  TVM_CHECK(*blob_left < uint64_t{1} << 62, ValueError) << "message: too many bytes";
  const auto bytes = static_cast<int64_t>(*blob_left);
  const NDArray target = ExportedBytes(IntegerOf(request, "h"), IntegerOf(request, "at"), bytes);
  if (target.device().device_type == kDLCPU) {
    *blob_left = 0;
    wire_->ReceiveBytes(target.data(), static_cast<size_t>(bytes));
    return Value();
  }
  std::vector<char> host(static_cast<size_t>(bytes));
  *blob_left = 0;
  wire_->ReceiveBytes(host.data(), host.size());
  target.CopyFromBytes(host.data(), host.size());
  return Value();
}

Value Session::PerformRead(const Value& request, std::vector<Piece>* blob,
                           std::vector<ObjectRef>* keep) {
  NDArray source =
      ExportedBytes(IntegerOf(request, "h"), IntegerOf(request, "at"), IntegerOf(request, "bytes"));
  if (source.device().device_type != kDLCPU) source = source.CopyTo(Device{kDLCPU, 0});
  blob->push_back({source.data(), source.NumBytes()});
  keep->push_back(std::move(source));
  return Value();
}

int64_t Session::Export(ObjectRef object) {
  TVM_CHECK(exported_.size() < limits_.objects, MemoryError)
      << "rpc: the session holds " << limits_.objects << " objects already; drop some";
  exported_[next_handle_] = std::move(object);
  return next_handle_++;
}

ObjectRef Session::Exported(int64_t handle) const {
  auto found = exported_.find(handle);
  TVM_CHECK(found != exported_.end(), ValueError) << "message: there is no object " << handle;
  return found->second;
}

NDArray Session::ExportedBytes(int64_t handle, int64_t at, int64_t bytes) const {
  const ObjectRef object = Exported(handle);
  const auto* node = object.as<NDArrayObj>();
  TVM_CHECK(node != nullptr, ValueError) << "message: an array is none";
  TVM_CHECK(at >= 0 && bytes >= 0, ValueError) << "message: a place before the array";
  return GetRef<NDArray>(node).CreateView({bytes}, DataType::UInt(8), static_cast<size_t>(at));
}

Array<String> RemoteModuleNode::ListFunctionNames() {
  return session->CallByName("runtime.ModuleListFunctionNames", GetRef<Module>(this))
      .cast<Array<String>>();
}

String RemoteModuleNode::GetSource(const String& format) {
  return session->CallByName("runtime.ModuleGetSource", GetRef<Module>(this), format)
      .cast<String>();
}

}  // namespace rpc
}  // namespace runtime
}  // namespace tvm
