// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace dynamics_core::tools {

/// Has a script of ours draw the page `page` from the file `data`. Throws std::runtime_error.
void draw_page(const std::string& script, const std::string& data, const std::string& page);

}  // namespace dynamics_core::tools
