// Rows of a few worlds of many arrays in one call.

// Numbers of the first entries of a mask (n) that are true, n for those that there are not, and the mask without them.
static ffi::Error first_rows(ffi::Buffer<ffi::PRED> mask, ffi::ResultBuffer<ffi::S32> chosen,
                             ffi::ResultBuffer<ffi::PRED> left) {
  const int64_t rows = mask.element_count(), most = chosen->element_count();
  int32_t* to = chosen->typed_data();
  bool* rest = left->typed_data();
  if (rest != mask.typed_data()) std::memcpy(rest, mask.typed_data(), rows);
  int64_t found = 0;
  for (int64_t row = 0; row < rows && found < most; ++row) {
    if (rest[row]) to[found++] = int32_t(row), rest[row] = false;
  }
  std::fill(to + found, to + most, int32_t(rows));
  return ffi::Error::Success();
}

// Rows of arrays, of the last world for a number that is no world.
static ffi::Error take_rows(ffi::Buffer<ffi::S32> chosen, ffi::RemainingArgs arrays, ffi::RemainingRets taken) {
  const int64_t count = chosen.element_count();
  for (size_t i = 0; i < arrays.size(); ++i) {
    auto array = arrays.get<ffi::AnyBuffer>(i);
    auto result = taken.get<ffi::AnyBuffer>(i);
    if (!array.has_value()) return array.error();
    if (!result.has_value()) return result.error();
    const int64_t rows = array->dimensions().front(), size = array->size_bytes() / rows;
    const char* from = static_cast<const char*>(array->untyped_data());
    char* to = static_cast<char*>((*result)->untyped_data());
    for (int64_t k = 0; k < count; ++k) {
      std::memcpy(to + k * size, from + std::min<int64_t>(chosen.typed_data()[k], rows - 1) * size, size);
    }
  }
  return ffi::Error::Success();
}

// Arrays with other rows; the arguments are those rows of all arrays, and then the arrays.
static ffi::Error put_rows(ffi::Buffer<ffi::S32> chosen, ffi::RemainingArgs given, ffi::RemainingRets arrays) {
  const int64_t count = chosen.element_count();
  for (size_t i = 0; i < arrays.size(); ++i) {
    auto others = given.get<ffi::AnyBuffer>(i);
    auto old = given.get<ffi::AnyBuffer>(arrays.size() + i);
    auto result = arrays.get<ffi::AnyBuffer>(i);
    if (!others.has_value()) return others.error();
    if (!old.has_value()) return old.error();
    if (!result.has_value()) return result.error();
    const int64_t rows = old->dimensions().front(), size = old->size_bytes() / rows;
    const char* from = static_cast<const char*>(others->untyped_data());
    char* to = static_cast<char*>((*result)->untyped_data());
    if (to != old->untyped_data()) std::memcpy(to, old->untyped_data(), old->size_bytes());
    for (int64_t k = 0; k < count; ++k) {
      const int64_t row = chosen.typed_data()[k];
      if (row < rows) std::memcpy(to + row * size, from + k * size, size);
    }
  }
  return ffi::Error::Success();
}

XLA_FFI_DEFINE_HANDLER_SYMBOL(
    simengine_first_rows, first_rows,
    ffi::Ffi::Bind().Arg<ffi::Buffer<ffi::PRED>>().Ret<ffi::Buffer<ffi::S32>>().Ret<ffi::Buffer<ffi::PRED>>());
XLA_FFI_DEFINE_HANDLER_SYMBOL(simengine_take_rows, take_rows,
                              ffi::Ffi::Bind().Arg<ffi::Buffer<ffi::S32>>().RemainingArgs().RemainingRets());
XLA_FFI_DEFINE_HANDLER_SYMBOL(simengine_put_rows, put_rows,
                              ffi::Ffi::Bind().Arg<ffi::Buffer<ffi::S32>>().RemainingArgs().RemainingRets());
