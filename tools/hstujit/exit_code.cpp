#include "tools/hstujit/exit_code.h"

namespace hstujit {

ExitCode exit_code(Code code) {
  switch (code) {
    case Code::kOk:
      return ExitCode::kDone;
    case Code::kInvalidArgument:
    case Code::kInvalidConfig:
    case Code::kNotFound:  // a file or an op of the config that was named on the command line
      return ExitCode::kBadRequest;
    case Code::kNoDriver:
    case Code::kNoCompiler:
    case Code::kNoDevice:
      return ExitCode::kUnavailable;
    case Code::kUnsupported:
    case Code::kCompileFailed:
    case Code::kDriverError:
    case Code::kCacheMiss:
    case Code::kNotPrepared:
    case Code::kOutOfMemory:
    case Code::kCheckFailed:
    case Code::kIo:
    case Code::kInternal:
      return ExitCode::kFailed;
  }
  return ExitCode::kFailed;
}

std::string_view meaning(ExitCode code) {
  switch (code) {
    case ExitCode::kDone:
      return "done";
    case ExitCode::kFailed:
      return "something that was asked for failed and is named, or output was lost";
    case ExitCode::kBadRequest:
      return "wrong arguments or config, an input or output that is no file of its kind or cannot be opened, no such "
             "instance";
    case ExitCode::kUnavailable:
      return "no usable device, driver or compiler, with what was looked for";
  }
  return "";
}

}  // namespace hstujit
