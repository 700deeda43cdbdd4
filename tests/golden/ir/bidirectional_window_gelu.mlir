module {
  func.func @mask_valid(%arg0: index {hstu.name = "row"}, %arg1: index {hstu.name = "col"}, %arg2: index {hstu.name = "n"}, %arg3: index {hstu.name = "t"}) -> (i1 {hstu.name = "valid"}) {
    %c128 = arith.constant 128 : index
    %0 = arith.cmpi slt, %arg1, %arg2 : index
    %1 = arith.subi %arg0, %arg1 : index
    %2 = math.absi %1 : index
    %3 = arith.cmpi sle, %2, %c128 : index
    %4 = arith.andi %3, %0 : i1
    return %4 : i1
  }
  func.func @mask_tile(%arg0: index {hstu.name = "r0"}, %arg1: index {hstu.name = "r1"}, %arg2: index {hstu.name = "c0"}, %arg3: index {hstu.name = "c1"}, %arg4: index {hstu.name = "n"}, %arg5: index {hstu.name = "t"}) -> (i1 {hstu.name = "full"}, i1 {hstu.name = "visible"}) {
    %c128 = arith.constant 128 : index
    %c0 = arith.constant 0 : index
    %0 = arith.subi %arg0, %arg3 : index
    %1 = arith.subi %arg1, %arg2 : index
    %2 = arith.subi %arg2, %arg1 : index
    %3 = arith.maxsi %0, %2 : index
    %4 = arith.maxsi %3, %c0 : index
    %5 = arith.subi %arg3, %arg0 : index
    %6 = arith.maxsi %5, %1 : index
    %7 = arith.cmpi sle, %6, %c128 : index
    %8 = arith.cmpi sle, %4, %c128 : index
    %9 = arith.cmpi slt, %arg3, %arg4 : index
    %10 = arith.cmpi slt, %arg2, %arg4 : index
    %11 = arith.andi %7, %9 : i1
    %12 = arith.andi %8, %10 : i1
    return %11, %12 : i1, i1
  }
  func.func @mask_columns(%arg0: index {hstu.name = "r0"}, %arg1: index {hstu.name = "r1"}, %arg2: index {hstu.name = "n"}, %arg3: index {hstu.name = "t"}) -> (index {hstu.name = "lo"}, index {hstu.name = "hi"}) {
    %c129 = arith.constant 129 : index
    %c0 = arith.constant 0 : index
    %c128 = arith.constant 128 : index
    %0 = arith.subi %arg0, %c128 : index
    %1 = arith.addi %arg1, %c129 : index
    %2 = arith.minsi %1, %arg2 : index
    %3 = arith.maxsi %0, %c0 : index
    return %3, %2 : index, index
  }
  func.func @mask_rows(%arg0: index {hstu.name = "c0"}, %arg1: index {hstu.name = "c1"}, %arg2: index {hstu.name = "n"}, %arg3: index {hstu.name = "t"}) -> (index {hstu.name = "lo"}, index {hstu.name = "hi"}) {
    %c-128 = arith.constant -128 : index
    %c0 = arith.constant 0 : index
    %c129 = arith.constant 129 : index
    %0 = arith.addi %arg1, %c129 : index
    %1 = arith.addi %arg0, %c-128 : index
    %2 = arith.cmpi slt, %arg0, %arg2 : index
    %3 = arith.maxsi %1, %c0 : index
    %4 = arith.minsi %0, %arg2 : index
    %5 = arith.select %2, %4, %c0 : index
    return %3, %5 : index, index
  }
  func.func @mask_row_bits(%arg0: index {hstu.name = "row"}, %arg1: index {hstu.name = "c0"}, %arg2: index {hstu.name = "n"}, %arg3: index {hstu.name = "t"}) -> (i32 {hstu.name = "bits"}) {
    %c-1_i32 = arith.constant -1 : i32
    %c129 = arith.constant 129 : index
    %c128 = arith.constant 128 : index
    %0 = arith.subi %arg0, %c128 : index
    %1 = arith.subi %0, %arg1 : index
    %2 = hstu.bits_from %1
    %3 = arith.addi %arg0, %c129 : index
    %4 = arith.subi %3, %arg1 : index
    %5 = hstu.bits_from %4
    %6 = arith.xori %5, %c-1_i32 : i32
    %7 = arith.andi %2, %6 : i32
    %8 = arith.subi %arg2, %arg1 : index
    %9 = hstu.bits_from %8
    %10 = arith.xori %9, %c-1_i32 : i32
    %11 = arith.andi %7, %10 : i32
    return %11 : i32
  }
  func.func @mask_column_bits(%arg0: index {hstu.name = "col"}, %arg1: index {hstu.name = "r0"}, %arg2: index {hstu.name = "n"}, %arg3: index {hstu.name = "t"}) -> (i32 {hstu.name = "bits"}) {
    %c0_i32 = arith.constant 0 : i32
    %c-128 = arith.constant -128 : index
    %c-1_i32 = arith.constant -1 : i32
    %c129 = arith.constant 129 : index
    %0 = arith.addi %arg0, %c129 : index
    %1 = arith.subi %0, %arg1 : index
    %2 = hstu.bits_from %1
    %3 = arith.xori %2, %c-1_i32 : i32
    %4 = arith.addi %arg0, %c-128 : index
    %5 = arith.subi %4, %arg1 : index
    %6 = hstu.bits_from %5
    %7 = arith.andi %3, %6 : i32
    %8 = arith.cmpi slt, %arg0, %arg2 : index
    %9 = arith.select %8, %c-1_i32, %c0_i32 : i32
    %10 = arith.andi %7, %9 : i32
    return %10 : i32
  }
  func.func @score(%arg0: f32 {hstu.name = "x"}, %arg1: index {hstu.name = "row"}, %arg2: index {hstu.name = "col"}, %arg3: index {hstu.name = "n"}, %arg4: index {hstu.name = "t"}, %arg5: index {hstu.name = "head"}, %arg6: f32 {hstu.name = "alpha"}) -> (f32 {hstu.name = "y"}) {
    %cst = arith.constant 0.707106769 : f32
    %cst_0 = arith.constant 5.000000e-01 : f32
    %0 = arith.mulf %arg0, %arg6 : f32
    %1 = arith.mulf %0, %cst_0 : f32
    %2 = arith.mulf %0, %cst : f32
    %3 = math.erf %2 : f32
    %4 = math.fma %1, %3, %1 : f32
    return %4 : f32
  }
  func.func @score_grad(%arg0: f32 {hstu.name = "x"}, %arg1: index {hstu.name = "row"}, %arg2: index {hstu.name = "col"}, %arg3: index {hstu.name = "n"}, %arg4: index {hstu.name = "t"}, %arg5: index {hstu.name = "head"}, %arg6: f32 {hstu.name = "alpha"}) -> (f32 {hstu.name = "y"}, f32 {hstu.name = "dy"}) {
    %cst = arith.constant 0.797884583 : f32
    %cst_0 = arith.constant 0.707106769 : f32
    %cst_1 = arith.constant 5.000000e-01 : f32
    %0 = arith.mulf %arg0, %arg6 : f32
    %1 = arith.mulf %0, %cst_1 : f32
    %2 = arith.mulf %arg6, %cst_1 : f32
    %3 = arith.mulf %0, %cst_0 : f32
    %4 = math.erf %3 : f32
    %5 = arith.mulf %3, %3 : f32
    %6 = arith.negf %5 : f32
    %7 = math.exp %6 : f32
    %8 = arith.mulf %arg6, %cst : f32
    %9 = arith.mulf %7, %8 : f32
    %10 = math.fma %1, %4, %1 : f32
    %11 = arith.mulf %1, %9 : f32
    %12 = arith.mulf %4, %2 : f32
    %13 = arith.addf %12, %11 : f32
    %14 = arith.addf %13, %2 : f32
    return %10, %14 : f32, f32
  }
}
