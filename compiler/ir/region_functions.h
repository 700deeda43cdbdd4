// The functions that passes create and backends look up, and the names of their arguments and results.
#pragma once

#include <string>

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"

namespace hstujit {

inline constexpr llvm::StringLiteral kMaskValid = "mask_valid";
inline constexpr llvm::StringLiteral kMaskTile = "mask_tile";
inline constexpr llvm::StringLiteral kMaskColumns = "mask_columns";
inline constexpr llvm::StringLiteral kMaskRows = "mask_rows";
inline constexpr llvm::StringLiteral kMaskRowBits = "mask_row_bits";
inline constexpr llvm::StringLiteral kMaskColumnBits = "mask_column_bits";
inline constexpr llvm::StringLiteral kScore = "score";
inline constexpr llvm::StringLiteral kScoreGrad = "score_grad";
inline constexpr llvm::StringLiteral kScoreGradX = "score_grad_x";  // with the derivative with respect to alpha * x
inline constexpr llvm::StringLiteral kScoreValue = "score_value";   // what all heads have in common (shared_value.h)
inline constexpr llvm::StringLiteral kScoreOfValue =
    "score_of_value";                                              // the score, which takes that behind its scalars
inline constexpr llvm::StringLiteral kScoreSlope = "score_slope";  // what names of score_slope() begin with
inline constexpr llvm::StringLiteral kScoreEntry = "score_entry";  // and those of score_entry()
inline constexpr llvm::StringLiteral kScoreShare = "score_share";  // and those of score_share()
inline constexpr llvm::StringLiteral kEpilogue = "epilogue";

// What the functions of masks call the numbers of a sequence's targets and contexts.
inline constexpr llvm::StringLiteral kTargetsArgument = "t";
inline constexpr llvm::StringLiteral kContextsArgument = "c";

// An arith.mulf with this attribute is rounded by itself: no backend fuses it with an addition.
inline constexpr llvm::StringLiteral kUnfused = "hstu.unfused";

// A math.powf with this attribute may be computed by the logarithm of its base: the base is above 0, or the exponent a
// fraction.
inline constexpr llvm::StringLiteral kPositiveBase = "hstu.positive_base";

// A function at the builder's place. `arguments` and `results` name its values in printed source.
mlir::func::FuncOp create_region_function(mlir::OpBuilder& builder, mlir::Location location, llvm::StringRef name,
                                          mlir::FunctionType type, llvm::ArrayRef<llvm::StringRef> arguments,
                                          llvm::ArrayRef<llvm::StringRef> results);

// score and score_grad take x, then what says where the pair is, then scalars of the launch.
bool is_pair_argument(mlir::BlockArgument argument);
bool is_launch_scalar(mlir::BlockArgument argument);

// The name of the derivative of the score with respect to an operand's element of the pair's row, or of its column. The
// function takes what score takes. There is none where the score does not read that element.
std::string score_slope(llvm::StringRef operand, bool of_column);

// The same of the places where the score reads a table, an element of the head or a scalar, counted from 0: the names
// of the derivative with respect to what is read there and, of a table, of the entry (an index) that is read. Places
// where the score reads the same entry are one. The functions take what score takes.
std::string score_slope(llvm::StringRef operand, size_t site);
std::string score_entry(llvm::StringRef operand, size_t site);

// The name of what score_slope() of a site is over the derivative with respect to alpha * x: a number that does not
// depend on x. There are such functions, and score_grad_x, where all sites add to x (sites_add_to_x() of
// score_sites.h).
std::string score_share(llvm::StringRef operand, size_t site);

// Where all sites are in score_value (sites_are_shared() of score_sites.h): the name of the derivative of
// score_of_value with respect to the value, and of each site, counted anew in score_value, the derivative of the value
// and the entry.
inline constexpr llvm::StringLiteral kValueSlope = "score_value_slope";
inline constexpr llvm::StringLiteral kValueSite = "score_value_site";  // what the names of the others begin with
std::string value_share(llvm::StringRef operand, size_t site);
std::string value_entry(llvm::StringRef operand, size_t site);

// Whether the functions of the module's mask, where it has some, take each sequence's number of contexts, behind t.
bool masks_take_contexts(mlir::ModuleOp module);

std::string argument_name(mlir::func::FuncOp function, unsigned index);
std::string result_name(mlir::func::FuncOp function, unsigned index);

}  // namespace hstujit
