// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Generated code, compiled as a user would and loaded into the test.

#include <dlfcn.h>

#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "dynamics_core/generate.hpp"
#include "support/command.hpp"

namespace support {

/// Strict: the code is to pass the warnings of those who use it.
inline const std::string strict_c = " -std=c99 -Wall -Wextra -Wconversion -pedantic -Werror ";
inline const std::string strict_cpp =
    " -std=c++17 -Wall -Wextra -Wshadow -Wconversion -pedantic -Werror ";

class CompiledCode {
 public:
  /// `flags` come after the strict ones.
  CompiledCode(const dynamics_core::GeneratedCode& code,
               const dynamics_core::GenerateOptions& options, const std::string& name,
               const std::string& flags) {
    write(code, directory_.path("code"));
    const bool c = options.language == dynamics_core::GeneratedLanguage::c;
    const bool lanes = options.scalar == dynamics_core::GeneratedScalar::lanes;
    const std::string type =
        options.scalar == dynamics_core::GeneratedScalar::single_precision ? "float" : "double";
    // One signature for all functions.
    std::string calls = "#include \"" + code.header.name + "\"\n#include <stddef.h>\n";
    for (const auto& f : code.functions) {
      const std::size_t inputs = f.inputs.size();
      calls += (c ? "" : "extern \"C\" ") + std::string("void call_") + f.name +
               "(size_t count, const " + type + "* const* x, " + type + "* const* y);\n" +
               (c ? "" : "extern \"C\" ") + "void call_" + f.name + "(size_t count, const " + type +
               "* const* x, " + type + "* const* y) {\n  (void)count;\n  " + name +
               (c ? "_" : "::") + f.name + "(";
      std::string separator;
      if (lanes) calls += "count", separator = ", ";
      for (std::size_t i = 0; i < inputs; ++i)
        calls += separator + "x[" + std::to_string(i) + "]", separator = ", ";
      for (std::size_t i = 0; i < f.outputs.size(); ++i)
        calls += separator + "y[" + std::to_string(i) + "]";
      calls += ");\n}\n";
    }
    (void)directory_.write(c ? "code/calls.c" : "code/calls.cpp", calls);
    const std::string library = directory_.path("code.so");
    const std::string command = "cd " + directory_.path("code") + " && " +
                                (c ? RD_C_COMPILER + strict_c : RD_CXX_COMPILER + strict_cpp) +
                                flags + " -shared -fPIC calls.* " + code.source.name + " -o " +
                                library + " -lm";
    if (std::system(command.c_str()) != 0) throw std::runtime_error("does not compile: " + command);
    handle_ = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_ == nullptr) throw std::runtime_error(dlerror());
  }
  ~CompiledCode() { dlclose(handle_); }
  CompiledCode(const CompiledCode&) = delete;
  CompiledCode& operator=(const CompiledCode&) = delete;

  /// Arguments and results as the generated function has them, of `count` configurations.
  template <class Number>
  void call(const std::string& function, std::size_t count,
            const std::vector<std::vector<Number>>& inputs,
            std::vector<std::vector<Number>>& outputs) const {
    using Call = void (*)(std::size_t, const Number* const*, Number* const*);
    const auto f = reinterpret_cast<Call>(dlsym(handle_, ("call_" + function).c_str()));
    if (f == nullptr) throw std::runtime_error("there is no function " + function);
    std::vector<const Number*> x;
    std::vector<Number*> y;
    for (const auto& input : inputs) x.push_back(input.data());
    for (auto& output : outputs) y.push_back(output.data());
    f(count, x.data(), y.data());
  }

 private:
  TemporaryDirectory directory_;
  void* handle_ = nullptr;
};

}  // namespace support
