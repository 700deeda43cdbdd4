module {
  func.func @mask_valid(%arg0: index {hstu.name = "row"}, %arg1: index {hstu.name = "col"}, %arg2: index {hstu.name = "n"}, %arg3: index {hstu.name = "t"}) -> (i1 {hstu.name = "valid"}) {
    %c64 = arith.constant 64 : index
    %c256 = arith.constant 256 : index
    %0 = arith.cmpi slt, %arg1, %arg2 : index
    %1 = arith.subi %arg0, %arg1 : index
    %2 = arith.subi %arg2, %c64 : index
    %3 = arith.cmpi sge, %arg0, %2 : index
    %4 = arith.cmpi sle, %1, %c256 : index
    %5 = arith.ori %4, %3 : i1
    %6 = arith.cmpi sle, %arg1, %arg0 : index
    %7 = arith.andi %6, %5 : i1
    %8 = arith.andi %7, %0 : i1
    return %8 : i1
  }
  func.func @mask_tile(%arg0: index {hstu.name = "r0"}, %arg1: index {hstu.name = "r1"}, %arg2: index {hstu.name = "c0"}, %arg3: index {hstu.name = "c1"}, %arg4: index {hstu.name = "n"}, %arg5: index {hstu.name = "t"}) -> (i1 {hstu.name = "full"}, i1 {hstu.name = "visible"}) {
    %c64 = arith.constant 64 : index
    %c256 = arith.constant 256 : index
    %0 = arith.cmpi sle, %arg3, %arg0 : index
    %1 = arith.cmpi sle, %arg2, %arg1 : index
    %2 = arith.subi %arg0, %arg3 : index
    %3 = arith.subi %arg1, %arg2 : index
    %4 = arith.cmpi sle, %3, %c256 : index
    %5 = arith.cmpi sle, %2, %c256 : index
    %6 = arith.subi %arg4, %c64 : index
    %7 = arith.cmpi sge, %arg0, %6 : index
    %8 = arith.cmpi sge, %arg1, %6 : index
    %9 = arith.ori %4, %7 : i1
    %10 = arith.ori %5, %8 : i1
    %11 = arith.andi %0, %9 : i1
    %12 = arith.andi %1, %10 : i1
    %13 = arith.cmpi slt, %arg3, %arg4 : index
    %14 = arith.cmpi slt, %arg2, %arg4 : index
    %15 = arith.andi %11, %13 : i1
    %16 = arith.andi %12, %14 : i1
    return %15, %16 : i1, i1
  }
  func.func @mask_columns(%arg0: index {hstu.name = "r0"}, %arg1: index {hstu.name = "r1"}, %arg2: index {hstu.name = "n"}, %arg3: index {hstu.name = "t"}) -> (index {hstu.name = "lo"}, index {hstu.name = "hi"}) {
    %c0 = arith.constant 0 : index
    %c64 = arith.constant 64 : index
    %c256 = arith.constant 256 : index
    %c1 = arith.constant 1 : index
    %0 = arith.addi %arg1, %c1 : index
    %1 = arith.subi %arg0, %c256 : index
    %2 = arith.subi %arg2, %c64 : index
    %3 = arith.cmpi sge, %arg1, %2 : index
    %4 = arith.cmpi slt, %1, %arg2 : index
    %5 = arith.select %4, %1, %arg2 : index
    %6 = arith.select %4, %arg2, %c0 : index
    %7 = arith.select %3, %c0, %arg2 : index
    %8 = arith.select %3, %arg2, %c0 : index
    %9 = arith.minsi %5, %7 : index
    %10 = arith.maxsi %6, %8 : index
    %11 = arith.minsi %0, %10 : index
    %12 = arith.minsi %11, %arg2 : index
    %13 = arith.maxsi %9, %c0 : index
    return %13, %12 : index, index
  }
  func.func @mask_rows(%arg0: index {hstu.name = "c0"}, %arg1: index {hstu.name = "c1"}, %arg2: index {hstu.name = "n"}, %arg3: index {hstu.name = "t"}) -> (index {hstu.name = "lo"}, index {hstu.name = "hi"}) {
    %c0 = arith.constant 0 : index
    %c64 = arith.constant 64 : index
    %c257 = arith.constant 257 : index
    %0 = arith.addi %arg1, %c257 : index
    %1 = arith.subi %arg2, %c64 : index
    %2 = arith.cmpi sgt, %0, %c0 : index
    %3 = arith.select %2, %c0, %arg2 : index
    %4 = arith.select %2, %0, %c0 : index
    %5 = arith.cmpi slt, %1, %arg2 : index
    %6 = arith.select %5, %1, %arg2 : index
    %7 = arith.select %5, %arg2, %c0 : index
    %8 = arith.minsi %3, %6 : index
    %9 = arith.maxsi %4, %7 : index
    %10 = arith.maxsi %arg0, %8 : index
    %11 = arith.cmpi slt, %arg0, %arg2 : index
    %12 = arith.maxsi %10, %c0 : index
    %13 = arith.minsi %9, %arg2 : index
    %14 = arith.select %11, %13, %c0 : index
    return %12, %14 : index, index
  }
  func.func @mask_row_bits(%arg0: index {hstu.name = "row"}, %arg1: index {hstu.name = "c0"}, %arg2: index {hstu.name = "n"}, %arg3: index {hstu.name = "t"}) -> (i32 {hstu.name = "bits"}) {
    %c0_i32 = arith.constant 0 : i32
    %c64 = arith.constant 64 : index
    %c256 = arith.constant 256 : index
    %c-1_i32 = arith.constant -1 : i32
    %c1 = arith.constant 1 : index
    %0 = arith.addi %arg0, %c1 : index
    %1 = arith.subi %0, %arg1 : index
    %2 = hstu.bits_from %1
    %3 = arith.xori %2, %c-1_i32 : i32
    %4 = arith.subi %arg0, %c256 : index
    %5 = arith.subi %4, %arg1 : index
    %6 = hstu.bits_from %5
    %7 = arith.subi %arg2, %c64 : index
    %8 = arith.cmpi sge, %arg0, %7 : index
    %9 = arith.select %8, %c-1_i32, %c0_i32 : i32
    %10 = arith.ori %6, %9 : i32
    %11 = arith.andi %3, %10 : i32
    %12 = arith.subi %arg2, %arg1 : index
    %13 = hstu.bits_from %12
    %14 = arith.xori %13, %c-1_i32 : i32
    %15 = arith.andi %11, %14 : i32
    return %15 : i32
  }
  func.func @mask_column_bits(%arg0: index {hstu.name = "col"}, %arg1: index {hstu.name = "r0"}, %arg2: index {hstu.name = "n"}, %arg3: index {hstu.name = "t"}) -> (i32 {hstu.name = "bits"}) {
    %c0_i32 = arith.constant 0 : i32
    %c64 = arith.constant 64 : index
    %c-1_i32 = arith.constant -1 : i32
    %c257 = arith.constant 257 : index
    %0 = arith.subi %arg0, %arg1 : index
    %1 = hstu.bits_from %0
    %2 = arith.addi %arg0, %c257 : index
    %3 = arith.subi %2, %arg1 : index
    %4 = hstu.bits_from %3
    %5 = arith.xori %4, %c-1_i32 : i32
    %6 = arith.subi %arg2, %c64 : index
    %7 = arith.subi %6, %arg1 : index
    %8 = hstu.bits_from %7
    %9 = arith.ori %5, %8 : i32
    %10 = arith.andi %1, %9 : i32
    %11 = arith.cmpi slt, %arg0, %arg2 : index
    %12 = arith.select %11, %c-1_i32, %c0_i32 : i32
    %13 = arith.andi %10, %12 : i32
    return %13 : i32
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
