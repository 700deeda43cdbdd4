// A description of the library as JSON: operators, environment, names that may be meant.
#include <string_view>
#include <vector>

#include "compiler/spec/aliases.h"
#include "compiler/spec/schema.h"
#include "compiler/support/json.h"
#include "runtime/capi/boundary.h"
#include "runtime/capi/call_json.h"

using namespace hstujit;
using namespace hstujit::capi;

namespace {

std::string_view kind_name(EnvKind kind) {
  switch (kind) {
    case EnvKind::kText:
      return "text";
    case EnvKind::kPath:
      return "path";
    case EnvKind::kFlag:
      return "flag";
    case EnvKind::kNumber:
      return "number";
    case EnvKind::kSize:
      return "size";
    case EnvKind::kChoice:
      return "choice";
    case EnvKind::kChoices:
      return "choices";
    case EnvKind::kPaths:
      return "paths";
  }
  return "";
}

Result<std::string> operators_text() {
  Json list = Json::array();
  for (const std::string_view op : operator_names()) {
    HSTUJIT_ASSIGN_OR_RETURN(const OperatorCall call, operator_call(op));
    list.push_back({{"op", op}, {"parameters", operator_schema(op)}, {"calls", calls_json(call)}});
  }
  return dump_json(list);
}

}  // namespace

extern "C" {

hstujit_status hstujit_operators(hstujit_text* out) {
  return guarded([&]() -> Status {
    HSTUJIT_REQUIRE(out, "where the text goes");
    // Kept, because every binding of a process asks for the text, which takes 40 ms to make. Never destroyed.
    static const Result<std::string>& kept = *new Result<std::string>(operators_text());
    HSTUJIT_RETURN_IF_ERROR(kept.status());
    return give_text(*kept, out);
  });
}

hstujit_status hstujit_environment(hstujit_text* out) {
  return guarded([&]() -> Status {
    HSTUJIT_REQUIRE(out, "where the text goes");
    Json list = Json::array();
    for (const EnvVariable& variable : environment_variables()) {
      list.push_back({{"name", variable.name},
                      {"kind", kind_name(variable.kind)},
                      {"default", variable.fallback},
                      {"allowed", variable.allowed},
                      {"doc", variable.doc}});
    }
    return give_text(dump_json(list, 2), out);
  });
}

hstujit_status hstujit_suggest(const char* written, const char* const* names, size_t count, hstujit_text* out) {
  return guarded([&]() -> Status {
    HSTUJIT_REQUIRE(written, "a name");
    HSTUJIT_REQUIRE(out, "where the text goes");
    std::vector<std::string_view> allowed;
    for (size_t at = 0; at < count; ++at) {
      if (names == nullptr || names[at] == nullptr) return null_pointer("names", "as many names as there are");
      allowed.emplace_back(names[at]);
    }
    return give_text(dump_json(Json(meant_names(written, allowed))), out);
  });
}

}  // extern "C"
