/*!
 * \file graph_json.cc
 * \brief Graphs as the JSON of TVM's executors.
 */
#include <tvm/runtime/data_type.h>
#include <tvm/runtime/logging.h>

#include <cstdlib>
#include <set>

#include "../json.h"
#include "graph.h"

namespace tvm {
namespace runtime {
namespace {

using json::ArrayValue;
using json::ObjectValue;
using json::Value;

Value Number(int64_t value) { return Value(value); }
Value Text(std::string text) { return Value(std::move(text)); }

Value ListOf(const char* kind, ArrayValue items) {
  return Value(ArrayValue{Text(kind), Value(std::move(items))});
}

Value EntryValue(GraphEntry entry) {
  return Value(ArrayValue{Number(entry.node), Number(entry.output), Number(0)});
}

Value NodeValue(const GraphNode& node) {
  ArrayValue inputs;
  for (const GraphEntry& input : node.inputs) inputs.push_back(EntryValue(input));
  ObjectValue value{{"op", Text(node.function.empty() ? "null" : "tvm_op")},
                    {"name", Text(node.name)}};
  if (!node.function.empty()) {
    value.emplace_back("attrs", Value(ObjectValue{
                                    {"num_outputs", Text(std::to_string(node.outputs.size()))},
                                    {"num_inputs", Text(std::to_string(node.inputs.size()))},
                                    {"flatten_data", Text(node.flatten ? "1" : "0")},
                                    {"func_name", Text(node.function)},
                                }));
  }
  value.emplace_back("inputs", Value(std::move(inputs)));
  return Value(std::move(value));
}

/*! \brief Reads a graph; every refusal says where in the text it was. */
class GraphReader {
 public:
  explicit GraphReader(std::string_view text) : root_(Value::Parse(text)) {}

  Graph Read() {
    for (const Value& node : Items(root_.At("nodes", kWhere), "nodes")) ReadNode(node);
    std::set<int64_t> given;
    for (const Value& number : Items(root_.At("arg_nodes", kWhere), "arg_nodes")) {
      const int64_t id = Below(number, Count(), "arg_nodes");
      Demand(graph_.nodes[id].function.empty() && given.insert(id).second,
             "arg_nodes names node " + std::to_string(id) + ", which is no input, or twice");
      graph_.arguments.push_back(id);
    }
    for (const GraphNode& node : graph_.nodes) {
      Demand(!node.function.empty() || given.count(&node - graph_.nodes.data()) != 0,
             "node \"" + node.name + "\" is computed by nothing and not among arg_nodes");
    }
    for (const Value& head : Items(root_.At("heads", kWhere), "heads")) {
      graph_.heads.push_back(Entry(head, "heads"));
    }
    Demand(!graph_.heads.empty(), "there are no heads");
    ReadValues();
    return std::move(graph_);
  }

 private:
  static constexpr const char* kWhere = "graph";
  static constexpr int64_t kMaxOutputs = 1 << 16;

  static void Demand(bool holds, const std::string& what) {
    TVM_CHECK(holds, ValueError) << "graph executor: " << what;
  }
  int64_t Count() const { return static_cast<int64_t>(graph_.nodes.size()); }
  static const ArrayValue& Items(const Value& value, const std::string& where) {
    return value.Expect<ArrayValue>("graph: " + where);
  }
  static int64_t Below(const Value& value, int64_t limit, const std::string& where) {
    const int64_t number = value.Expect<int64_t>("graph: " + where);
    Demand(number >= 0 && number < limit,
           where + " names number " + std::to_string(number) + " of " + std::to_string(limit));
    return number;
  }
  GraphEntry Entry(const Value& value, const std::string& where) const {
    const ArrayValue& parts = Items(value, where);
    Demand(parts.size() >= 2, where + " must hold entries [node, output, version]");
    const int64_t node = Below(parts[0], Count(), where);
    return {node, Below(parts[1], static_cast<int64_t>(graph_.nodes[node].outputs.size()), where)};
  }
  /*! \brief Attributes are texts, also those that mean numbers. */
  static int64_t Integer(const Value& attrs, const char* key, const std::string& where) {
    const Value& value = attrs.At(key, where);
    if (const auto* number = value.as<int64_t>()) return *number;
    const std::string& text = value.Expect<std::string>(where + "." + key);
    char* end = nullptr;
    const int64_t number = std::strtoll(text.c_str(), &end, 10);
    Demand(!text.empty() && *end == '\0', where + "." + key + " is no number: \"" + text + '"');
    return number;
  }

