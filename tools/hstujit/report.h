// Reads fields of a report for tables. A field that a report lacks is an empty cell, so that an older tool shows what
// it can of a newer library's report.
#pragma once

#include <string>
#include <string_view>

#include "tools/hstujit/api.h"
#include "tools/hstujit/table.h"

namespace hstujit {

// The member `name`; a null when there is none.
const Json& member(const Json& object, std::string_view name);

// Text as it is, numbers as JSON writes them, lists joined by ", "; "" for null.
std::string text_of(const Json& value);
std::string text_of(const Json& object, std::string_view name);

// A number with `digits` behind the point, times `factor`; "" when it is none.
std::string number_text(const Json& object, std::string_view name, int digits, double factor = 1);
double number_of(const Json& object, std::string_view name, double fallback = 0);

// A kernel's config on one line, what says nothing left out: "sm90 128x128 stages=2 persistent"; "" when it is none.
std::string config_text(const Json& config);

// The bucket of a row and which of its kernels it is about: "1024", "1024 small", "1024 short".
std::string bucket_text(const Json& row);
// The same with another length before it.
std::string bucket_text(const Json& row, std::string length);
// Names the batches that the kernel serves, behind other text: "", ", small batches", ", short sequences".
std::string batches_text(const Json& row);

// Names the subject of a row: "layer forward 1024", with the length that is given, which may be empty.
std::string row_text(const Json& row, std::string_view length);

// "NVIDIA H200, sm_90a, 132 SMs" of a DeviceSpec.
std::string device_text(const Json& device);

// The driver's number, 13000, as CUDA versions are written: "13.0".
std::string driver_text(const Json& version);

// Lists tune's keys, a printable line for each that ended before its time, with the reason; "" when none did.
std::string early_ends_text(const Json& keys);

// Lists tune's keys, a printable line for each whose winner is not what launches take; "" when all are.
std::string staying_text(const Json& keys);

// Each different message of the rows' `field` ({"code", "message"}) once, with five of the rows that have it and how
// many more there are: to standard error. Returns how many rows have one.
size_t print_failures(const Json& rows, std::string_view field);
// Prints the entries that the cache could not keep, from a report of prewarm or tune; returns the number of sentences.
size_t print_not_kept(const Json& report);

}  // namespace hstujit
