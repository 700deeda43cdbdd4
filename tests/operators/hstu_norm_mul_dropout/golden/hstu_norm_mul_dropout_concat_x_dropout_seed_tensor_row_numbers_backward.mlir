module {
  func.func @row_summands0(%arg0: f32 {hstu.name = "x"}, %arg1: f32 {hstu.name = "u"}, %arg2: f32 {hstu.name = "weight"}, %arg3: f32 {hstu.name = "dropout_ratio"}, %arg4: f32 {hstu.name = "dout_y"}, %arg5: f32 {hstu.name = "random", hstu.random = {columns = 128 : i64, first = 64 : i64, offset = "offset", seed = "seed"}}) -> (f32 {hstu.name = "sum0"}, f32 {hstu.name = "sum1"}) {
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = arith.constant 1.000000e+00 : f32
    %cst_1 = arith.constant 1.280000e+02 : f32
    %0 = arith.addf %arg3, %cst_1 : f32
    %1 = arith.cmpf oge, %arg5, %0 : f32
    %2 = arith.subf %0, %cst_1 : f32
    %3 = arith.subf %cst_0, %2 : f32
    %4 = arith.divf %cst_0, %3 : f32
    %5 = arith.select %1, %4, %cst : f32
    %6 = arith.mulf %5, %arg4 : f32
    %7 = arith.mulf %arg1, %6 : f32
    %8 = arith.mulf %arg2, %7 : f32
    return %arg0, %8 : f32, f32
  }
  func.func @row_statistics0(%arg0: f32 {hstu.name = "sum0"}, %arg1: f32 {hstu.name = "sum1"}) -> (f32 {hstu.name = "estimate"}, f32 {hstu.name = "statistic"}) {
    %cst = arith.constant 1.562500e-02 : f32
    %0 = arith.mulf %arg0, %cst {hstu.unfused} : f32
    return %0, %arg1 : f32, f32
  }
  func.func @row_summands1(%arg0: f32 {hstu.name = "x"}, %arg1: f32 {hstu.name = "u"}, %arg2: f32 {hstu.name = "weight"}, %arg3: f32 {hstu.name = "dropout_ratio"}, %arg4: f32 {hstu.name = "dout_y"}, %arg5: f32 {hstu.name = "random", hstu.random = {columns = 128 : i64, first = 64 : i64, offset = "offset", seed = "seed"}}, %arg6: f32 {hstu.name = "estimate"}) -> (f32 {hstu.name = "sum0"}, f32 {hstu.name = "sum1"}, f32 {hstu.name = "sum2"}) {
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = arith.constant 1.000000e+00 : f32
    %cst_1 = arith.constant 1.280000e+02 : f32
    %0 = arith.subf %arg0, %arg6 : f32
    %1 = arith.mulf %0, %0 : f32
    %2 = arith.addf %arg3, %cst_1 : f32
    %3 = arith.cmpf oge, %arg5, %2 : f32
    %4 = arith.subf %2, %cst_1 : f32
    %5 = arith.subf %cst_0, %4 : f32
    %6 = arith.divf %cst_0, %5 : f32
    %7 = arith.select %3, %6, %cst : f32
    %8 = arith.mulf %7, %arg4 : f32
    %9 = arith.mulf %arg1, %8 : f32
    %10 = arith.mulf %arg2, %9 : f32
    %11 = arith.mulf %0, %10 : f32
    return %0, %1, %11 : f32, f32, f32
  }
  func.func @row_statistics1(%arg0: f32 {hstu.name = "sum0"}, %arg1: f32 {hstu.name = "sum1"}, %arg2: f32 {hstu.name = "sum2"}, %arg3: f32 {hstu.name = "eps"}, %arg4: f32 {hstu.name = "estimate"}, %arg5: f32 {hstu.name = "statistic"}) -> (f32 {hstu.name = "rstd"}, f32 {hstu.name = "mean"}, f32 {hstu.name = "statistic2"}, f32 {hstu.name = "statistic3"}) {
    %cst = arith.constant 3.125000e-02 : f32
    %cst_0 = arith.constant -5.000000e-01 : f32
    %cst_1 = arith.constant 0.000000e+00 : f32
    %cst_2 = arith.constant 1.562500e-02 : f32
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
  func.func @row_outputs(%arg0: f32 {hstu.name = "x"}, %arg1: f32 {hstu.name = "u"}, %arg2: f32 {hstu.name = "weight"}, %arg3: f32 {hstu.name = "bias"}, %arg4: f32 {hstu.name = "dropout_ratio"}, %arg5: f32 {hstu.name = "dout_x"}, %arg6: f32 {hstu.name = "dout_y"}, %arg7: f32 {hstu.name = "random2", hstu.random = {columns = 128 : i64, first = 0 : i64, offset = "offset", seed = "seed"}}, %arg8: f32 {hstu.name = "random", hstu.random = {columns = 128 : i64, first = 64 : i64, offset = "offset", seed = "seed"}}, %arg9: f32 {hstu.name = "rstd"}, %arg10: f32 {hstu.name = "mean"}, %arg11: f32 {hstu.name = "statistic2"}, %arg12: f32 {hstu.name = "statistic3"}) -> (f32 {hstu.name = "dx"}, f32 {hstu.name = "du"}, f32 {hstu.name = "dweight"}, f32 {hstu.name = "dbias"}) {
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = arith.constant 1.000000e+00 : f32
    %cst_1 = arith.constant 1.280000e+02 : f32
    %0 = arith.addf %arg4, %cst_1 : f32
    %1 = arith.cmpf oge, %arg7, %0 : f32
    %2 = arith.subf %0, %cst_1 : f32
    %3 = arith.subf %cst_0, %2 : f32
    %4 = arith.divf %cst_0, %3 : f32
    %5 = arith.select %1, %4, %cst : f32
    %6 = arith.mulf %5, %arg5 : f32
    %7 = arith.cmpf oge, %arg8, %0 : f32
    %8 = arith.select %7, %4, %cst : f32
    %9 = arith.mulf %8, %arg6 : f32
    %10 = arith.mulf %arg1, %9 : f32
    %11 = arith.mulf %arg2, %10 : f32
    %12 = arith.mulf %arg9, %11 : f32
    %13 = arith.subf %arg0, %arg10 : f32
    %14 = arith.mulf %13, %arg11 : f32
    %15 = arith.addf %6, %arg12 : f32
    %16 = arith.addf %12, %15 : f32
    %17 = arith.addf %14, %16 : f32
    %18 = arith.mulf %13, %arg9 : f32
    %19 = arith.mulf %18, %arg2 : f32
    %20 = arith.addf %19, %arg3 : f32
    %21 = arith.mulf %20, %9 : f32
    %22 = arith.mulf %18, %10 : f32
    return %17, %21, %22, %10 : f32, f32, f32, f32
  }
}
