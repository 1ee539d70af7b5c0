from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.datasets.uipath_templates import write_literal
from assay.errors import ConfigError
from transforms.templates import MISSING, Reference, Template, look_up, parse_template


def parse(text: str) -> Template:
    return parse_template(text, where="mapping query", columns=("question",))


@pytest.mark.parametrize(
    ("text", "root", "path"),
    [
        ("{{item.query}}", "item", ("query",)),
        ("{{ item.a.b }}", "item", ("a", "b")),
        ("<<item.a.b>>", "item", ("a", "b")),
        ('{{item["key with space"]}}', "item", ("key with space",)),
        ('{{item["a}}b"]}}', "item", ("a}}b",)),
        ("{{item.l[0].x}}", "item", ("l", 0, "x")),
        ("{{item.l[-1]}}", "item", ("l", -1)),
        ('{{item["a"]["b c"][0].d}}', "item", ("a", "b c", 0, "d")),
        ("{{item}}", "item", ()),
        ("{{item.Größe}}", "item", ("Größe",)),
        ("${data.x}", "item", ("x",)),
        ("${target.x}", "sample", ("x",)),
        ("{{sample.output_text}}", "sample", ("output_text",)),
        ("question", "item", ("question",)),
    ],
)
def test_every_spelling_of_a_sole_placeholder_is_read(
    text: str, root: str, path: tuple[str | int, ...]
) -> None:
    assert parse(text).sole == Reference(root, path)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("Q: {{item.a}}!", ("Q: ", Reference("item", ("a",)), "!")),
        ("{{item.a}}{{item.b}}", (Reference("item", ("a",)), Reference("item", ("b",)))),
        (r"\{{item.a}}", ("{{item.a}}",)),
        (r"\\{{item.a}}", ("\\", Reference("item", ("a",)))),
        (r"\<<item.a>>", ("<<item.a>>",)),
        ("cat <<EOF", ("cat <<EOF",)),
        ("costs ${price}", ("costs ${price}",)),
        ("", ("",)),
        ("questions", ("questions",)),
        ('{"a":{"b":{{item.x}}}}', ('{"a":{"b":', Reference("item", ("x",)), "}}")),
    ],
)
def test_text_around_placeholders_stays_as_it_is(text: str, parts: tuple[str | Reference, ...]) -> None:
    assert parse(text).parts == parts


@pytest.mark.parametrize(
    "name", ["item", "item.a[0].b", 'sample["a.b"][-1]["c d"].e', 'item["é\\""]', 'item[""].0']
)
def test_a_reference_is_shown_as_it_may_be_written(name: str) -> None:
    sole = parse(f"{{{{{name}}}}}").sole
    assert str(sole) == name


def test_an_unknown_root_is_named() -> None:
    with pytest.raises(ConfigError, match=r"mapping query: unknown root language \(item, sample\)"):
        parse("{{language}} for {{target}}")


@pytest.mark.parametrize(
    "text",
    ["{{item.a}", "{{}}", "{{item..a}}", "{{item.a b}}", "{{", r'{{item["a\q"]}}', "{{item[99999999999]}}"],
)
def test_a_malformed_placeholder_is_a_config_error(text: str) -> None:
    with pytest.raises(ConfigError, match="malformed placeholder"):
        parse(text)


OPENINGS: Any = st.sampled_from(["{{", "<<", "${data.", "${target.", "\\", "}}", "item.a", "x"])


@given(st.lists(OPENINGS | st.text(max_size=3)).map("".join))
def test_escaped_text_is_read_as_it_was_written(text: str) -> None:
    assert parse(write_literal(text)).parts == (text,)


@given(st.lists(OPENINGS | st.text(max_size=3)).map("".join))
def test_any_text_is_parts_or_a_config_error(text: str) -> None:
    try:
        template = parse(text)
    except ConfigError:
        return
    assert template.parts
    assert all(part.root in {"item", "sample"} for part in template.references)


@given(st.text(alphabet=st.characters(blacklist_characters="{<$\\")))
def test_text_without_openings_is_one_literal(text: str) -> None:
    assert parse_template(text, where="mapping x").parts == (text,)


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (("a", "b"), "nested"),
        (("c", "d"), "dotted"),
        (("l", 1), 2),
        (("l", -1), 2),
        (("n",), None),
        (("l", 2), MISSING),
        (("l", "0"), MISSING),
        (("a", 0), MISSING),
        (("x",), MISSING),
        (("n", "x"), MISSING),
    ],
)
def test_a_path_is_walked_nested_keys_first_and_null_is_not_missing(
    path: tuple[str | int, ...], found: object
) -> None:
    value = {"a": {"b": "nested"}, "a.b": "flat", "c.d": "dotted", "l": [1, 2], "n": None}
    assert look_up(value, path) == found  # pyright: ignore[reportArgumentType] - a literal of plain JSON
