"""The code stays one that a newcomer can keep in mind."""

from __future__ import annotations

from tests import structure


def test_no_file_is_long():
    assert [path for path in structure.files() if structure.lines(path) > 400] == []


def test_no_module_imports_itself_by_way_of_others():
    assert structure.cycle() == []


def test_there_are_not_many_files():
    assert len(structure.files()) <= 540


def test_few_rooms_import_one_another():
    assert len(structure.pairs_of_rooms()) <= 130


def test_few_small_modules_have_one_importer():
    assert len(structure.small_with_one_importer()) < 14
