module {
  func.func @row_summands0(%arg0: f32 {hstu.name = "x"}, %arg1: f32 {hstu.name = "u"}, %arg2: f32 {hstu.name = "weight"}, %arg3: f32 {hstu.name = "dropout_ratio"}, %arg4: f32 {hstu.name = "dout_y"}, %arg5: f32 {hstu.name = "random", hstu.random = {columns = 192 : i64, first = 128 : i64, offset = "offset", seed = "seed"}}) -> (f32 {hstu.name = "sum0"}, f32 {hstu.name = "sum1"}) {
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = arith.constant 1.000000e+00 : f32
    %cst_1 = arith.constant 1.280000e+02 : f32
    %cst_2 = arith.constant 5.000000e-01 : f32
    %0 = arith.mulf %arg1, %cst_2 : f32
    %1 = math.tanh %0 : f32
    %2 = math.fma %0, %1, %0 : f32
    %3 = arith.addf %arg3, %cst_1 : f32
    %4 = arith.cmpf oge, %arg5, %3 : f32
    %5 = arith.subf %3, %cst_1 : f32
    %6 = arith.subf %cst_0, %5 : f32
    %7 = arith.divf %cst_0, %6 : f32
    %8 = arith.select %4, %7, %cst : f32
    %9 = arith.mulf %8, %arg4 : f32
    %10 = arith.mulf %2, %9 : f32
    %11 = arith.mulf %arg2, %10 : f32
    return %arg0, %11 : f32, f32
  }
  func.func @row_statistics0(%arg0: f32 {hstu.name = "sum0"}, %arg1: f32 {hstu.name = "sum1"}) -> (f32 {hstu.name = "estimate"}, f32 {hstu.name = "statistic"}) {
    %cst = arith.constant 3.125000e-02 : f32
    %0 = arith.mulf %arg0, %cst {hstu.unfused} : f32
    return %0, %arg1 : f32, f32
  }
  func.func @row_summands1(%arg0: f32 {hstu.name = "x"}, %arg1: f32 {hstu.name = "u"}, %arg2: f32 {hstu.name = "weight"}, %arg3: f32 {hstu.name = "dropout_ratio"}, %arg4: f32 {hstu.name = "dout_y"}, %arg5: f32 {hstu.name = "random", hstu.random = {columns = 192 : i64, first = 128 : i64, offset = "offset", seed = "seed"}}, %arg6: f32 {hstu.name = "estimate"}) -> (f32 {hstu.name = "sum0"}, f32 {hstu.name = "sum1"}, f32 {hstu.name = "sum2"}) {
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = arith.constant 1.000000e+00 : f32
    %cst_1 = arith.constant 1.280000e+02 : f32
    %cst_2 = arith.constant 5.000000e-01 : f32
    %0 = arith.subf %arg0, %arg6 : f32
    %1 = arith.mulf %0, %0 : f32
    %2 = arith.mulf %arg1, %cst_2 : f32
    %3 = math.tanh %2 : f32
    %4 = math.fma %2, %3, %2 : f32
    %5 = arith.addf %arg3, %cst_1 : f32
    %6 = arith.cmpf oge, %arg5, %5 : f32
    %7 = arith.subf %5, %cst_1 : f32
    %8 = arith.subf %cst_0, %7 : f32
    %9 = arith.divf %cst_0, %8 : f32
    %10 = arith.select %6, %9, %cst : f32
    %11 = arith.mulf %10, %arg4 : f32
    %12 = arith.mulf %4, %11 : f32
    %13 = arith.mulf %arg2, %12 : f32
    %14 = arith.mulf %0, %13 : f32
    return %0, %1, %14 : f32, f32, f32
  }
  func.func @row_statistics1(%arg0: f32 {hstu.name = "sum0"}, %arg1: f32 {hstu.name = "sum1"}, %arg2: f32 {hstu.name = "sum2"}, %arg3: f32 {hstu.name = "eps"}, %arg4: f32 {hstu.name = "estimate"}, %arg5: f32 {hstu.name = "statistic"}) -> (f32 {hstu.name = "rstd"}, f32 {hstu.name = "mean"}, f32 {hstu.name = "statistic2"}, f32 {hstu.name = "statistic3"}) {
    %cst = arith.constant 6.250000e-02 : f32
    %cst_0 = arith.constant -5.000000e-01 : f32
    %cst_1 = arith.constant 0.000000e+00 : f32
    %cst_2 = arith.constant 3.125000e-02 : f32
    %0 = arith.mulf %arg0, %cst_2 : f32
    %1 = arith.mulf %0, %arg0 : f32
    %2 = arith.subf %arg1, %1 : f32
    %3 = arith.maximumf %2, %cst_1 : f32
    %4 = arith.mulf %3, %cst_2 : f32
    %5 = arith.addf %4, %arg3 : f32
    %6 = math.rsqrt %5 : f32
    %7 = arith.addf %arg4, %0 : f32
    %8 = arith.mulf %6, %6 : f32
    %9 = arith.mulf %6, %cst_0 : f32
    %10 = arith.mulf %8, %9 : f32
    %11 = arith.mulf %0, %arg5 : f32
    %12 = arith.subf %arg2, %11 : f32
    %13 = arith.mulf %12, %cst : f32
    %14 = arith.mulf %10, %13 : f32
    %15 = arith.mulf %6, %cst_2 : f32
    %16 = arith.mulf %arg5, %15 : f32
    %17 = arith.negf %16 : f32
    return %6, %7, %14, %17 : f32, f32, f32, f32
  }
  func.func @row_outputs(%arg0: f32 {hstu.name = "x"}, %arg1: f32 {hstu.name = "u"}, %arg2: f32 {hstu.name = "weight"}, %arg3: f32 {hstu.name = "bias"}, %arg4: f32 {hstu.name = "dropout_ratio"}, %arg5: f32 {hstu.name = "dout_u"}, %arg6: f32 {hstu.name = "dout_x"}, %arg7: f32 {hstu.name = "dout_y"}, %arg8: f32 {hstu.name = "random2", hstu.random = {columns = 192 : i64, first = 0 : i64, offset = "offset", seed = "seed"}}, %arg9: f32 {hstu.name = "random3", hstu.random = {columns = 192 : i64, first = 64 : i64, offset = "offset", seed = "seed"}}, %arg10: f32 {hstu.name = "random", hstu.random = {columns = 192 : i64, first = 128 : i64, offset = "offset", seed = "seed"}}, %arg11: f32 {hstu.name = "rstd"}, %arg12: f32 {hstu.name = "mean"}, %arg13: f32 {hstu.name = "statistic2"}, %arg14: f32 {hstu.name = "statistic3"}) -> (f32 {hstu.name = "dx"}, f32 {hstu.name = "du"}, f32 {hstu.name = "dweight"}, f32 {hstu.name = "dbias"}) {
    %cst = arith.constant 5.000000e-01 : f32
    %cst_0 = arith.constant 0.000000e+00 : f32
    %cst_1 = arith.constant 1.000000e+00 : f32
    %cst_2 = arith.constant 1.280000e+02 : f32
    %0 = arith.addf %arg4, %cst_2 : f32
    %1 = arith.cmpf oge, %arg9, %0 : f32
    %2 = arith.subf %0, %cst_2 : f32
    %3 = arith.subf %cst_1, %2 : f32
    %4 = arith.divf %cst_1, %3 : f32
    %5 = arith.select %1, %4, %cst_0 : f32
    %6 = arith.mulf %5, %arg6 : f32
    %7 = arith.mulf %arg1, %cst : f32
    %8 = math.tanh %7 : f32
    %9 = math.fma %7, %8, %7 : f32
    %10 = arith.cmpf oge, %arg10, %0 : f32
    %11 = arith.select %10, %4, %cst_0 : f32
    %12 = arith.mulf %11, %arg7 : f32
    %13 = arith.mulf %9, %12 : f32
    %14 = arith.mulf %arg2, %13 : f32
    %15 = arith.mulf %arg11, %14 : f32
    %16 = arith.subf %arg0, %arg12 : f32
    %17 = arith.mulf %16, %arg13 : f32
    %18 = arith.addf %6, %arg14 : f32
    %19 = arith.addf %15, %18 : f32
    %20 = arith.addf %17, %19 : f32
    %21 = arith.cmpf oge, %arg8, %0 : f32
    %22 = arith.select %21, %4, %cst_0 : f32
    %23 = arith.mulf %22, %arg5 : f32
    %24 = arith.negf %8 : f32
    %25 = math.fma %24, %8, %cst_1 : f32
    %26 = math.fma %7, %25, %8 : f32
    %27 = arith.mulf %26, %23 : f32
    %28 = arith.addf %23, %27 : f32
    %29 = arith.mulf %28, %cst : f32
    %30 = arith.mulf %16, %arg11 : f32
    %31 = arith.mulf %30, %arg2 : f32
    %32 = arith.addf %31, %arg3 : f32
    %33 = arith.mulf %32, %12 : f32
    %34 = arith.mulf %26, %33 : f32
    %35 = arith.addf %33, %34 : f32
    %36 = arith.mulf %35, %cst : f32
    %37 = arith.addf %29, %36 : f32
    %38 = arith.mulf %30, %13 : f32
    return %20, %37, %38, %13 : f32, f32, f32, f32
  }
}
