// The hstu dialect in C++, generated from hstu.td.
#pragma once

#include "compiler/ir/hstu_dialect.h.inc"
#include "compiler/ir/hstu_enums.h.inc"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#define GET_ATTRDEF_CLASSES
#include "compiler/ir/hstu_attributes.h.inc"
#define GET_OP_CLASSES
#include "compiler/ir/hstu_ops.h.inc"
