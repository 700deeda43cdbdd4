// construct_full_kv: of each sequence the cached rows of k and of v, then the new ones (docs/ops-serving.md,
// "construct_full_kv"). A program.
//
// Forward: k_cache (Ll, H*Dqk), delta_k (B*delta_size, H*Dqk), kv_caching_offsets (B+1), delta_size (int), v_cache
// (Ll, H*Dv), delta_v (B*delta_size, H*Dv), full_k (L, H*Dqk), full_v (L, H*Dv).
#include "compiler/spec/operators/update_kv_cache/kv_program.h"
#include "compiler/spec/step_json.h"

namespace hstujit {

namespace {

std::map<std::string, ProgramValue> kept_and_new(const std::string& side) {
  return {
      {"left", {side + "_cache", -1, "cached rows of all sequences"}},
      {"right", {"delta_" + side, -1, "delta_size new rows of each sequence"}},
      {"out", {"full_" + side, -1, "of each sequence the cached rows, then the new ones"}},
      {"offsets_left", {"kv_caching_offsets", -1, "first cached row of each sequence, then the number of cached rows"}},
      {"max_len_right", {"delta_size", -1, "new rows of each sequence"}}};
}

}  // namespace

OpSpecPtr parse_construct_full_kv(const Json& json, const std::string& path, Mistakes& mistakes) {
  return parse_kv_program("construct_full_kv", json, path, mistakes,
                          step_json("concat_2d_jagged", {{"dense_right", true}}), kept_and_new);
}
Json schema_construct_full_kv() { return fields_schema<KvParams>(); }

}  // namespace hstujit
