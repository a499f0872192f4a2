"""What holds for every format: it is documented, recognised and kept to the byte."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from palace.transfer.importers import FORMATS, detect, read, table_of_formats
from tests.hypothesis_profiles import examples
from tests.transfer.importers.samples import SAMPLES
from tests.transfer.importers.test_hostile_files import ANY_JSON, check, places, replaced

DOCS = Path(__file__).resolve().parents[3] / "docs" / "importing.md"
KEYS = ("1717236000.000100", "1717236001.000100")
TEXTS = ("  Where is\tthe *salt*?\n\nIn the “left” <jar>? 🙂 ", "On the left;\u2028 below.")
# Formats whose texts have markup, which is imported as it is shown.
AS_SHOWN = {"gemini", "slack"}


def sample(tmp_path, source, texts=TEXTS):
    return SAMPLES[source](tmp_path / "sample", list(zip(KEYS, texts, strict=True)))


def test_every_format_has_a_sample():
    assert SAMPLES.keys() == FORMATS.keys()


def test_the_documentation_lists_the_formats_as_the_code_does():
    (table,) = re.findall(r"<!-- formats -->\n(.*?)<!-- /formats -->", DOCS.read_text(), re.DOTALL)
    assert table == table_of_formats()


@pytest.mark.parametrize("source", FORMATS)
def test_a_sample_is_recognised_and_its_words_are_kept_to_the_byte(tmp_path, source):
    path = sample(tmp_path, source)
    assert detect(path) is FORMATS[source]
    found = list(read(path, FORMATS[source]))
    texts = [turn.text for each in found for turn in each.turns]
    assert len(texts) >= len(TEXTS)
    assert source in AS_SHOWN or texts == list(TEXTS)
    assert not any(each.skipped for each in found)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("odd")


@pytest.mark.some(8)
@pytest.mark.parametrize("source", FORMATS)
@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_a_sample_with_anything_put_anywhere(folder, source, data):
    path = sample(folder, source, ("Q", "A"))
    lines = path.read_bytes().splitlines()
    try:
        values = list(map(json.loads, lines))
    except ValueError:
        content = path.read_bytes()
        at = data.draw(st.integers(0, len(content)))
        odd = data.draw(
            st.binary(max_size=20)
            | st.text(max_size=20).map(lambda text: text.encode(errors="surrogatepass"))
        )
        path.write_bytes(content[:at] + odd + content[at + len(odd) :])
    else:
        number = data.draw(st.integers(0, len(lines) - 1))
        place = data.draw(st.sampled_from(list(places(values[number]))))
        values[number] = replaced(values[number], place, data.draw(ANY_JSON))
        path.write_text("\n".join(map(json.dumps, values)))
    check(path)
