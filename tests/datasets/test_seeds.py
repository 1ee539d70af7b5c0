"""Seeds of simulated conversations, in both generations of their form."""

from __future__ import annotations

import json
from typing import Any

import pytest

from assay.contracts.json_text import parse_json
from assay.datasets.seeds import seed_text

DESCRIPTION = "A customer of Kessalo wants to return a lamp and has lost the receipt."


def read(**values: Any) -> Any:
    text = seed_text({"test_case_description": DESCRIPTION, **values})
    assert text is not None
    seed = json.loads(text)
    assert seed.pop("test_case_description") == DESCRIPTION
    assert list(seed) in ([], ["simulation_configuration"])
    return seed.get("simulation_configuration")


def test_both_generations_give_the_same_text() -> None:
    older = seed_text({"test_case_description": DESCRIPTION, "desired_num_turns": 6})
    newer = seed_text(
        {"test_case_description": DESCRIPTION, "simulation_configuration": {"desired_num_turns": 6}}
    )
    expected = (
        f'{{"test_case_description":"{DESCRIPTION}","simulation_configuration":{{"desired_num_turns":6}}}}'
    )
    assert older == newer == expected


@pytest.mark.parametrize(
    ("values", "configuration"),
    [
        ({}, None),
        ({"test_case_id": "t1", "test_case_category": "returns"}, None),
        ({"simulation_configuration": {}}, None),
        ({"simulation_configuration": {"max_num_turns": None}}, None),
        ({"simulation_configuration": "", "desired_num_turns": None}, None),
        ({"desired_num_turns": "6"}, {"desired_num_turns": 6}),
        ({"desired_num_turns": parse_json("6.0")}, {"desired_num_turns": 6}),
        ({"simulation_configuration": '{"max_num_turns":" 9"}'}, {"max_num_turns": 9}),
        (
            {"desired_num_turns": 6, "simulation_configuration": {"x": 1, "max_num_turns": 6}},
            {"desired_num_turns": 6, "max_num_turns": 6, "x": 1},
        ),
        (
            {"desired_num_turns": 6, "simulation_configuration": {"desired_num_turns": 6}},
            {"desired_num_turns": 6},
        ),
        (
            {"simulation_configuration": {"user_behavior": ["angry"], "conversation_repetitions": 2}},
            {"conversation_repetitions": 2, "user_behavior": ["angry"]},
        ),
    ],
)
def test_configuration_is_that_of_the_newer_form(values: dict[str, Any], configuration: Any) -> None:
    found = read(**values)
    assert found == configuration
    assert list(found or []) == list(configuration or [])


def test_numbers_in_keys_that_are_not_known_keep_their_text() -> None:
    configuration = parse_json('{"audio_effects":{"noise":0.10}}')
    text = seed_text({"test_case_description": "a", "simulation_configuration": configuration})
    assert text == '{"test_case_description":"a","simulation_configuration":{"audio_effects":{"noise":0.10}}}'


def test_a_row_without_seed_has_none() -> None:
    assert seed_text({}) is None
    assert seed_text({"test_case_description": None, "desired_num_turns": None, "test_case_id": "t"}) is None


@pytest.mark.parametrize("length", [1, 2500])
def test_description_may_be_as_long_as_published(length: int) -> None:
    assert seed_text({"test_case_description": "ö" * length}) is not None


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"test_case_description": ""}, "is 0 characters long, expected text of 1 to 2500"),
        ({"test_case_description": "a" * 2501}, "is 2501 characters long"),
        ({"test_case_description": 5}, "test_case_description is a number, expected text"),
        (
            {"test_case_description": None, "desired_num_turns": 5},
            "desired_num_turns without test_case_description",
        ),
        (
            {"test_case_description": None, "simulation_configuration": {}},
            "simulation_configuration without test_case_description",
        ),
        ({"desired_num_turns": 0}, "desired_num_turns is 0, expected a positive whole number"),
        ({"desired_num_turns": -1}, "desired_num_turns is -1, expected"),
        ({"desired_num_turns": parse_json("2.50")}, "desired_num_turns is 2.50, expected"),
        ({"desired_num_turns": True}, "desired_num_turns is true, expected"),
        ({"desired_num_turns": "six"}, 'desired_num_turns is "six", expected'),
        ({"desired_num_turns": [6]}, "desired_num_turns is a list, expected"),
        ({"simulation_configuration": {"max_num_turns": 1.5}}, "max_num_turns is 1.5, expected"),
        (
            {"simulation_configuration": {"conversation_repetitions": 0}},
            "conversation_repetitions is 0, expected",
        ),
        ({"simulation_configuration": [1]}, "simulation_configuration is a list, expected an object"),
        ({"simulation_configuration": "{"}, "simulation_configuration is text that is not JSON: "),
        (
            {"desired_num_turns": 5, "simulation_configuration": {"desired_num_turns": 6}},
            "desired_num_turns is 5 and in simulation_configuration 6; give one of them",
        ),
        (
            {"desired_num_turns": 5, "simulation_configuration": {"max_num_turns": 4}},
            "desired_num_turns is 5, above max_num_turns 4",
        ),
    ],
)
def test_what_is_wrong_with_a_seed_is_said(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        seed_text({"test_case_description": DESCRIPTION, **values})
