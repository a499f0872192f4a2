from __future__ import annotations

import pytest
from django.db import DataError, NotSupportedError, OperationalError, connection, transaction

from isolation.raw_sql import BinaryStatements, fetch_rows

pytestmark = pytest.mark.django_db


def fetched(sql, parameters):
    """What the statement brings: the same when it is prepared, and later."""
    first, again = (fetch_rows(sql, parameters, prepared=True) for _ in range(2))
    assert first == again
    return first


def test_values_arrive_as_they_are():
    sql = "SELECT %s::int, %s::text, %s::text[], %s::text, %s::bigint"
    values = [7, "100 % “ä”", ["a", "b,c"], None, 2**40]
    assert fetched(sql, values) == [tuple(values)]


def test_a_name_may_stand_twice():
    sql = "SELECT %(first)s::int, %(second)s::text, %(first)s::int + 1"
    assert fetched(sql, {"second": "x", "first": 1, "unused": object()}) == [(1, "x", 2)]


def test_a_number_of_any_size_needs_no_other_statement():
    sql = "SELECT %s::bigint AS any_size"
    for number in (1, 2**20, 2**40, -1, 3, 4, 5):
        assert fetch_rows(sql, [number], prepared=True) == [(number,)]
    known = "SELECT count(*) FROM pg_prepared_statements WHERE strpos(statement, 'AS any_size') > 0"
    assert fetch_rows(f"{known} AND NOT strpos(statement, 'pg_prep') > 0", []) == [(1,)]


def test_a_connection_keeps_its_statements():
    fetch_rows("SELECT 1", [], prepared=True)
    assert BinaryStatements.of(connection.connection) is BinaryStatements.of(connection.connection)


def test_an_error_is_djangos_before_and_after_it_is_prepared():
    for divisor in (0, 1, 0):
        if divisor:
            assert fetch_rows("SELECT 4 / %s::int", [divisor], prepared=True) == [(4,)]
            continue
        with pytest.raises(DataError, match="division by zero"), transaction.atomic():
            fetch_rows("SELECT 4 / %s::int", [divisor], prepared=True)


@pytest.mark.django_db(transaction=True)
def test_in_a_transaction_it_is_rolled_back_with_it():
    with connection.cursor() as cursor:
        cursor.execute("CREATE TEMPORARY TABLE kept (number int)")
    with transaction.atomic():
        fetch_rows("INSERT INTO kept SELECT %s", [1], prepared=True)
        transaction.set_rollback(True)
    assert fetch_rows("SELECT number FROM kept", [], prepared=True) == []


@pytest.fixture
def migrated():
    """A statement on a temporary table, prepared before the type of one of its columns changed."""
    sql = "SELECT number, beside FROM changing WHERE beside = %s"
    with connection.cursor() as cursor:
        cursor.execute("CREATE TEMPORARY TABLE changing (number int, beside int)")
        cursor.execute("INSERT INTO changing VALUES (7, 1)")
        assert fetch_rows(sql, [1], prepared=True) == [(7, 1)]
        cursor.execute("ALTER TABLE changing ALTER number TYPE text")
        yield sql
        cursor.execute("DROP TABLE changing")


@pytest.mark.django_db(transaction=True)
def test_after_a_migration_changed_the_type_of_a_column_a_statement_is_prepared_again(migrated):
    assert fetched(migrated, [1]) == [("7", 1)]
    # It has not taken the name of another statement.
    assert fetched("SELECT %s::int", [3]) == [(3,)]


@pytest.mark.django_db(transaction=True)
def test_in_a_transaction_that_a_migration_has_overtaken_the_next_one_succeeds(migrated):
    with pytest.raises(NotSupportedError, match="cached plan"), transaction.atomic():
        fetch_rows(migrated, [1], prepared=True)
    with transaction.atomic():
        assert fetch_rows(migrated, [1], prepared=True) == [("7", 1)]


@pytest.mark.django_db(transaction=True)
def test_a_server_that_is_gone_is_an_operational_error():
    with pytest.raises(OperationalError):
        fetch_rows("SELECT pg_terminate_backend(pg_backend_pid())", [], prepared=True)
    with pytest.raises(OperationalError):
        fetch_rows("SELECT 1", [], prepared=True)
    connection.close()
    assert fetch_rows("SELECT 1", [], prepared=True) == [(1,)]
