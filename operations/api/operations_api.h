// The boundary of libhstujit_operations.so: work on whole configs and on the cache, tuning, and the doctor.
// libhstujit.so opens the library when one of these is asked for.
//
// Functions have the types of the C API's functions of the same names. Handles are those that this library gave: a
// context is made from the caller's settings, a config from the caller's text. Returns values of hstujit_status;
// hstujit_operations_error() is the sentence of the calling thread's last failure. Texts are released with free().
#pragma once

#include "hstujit/hstujit.h"

#define HSTUJIT_OPERATIONS_ABI 1

#pragma GCC visibility push(default)  // all else in the library is hidden
extern "C" {
int hstujit_operations_abi(void);
// The digest of the generator in this library (compiler/generator/generator_digest.h). A caller that has another must
// not use this library: specs would have other fields, and keys other digests.
const char* hstujit_operations_generator(void);
const char* hstujit_operations_error(void);

// `environment`: the variables of the caller's context, "NAME=value", and a null pointer at the end. `diagnose`: as for
// hstujit_diagnose, 0 or 1. The log callback may be called until the context is destroyed.
hstujit_status hstujit_operations_context_create(const char* const* environment, const hstujit_context_options* options,
                                                 int diagnose, hstujit_context** out);
void hstujit_operations_context_destroy(hstujit_context* context);

// `text`: a config, or with `recording` 1 the lines of HSTUJIT_RECORD. `origin`: the file's name in sentences.
// `folder`: files that the config names are relative to it.
hstujit_status hstujit_operations_config_create(const char* text, const char* origin, const char* folder, int recording,
                                                hstujit_config** out);
void hstujit_operations_config_destroy(hstujit_config* config);
hstujit_status hstujit_operations_config_describe(const hstujit_config* config, hstujit_text* out);
hstujit_status hstujit_operations_config_schema(hstujit_text* out);

hstujit_status hstujit_operations_prewarm(hstujit_context*, const hstujit_config*, const hstujit_run_options*,
                                          hstujit_text* report);
hstujit_status hstujit_operations_tune(hstujit_context*, const hstujit_config*, const hstujit_run_options*,
                                       hstujit_text* report);
hstujit_status hstujit_operations_run(hstujit_context*, const hstujit_config*, const hstujit_run_options*,
                                      hstujit_text* report);
hstujit_status hstujit_operations_bench(hstujit_context*, const hstujit_config*, const hstujit_run_options*,
                                        hstujit_text* report);
hstujit_status hstujit_operations_emit(hstujit_context*, const hstujit_config*, const hstujit_run_options*,
                                       hstujit_text* report);
hstujit_status hstujit_operations_freeze(hstujit_context*, const hstujit_config*, const hstujit_run_options*,
                                         hstujit_text* report);
hstujit_status hstujit_operations_explain(hstujit_context*, const hstujit_config*, const hstujit_run_options*,
                                          hstujit_text* report);
hstujit_status hstujit_operations_check(hstujit_context*, const hstujit_config*, const hstujit_run_options*,
                                        hstujit_text* report);

hstujit_status hstujit_operations_cache_list(hstujit_context*, hstujit_text* report);
hstujit_status hstujit_operations_cache_verify(hstujit_context*, hstujit_text* report);
hstujit_status hstujit_operations_cache_prune(hstujit_context*, uint64_t max_bytes, hstujit_text* report);
hstujit_status hstujit_operations_cache_prune_nvrtc(hstujit_context*, const char* version, hstujit_text* report);
hstujit_status hstujit_operations_cache_export(hstujit_context*, const char* path,
                                               const hstujit_cache_export_options* options, hstujit_text* report);
hstujit_status hstujit_operations_cache_import(hstujit_context*, const char* path, hstujit_text* report);

hstujit_status hstujit_operations_doctor(hstujit_context*, hstujit_text* report);

// Tunes one key because of a miss, and keeps the record in the cache. `request`: the JSON of TuningRequest
// (runtime/dispatch/miss_tuner.h).
hstujit_status hstujit_operations_tune_key(hstujit_context*, const char* request);
}
#pragma GCC visibility pop
