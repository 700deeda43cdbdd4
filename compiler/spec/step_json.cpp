#include "compiler/spec/step_json.h"

namespace hstujit {

Json StepValue::json() const {
  if (kind_ == Kind::kText) return Json(text_);
  return kind_ == Kind::kFlag ? Json(number_ != 0) : Json(number_);
}

Json step_json(std::string_view op, std::initializer_list<StepField> fields) {
  Json json = Json::object();
  json["op"] = op;
  for (const StepField& field : fields) json[std::string(field.name)] = field.value.json();
  return json;
}

}  // namespace hstujit
