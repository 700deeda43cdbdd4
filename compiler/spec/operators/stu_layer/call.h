// Call declarations of a layer, its halves and stacks of layers.
#pragma once

#include "compiler/spec/call/declaration.h"

namespace hstujit {

// The fields of StuParams.
void declare_stu(CallDeclaration& call);
// The fields of StuInputParams, and the letter P of the projection's columns.
void declare_stu_input(CallDeclaration& call);
// The fields of StuOutputParams, and the letter Y of the columns of y.
void declare_stu_output(CallDeclaration& call);
// The fields of StuVariantParams.
void declare_stu_variant(CallDeclaration& call);
// The fields of StuMemoryParams.
void declare_stu_memory(CallDeclaration& call);

// stu_layer, and stu_stack but for the number of layers.
CallDeclaration& stu_call(CallDeclaration& call);

}  // namespace hstujit
