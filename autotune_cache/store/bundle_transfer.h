// From the layers of a cache into a bundle, and from a bundle into the user's directory.
#pragma once

#include <string>
#include <vector>

#include "autotune_cache/bundle/bundle.h"
#include "autotune_cache/store/artifact_store.h"
#include "autotune_cache/store/bundle_layer.h"
#include "autotune_cache/store/tuning_database.h"

namespace hstujit {

struct ExportedBundle {
  PackedBundle packed;
  int64_t kernels = 0;
  int64_t records = 0;
  int64_t choices = 0;
  std::vector<VerifiedFile> refused;  // files of entries that no look-up uses: the bundle lacks them
};

// Every good entry of `layers`, of several for one key that which a look-up finds. `ops` names the operators whose
// entries are taken; empty: all. `consulted`: the layers in which look-ups of this machine find tuning records, the
// same and the shipped ones. A choice that such a record has overtaken is left out. Damaged entries are left out, too,
// and named; a failure of the system (is_system_failure) ends it.
Result<ExportedBundle> export_bundle(const CacheLayers& layers, const std::vector<std::string>& ops,
                                     const CacheLayers& consulted);

struct ImportReport {
  int64_t kernels = 0;      // of the bundle
  int64_t new_kernels = 0;  // that the user directory did not have
  int64_t records = 0;
  int64_t new_records = 0;      // that the user directory did not have
  int64_t changed_records = 0;  // that it had, and that say more now
  int64_t left_out = 0;         // findings of the bundle's records for which those of the directory leave no room
  int64_t choices = 0;
  int64_t new_choices = 0;  // that the user directory did not have, or had otherwise
  std::string sha256;       // as export said it
};

// Puts everything into the directory that `store` and `database` write. Nothing is, and the status says why, unless the
// whole bundle is good. kIo when the directory does not keep it; a failure of the system (is_system_failure) to read
// what the directory or the bundle has ends it.
Result<ImportReport> import_bundle(const BundleLayer& bundle, ArtifactStore& store, TuningDatabase& database);

}  // namespace hstujit
