#include "runtime/engine/engine_stats.h"

#include <fmt/format.h>

#include <iterator>
#include <string_view>

namespace hstujit {

namespace {

// A page of Prometheus' text format. Names and labels are of letters, digits and underscores.
class Page {
 public:
  void family(std::string_view name, std::string_view type, std::string_view help) {
    name_ = name;
    fmt::format_to(std::back_inserter(text_), "# HELP {0} {2}\n# TYPE {0} {1}\n", name, type, help);
  }
  template <class Number>
  void sample(std::string_view labels, Number value) {
    fmt::format_to(std::back_inserter(text_), "{}{} {}\n", name_, labels, value);
  }

  std::string text() && { return std::move(text_); }

 private:
  std::string name_, text_;
};

}  // namespace

EngineStats::Counter EngineStats::launches(const std::string& op, const std::string& kernel, const std::string& key) {
  const std::lock_guard lock(mutex_);
  Launched& launched = launches_[key];
  if (!launched.count) launched = {op, kernel, std::make_shared<std::atomic<int64_t>>(0)};
  return launched.count;
}

Json EngineStats::to_json(const LookUpCounts& look_ups, size_t modules) const {
  Json json;
  json["kernels"] = {{"memory", look_ups.memory.load()},
                     {"directory", look_ups.directory.load()},
                     {"compiled", look_ups.compiles.done()},
                     {"failed", look_ups.compiles.failed()},
                     {"nowhere", look_ups.nowhere.load()},
                     {"compile_ms", look_ups.compiles.milliseconds()},
                     {"loaded", modules}};
  json["tunings"] = {{"done", tunings.done()}, {"failed", tunings.failed()}, {"ms", tunings.milliseconds()}};
  Json& list = json["launches"] = Json::array();
  const std::lock_guard lock(mutex_);
  for (const auto& [key, launched] : launches_)
    list.push_back({{"op", launched.op}, {"kernel", launched.kernel}, {"key", key}, {"count", launched.count->load()}});
  return json;
}

std::string EngineStats::to_prometheus(const LookUpCounts& look_ups, size_t modules) const {
  Page page;
  page.family("hstujit_kernel_lookups_total", "counter", "Look-ups of kernels, by where the kernel was found.");
  page.sample("{found=\"memory\"}", look_ups.memory.load());
  page.sample("{found=\"directory\"}", look_ups.directory.load());
  page.sample("{found=\"nowhere\"}", look_ups.nowhere.load());
  page.family("hstujit_compiles_total", "counter", "Compiles of kernels, by result.");
  page.sample("{result=\"ok\"}", look_ups.compiles.done());
  page.sample("{result=\"error\"}", look_ups.compiles.failed());
  page.family("hstujit_compile_seconds_total", "counter", "Time of these compiles.");
  page.sample("", look_ups.compiles.milliseconds() * 1e-3);
  page.family("hstujit_tunings_total", "counter", "Keys that were tuned on a miss, by result.");
  page.sample("{result=\"ok\"}", tunings.done());
  page.sample("{result=\"error\"}", tunings.failed());
  page.family("hstujit_tuning_seconds_total", "counter", "Time of these tunings.");
  page.sample("", tunings.milliseconds() * 1e-3);
  page.family("hstujit_loaded_modules", "gauge", "Kernels that are loaded, one for each GPU context.");
  page.sample("", modules);
  page.family("hstujit_launches_total", "counter", "Launches, by operator, kernel and key.");
  const std::lock_guard lock(mutex_);
  for (const auto& [key, launched] : launches_) {
    page.sample(fmt::format("{{op=\"{}\",kernel=\"{}\",key=\"{}\"}}", launched.op, launched.kernel, key),
                launched.count->load());
  }
  return std::move(page).text();
}

}  // namespace hstujit
