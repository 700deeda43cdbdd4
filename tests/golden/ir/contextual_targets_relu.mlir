module {
  func.func @mask_valid(%arg0: index {hstu.name = "row"}, %arg1: index {hstu.name = "col"}, %arg2: index {hstu.name = "n"}, %arg3: index {hstu.name = "t"}) -> (i1 {hstu.name = "valid"}) {
    %c6 = arith.constant 6 : index
    %0 = arith.subi %arg2, %arg3 : index
    %1 = arith.cmpi sge, %0, %c6 : index
    %2 = arith.cmpi slt, %arg1, %0 : index
    %3 = arith.andi %2, %1 : i1
    %4 = arith.cmpi slt, %arg0, %c6 : index
    %5 = arith.andi %4, %3 : i1
    %6 = arith.cmpi sle, %arg1, %arg0 : index
    %7 = arith.cmpi eq, %arg0, %arg1 : index
    %8 = arith.ori %3, %7 : i1
    %9 = arith.andi %6, %8 : i1
    %10 = arith.ori %9, %5 : i1
    %11 = arith.cmpi slt, %arg1, %arg2 : index
    %12 = arith.andi %10, %11 : i1
    return %12 : i1
  }
  func.func @mask_tile(%arg0: index {hstu.name = "r0"}, %arg1: index {hstu.name = "r1"}, %arg2: index {hstu.name = "c0"}, %arg3: index {hstu.name = "c1"}, %arg4: index {hstu.name = "n"}, %arg5: index {hstu.name = "t"}) -> (i1 {hstu.name = "full"}, i1 {hstu.name = "visible"}) {
    %c6 = arith.constant 6 : index
    %0 = arith.cmpi sle, %arg3, %arg0 : index
    %1 = arith.cmpi sle, %arg2, %arg1 : index
    %2 = arith.subi %arg4, %arg5 : index
    %3 = arith.cmpi slt, %arg3, %2 : index
    %4 = arith.cmpi slt, %arg2, %2 : index
    %5 = arith.cmpi sge, %2, %c6 : index
    %6 = arith.andi %3, %5 : i1
    %7 = arith.andi %4, %5 : i1
    %8 = arith.cmpi sle, %arg1, %arg2 : index
    %9 = arith.cmpi sge, %arg0, %arg3 : index
    %10 = arith.andi %9, %8 : i1
    %11 = arith.cmpi sge, %arg1, %arg2 : index
    %12 = arith.cmpi sle, %arg0, %arg3 : index
    %13 = arith.andi %12, %11 : i1
    %14 = arith.ori %6, %10 : i1
    %15 = arith.ori %7, %13 : i1
    %16 = arith.andi %0, %14 : i1
    %17 = arith.andi %1, %15 : i1
    %18 = arith.cmpi slt, %arg1, %c6 : index
    %19 = arith.cmpi slt, %arg0, %c6 : index
    %20 = arith.andi %18, %6 : i1
    %21 = arith.andi %19, %7 : i1
    %22 = arith.ori %16, %20 : i1
    %23 = arith.ori %17, %21 : i1
    %24 = arith.cmpi slt, %arg3, %arg4 : index
    %25 = arith.cmpi slt, %arg2, %arg4 : index
    %26 = arith.andi %22, %24 : i1
    %27 = arith.andi %23, %25 : i1
    return %26, %27 : i1, i1
  }
  func.func @mask_columns(%arg0: index {hstu.name = "r0"}, %arg1: index {hstu.name = "r1"}, %arg2: index {hstu.name = "n"}, %arg3: index {hstu.name = "t"}) -> (index {hstu.name = "lo"}, index {hstu.name = "hi"}) {
    %c6 = arith.constant 6 : index
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %0 = arith.addi %arg1, %c1 : index
    %1 = arith.subi %arg2, %arg3 : index
    %2 = arith.cmpi sge, %1, %c6 : index
    %3 = arith.cmpi sgt, %arg2, %arg3 : index
    %4 = arith.andi %2, %3 : i1
    %5 = arith.select %4, %c0, %arg2 : index
    %6 = arith.minsi %5, %arg0 : index
    %7 = arith.cmpi slt, %arg0, %c6 : index
    %8 = arith.andi %7, %2 : i1
    %9 = arith.minsi %0, %arg2 : index
    %10 = arith.maxsi %6, %c0 : index
    %11 = arith.cmpi slt, %10, %9 : index
    %12 = arith.select %11, %6, %arg2 : index
    %13 = arith.select %11, %0, %c0 : index
    %14 = arith.andi %8, %3 : i1
    %15 = arith.select %14, %c0, %arg2 : index
    %16 = arith.select %14, %1, %c0 : index
    %17 = arith.minsi %12, %15 : index
    %18 = arith.maxsi %13, %16 : index
    %19 = arith.minsi %18, %arg2 : index
    %20 = arith.maxsi %17, %c0 : index
    return %20, %19 : index, index
  }
  func.func @mask_rows(%arg0: index {hstu.name = "c0"}, %arg1: index {hstu.name = "c1"}, %arg2: index {hstu.name = "n"}, %arg3: index {hstu.name = "t"}) -> (index {hstu.name = "lo"}, index {hstu.name = "hi"}) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c6 = arith.constant 6 : index
    %0 = arith.subi %arg2, %arg3 : index
    %1 = arith.cmpi slt, %arg0, %0 : index
    %2 = arith.cmpi sge, %0, %c6 : index
    %3 = arith.andi %1, %2 : i1
    %4 = arith.addi %arg1, %c1 : index
    %5 = arith.select %3, %c0, %arg2 : index
    %6 = arith.select %3, %arg2, %c0 : index
    %7 = arith.maxsi %6, %4 : index
    %8 = arith.minsi %7, %arg2 : index
    %9 = arith.maxsi %arg0, %c0 : index
    %10 = arith.cmpi slt, %9, %8 : index
    %11 = arith.select %10, %arg0, %arg2 : index
    %12 = arith.select %10, %7, %c0 : index
    %13 = arith.select %3, %c6, %c0 : index
    %14 = arith.minsi %11, %5 : index
    %15 = arith.maxsi %12, %13 : index
    %16 = arith.cmpi slt, %arg0, %arg2 : index
    %17 = arith.maxsi %14, %c0 : index
    %18 = arith.minsi %15, %arg2 : index
    %19 = arith.select %16, %18, %c0 : index
    return %17, %19 : index, index
  }
  func.func @mask_row_bits(%arg0: index {hstu.name = "row"}, %arg1: index {hstu.name = "c0"}, %arg2: index {hstu.name = "n"}, %arg3: index {hstu.name = "t"}) -> (i32 {hstu.name = "bits"}) {
    %c0_i32 = arith.constant 0 : i32
    %c6 = arith.constant 6 : index
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
    %8 = arith.cmpi sge, %4, %c6 : index
    %9 = arith.select %8, %c-1_i32, %c0_i32 : i32
    %10 = arith.andi %7, %9 : i32
    %11 = arith.subi %arg0, %arg1 : index
    %12 = hstu.bits_from %11
    %13 = arith.andi %12, %3 : i32
    %14 = arith.ori %10, %13 : i32
    %15 = arith.andi %3, %14 : i32
    %16 = arith.cmpi slt, %arg0, %c6 : index
    %17 = arith.select %16, %c-1_i32, %c0_i32 : i32
    %18 = arith.andi %17, %10 : i32
    %19 = arith.ori %15, %18 : i32
    %20 = arith.subi %arg2, %arg1 : index
    %21 = hstu.bits_from %20
    %22 = arith.xori %21, %c-1_i32 : i32
    %23 = arith.andi %19, %22 : i32
    return %23 : i32
  }
  func.func @mask_column_bits(%arg0: index {hstu.name = "col"}, %arg1: index {hstu.name = "r0"}, %arg2: index {hstu.name = "n"}, %arg3: index {hstu.name = "t"}) -> (i32 {hstu.name = "bits"}) {
    %c1 = arith.constant 1 : index
    %c-1_i32 = arith.constant -1 : i32
    %c0_i32 = arith.constant 0 : i32
    %c6 = arith.constant 6 : index
    %0 = arith.subi %arg0, %arg1 : index
    %1 = hstu.bits_from %0
    %2 = arith.subi %arg2, %arg3 : index
    %3 = arith.cmpi slt, %arg0, %2 : index
    %4 = arith.cmpi sge, %2, %c6 : index
    %5 = arith.andi %3, %4 : i1
    %6 = arith.select %5, %c-1_i32, %c0_i32 : i32
    %7 = arith.addi %arg0, %c1 : index
    %8 = arith.subi %7, %arg1 : index
    %9 = hstu.bits_from %8
    %10 = arith.xori %9, %c-1_i32 : i32
    %11 = arith.andi %1, %10 : i32
    %12 = arith.ori %6, %11 : i32
    %13 = arith.andi %1, %12 : i32
    %14 = arith.subi %c6, %arg1 : index
    %15 = hstu.bits_from %14
    %16 = arith.xori %15, %c-1_i32 : i32
    %17 = arith.andi %16, %6 : i32
    %18 = arith.ori %13, %17 : i32
    %19 = arith.cmpi slt, %arg0, %arg2 : index
    %20 = arith.select %19, %c-1_i32, %c0_i32 : i32
    %21 = arith.andi %18, %20 : i32
    return %21 : i32
  }
  func.func @score(%arg0: f32 {hstu.name = "x"}, %arg1: index {hstu.name = "row"}, %arg2: index {hstu.name = "col"}, %arg3: index {hstu.name = "n"}, %arg4: index {hstu.name = "t"}, %arg5: index {hstu.name = "head"}, %arg6: f32 {hstu.name = "alpha"}) -> (f32 {hstu.name = "y"}) {
    %cst = arith.constant 0.000000e+00 : f32
    %0 = arith.mulf %arg0, %arg6 : f32
    %1 = arith.maximumf %0, %cst : f32
    return %1 : f32
  }
  func.func @score_grad(%arg0: f32 {hstu.name = "x"}, %arg1: index {hstu.name = "row"}, %arg2: index {hstu.name = "col"}, %arg3: index {hstu.name = "n"}, %arg4: index {hstu.name = "t"}, %arg5: index {hstu.name = "head"}, %arg6: f32 {hstu.name = "alpha"}) -> (f32 {hstu.name = "y"}, f32 {hstu.name = "dy"}) {
    %cst = arith.constant 0.000000e+00 : f32
    %0 = arith.mulf %arg0, %arg6 : f32
    %1 = arith.maximumf %0, %cst : f32
    %2 = arith.cmpf ole, %0, %cst : f32
    %3 = arith.select %2, %cst, %arg6 : f32
    return %1, %3 : f32, f32
  }
}
