#include "runtime/capi/boundary.h"

#include <fmt/format.h>

#include <cstdlib>
#include <cstring>

#include "compiler/generator/generator_digest.h"
#include "compiler/support/json.h"

namespace hstujit::capi {

namespace {

thread_local std::string last_error;
thread_local ErrorFields last_fields;
thread_local bool without_memory = false;  // for the sentence, too
constexpr char kWithoutMemory[] = "the host's memory is used up";

}  // namespace

hstujit_status finish(const Status& status) noexcept {
  try {
    last_error = status.message();
    last_fields = status.fields() == nullptr ? ErrorFields{} : *status.fields();
    without_memory = false;
    return static_cast<hstujit_status>(status.code());
  } catch (const std::bad_alloc&) {
    return finish_without_memory();
  }
}

hstujit_status finish_without_memory() noexcept {
  without_memory = true;
  return HSTUJIT_OUT_OF_MEMORY;
}

hstujit_status finish_exception() noexcept {
  try {
    try {
      throw;
    } catch (const std::system_error& error) {
      return finish(system_failure(error));
    } catch (const std::exception& error) {
      return finish(Status(Code::kInternal, std::string("a bug in hstu-jit: ") + error.what()));
    } catch (...) {
      return finish(Status(Code::kInternal, "a bug in hstu-jit: an unknown exception"));
    }
  } catch (const std::bad_alloc&) {
    return finish_without_memory();
  }
}

Status null_pointer(const char* name, const char* must_be) {
  return Status(Code::kInvalidArgument, fmt::format("{} is a null pointer; it must be {}", name, must_be));
}

Status system_failure(const std::system_error& error) {
  return Status(
      Code::kOutOfMemory,
      fmt::format("the system refuses what the call needs, such as a thread or memory: {}", error.code().message()));
}

Status check_size(const char* name, size_t size, size_t smallest) {
  constexpr size_t kUnit = alignof(void*);
  if (size >= smallest && size % kUnit == 0) return {};
  const std::string unit = size < smallest ? std::string() : fmt::format(", a multiple of {}", kUnit);
  return Status(Code::kInvalidArgument, fmt::format("{}.size is {}; it must be {} or more{}, set it with HSTUJIT_INIT",
                                                    name, size, smallest, unit));
}

Status refuse_recording(const hstujit_config& config) {
  if (!config.source.is_recording) return {};
  return Status(Code::kInvalidArgument,
                fmt::format("config is the recording {}; only tune takes one", config.source.origin));
}

Status give_text(const std::string& text, hstujit_text* out) {
  // Released by hstujit_text_free with the same allocator, whatever the caller links against.
  char* const data = static_cast<char*>(std::malloc(text.size() + 1));
  if (data == nullptr) throw std::bad_alloc();
  std::memcpy(data, text.c_str(), text.size() + 1);
  out->data = data;
  out->size = text.size();
  return {};
}

Status give_report(const Json& report, hstujit_text* out) { return give_text(dump_json(report, 2), out); }

}  // namespace hstujit::capi

extern "C" {

int hstujit_abi_version(void) { return HSTUJIT_ABI_VERSION; }

const char* hstujit_version(void) { return hstujit::library_version().data(); }

const char* hstujit_last_error(void) {
  return hstujit::capi::without_memory ? hstujit::capi::kWithoutMemory : hstujit::capi::last_error.c_str();
}

hstujit_status hstujit_last_error_fields(hstujit_error_fields* fields) {
  using hstujit::capi::last_fields;
  if (fields == nullptr) return HSTUJIT_INVALID_ARGUMENT;
  auto known = HSTUJIT_INIT(hstujit_error_fields);
  const bool none = hstujit::capi::without_memory;
  known.argument = none ? "" : last_fields.argument.c_str();
  known.value = none ? "" : last_fields.value.c_str();
  known.allowed = none ? "" : last_fields.allowed.c_str();
  known.hint = none ? "" : last_fields.hint.c_str();
  // A failure here must not replace what it is asked about.
  const bool fits =
      hstujit::capi::write_struct("hstujit_error_fields", known, hstujit::capi::kFirstErrorFields, fields).ok();
  return fits ? HSTUJIT_OK : HSTUJIT_INVALID_ARGUMENT;
}

const char* hstujit_status_name(hstujit_status status) {
  if (hstujit::capi::number_of(status) == HSTUJIT_CANCELLED) return "cancelled";
  return hstujit::code_name(static_cast<hstujit::Code>(hstujit::capi::number_of(status))).data();
}

void hstujit_text_free(hstujit_text* text) {
  if (text == nullptr) return;
  std::free(text->data);
  text->data = nullptr;
  text->size = 0;
}

}  // extern "C"
