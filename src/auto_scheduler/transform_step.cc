/*!
 * \file transform_step.cc
 * \brief Steps to and from records.
 */
#include <tvm/auto_scheduler/transform_step.h>
#include <tvm/expr/op.h>
#include <tvm/runtime/registry.h>

#include <functional>
#include <optional>
#include <string>
#include <unordered_map>

namespace tvm {
namespace auto_scheduler {

TVM_REGISTER_NODE(StepNode);

Array<Any> Step::ToRecord() const {
  Array<Any> record = {String(get()->Tag()), get()->stage_id};
  for (const Any& field : get()->RecordFields()) record.push_back(field);
  return record;
}

namespace {

/*! \brief Reads the fields of one record in order, and says which one is wrong. */
class FieldReader {
 public:
  explicit FieldReader(const Array<Any>& record) : record_(record) {
    tag_ = record.empty() ? "?" : std::string(Next<String>("a tag"));
  }

  const std::string& tag() const { return tag_; }

  int Int() { return Next<int>("an integer"); }
  String Text() { return Next<String>("a text"); }
  Array<int64_t> Ints() { return Next<Array<int64_t>>("a list of integers"); }
  Array<Optional<PrimExpr>> Lengths() {
    Array<Optional<PrimExpr>> result;
    for (const Any& element : Next<Array<Any>>("a list of lengths")) {
      if (std::optional<int> literal = element.TryCast<int>()) {
        result.push_back(*literal == 0 ? Optional<PrimExpr>(NullOpt)
                                       : Optional<PrimExpr>(Integer(*literal)));
      } else {
        result.push_back(PrimExpr(
            tir::SizeVar(element.cast<String>(), DataType::Int(32), tir::SizeVarKind::kKnob)));
      }
    }
    return result;
  }
  void CheckEnd() const {
    TVM_CHECK(position_ == record_.size(), ValueError)
        << "step record " << tag_ << ": it has " << record_.size() << " fields instead of "
        << position_;
  }

 private:
  template <typename T>
  T Next(const char* expected) {
    TVM_CHECK(position_ < record_.size(), ValueError)
        << "step record " << tag_ << ": it ends after " << record_.size() << " fields where "
        << expected << " should follow";
    const Any& field = record_[position_++];
    std::optional<T> value = field.TryCast<T>();
    TVM_CHECK(value.has_value(), ValueError)
        << "step record " << tag_ << ": field " << position_ - 1 << " must be " << expected
        << ", got " << field;
    return *std::move(value);
  }

  const Array<Any>& record_;
  std::string tag_ = "?";
  size_t position_ = 0;
};

// Arguments of a call are evaluated in any order, so every field is read in a statement of its own.
using StepReader = std::function<Step(FieldReader*, int stage_id)>;

const std::unordered_map<std::string, StepReader>& StepReaders() {
  static const auto* readers = new std::unordered_map<std::string, StepReader>{
      {"AN",
       [](FieldReader* r, int stage_id) -> Step {
         int iter_id = r->Int();
         int annotation = r->Int();
         AnnotationText(static_cast<IteratorAnnotation>(annotation));
         return AnnotationStep(stage_id, iter_id, static_cast<IteratorAnnotation>(annotation));
       }},
      {"FU", [](FieldReader* r, int stage_id) -> Step { return FuseStep(stage_id, r->Ints()); }},
      {"PR",
       [](FieldReader* r, int stage_id) -> Step {
         int iter_id = r->Int();
         return PragmaStep(stage_id, iter_id, r->Text());
       }},
      {"RE", [](FieldReader* r, int stage_id) -> Step { return ReorderStep(stage_id, r->Ints()); }},
      {"SP",
       [](FieldReader* r, int stage_id) -> Step {
         int iter_id = r->Int();
         int extent = r->Int();
         Array<Optional<PrimExpr>> lengths = r->Lengths();
         bool inner_to_outer = r->Int() != 0;
         return SplitStep(stage_id, iter_id,
                          extent == 0 ? Optional<PrimExpr>(NullOpt) : PrimExpr(Integer(extent)),
                          lengths, inner_to_outer);
       }},
      {"FSP",
       [](FieldReader* r, int stage_id) -> Step {
         int iter_id = r->Int();
         int src_step_id = r->Int();
         return FollowSplitStep(stage_id, iter_id, src_step_id, r->Int());
       }},
      {"FFSP",
       [](FieldReader* r, int stage_id) -> Step {
         int iter_id = r->Int();
         Array<int64_t> src_step_ids = r->Ints();
         int level = r->Int();
         return FollowFusedSplitStep(stage_id, iter_id, src_step_ids, level, r->Int() != 0);
       }},
      {"SA",
       [](FieldReader* r, int stage_id) -> Step {
         int iter_id = r->Int();
         int factor = r->Int();
         return StorageAlignStep(stage_id, iter_id, factor, r->Int());
       }},
      {"CA",
       [](FieldReader* r, int stage_id) -> Step {
         int target_stage_id = r->Int();
         return ComputeAtStep(stage_id, target_stage_id, r->Int());
       }},
      {"CI", [](FieldReader*, int stage_id) -> Step { return ComputeInlineStep(stage_id); }},
      {"CR", [](FieldReader*, int stage_id) -> Step { return ComputeRootStep(stage_id); }},
      {"CHR",
       [](FieldReader* r, int stage_id) -> Step {
         String scope_name = r->Text();
         return CacheReadStep(stage_id, scope_name, r->Ints());
       }},
      {"CHW",
       [](FieldReader* r, int stage_id) -> Step { return CacheWriteStep(stage_id, r->Text()); }},
      {"RF",
       [](FieldReader* r, int stage_id) -> Step {
         int iter_id = r->Int();
         return RfactorStep(stage_id, iter_id, r->Int());
       }},
  };
  return *readers;
}

}  // namespace

Step Step::FromRecord(const Array<Any>& record) {
  FieldReader reader(record);
  auto found = StepReaders().find(reader.tag());
  TVM_CHECK(found != StepReaders().end(), ValueError)
      << "step record: unknown tag " << reader.tag()
      << "; known are AN CA CHR CHW CI CR FFSP FSP FU PR RE RF SA SP";
  int stage_id = reader.Int();
  Step step = found->second(&reader, stage_id);
  reader.CheckEnd();
  return step;
}

TVM_REGISTER_GLOBAL("auto_scheduler.StepToRecord").set_body_typed([](Step step) {
  return step.ToRecord();
});
TVM_REGISTER_GLOBAL("auto_scheduler.StepFromRecord").set_body_typed([](Array<Any> record) {
  return Step::FromRecord(record);
});

}  // namespace auto_scheduler
}  // namespace tvm
