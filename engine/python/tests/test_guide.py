"""The programs of the guide run as they stand there."""

import pathlib
import re
import subprocess
import sys

GUIDE = pathlib.Path(__file__).parents[2] / "docs/src/guide/python.md"
PROGRAMS = re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)


def test_every_program_of_the_guide_runs(tmp_path):
    assert len(PROGRAMS) >= 2
    for index, program in enumerate(PROGRAMS):
        script = tmp_path / f"program_{index}.py"
        script.write_text(program)
        done = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert "pinwheel" in program and done.stdout.strip()


def test_decoders_and_engines_have_their_first_answer_in_at_most_five_lines():
    for program in (PROGRAMS[0], next(program for program in PROGRAMS if "pinwheel.Engine(" in program)):
        assert len([line for line in program.splitlines() if line.strip()]) <= 5
