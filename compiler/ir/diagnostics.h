// Collects MLIR's diagnostics of one context while it lives, so that they become a Status and nothing is printed.
#pragma once

#include <string>
#include <string_view>

#include "compiler/support/status.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"

namespace hstujit {

class DiagnosticCollector {
 public:
  explicit DiagnosticCollector(mlir::MLIRContext& context)
      : handler_(&context, [this](mlir::Diagnostic& diagnostic) {
          if (!text_.empty()) text_ += "; ";
          text_ += diagnostic.str();
          return mlir::success();
        }) {}

  // Returns the reported errors as a failure of `what`. kInternal: a spec that was accepted must compile.
  Status error(std::string_view what) const {
    return Status(Code::kInternal, std::string(what) + " failed: " + (text_.empty() ? "no reason was given" : text_));
  }

 private:
  std::string text_;
  mlir::ScopedDiagnosticHandler handler_;
};

}  // namespace hstujit
