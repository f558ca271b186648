"""The design's invariants, each with the tests that fail when it breaks; checked both ways."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from server.errors import describe, protocol_code
from store.errors import DeskbookError

TESTS = Path(__file__).resolve().parents[1]

# Invariant -> tests, as file::name relative to tests/. (9 belongs to the issue that lets lessons be validated.)
PROVEN: dict[int, tuple[str, ...]] = {
    1: (
        "store/test_audit.py::test_any_change_of_a_projection_is_found_and_a_rebuild_mends_it",
        "store/test_migration.py::test_the_projections_of_an_upgraded_ledger_equal_a_rebuild",
        "faults/test_kills.py::test_a_kill_within_a_rebuild_leaves_the_projections_as_they_were",
        "server/test_cli.py::test_rebuild_makes_the_projections_anew",
    ),
    2: (
        "contracts/test_append_only.py::test_no_entry_can_be_changed_or_deleted",
        "contracts/test_append_only.py::test_no_entry_can_be_inserted_out_of_sequence_or_over_another",
    ),
    3: (
        "store/test_audit.py::test_any_single_change_of_any_column_is_found_and_its_entry_named",
        "store/test_audit.py::test_a_deleted_entry_is_found",
        "store/test_audit.py::test_two_swapped_entries_are_found",
        "store/test_audit.py::test_an_inserted_entry_is_found",
        "store/test_audit.py::test_a_change_with_all_later_hashes_made_anew_is_found_by_the_last_chain",
        "store/test_canonical.py::test_every_column_is_covered_by_the_leaf_or_by_what_the_leaf_covers",
        "store/test_ledger.py::test_a_ledger_swapped_in_from_another_strategy_is_refused",
        "server/test_cli.py::test_verify_exits_0_when_sound_and_1_naming_the_first_bad_sequence",
    ),
    4: (
        "contracts/test_writing.py::test_jobs_that_wait_are_committed_together_and_answered_only_after_the_commit",
        "faults/test_kills.py::test_a_server_killed_thirty_times_under_writes_loses_nothing_acknowledged",
        "faults/test_full_disk.py::test_a_full_disk_is_said_reads_go_on_and_freed_space_ends_it",
        "server/test_refusals.py::test_a_write_the_ledger_could_not_take_is_recorded_once_it_can",
    ),
    5: (
        "faults/test_two_servers.py::test_two_servers_write_two_hundred_memories_each_into_one_gapless_chain",
        "faults/test_writers.py::test_of_four_writer_processes_none_waits_over_half_a_second",
        "server/test_dispatch_wire.py::test_sixty_parallel_writes_over_one_session_are_sixty_memories_p167",
    ),
    6: (
        "server/test_permission_matrix.py::test_what_is_listed_can_be_used_and_the_rest_is_refused_and_recorded",
        "server/test_permission_matrix.py::test_remember_is_no_back_door_to_a_decision_or_thesis",
        "server/test_dispatch_clock.py::test_identity_cannot_be_claimed_by_argument_meta_or_client_name_p127",
        "server/test_refusals.py::test_denied_calls_are_entries_the_first_at_once_and_repeats_summed",
        "server/test_refusals.py::test_failed_writes_are_entries_with_code_and_field_and_without_arguments",
    ),
    7: (
        "server/test_dispatch_clock.py::test_a_search_in_a_run_is_recorded_with_the_exact_text_handed_over",
        "server/test_dispatch_wire.py::test_a_search_that_cannot_be_recorded_is_refused_and_says_so",
        "server/test_dispatch_wire.py::test_a_held_write_lock_holds_up_no_reading_and_no_list_p165",
        "server/test_refusals.py::test_no_reading_waits_to_write_what_is_owed",
        "store/test_state.py::test_the_same_showing_is_recorded_once_in_a_session_and_model_call",
        "store/test_search.py::test_reading_changes_no_memory",
    ),
    8: (
        "server/test_dispatch_clock.py::test_a_live_desk_refuses_a_time_and_a_run_and_stores_nothing",
        "server/test_dispatch_clock.py::test_a_simulated_desk_refuses_a_call_without_time_or_run",
        "server/test_dispatch_clock.py::test_a_run_lives_by_its_own_clock_which_never_goes_back",
        "server/test_dispatch_clock.py::test_every_read_surface_applies_the_one_cut_of_as_of",
        "server/test_dispatch_clock.py::test_runs_never_read_each_other_nor_the_live_ledger",
        "store/test_ledger.py::test_a_clock_that_steps_back_is_an_entry_and_the_sequence_still_rises",
    ),
    10: (
        "security/test_injection.py::test_lists_instructions_and_prompts_are_the_same_before_and_after_poisoning_p153",
        "security/test_injection.py::test_hostile_text_is_shown_only_as_quoted_data_with_author_and_time_p145",
        "security/test_injection.py::test_hostile_text_cannot_break_out_of_its_place_in_a_reply",
    ),
    11: (
        "packaging/test_house_rules.py::test_the_layers_hold",
        "store/test_public_face.py::test_the_tree_drawn_at_the_top_of_the_errors_is_the_tree_of_the_classes",
        "server/test_invariants.py::test_every_error_of_the_tree_is_told_by_the_one_table",
    ),
    12: (
        "server/test_stdio_wire.py::test_only_frames_reach_stdout_whatever_is_printed_warned_or_logged",
        "server/test_dispatch_wire.py::test_every_line_on_stdout_is_a_frame_at_level_debug_whatever_fails_p161",
        "server/test_dispatch_wire.py::test_no_network_is_used_at_start_nor_by_any_call",
        "server/test_dispatch_wire.py::test_probes_of_a_host_leave_nothing_on_disk",
        "server/test_stdio_ending.py::test_at_end_of_input_what_was_read_is_answered_and_the_server_exits",
        "server/test_stdio_ending.py::test_on_a_signal_an_idle_server_returns",
    ),
}


def named_in(path: Path) -> dict[str, str]:
    """The tests of a file with their docstrings."""
    tree = ast.parse(path.read_text("utf-8"))
    return {
        node.name: ast.get_docstring(node) or ""
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    }


@pytest.fixture(scope="module")
def known() -> dict[str, str]:
    """Every test of the repository as file::name, with its docstring."""
    return {
        f"{path.relative_to(TESTS).as_posix()}::{name}": told
        for path in sorted(TESTS.rglob("test_*.py"))
        for name, told in named_in(path).items()
    }


def test_every_invariant_of_this_issue_stands_in_the_table() -> None:
    assert set(PROVEN) == {1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12}


@pytest.mark.parametrize("number", PROVEN)
def test_every_test_that_the_table_names_exists(number: int, known: dict[str, str]) -> None:
    assert PROVEN[number]
    assert [name for name in PROVEN[number] if name not in known] == []


def test_every_test_that_names_an_invariant_stands_in_the_table(known: dict[str, str]) -> None:
    missing = [
        (int(number), name)
        for name, told in known.items()
        for number in re.findall(r"\b[Ii]nvariant (\d+)", told)
        if name not in PROVEN.get(int(number), ())
    ]
    assert missing == []


def subclasses(kind: type[DeskbookError]) -> list[type[DeskbookError]]:
    return [kind, *(below for each in kind.__subclasses__() for below in subclasses(each))]


@pytest.mark.parametrize("kind", subclasses(DeskbookError), ids=lambda kind: kind.__name__)
def test_every_error_of_the_tree_is_told_by_the_one_table(kind: type[DeskbookError]) -> None:
    """Invariant 11."""
    told = describe(kind("what is wrong", field="f", hint="what to do"))
    assert told == {
        "code": kind.code,
        "message": "what is wrong",
        "stored": "unknown" if kind.__name__ == "OutcomeUnknown" else "no",
        "retryable": kind.retryable,
        "hint": "what to do",
        "field": "f",
    }
    assert protocol_code(kind("x")) in (-32602, -32603)
