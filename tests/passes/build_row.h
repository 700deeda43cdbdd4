// The functions that the passes make of an operator of the row family.
#pragma once

#include <gtest/gtest.h>

#include <memory>

#include "compiler/ir/build.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/row_functions.h"

namespace hstujit {

struct RowModule {
  std::unique_ptr<mlir::MLIRContext> context = make_context();
  Module module;
};

inline RowModule build_row(const OpSpec& spec, Direction direction) {
  RowModule row;
  auto built = build_module(*row.context, spec);
  EXPECT_TRUE(built.ok()) << built.status().message();
  if (!built.ok()) return row;
  row.module = std::move(*built);
  const Status status = run_passes(*row.module, direction);
  EXPECT_TRUE(status.ok()) << status.message();
  return row;
}

}  // namespace hstujit
