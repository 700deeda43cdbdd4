// Types of the members of a checked file (checked_json.h). A writer may be anybody: a member that is there and has
// another type makes the file a damaged one, and is not read as if it were missing.
//
// `where` is how the sentence names the object, as "winner.", or empty. Each is kIo with a sentence such as
// "winner.config is 3; it must be an object with fields".
#pragma once

#include <string_view>

#include "compiler/support/json.h"
#include "compiler/support/status.h"

namespace hstujit {

Status check_text(const Json& object, std::string_view where, const char* name);
Status check_texts(const Json& object, std::string_view where);  // all members
Status check_integer(const Json& object, std::string_view where, const char* name);
Status check_flag(const Json& object, std::string_view where, const char* name);
Status check_list(const Json& object, std::string_view where, const char* name);
Status check_filled_object(const Json& object, std::string_view where, const char* name);  // with a field at least

}  // namespace hstujit
