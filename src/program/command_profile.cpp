// SPDX-License-Identifier: Apache-2.0
// gpusched profile show|validate|compare: look at device profiles.
#include <cstdio>
#include <memory>
#include <string>

#include "src/calibration/profile/device_profile.hpp"
#include "src/calibration/profile/profile_tables.hpp"
#include "src/program/commands.hpp"

namespace gpusched {

void add_profile_command(CLI::App& program, int& exit_code) {
  auto* command = program.add_subcommand("profile", "Look at device profiles: files, or shipped ones");
  command->require_subcommand(1);
  const auto first = std::make_shared<std::string>();
  const auto second = std::make_shared<std::string>();

  auto* show = command->add_subcommand("show", "Every value with its source, and the gates");
  show->add_option("profile", *first, "FILE or NAME")->required();
  show->footer("Example:\n  gpusched profile show A100\n");
  show->callback([first, &exit_code] {
    const auto profile = find_device_profile(*first);
    if (!profile) {
      exit_code = complain(profile.error());
      return;
    }
    gpusched::show(show_device_profile(*profile));
  });

  auto* validate =
      command->add_subcommand("validate", "Check a file against the format; exit code 2 if it is not sound");
  validate->add_option("profile", *first, "FILE or NAME")->required();
  validate->footer("Example:\n  gpusched profile validate this-machine.json\n");
  validate->callback([first, &exit_code] {
    const auto profile = find_device_profile(*first);
    if (!profile) {
      exit_code = complain(profile.error());
      return;
    }
    gpusched::show(*first + ": a sound profile of " + profile->model +
                   "; verdict of its calibration: " + profile->validation.verdict + "\n");
  });

  auto* compare = command->add_subcommand(
      "compare", "Two profiles side by side, and how much faster kernels and training steps are");
  compare->add_option("a", *first, "FILE or NAME")->required();
  compare->add_option("b", *second, "FILE or NAME")->required();
  compare->footer("Example:\n  gpusched profile compare H100 H200\n");
  compare->callback([first, second, &exit_code] {
    const auto a = find_device_profile(*first);
    const auto b = find_device_profile(*second);
    if (!a || !b) {
      exit_code = complain(a ? b.error() : a.error());
      return;
    }
    gpusched::show(compare_device_profiles(*a, *b));
    gpusched::show(speed_up_table(*a, *b));
  });

  std::string names = "Shipped:";
  for (const std::string& name : shipped_profile_names()) names += " " + name;
  command->footer(names + "\n\nExamples:\n  gpusched profile show A100\n  gpusched profile compare H100 H200\n");
}

}  // namespace gpusched
