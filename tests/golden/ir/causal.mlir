module {
  func.func @mask_valid(%arg0: index {hstu.name = "row"}, %arg1: index {hstu.name = "col"}, %arg2: index {hstu.name = "n"}, %arg3: index {hstu.name = "t"}) -> (i1 {hstu.name = "valid"}) {
    %0 = arith.cmpi slt, %arg1, %arg2 : index
    %1 = arith.cmpi sle, %arg1, %arg0 : index
    %2 = arith.andi %1, %0 : i1
    return %2 : i1
  }
  func.func @mask_tile(%arg0: index {hstu.name = "r0"}, %arg1: index {hstu.name = "r1"}, %arg2: index {hstu.name = "c0"}, %arg3: index {hstu.name = "c1"}, %arg4: index {hstu.name = "n"}, %arg5: index {hstu.name = "t"}) -> (i1 {hstu.name = "full"}, i1 {hstu.name = "visible"}) {
    %0 = arith.cmpi sle, %arg3, %arg0 : index
    %1 = arith.cmpi sle, %arg2, %arg1 : index
    %2 = arith.cmpi slt, %arg3, %arg4 : index
    %3 = arith.cmpi slt, %arg2, %arg4 : index
    %4 = arith.andi %0, %2 : i1
    %5 = arith.andi %1, %3 : i1
    return %4, %5 : i1, i1
  }
  func.func @mask_columns(%arg0: index {hstu.name = "r0"}, %arg1: index {hstu.name = "r1"}, %arg2: index {hstu.name = "n"}, %arg3: index {hstu.name = "t"}) -> (index {hstu.name = "lo"}, index {hstu.name = "hi"}) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %0 = arith.addi %arg1, %c1 : index
    %1 = arith.minsi %0, %arg2 : index
    return %c0, %1 : index, index
  }
  func.func @mask_rows(%arg0: index {hstu.name = "c0"}, %arg1: index {hstu.name = "c1"}, %arg2: index {hstu.name = "n"}, %arg3: index {hstu.name = "t"}) -> (index {hstu.name = "lo"}, index {hstu.name = "hi"}) {
    %c0 = arith.constant 0 : index
    %0 = arith.cmpi slt, %arg0, %arg2 : index
    %1 = arith.maxsi %arg0, %c0 : index
    %2 = arith.select %0, %arg2, %c0 : index
    return %1, %2 : index, index
  }
  func.func @mask_row_bits(%arg0: index {hstu.name = "row"}, %arg1: index {hstu.name = "c0"}, %arg2: index {hstu.name = "n"}, %arg3: index {hstu.name = "t"}) -> (i32 {hstu.name = "bits"}) {
    %c-1_i32 = arith.constant -1 : i32
    %c1 = arith.constant 1 : index
    %0 = arith.addi %arg0, %c1 : index
    %1 = arith.subi %0, %arg1 : index
    %2 = hstu.bits_from %1
    %3 = arith.xori %2, %c-1_i32 : i32
    %4 = arith.subi %arg2, %arg1 : index
    %5 = hstu.bits_from %4
    %6 = arith.xori %5, %c-1_i32 : i32
    %7 = arith.andi %3, %6 : i32
    return %7 : i32
  }
  func.func @mask_column_bits(%arg0: index {hstu.name = "col"}, %arg1: index {hstu.name = "r0"}, %arg2: index {hstu.name = "n"}, %arg3: index {hstu.name = "t"}) -> (i32 {hstu.name = "bits"}) {
    %c-1_i32 = arith.constant -1 : i32
    %c0_i32 = arith.constant 0 : i32
    %0 = arith.subi %arg0, %arg1 : index
    %1 = hstu.bits_from %0
    %2 = arith.cmpi slt, %arg0, %arg2 : index
    %3 = arith.select %2, %c-1_i32, %c0_i32 : i32
    %4 = arith.andi %1, %3 : i32
    return %4 : i32
  }
  func.func @score(%arg0: f32 {hstu.name = "x"}, %arg1: index {hstu.name = "row"}, %arg2: index {hstu.name = "col"}, %arg3: index {hstu.name = "n"}, %arg4: index {hstu.name = "t"}, %arg5: index {hstu.name = "head"}, %arg6: f32 {hstu.name = "alpha"}) -> (f32 {hstu.name = "y"}) {
    %cst = arith.constant 5.000000e-01 : f32
    %0 = arith.mulf %arg6, %cst : f32
    %1 = arith.mulf %arg0, %0 : f32
    %2 = math.tanh %1 : f32
    %3 = math.fma %1, %2, %1 : f32
    return %3 : f32
  }
  func.func @score_grad(%arg0: f32 {hstu.name = "x"}, %arg1: index {hstu.name = "row"}, %arg2: index {hstu.name = "col"}, %arg3: index {hstu.name = "n"}, %arg4: index {hstu.name = "t"}, %arg5: index {hstu.name = "head"}, %arg6: f32 {hstu.name = "alpha"}) -> (f32 {hstu.name = "y"}, f32 {hstu.name = "dy"}) {
    %cst = arith.constant 1.000000e+00 : f32
    %cst_0 = arith.constant 5.000000e-01 : f32
    %0 = arith.mulf %arg6, %cst_0 : f32
    %1 = arith.mulf %arg0, %0 : f32
    %2 = math.tanh %1 : f32
    %3 = arith.negf %2 : f32
    %4 = math.fma %3, %2, %cst : f32
    %5 = math.fma %1, %2, %1 : f32
    %6 = math.fma %1, %4, %2 : f32
    %7 = math.fma %0, %6, %0 : f32
    return %5, %7 : f32, f32
  }
}
