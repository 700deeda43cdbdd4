// Readers of bytes that others may have written, one function each: it gives the bytes to the parser as a caller would
// and checks what the parser promises. A broken promise ends the process, as a sanitizer's finding does.
//
// A file of a checksum would reject nearly all of what a fuzzer makes. So such a target gives the bytes to the parser
// as they are, and then once more with the checksum that they need.
#pragma once

#include <string_view>

namespace hstujit::fuzz {

void bundle(std::string_view input);
void cache_metadata(std::string_view input);
void checked_json(std::string_view input);
void config(std::string_view input);
void expression(std::string_view input);
void frozen_choices(std::string_view input);
void recording(std::string_view input);
void remote_url(std::string_view input);
void tar(std::string_view input);
void tuning_record(std::string_view input);
void worker_frames(std::string_view input);

}  // namespace hstujit::fuzz
