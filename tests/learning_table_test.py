#!/usr/bin/env python3
"""Checks scripts/learning_table.py on runs written by hand.

    tests/learning_table_test.py SOURCE_DIR
"""
import os
import subprocess
import sys
import tempfile

HEADER = "iteration,steps,validation_loss,validation_heuristic_loss,gradient_cosine,steps_per_s,iteration_s,learner_share\n"
# The first iteration counts in no median; the validation at 30 s is worse than the one before, which stays.
FAST = HEADER + "0,0,8,9,,,,\n1,10,,,0.9,1,10,0.9\n2,20,6,9,0.1,100,10,0.5\n3,30,7,9,0.3,300,10,0.25\n4,40,4,9,0.2,200,10,0.5\n"
SLOW = HEADER + "0,0,8,9,,,,\n1,10,5,9,,50,20,0.5\n"


def main(source):
    script = os.path.join(source, "scripts", "learning_table.py")
    with tempfile.TemporaryDirectory() as folder:
        for name, content in (("fast", FAST), ("slow", SLOW)):
            os.mkdir(os.path.join(folder, name))
            with open(os.path.join(folder, name, "metrics.csv"), "w", encoding="utf-8") as file:
                file.write(content)
        words = [f"choices,cuda={folder}/fast", f"choices,cpu={folder}/slow", f"steering,cpu={folder}/nowhere"]
        told = subprocess.run([sys.executable, script, *words], capture_output=True, text=True, check=True).stdout
        expected = [
            "| choices | cuda | 4 | 200 | 400 | 50% | 0.20 | 9 | 8: 0, 8: 5, 8: 10, 8: 15, 6: 20 |",
            "| choices | cpu | 1 | 50 | 100 | 50% |  | 9 | 8: 0, 8: 5, 8: 10, 8: 15, 5: 20 |",
            "| steering | cpu | none finished | | | | | | |",
        ]
        wrong = [f"expected  {want}\nbut it is {is_}" for want, is_ in zip(expected, told.splitlines()[2:]) if want != is_]
        usage = subprocess.run([sys.executable, script, "folder"], capture_output=True, text=True, check=False)
        if usage.returncode != 2 or "usage" not in usage.stderr:
            wrong.append("a word without METHOD,LEARNER= must be refused")
    print("\n".join(wrong))
    return 1 if wrong or len(told.splitlines()) != 5 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
