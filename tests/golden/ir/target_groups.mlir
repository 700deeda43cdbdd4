module {
  func.func @mask_valid(%arg0: index {hstu.name = "row"}, %arg1: index {hstu.name = "col"}, %arg2: index {hstu.name = "n"}, %arg3: index {hstu.name = "t"}) -> (i1 {hstu.name = "valid"}) {
    %c4 = arith.constant 4 : index
    %c0 = arith.constant 0 : index
    %0 = arith.subi %arg2, %arg3 : index
    %1 = arith.cmpi slt, %arg1, %0 : index
    %2 = arith.cmpi sle, %arg1, %arg0 : index
    %3 = arith.subi %arg0, %0 : index
    %4 = arith.maxsi %3, %c0 : index
    %5 = arith.divsi %4, %c4 : index
    %6 = arith.muli %5, %c4 : index
    %7 = arith.addi %6, %0 : index
    %8 = arith.minsi %7, %arg0 : index
    %9 = arith.cmpi sge, %arg1, %8 : index
    %10 = arith.andi %9, %2 : i1
    %11 = arith.ori %1, %10 : i1
    %12 = arith.andi %2, %11 : i1
    %13 = arith.cmpi slt, %arg1, %arg2 : index
    %14 = arith.andi %12, %13 : i1
    return %14 : i1
  }
  func.func @mask_tile(%arg0: index {hstu.name = "r0"}, %arg1: index {hstu.name = "r1"}, %arg2: index {hstu.name = "c0"}, %arg3: index {hstu.name = "c1"}, %arg4: index {hstu.name = "n"}, %arg5: index {hstu.name = "t"}) -> (i1 {hstu.name = "full"}, i1 {hstu.name = "visible"}) {
    %c4 = arith.constant 4 : index
    %c0 = arith.constant 0 : index
    %0 = arith.cmpi sle, %arg3, %arg0 : index
    %1 = arith.cmpi sle, %arg2, %arg1 : index
    %2 = arith.subi %arg4, %arg5 : index
    %3 = arith.cmpi slt, %arg3, %2 : index
    %4 = arith.cmpi slt, %arg2, %2 : index
    %5 = arith.subi %arg0, %2 : index
    %6 = arith.subi %arg1, %2 : index
    %7 = arith.maxsi %5, %c0 : index
    %8 = arith.maxsi %6, %c0 : index
    %9 = arith.divsi %7, %c4 : index
    %10 = arith.divsi %8, %c4 : index
    %11 = arith.muli %9, %c4 : index
    %12 = arith.muli %10, %c4 : index
    %13 = arith.addi %11, %2 : index
    %14 = arith.addi %12, %2 : index
    %15 = arith.minsi %13, %arg0 : index
    %16 = arith.minsi %14, %arg1 : index
    %17 = arith.cmpi sge, %arg2, %16 : index
    %18 = arith.cmpi sge, %arg3, %15 : index
    %19 = arith.andi %17, %0 : i1
    %20 = arith.andi %18, %1 : i1
    %21 = arith.ori %3, %19 : i1
    %22 = arith.ori %4, %20 : i1
    %23 = arith.andi %0, %21 : i1
    %24 = arith.andi %1, %22 : i1
    %25 = arith.cmpi slt, %arg3, %arg4 : index
    %26 = arith.cmpi slt, %arg2, %arg4 : index
    %27 = arith.andi %23, %25 : i1
    %28 = arith.andi %24, %26 : i1
    return %27, %28 : i1, i1
  }
  func.func @mask_columns(%arg0: index {hstu.name = "r0"}, %arg1: index {hstu.name = "r1"}, %arg2: index {hstu.name = "n"}, %arg3: index {hstu.name = "t"}) -> (index {hstu.name = "lo"}, index {hstu.name = "hi"}) {
    %c4 = arith.constant 4 : index
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %0 = arith.addi %arg1, %c1 : index
    %1 = arith.subi %arg2, %arg3 : index
    %2 = arith.subi %arg0, %1 : index
    %3 = arith.maxsi %2, %c0 : index
    %4 = arith.divsi %3, %c4 : index
    %5 = arith.muli %4, %c4 : index
    %6 = arith.addi %5, %1 : index
    %7 = arith.minsi %6, %arg0 : index
    %8 = arith.cmpi sgt, %arg2, %arg3 : index
    %9 = arith.select %8, %c0, %arg2 : index
    %10 = arith.select %8, %1, %c0 : index
    %11 = arith.minsi %0, %arg2 : index
    %12 = arith.maxsi %7, %c0 : index
    %13 = arith.cmpi slt, %12, %11 : index
    %14 = arith.select %13, %7, %arg2 : index
    %15 = arith.select %13, %0, %c0 : index
    %16 = arith.minsi %9, %14 : index
    %17 = arith.maxsi %10, %15 : index
    %18 = arith.minsi %0, %17 : index
    %19 = arith.minsi %18, %arg2 : index
    %20 = arith.maxsi %16, %c0 : index
    return %20, %19 : index, index
  }
  func.func @mask_rows(%arg0: index {hstu.name = "c0"}, %arg1: index {hstu.name = "c1"}, %arg2: index {hstu.name = "n"}, %arg3: index {hstu.name = "t"}) -> (index {hstu.name = "lo"}, index {hstu.name = "hi"}) {
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %c4 = arith.constant 4 : index
    %c0 = arith.constant 0 : index
    %0 = arith.subi %arg2, %arg3 : index
    %1 = arith.cmpi slt, %arg0, %0 : index
    %2 = arith.subi %arg1, %0 : index
    %3 = arith.floordivsi %2, %c4 : index
    %4 = arith.muli %3, %c4 : index
    %5 = arith.addi %4, %c3 : index
    %6 = arith.cmpi sge, %3, %c0 : index
    %7 = arith.select %6, %5, %4 : index
    %8 = arith.addi %7, %0 : index
    %9 = arith.addi %8, %c1 : index
    %10 = arith.cmpi sge, %7, %c0 : index
    %11 = arith.addi %arg1, %c1 : index
    %12 = arith.cmpi sgt, %9, %c0 : index
    %13 = arith.andi %10, %12 : i1
    %14 = arith.select %13, %c0, %arg2 : index
    %15 = arith.select %13, %9, %c0 : index
    %16 = arith.cmpi sgt, %11, %c0 : index
    %17 = arith.select %16, %c0, %arg2 : index
    %18 = arith.select %16, %11, %c0 : index
    %19 = arith.minsi %14, %17 : index
    %20 = arith.maxsi %15, %18 : index
    %21 = arith.maxsi %19, %arg0 : index
    %22 = arith.select %1, %c0, %arg2 : index
    %23 = arith.select %1, %arg2, %c0 : index
    %24 = arith.minsi %20, %arg2 : index
    %25 = arith.maxsi %21, %c0 : index
    %26 = arith.cmpi slt, %25, %24 : index
    %27 = arith.select %26, %21, %arg2 : index
    %28 = arith.select %26, %20, %c0 : index
    %29 = arith.minsi %22, %27 : index
    %30 = arith.maxsi %23, %28 : index
    %31 = arith.maxsi %arg0, %29 : index
    %32 = arith.cmpi slt, %arg0, %arg2 : index
    %33 = arith.maxsi %31, %c0 : index
    %34 = arith.minsi %30, %arg2 : index
    %35 = arith.select %32, %34, %c0 : index
    return %33, %35 : index, index
  }
  func.func @mask_row_bits(%arg0: index {hstu.name = "row"}, %arg1: index {hstu.name = "c0"}, %arg2: index {hstu.name = "n"}, %arg3: index {hstu.name = "t"}) -> (i32 {hstu.name = "bits"}) {
    %c4 = arith.constant 4 : index
    %c0 = arith.constant 0 : index
    %c-1_i32 = arith.constant -1 : i32
    %c1 = arith.constant 1 : index
    %0 = arith.addi %arg0, %c1 : index
    %1 = arith.subi %0, %arg1 : index
    %2 = hstu.bits_from %1
    %3 = arith.xori %2, %c-1_i32 : i32
    %4 = arith.subi %arg2, %arg3 : index
    %5 = arith.subi %4, %arg1 : index
    %6 = hstu.bits_from %5
    %7 = arith.xori %6, %c-1_i32 : i32
    %8 = arith.subi %arg0, %4 : index
    %9 = arith.maxsi %8, %c0 : index
    %10 = arith.divsi %9, %c4 : index
    %11 = arith.muli %10, %c4 : index
    %12 = arith.addi %11, %4 : index
    %13 = arith.minsi %12, %arg0 : index
    %14 = arith.subi %13, %arg1 : index
    %15 = hstu.bits_from %14
    %16 = arith.andi %15, %3 : i32
    %17 = arith.ori %7, %16 : i32
    %18 = arith.andi %3, %17 : i32
    %19 = arith.subi %arg2, %arg1 : index
    %20 = hstu.bits_from %19
    %21 = arith.xori %20, %c-1_i32 : i32
    %22 = arith.andi %18, %21 : i32
    return %22 : i32
  }
  func.func @mask_column_bits(%arg0: index {hstu.name = "col"}, %arg1: index {hstu.name = "r0"}, %arg2: index {hstu.name = "n"}, %arg3: index {hstu.name = "t"}) -> (i32 {hstu.name = "bits"}) {
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %c4 = arith.constant 4 : index
    %c0 = arith.constant 0 : index
    %c-1_i32 = arith.constant -1 : i32
    %c0_i32 = arith.constant 0 : i32
    %0 = arith.subi %arg0, %arg1 : index
    %1 = hstu.bits_from %0
    %2 = arith.subi %arg2, %arg3 : index
    %3 = arith.cmpi slt, %arg0, %2 : index
    %4 = arith.select %3, %c-1_i32, %c0_i32 : i32
    %5 = arith.subi %arg0, %2 : index
    %6 = arith.floordivsi %5, %c4 : index
    %7 = arith.muli %6, %c4 : index
    %8 = arith.addi %7, %c3 : index
    %9 = arith.cmpi sge, %6, %c0 : index
    %10 = arith.select %9, %8, %7 : index
    %11 = arith.addi %10, %2 : index
    %12 = arith.addi %11, %c1 : index
    %13 = arith.subi %12, %arg1 : index
    %14 = hstu.bits_from %13
    %15 = arith.xori %14, %c-1_i32 : i32
    %16 = arith.cmpi sge, %10, %c0 : index
    %17 = arith.select %16, %c-1_i32, %c0_i32 : i32
    %18 = arith.andi %15, %17 : i32
    %19 = arith.addi %arg0, %c1 : index
    %20 = arith.subi %19, %arg1 : index
    %21 = hstu.bits_from %20
    %22 = arith.xori %21, %c-1_i32 : i32
    %23 = arith.ori %18, %22 : i32
    %24 = arith.andi %23, %1 : i32
    %25 = arith.ori %4, %24 : i32
    %26 = arith.andi %1, %25 : i32
    %27 = arith.cmpi slt, %arg0, %arg2 : index
    %28 = arith.select %27, %c-1_i32, %c0_i32 : i32
    %29 = arith.andi %26, %28 : i32
    return %29 : i32
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
