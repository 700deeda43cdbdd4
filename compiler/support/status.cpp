#include "compiler/support/status.h"

namespace hstujit {

std::string_view code_name(Code code) {
  switch (code) {
    case Code::kOk:
      return "ok";
    case Code::kInvalidArgument:
      return "invalid_argument";
    case Code::kInvalidConfig:
      return "invalid_config";
    case Code::kUnsupported:
      return "unsupported";
    case Code::kNotFound:
      return "not_found";
    case Code::kNoDriver:
      return "no_driver";
    case Code::kNoCompiler:
      return "no_compiler";
    case Code::kNoDevice:
      return "no_device";
    case Code::kCompileFailed:
      return "compile_failed";
    case Code::kDriverError:
      return "driver_error";
    case Code::kCacheMiss:
      return "cache_miss";
    case Code::kNotPrepared:
      return "not_prepared";
    case Code::kOutOfMemory:
      return "out_of_memory";
    case Code::kCheckFailed:
      return "check_failed";
    case Code::kIo:
      return "io";
    case Code::kInternal:
      return "internal";
  }
  return "unknown";
}

namespace {

std::string sentence_of(const ErrorFields& fields) {
  const std::string hint = fields.hint.empty() ? "" : "; " + fields.hint;
  return fields.argument + " is " + fields.value + "; it must be " + fields.allowed + hint;
}

}  // namespace

Status::Status(Code code, ErrorFields fields)
    : code_(code), message_(sentence_of(fields)), fields_(std::make_shared<const ErrorFields>(std::move(fields))) {}

}  // namespace hstujit
