// SPDX-License-Identifier: Apache-2.0
/// What the page is made of, compiled in: the files of the folder `page` and, where the build found it, Vega.
#pragma once

#include <span>
#include <string_view>

namespace gpusched {

/// A text that was compiled in.
struct PageFile {
  std::string_view name;
  std::string_view text;
};

/// The files of the folder `page`: "level.json".
std::span<const PageFile> page_files();

/// Vega's modules, each behind those that it needs: "vega-util". Empty where the build did not find Vega.
std::span<const PageFile> vega_modules();

/// The licence that goes with them.
std::string_view vega_licence();

}  // namespace gpusched
