"""How lanes of a GPU share the searches of worlds and the entries of the queue: each is taken once."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import simengine
from simengine.kernels.world_codegen import from_queue, from_tallies
from simengine.plan.catalogue import SEARCHES

PACKAGE = Path(simengine.__file__).parent
KEPT = 12  # contacts, so a world keeps the states of three searches

PROGRAM = """
#include <cstdio>
#include <cstdlib>
#include <cstddef>
#define DEVICE static
#define DEVICE_METHOD
#define ROLLED
#define UNROLLED
#define LANE_FOR(i, n) for (int i = 0; i < (n); ++i)
#define MAX_CONVEX 4
static int count_up(int* number) {{ return (*number)++; }}
static size_t words_before(int unit, size_t words) {{ return size_t(unit) * words; }}
{header}
struct Header {{ int at[64]; }};
const int n = 40, begin = 2;
int pair_tally[3 * (n + begin)], search_queue[8 * 4096], listed[n], taken[n + begin][256];
void distance(const Header& header, const int* worlds, const int* num_listed, int parts, int own) {{
  const auto run = [&](int world, int part) {{ ++taken[world][part]; }};
  {distance}
}}
void touch(const Header& header, const int* worlds, const int* num_listed, int parts, int own) {{
  const auto run = [&](int world, int part) {{ ++taken[world][part]; }};
  {touch}
}}
int main(int, char** arguments) {{
  const int parts = atoi(arguments[1]), some = atoi(arguments[2]), most = atoi(arguments[3]);
  Header header;
  for (int& x : header.at) x = {kept};
  for (int k = 0; k < some; ++k) listed[k] = begin + (k * 7) % n;
  const int* worlds = some < n ? listed : 0;
  const int count = some < n ? some : n;
  SearchQueue queue = {{search_queue + {offset}, {kept}, n}};
  int wrong = 0, all = 0;
  for (int k = 0; k < count; ++k) {{
    const int world = worlds ? listed[k] : begin + k, searches = most ? rand() % most : 0;
    pair_tally[3 * world + 1] = searches;
    for (int s = 0; s < searches && s < 3; ++s) put_entry(search_queue + {offset}, queue, s % 4, {{world - begin, s}});
  }}
  for (int what = 0; what < 2; ++what) {{
    for (auto& world : taken) for (int& number : world) number = 0;
    for (int place = 0; place < 2 * n * parts; ++place) {{
      if (what) touch(header, worlds, &some, parts, place); else distance(header, worlds, &some, parts, place);
    }}
    for (int world = 0; world < n + begin; ++world) {{
      const int searches = pair_tally[3 * world + 1], begun = searches < 3 ? searches : 3;
      const int more = what ? 0 : searches - begun < 8 ? searches - begun : 8;
      for (int s = 0; s < 256; ++s) wrong += taken[world][s] != (s < begun + more);
      all += begun;
    }}
  }}
  std::printf("%d %d\\n", wrong, all);
}}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("searches")
    header = (PACKAGE / "physics/collision/convex/search_queue.cuh").read_text().replace("#pragma once", "")
    source = PROGRAM.format(
        header=header,
        distance="\n  ".join(from_tallies(SEARCHES[1], "run(world, part);", "own")),
        touch="\n  ".join(from_queue(SEARCHES[3], "run(world, part);", "own")),
        kept=KEPT,
        offset=2 * (KEPT + 12),
    )
    (folder / "shared.cpp").write_text(source)
    command = ("g++", "-std=c++17", "-O1", "-fsanitize=address,undefined", "-Wno-unknown-pragmas", "shared.cpp")
    subprocess.run((*command, "-o", "shared"), cwd=folder, check=True)
    return folder / "shared"


@pytest.mark.parametrize("parts", [1, 8, 32])
@pytest.mark.parametrize("listed", [40, 7, 1, 0])
@pytest.mark.parametrize("most", [20, 2, 0])
def test_each_search_is_taken_once(program: Path, parts: int, listed: int, most: int) -> None:
    done = subprocess.run([program, *map(str, (parts, listed, most))], capture_output=True, text=True, check=True)
    wrong, searches = map(int, done.stdout.split())
    assert wrong == 0, done.stderr
    assert searches > 0 or min(listed, most) < 2