  void ReadNode(const Value& value) {
    GraphNode node;
    node.name = value.At("name", "graph: nodes").Expect<std::string>("graph: name of a node");
    const std::string where = "graph: node \"" + node.name + '"';
    const std::string& op = value.At("op", where).Expect<std::string>(where + ".op");
    Demand(op == "null" || op == "tvm_op",
           "node \"" + node.name + "\" has op \"" + op + "\"; known are null and tvm_op");
    for (const Value& input : Items(value.At("inputs", where), "inputs of " + node.name)) {
      // Nodes stand after those that they use.
      node.inputs.push_back(Entry(input, "inputs of node \"" + node.name + '"'));
    }
    int64_t num_outputs = 1;
    if (op == "tvm_op") {
      const Value& attrs = value.At("attrs", where);
      node.function = attrs.At("func_name", where).Expect<std::string>(where + ".func_name");
      Demand(!node.function.empty(), "node \"" + node.name + "\" has no func_name");
      num_outputs = Integer(attrs, "num_outputs", where);
      Demand(num_outputs >= 1 && num_outputs <= kMaxOutputs,
             "node \"" + node.name + "\" has an impossible num_outputs");
      Demand(Integer(attrs, "num_inputs", where) == static_cast<int64_t>(node.inputs.size()),
             "num_inputs of node \"" + node.name + "\" is not the number of its inputs");
      node.flatten = Integer(attrs, "flatten_data", where) != 0;
      const bool moves = node.function == kGraphView || node.function == kGraphCopy;
      Demand(!moves || (node.inputs.size() == 1 && num_outputs == 1),
             "node \"" + node.name + "\" must have one input and one output");
    } else {
      Demand(node.inputs.empty(), "node \"" + node.name + "\" is an input and has inputs");
    }
    node.outputs.resize(static_cast<size_t>(num_outputs));
    graph_.nodes.push_back(std::move(node));
  }

  /*! \brief The items of attribute `key`, one for each value; null if it may be left out. */
  const ArrayValue* PerValue(const char* key, size_t count, bool needed) const {
    const Value& attrs = root_.At("attrs", kWhere);
    const Value* found = needed ? &attrs.At(key, "graph: attrs") : attrs.Find(key);
    if (found == nullptr) return nullptr;
    const std::string where = std::string("attrs.") + key;
    const ArrayValue& pair = Items(*found, where);
    Demand(pair.size() == 2, where + " must be a pair of a kind and a list");
    const ArrayValue& items = Items(pair[1], where);
    Demand(items.size() == count, where + " has " + std::to_string(items.size()) + " items for " +
                                      std::to_string(count) + " values");
    return &items;
  }

  void ReadValues() {
    std::vector<GraphValue*> values;
    for (GraphNode& node : graph_.nodes) {
      for (GraphValue& value : node.outputs) values.push_back(&value);
    }
    const ArrayValue& shapes = *PerValue("shape", values.size(), true);
    const ArrayValue& dtypes = *PerValue("dltype", values.size(), true);
    const ArrayValue* storage = PerValue("storage_id", values.size(), false);
    const ArrayValue* devices = PerValue("device_index", values.size(), false);
    for (size_t i = 0; i < values.size(); ++i) {
      for (const Value& extent : Items(shapes[i], "attrs.shape")) {
        values[i]->shape.push_back(extent.Expect<int64_t>("graph: attrs.shape"));
      }
      values[i]->dtype = DataType::FromString(dtypes[i].Expect<std::string>("graph: attrs.dltype"));
      values[i]->storage = storage == nullptr
                               ? static_cast<int64_t>(i)
                               : (*storage)[i].Expect<int64_t>("graph: attrs.storage_id");
      Demand(devices == nullptr || (*devices)[i].Expect<int64_t>("graph: attrs.device_index") ==
                                       (*devices)[0].Expect<int64_t>("graph: attrs.device_index"),
             "the graph's values lie on several devices (attrs.device_index); build it for one");
    }
  }

  Value root_;
  Graph graph_;
};

}  // namespace

std::string Graph::ToJSON() const {
  ArrayValue node_values, argument_values, head_values, rows{Number(0)};
  ArrayValue shapes, dtypes, storage;
  for (const GraphNode& node : nodes) {
    node_values.push_back(NodeValue(node));
    for (const GraphValue& value : node.outputs) {
      ArrayValue shape;
      for (int64_t extent : value.shape) shape.push_back(Number(extent));
      shapes.push_back(Value(std::move(shape)));
      dtypes.push_back(Text(DataType(value.dtype).ToString()));
      storage.push_back(Number(value.storage));
    }
    rows.push_back(Number(static_cast<int64_t>(shapes.size())));
  }
  for (int64_t argument : arguments) argument_values.push_back(Number(argument));
  for (const GraphEntry& head : heads) head_values.push_back(EntryValue(head));
  const Value root(ObjectValue{
      {"nodes", Value(std::move(node_values))},
      {"arg_nodes", Value(std::move(argument_values))},
      {"heads", Value(std::move(head_values))},
      {"attrs", Value(ObjectValue{{"dltype", ListOf("list_str", std::move(dtypes))},
                                  {"storage_id", ListOf("list_int", std::move(storage))},
                                  {"shape", ListOf("list_shape", std::move(shapes))}})},
      {"node_row_ptr", Value(std::move(rows))},
  });
  std::string text;
  root.Write(&text);
  return text;
}

Graph Graph::FromJSON(std::string_view text) { return GraphReader(text).Read(); }

}  // namespace runtime
}  // namespace tvm
