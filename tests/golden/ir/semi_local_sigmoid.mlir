module {
  func.func @mask_valid(%arg0: index {hstu.name = "row"}, %arg1: index {hstu.name = "col"}, %arg2: index {hstu.name = "n"}, %arg3: index {hstu.name = "t"}) -> (i1 {hstu.name = "valid"}) {
    %c128 = arith.constant 128 : index
    %c16 = arith.constant 16 : index
    %c0 = arith.constant 0 : index
    %0 = arith.subi %arg2, %arg3 : index
    %1 = arith.cmpi sle, %arg1, %arg0 : index
    %2 = arith.maxsi %0, %c0 : index
    %3 = arith.cmpi slt, %arg1, %c16 : index
    %4 = arith.subi %arg0, %c128 : index
    %5 = arith.cmpi sgt, %arg1, %4 : index
    %6 = arith.ori %3, %5 : i1
    %7 = arith.andi %1, %6 : i1
    %8 = arith.cmpi slt, %arg0, %2 : index
    %9 = arith.andi %8, %7 : i1
    %10 = arith.cmpi slt, %arg1, %2 : index
    %11 = arith.cmpi sge, %arg0, %2 : index
    %12 = arith.andi %11, %10 : i1
    %13 = arith.ori %9, %12 : i1
    %14 = arith.cmpi slt, %arg1, %arg2 : index
    %15 = arith.andi %13, %14 : i1
    return %15 : i1
  }
  func.func @mask_tile(%arg0: index {hstu.name = "r0"}, %arg1: index {hstu.name = "r1"}, %arg2: index {hstu.name = "c0"}, %arg3: index {hstu.name = "c1"}, %arg4: index {hstu.name = "n"}, %arg5: index {hstu.name = "t"}) -> (i1 {hstu.name = "full"}, i1 {hstu.name = "visible"}) {
    %c128 = arith.constant 128 : index
    %c16 = arith.constant 16 : index
    %c0 = arith.constant 0 : index
    %0 = arith.subi %arg4, %arg5 : index
    %1 = arith.maxsi %0, %c0 : index
    %2 = arith.cmpi slt, %arg1, %1 : index
    %3 = arith.cmpi slt, %arg0, %1 : index
    %4 = arith.cmpi sle, %arg3, %arg0 : index
    %5 = arith.cmpi sle, %arg2, %arg1 : index
    %6 = arith.cmpi slt, %arg3, %c16 : index
    %7 = arith.cmpi slt, %arg2, %c16 : index
    %8 = arith.subi %arg0, %c128 : index
    %9 = arith.subi %arg1, %c128 : index
    %10 = arith.cmpi sgt, %arg2, %9 : index
    %11 = arith.cmpi sgt, %arg3, %8 : index
    %12 = arith.ori %6, %10 : i1
    %13 = arith.ori %7, %11 : i1
    %14 = arith.andi %4, %12 : i1
    %15 = arith.andi %5, %13 : i1
    %16 = arith.andi %2, %14 : i1
    %17 = arith.andi %3, %15 : i1
    %18 = arith.cmpi sge, %arg0, %1 : index
    %19 = arith.cmpi sge, %arg1, %1 : index
    %20 = arith.cmpi slt, %arg3, %1 : index
    %21 = arith.cmpi slt, %arg2, %1 : index
    %22 = arith.andi %18, %20 : i1
    %23 = arith.andi %19, %21 : i1
    %24 = arith.ori %16, %22 : i1
    %25 = arith.ori %17, %23 : i1
    %26 = arith.cmpi slt, %arg3, %arg4 : index
    %27 = arith.cmpi slt, %arg2, %arg4 : index
    %28 = arith.andi %24, %26 : i1
    %29 = arith.andi %25, %27 : i1
    return %28, %29 : i1, i1
  }
  func.func @mask_columns(%arg0: index {hstu.name = "r0"}, %arg1: index {hstu.name = "r1"}, %arg2: index {hstu.name = "n"}, %arg3: index {hstu.name = "t"}) -> (index {hstu.name = "lo"}, index {hstu.name = "hi"}) {
    %c-127 = arith.constant -127 : index
    %c16 = arith.constant 16 : index
    %c1 = arith.constant 1 : index
    %c0 = arith.constant 0 : index
    %0 = arith.subi %arg2, %arg3 : index
    %1 = arith.maxsi %0, %c0 : index
    %2 = arith.cmpi slt, %arg0, %1 : index
    %3 = arith.addi %arg1, %c1 : index
    %4 = arith.addi %arg0, %c-127 : index
    %5 = arith.cmpi slt, %4, %arg2 : index
    %6 = arith.select %5, %4, %arg2 : index
    %7 = arith.select %5, %arg2, %c0 : index
    %8 = arith.minsi %6, %c0 : index
    %9 = arith.maxsi %7, %c16 : index
    %10 = arith.minsi %3, %9 : index
    %11 = arith.cmpi sge, %arg1, %1 : index
    %12 = arith.minsi %10, %arg2 : index
    %13 = arith.cmpi sgt, %12, %c0 : index
    %14 = arith.andi %2, %13 : i1
    %15 = arith.select %14, %8, %arg2 : index
    %16 = arith.select %14, %10, %c0 : index
    %17 = arith.cmpi sgt, %1, %c0 : index
    %18 = arith.andi %11, %17 : i1
    %19 = arith.select %18, %c0, %arg2 : index
    %20 = arith.select %18, %1, %c0 : index
    %21 = arith.minsi %15, %19 : index
    %22 = arith.maxsi %16, %20 : index
    %23 = arith.minsi %22, %arg2 : index
    %24 = arith.maxsi %21, %c0 : index
    return %24, %23 : index, index
  }
  func.func @mask_rows(%arg0: index {hstu.name = "c0"}, %arg1: index {hstu.name = "c1"}, %arg2: index {hstu.name = "n"}, %arg3: index {hstu.name = "t"}) -> (index {hstu.name = "lo"}, index {hstu.name = "hi"}) {
    %c128 = arith.constant 128 : index
    %c16 = arith.constant 16 : index
    %c0 = arith.constant 0 : index
    %0 = arith.subi %arg2, %arg3 : index
    %1 = arith.maxsi %0, %c0 : index
    %2 = arith.cmpi slt, %arg0, %c16 : index
    %3 = arith.addi %arg1, %c128 : index
    %4 = arith.select %2, %c0, %arg2 : index
    %5 = arith.select %2, %arg2, %c0 : index
    %6 = arith.cmpi sgt, %3, %c0 : index
    %7 = arith.select %6, %c0, %arg2 : index
    %8 = arith.select %6, %3, %c0 : index
    %9 = arith.minsi %4, %7 : index
    %10 = arith.maxsi %5, %8 : index
    %11 = arith.maxsi %arg0, %9 : index
    %12 = arith.minsi %1, %10 : index
    %13 = arith.cmpi slt, %arg0, %1 : index
    %14 = arith.minsi %12, %arg2 : index
    %15 = arith.maxsi %11, %c0 : index
    %16 = arith.cmpi slt, %15, %14 : index
    %17 = arith.select %16, %11, %arg2 : index
    %18 = arith.select %16, %12, %c0 : index
    %19 = arith.cmpi slt, %1, %arg2 : index
    %20 = arith.andi %13, %19 : i1
    %21 = arith.select %20, %1, %arg2 : index
    %22 = arith.select %20, %arg2, %c0 : index
    %23 = arith.minsi %17, %21 : index
    %24 = arith.maxsi %18, %22 : index
    %25 = arith.cmpi slt, %arg0, %arg2 : index
    %26 = arith.maxsi %23, %c0 : index
    %27 = arith.minsi %24, %arg2 : index
    %28 = arith.select %25, %27, %c0 : index
    return %26, %28 : index, index
  }
  func.func @mask_row_bits(%arg0: index {hstu.name = "row"}, %arg1: index {hstu.name = "c0"}, %arg2: index {hstu.name = "n"}, %arg3: index {hstu.name = "t"}) -> (i32 {hstu.name = "bits"}) {
    %c-127 = arith.constant -127 : index
    %c16 = arith.constant 16 : index
    %c1 = arith.constant 1 : index
    %c-1_i32 = arith.constant -1 : i32
    %c0_i32 = arith.constant 0 : i32
    %c0 = arith.constant 0 : index
    %0 = arith.subi %arg2, %arg3 : index
    %1 = arith.maxsi %0, %c0 : index
    %2 = arith.cmpi slt, %arg0, %1 : index
    %3 = arith.select %2, %c-1_i32, %c0_i32 : i32
    %4 = arith.addi %arg0, %c1 : index
    %5 = arith.subi %4, %arg1 : index
    %6 = hstu.bits_from %5
    %7 = arith.xori %6, %c-1_i32 : i32
    %8 = arith.subi %c16, %arg1 : index
    %9 = hstu.bits_from %8
    %10 = arith.xori %9, %c-1_i32 : i32
    %11 = arith.addi %arg0, %c-127 : index
    %12 = arith.subi %11, %arg1 : index
    %13 = hstu.bits_from %12
    %14 = arith.ori %10, %13 : i32
    %15 = arith.andi %7, %14 : i32
    %16 = arith.andi %3, %15 : i32
    %17 = arith.cmpi sge, %arg0, %1 : index
    %18 = arith.select %17, %c-1_i32, %c0_i32 : i32
    %19 = arith.subi %1, %arg1 : index
    %20 = hstu.bits_from %19
    %21 = arith.xori %20, %c-1_i32 : i32
    %22 = arith.andi %18, %21 : i32
    %23 = arith.ori %16, %22 : i32
    %24 = arith.subi %arg2, %arg1 : index
    %25 = hstu.bits_from %24
    %26 = arith.xori %25, %c-1_i32 : i32
    %27 = arith.andi %23, %26 : i32
    return %27 : i32
  }
  func.func @mask_column_bits(%arg0: index {hstu.name = "col"}, %arg1: index {hstu.name = "r0"}, %arg2: index {hstu.name = "n"}, %arg3: index {hstu.name = "t"}) -> (i32 {hstu.name = "bits"}) {
    %c128 = arith.constant 128 : index
    %c0_i32 = arith.constant 0 : i32
    %c16 = arith.constant 16 : index
    %c-1_i32 = arith.constant -1 : i32
    %c0 = arith.constant 0 : index
    %0 = arith.subi %arg2, %arg3 : index
    %1 = arith.maxsi %0, %c0 : index
    %2 = arith.subi %1, %arg1 : index
    %3 = hstu.bits_from %2
    %4 = arith.xori %3, %c-1_i32 : i32
    %5 = arith.subi %arg0, %arg1 : index
    %6 = hstu.bits_from %5
    %7 = arith.cmpi slt, %arg0, %c16 : index
    %8 = arith.select %7, %c-1_i32, %c0_i32 : i32
    %9 = arith.addi %arg0, %c128 : index
    %10 = arith.subi %9, %arg1 : index
    %11 = hstu.bits_from %10
    %12 = arith.xori %11, %c-1_i32 : i32
    %13 = arith.ori %8, %12 : i32
    %14 = arith.andi %6, %13 : i32
    %15 = arith.andi %4, %14 : i32
    %16 = arith.cmpi slt, %arg0, %1 : index
    %17 = arith.select %16, %c-1_i32, %c0_i32 : i32
    %18 = arith.andi %3, %17 : i32
    %19 = arith.ori %15, %18 : i32
    %20 = arith.cmpi slt, %arg0, %arg2 : index
    %21 = arith.select %20, %c-1_i32, %c0_i32 : i32
    %22 = arith.andi %19, %21 : i32
    return %22 : i32
  }
  func.func @score(%arg0: f32 {hstu.name = "x"}, %arg1: index {hstu.name = "row"}, %arg2: index {hstu.name = "col"}, %arg3: index {hstu.name = "n"}, %arg4: index {hstu.name = "t"}, %arg5: index {hstu.name = "head"}, %arg6: f32 {hstu.name = "alpha"}) -> (f32 {hstu.name = "y"}) {
    %cst = arith.constant 5.000000e-01 : f32
    %0 = arith.mulf %arg6, %cst : f32
    %1 = arith.mulf %arg0, %0 : f32
    %2 = math.tanh %1 : f32
    %3 = math.fma %cst, %2, %cst : f32
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
    %5 = math.fma %cst_0, %2, %cst_0 : f32
    %6 = arith.mulf %0, %cst_0 : f32
    %7 = arith.mulf %4, %6 : f32
    return %5, %7 : f32, f32
  }
}
