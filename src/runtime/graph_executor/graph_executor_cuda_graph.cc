/*!
 * \file graph_executor_cuda_graph.cc
 * \brief An executor whose kernel launches are recorded as a CUDA graph.
 */
#include <tvm/runtime/device_api.h>
#include <tvm/runtime/logging.h>
#include <tvm/runtime/registry.h>

#include <utility>

#include "../cuda/driver.h"
#include "graph_executor_node.h"

namespace tvm {
namespace runtime {
namespace {

class GraphExecutorCudaGraphNode final : public GraphExecutorNode {
 public:
  GraphExecutorCudaGraphNode() = default;
  GraphExecutorCudaGraphNode(GraphProgram program, DLDevice device)
      : GraphExecutorNode(std::move(program.executable), std::move(program.graph), device) {}
  ~GraphExecutorCudaGraphNode() override { Drop(); }

  const char* type_key() const override { return "GraphExecutorCudaGraph"; }
  PackedFunc GetFunction(const String& name, const ObjectPtr<Object>& self) override {
    auto bind = [&](auto body) {
      return PackedFunc([this, self, body](Args, RetValue*) { body(); });
    };
    if (name == "run") return bind([this] { Run(); });
    if (name == "start_capture") return bind([this] { StartCapture(); });
    if (name == "end_capture") return bind([this] { EndCapture(); });
    if (name == "run_cuda_graph") return bind([this] { RunGraph(); });
    return GraphExecutorNode::GetFunction(name, self);
  }
  Array<String> ListFunctionNames() override {
    Array<String> names = GraphExecutorNode::ListFunctionNames();
    for (const char* name : {"start_capture", "end_capture", "run_cuda_graph"}) {
      names.push_back(name);
    }
    return names;
  }

  TVM_DECLARE_OBJECT(GraphExecutorCudaGraphNode, GraphExecutorNode, "GraphExecutorCudaGraph");

 private:
  DeviceAPI* Api() const { return DeviceAPI::Get(device()); }

  // A graph keeps the addresses that it was recorded with, so runs share inputs and outputs until
  // one of them is moved.
  void BindOnce() {
    if (bound_ == version()) return;
    Bind();
    bound_ = version();
  }

  void Run() {
    BindOnce();
    state().LaunchAll();
    // What is recorded has not run, so there are no outputs yet.
    if (!capturing_) Finish();
  }

  void StartCapture() {
    TVM_CHECK(!capturing_, ValueError) << "graph executor: start_capture was called twice";
    const cuda::Driver& driver = cuda::Driver::Get();
    BindOnce();
    Drop();
    Api()->StreamSync(device(), nullptr);
    before_ = cuda::CurrentStream(device().device_id);
    if (stream_ == nullptr) stream_ = Api()->CreateStream(device());
    cuda::SetCurrentStream(device().device_id, stream_);
    driver.Check(driver.StreamBeginCapture(stream_, cuda::kCaptureThreadLocal),
                 "cuStreamBeginCapture");
    capturing_ = true;
  }

  void EndCapture() {
    TVM_CHECK(capturing_, ValueError) << "graph executor: end_capture without start_capture";
    const cuda::Driver& driver = cuda::Driver::Get();
    capturing_ = false;
    cuda::SetCurrentStream(device().device_id, before_);
    cuda::CapturedGraph graph = nullptr;
    driver.Check(driver.StreamEndCapture(stream_, &graph), "cuStreamEndCapture");
    const cuda::Status status = driver.GraphInstantiate(&program_, graph, 0);
    driver.GraphDestroy(graph);
    driver.Check(status, "cuGraphInstantiateWithFlags");
    captured_ = version();
  }

  void RunGraph() {
    TVM_CHECK(program_ != nullptr && captured_ == version(), ValueError)
        << "graph executor: run_cuda_graph needs start_capture, run and end_capture first, and "
        << "again when the memory of an input or a parameter has changed";
    const cuda::Driver& driver = cuda::Driver::Get();
    // Inputs were copied on the stream in use.
    Api()->StreamSync(device(), nullptr);
    driver.Check(driver.GraphLaunch(program_, stream_), "cuGraphLaunch");
    Api()->StreamSync(device(), stream_);
    Finish();
  }

  void Drop() {
    if (program_ != nullptr) cuda::Driver::Get().GraphProgramDestroy(program_);
    program_ = nullptr;
    if (stream_ != nullptr) Api()->FreeStream(device(), stream_);
    stream_ = nullptr;
  }

  cuda::GraphProgram program_ = nullptr;
  cuda::Stream stream_ = nullptr, before_ = nullptr;
  bool capturing_ = false;
  int64_t bound_ = -1, captured_ = -1;
};

Module Create(GraphProgram program, DLDevice device) {
  TVM_CHECK(device.device_type == kDLCUDA, ValueError)
      << "graph executor: CUDA graphs run on CUDA devices, such as tvm.cuda(0)";
  return Module(make_object<GraphExecutorCudaGraphNode>(std::move(program), device));
}

}  // namespace

Module CreateCudaGraphExecutor(Module executable, DLDevice device) {
  return Create(ProgramOf(std::move(executable)), device);
}

/*! \brief (graph as JSON, library, device type, device id) -> executor. */
TVM_REGISTER_GLOBAL("tvm.graph_executor_cuda_graph.create").set_body([](Args args, RetValue* ret) {
  constexpr const char* where = "tvm.graph_executor_cuda_graph.create";
  *ret = Create(ProgramOf(ReadArg<String>(where, args, 0), ReadArg<Module>(where, args, 1)),
                DeviceOfArgs(where, args, 2));
});

}  // namespace runtime
}  // namespace tvm
