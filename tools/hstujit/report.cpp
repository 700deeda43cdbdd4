#include "tools/hstujit/report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "compiler/support/json.h"
#include "tools/hstujit/output.h"
#include "tools/hstujit/values.h"

namespace hstujit {

const Json& member(const Json& object, std::string_view name) {
  static const auto& nothing = *new Json;
  if (!object.is_object()) return nothing;
  const auto found = object.find(std::string(name));
  return found == object.end() ? nothing : *found;
}

std::string text_of(const Json& value) {
  if (value.is_null()) return "";
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  if (!value.is_array()) return dump_json(value);
  std::string text;
  for (const Json& item : value) {
    if (!text.empty()) text += ", ";
    text += text_of(item);
  }
  return text;
}

std::string text_of(const Json& object, std::string_view name) { return text_of(member(object, name)); }

std::string number_text(const Json& object, std::string_view name, int digits, double factor) {
  const Json& value = member(object, name);
  return value.is_number() ? fmt::format("{:.{}f}", value.get<double>() * factor, digits) : "";
}

double number_of(const Json& object, std::string_view name, double fallback) {
  const Json& value = member(object, name);
  return value.is_number() ? value.get<double>() : fallback;
}

std::string config_text(const Json& config) {
  if (!config.is_object()) return "";
  const std::string skeleton = text_of(config, "skeleton");
  std::string text = skeleton.substr(skeleton.rfind('/') + 1);
  const auto add = [&text](const std::string& part) { text += (text.empty() ? "" : " ") + part; };
  if (number_of(config, "block_m") > 0 && number_of(config, "block_n") > 0) {
    add(text_of(config, "block_m") + "x" + text_of(config, "block_n"));
  }
  for (const auto& [name, value] : config.items()) {
    if (name == "skeleton" || name == "block_m" || name == "block_n") continue;
    if (value.is_string()) add(value.get<std::string>());
    if (value.is_boolean() && value.get<bool>()) add(name);
    // 0 means that the template does not read it, 1 is the least of everything that is counted.
    if (value.is_number() && value.get<double>() > 1) add(fmt::format("{}={}", name, dump_json(value)));
  }
  return text;
}

std::string bucket_text(const Json& row) { return bucket_text(row, text_of(row, "bucket")); }

std::string bucket_text(const Json& row, std::string length) {
  return std::move(length) + (member(row, "small_batch") == true ? " small" : "") +
         (member(row, "short_sequences") == true ? " short" : "");
}

std::string batches_text(const Json& row) {
  return member(row, "small_batch") == true       ? ", small batches"
         : member(row, "short_sequences") == true ? ", short sequences"
                                                  : "";
}

std::string device_text(const Json& device) {
  if (!device.is_object()) return "";
  return fmt::format("{}, {}, {}", text_of(device, "name"), text_of(device, "arch"),
                     count_text(number_of(device, "sm_count"), "SM"));
}

std::string driver_text(const Json& version) {
  if (!version.is_number_integer()) return text_of(version);
  const auto number = version.get<int64_t>();
  return fmt::format("{}.{}", number / 1000, number % 1000 / 10);
}

std::string row_text(const Json& row, std::string_view length) {
  return fmt::format("{} {}{}{}", text_of(row, "name"), text_of(row, "direction"), length.empty() ? "" : " ", length);
}

std::string early_ends_text(const Json& keys) {
  std::string text;
  for (const Json& key : keys) {
    const std::string why = text_of(key, "ended_early");
    if (why.empty()) continue;
    text += format_printable("{} ended early: {}\n", row_text(key, bucket_text(key)), why);
  }
  return text;
}

std::string staying_text(const Json& keys) {
  std::string text;
  for (const Json& key : keys) {
    const Json& staying = member(key, "staying");
    if (!staying.is_object()) continue;
    text += format_printable("{}: launches keep the winner of a run on {} rows: {}\n", row_text(key, bucket_text(key)),
                             text_of(staying, "rows"), text_of(staying, "describe"));
  }
  return text;
}

size_t print_failures(const Json& rows, std::string_view field) {
  std::vector<std::pair<std::string, std::vector<std::string>>> failures;  // message, the rows that have it
  size_t count = 0;
  for (const Json& row : rows) {
    const Json& failure = member(row, field);
    if (!failure.is_object()) continue;
    ++count;
    const std::string message = text_of(failure, "message");
    // A launch is told apart by its length, of which several share a bucket.
    const Json& length = member(row, "max_seq_len");
    const std::string place =
        row_text(row, length.is_null() ? bucket_text(row) : bucket_text(row, text_of(row, "max_seq_len")));
    const auto same =
        std::find_if(failures.begin(), failures.end(), [&](const auto& known) { return known.first == message; });
    if (same == failures.end()) {
      failures.push_back({message, {place}});
    } else if (same->second.back() != place) {
      same->second.push_back(place);
    }
  }
  constexpr size_t kMaxPlaces = 5;
  for (const auto& [message, places] : failures) {
    const size_t named = std::min(places.size(), kMaxPlaces);
    const std::string more = places.size() > named ? fmt::format(" and {} more", places.size() - named) : "";
    print_error(one_line(fmt::format("{}{}", fmt::join(places.begin(), places.begin() + named, ", "), more)) + ": " +
                message);
  }
  return count;
}

size_t print_not_kept(const Json& report) {
  const Json& not_kept = member(report, "not_kept");
  if (!not_kept.is_object()) return 0;
  print_error(fmt::format("the cache does not keep {} and {}: {}", count_text(number_of(not_kept, "kernels"), "kernel"),
                          counted(static_cast<int64_t>(number_of(not_kept, "records")), "tuning record or choice",
                                  "tuning records or choices"),
                          text_of(not_kept, "reason")));
  return 1;
}

}  // namespace hstujit
