#include "runtime/capi/signature_json.h"

#include <cmath>
#include <limits>

namespace hstujit::capi {
namespace {

// By axis; null where there is no bound. Null where no axis has one.
Json max_sizes(const Argument& argument) {
  Json sizes = Json::array();
  bool bounded = false;
  for (const Dimension& dimension : argument.shape) {
    const bool has_max = dimension.max != std::numeric_limits<int64_t>::max();
    sizes.push_back(has_max ? Json(dimension.size(dimension.max)) : Json());
    bounded = bounded || has_max;
  }
  return bounded ? sizes : Json();
}

}  // namespace

Json argument_json(const Argument& argument) {
  const bool tensor = argument.kind == ArgumentKind::kTensor;
  Json entry = {{"name", argument.name},
                {"kind", tensor                                  ? "tensor"
                         : argument.kind == ArgumentKind::kFloat ? "float"
                                                                 : "int"},
                {"role", argument.role == ArgumentRole::kInput ? "input" : "output"}};
  if (tensor) {
    entry["dtype"] = to_string(argument.dtype);
    entry["shape"] = Json::array();
    for (const Dimension& dimension : argument.shape) {
      entry["shape"].push_back(dimension.is_constant() ? Json(dimension.bias) : Json(to_string(dimension)));
    }
    if (Json sizes = max_sizes(argument); !sizes.is_null()) entry["max_sizes"] = std::move(sizes);
    entry["alignment"] = argument.alignment;
    if (!argument.in_place.empty()) entry["in_place"] = argument.in_place;
  }
  if (argument.kind == ArgumentKind::kInt && argument.min != std::numeric_limits<int64_t>::min()) {
    entry["min"] = argument.min;
  }
  if (argument.kind == ArgumentKind::kInt && argument.max != std::numeric_limits<int64_t>::max()) {
    entry["max"] = argument.max;
  }
  if (std::isfinite(argument.range.min)) entry["min"] = argument.range.min;
  if (std::isfinite(argument.range.max)) entry["max"] = argument.range.max;
  if (argument.semantic != Semantic::kData) {
    entry["semantic"] = to_string(argument.semantic);
    if (!argument.axis.empty()) entry["axis"] = argument.axis;
  }
  entry["doc"] = argument.doc;
  return entry;
}

Json signature_json(const Signature& signature) {
  Json list = Json::array();
  for (const Argument& argument : signature) list.push_back(argument_json(argument));
  return list;
}

}  // namespace hstujit::capi
