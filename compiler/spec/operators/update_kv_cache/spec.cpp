// update_kv_cache: the first rows of each sequence of k and of v become its cache (docs/ops-serving.md,
// "update_kv_cache"). A program.
//
// Forward: k (L, H*Dqk), kv_caching_offsets (B+1), delta_offsets (B+1), v (L, H*Dv), k_cache (Ll, H*Dqk), v_cache
// (Ll, H*Dv).
#include "compiler/spec/operators/update_kv_cache/kv_program.h"
#include "compiler/spec/step_json.h"

namespace hstujit {

namespace {

std::map<std::string, ProgramValue> kept_of(const std::string& side) {
  return {
      {"values", {side, -1, "of each sequence the rows that are cached, then the others"}},
      {"left", {side + "_cache", -1, "cached rows of all sequences"}},
      {"offsets_left", {"kv_caching_offsets", -1, "first cached row of each sequence, then the number of cached rows"}},
      {"offsets_right",
       {"delta_offsets", -1, "the same of the rows that are not cached: seq_offsets - kv_caching_offsets"}}};
}

}  // namespace

OpSpecPtr parse_update_kv_cache(const Json& json, const std::string& path, Mistakes& mistakes) {
  return parse_kv_program("update_kv_cache", json, path, mistakes, step_json("split_2d_jagged", {{"left_only", true}}),
                          kept_of);
}
Json schema_update_kv_cache() { return fields_schema<KvParams>(); }

}  // namespace hstujit
