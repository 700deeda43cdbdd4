module {
  func.func @row_summands0(%arg0: f32 {hstu.name = "x"}, %arg1: f32 {hstu.name = "u"}, %arg2: f32 {hstu.name = "weight"}, %arg3: f32 {hstu.name = "dropout_ratio"}, %arg4: f32 {hstu.name = "dout_y"}, %arg5: f32 {hstu.name = "random", hstu.random = {columns = 128 : i64, first = 64 : i64, offset = "offset", seed = "seed"}}) -> (f32 {hstu.name = "sum0"}, f32 {hstu.name = "sum1"}) {
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = arith.constant 1.000000e+00 : f32
    %0 = arith.mulf %arg0, %arg0 : f32
    %1 = arith.cmpf oge, %arg5, %arg3 : f32
    %2 = arith.subf %cst_0, %arg3 : f32
    %3 = arith.divf %cst_0, %2 : f32
    %4 = arith.select %1, %3, %cst : f32
    %5 = arith.mulf %4, %arg4 : f32
    %6 = arith.mulf %arg1, %5 : f32
    %7 = arith.mulf %arg2, %6 : f32
    %8 = arith.mulf %arg0, %7 : f32
    return %0, %8 : f32, f32
  }
  func.func @row_statistics0(%arg0: f32 {hstu.name = "sum0"}, %arg1: f32 {hstu.name = "sum1"}, %arg2: f32 {hstu.name = "eps"}) -> (f32 {hstu.name = "rstd"}, f32 {hstu.name = "statistic"}) {
    %cst = arith.constant 3.125000e-02 : f32
    %cst_0 = arith.constant -5.000000e-01 : f32
    %cst_1 = arith.constant 1.562500e-02 : f32
    %0 = arith.mulf %arg0, %cst_1 : f32
    %1 = arith.addf %0, %arg2 : f32
    %2 = math.rsqrt %1 : f32
    %3 = arith.mulf %2, %2 : f32
    %4 = arith.mulf %2, %cst_0 : f32
    %5 = arith.mulf %3, %4 : f32
    %6 = arith.mulf %arg1, %cst : f32
    %7 = arith.mulf %5, %6 : f32
    return %2, %7 : f32, f32
  }
  func.func @row_outputs(%arg0: f32 {hstu.name = "x"}, %arg1: f32 {hstu.name = "u"}, %arg2: f32 {hstu.name = "weight"}, %arg3: f32 {hstu.name = "dropout_ratio"}, %arg4: f32 {hstu.name = "dout_u"}, %arg5: f32 {hstu.name = "dout_y"}, %arg6: f32 {hstu.name = "random2", hstu.random = {columns = 128 : i64, first = 0 : i64, offset = "offset", seed = "seed"}}, %arg7: f32 {hstu.name = "random", hstu.random = {columns = 128 : i64, first = 64 : i64, offset = "offset", seed = "seed"}}, %arg8: f32 {hstu.name = "rstd"}, %arg9: f32 {hstu.name = "statistic"}) -> (f32 {hstu.name = "dx"}, f32 {hstu.name = "du"}, f32 {hstu.name = "dweight"}) {
    %cst = arith.constant 5.000000e-01 : f32
    %cst_0 = arith.constant 0.000000e+00 : f32
    %cst_1 = arith.constant 1.000000e+00 : f32
    %0 = arith.cmpf oge, %arg7, %arg3 : f32
    %1 = arith.subf %cst_1, %arg3 : f32
    %2 = arith.divf %cst_1, %1 : f32
    %3 = arith.select %0, %2, %cst_0 : f32
    %4 = arith.mulf %3, %arg5 : f32
    %5 = arith.mulf %arg1, %4 : f32
    %6 = arith.mulf %arg2, %5 : f32
    %7 = arith.mulf %arg8, %6 : f32
    %8 = arith.mulf %arg0, %arg9 : f32
    %9 = arith.addf %7, %8 : f32
    %10 = arith.mulf %arg0, %arg8 : f32
    %11 = arith.mulf %10, %arg2 : f32
    %12 = arith.mulf %11, %4 : f32
    %13 = arith.cmpf oge, %arg6, %arg3 : f32
    %14 = arith.select %13, %2, %cst_0 : f32
    %15 = arith.mulf %14, %arg4 : f32
    %16 = arith.mulf %arg1, %cst : f32
    %17 = math.tanh %16 : f32
    %18 = arith.negf %17 : f32
    %19 = math.fma %18, %17, %cst_1 : f32
    %20 = math.fma %16, %19, %17 : f32
    %21 = arith.mulf %20, %15 : f32
    %22 = arith.addf %15, %21 : f32
    %23 = arith.mulf %22, %cst : f32
    %24 = arith.addf %12, %23 : f32
    %25 = arith.mulf %10, %5 : f32
    return %9, %24, %25 : f32, f32, f32
  }
}
