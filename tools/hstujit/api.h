// The C API as owned handles and Results: everything the tool knows of the library goes through here.
#pragma once

#include <memory>
#include <string>

#include "compiler/support/json.h"
#include "compiler/support/status.h"
#include "hstujit/hstujit.h"

namespace hstujit {

// The failure of a call that returned `status`, with the library's sentence; kOk for HSTUJIT_OK.
Status api_status(hstujit_status status);

struct ContextDeleter {
  void operator()(hstujit_context* context) const { hstujit_context_destroy(context); }
};
struct ConfigDeleter {
  void operator()(hstujit_config* config) const { hstujit_config_destroy(config); }
};
using ContextPtr = std::unique_ptr<hstujit_context, ContextDeleter>;
using ConfigPtr = std::unique_ptr<hstujit_config, ConfigDeleter>;

// `cache_dir` as given to --cache-dir; empty: what the environment says.
Result<ContextPtr> open_context(const std::string& cache_dir);
// The options of that context.
hstujit_context_options context_options(const std::string& cache_dir);
// A failure that may be of the input file `path`, which `option` of the command line names: where the file cannot be
// read as such, a wrong argument, as one is that does not exist, and the sentence begins with the option.
Status of_input(std::string_view option, const std::string& path, const Status& status);
// Loads the config of --config, or of another option that names one.
Result<ConfigPtr> load_config(const std::string& path, std::string_view option = "--config");
// Loads the recording of --from.
Result<ConfigPtr> load_recording(const std::string& path);

// A report, whether or not everything in it succeeded. A sentence of a failure names the option that gave an argument.
struct Report {
  std::string text;  // as the library wrote it
  Json json;
  Status status;  // what failed, if anything did
};

// Takes over `text`. Failure: `status` failed before there was anything to report, or the text is no JSON.
Result<Report> take_report(hstujit_status status, hstujit_text text);

// JSON as the library writes it: in lines, with U+FFFD for bytes that are no UTF-8.
std::string json_text(const Json& json);

// Calls one of the API's reporting functions: report_of(hstujit_doctor, context).
template <typename Function, typename... Arguments>
Result<Report> report_of(Function function, Arguments... arguments) {
  hstujit_text text = {};
  const hstujit_status status = function(arguments..., &text);
  return take_report(status, text);
}

}  // namespace hstujit
