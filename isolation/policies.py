"""Row-level security: the roles, their grants, and the policies of every table with an owner.

A table with a `palace_id` belongs to a palace, one with an `owner_id` to an account. The tables are
looked up in the database, so a new table is protected as soon as it exists. Correct policies stay
as they are, without a lock.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import psycopg
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import ProgrammingError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.utils import CursorWrapper

from isolation.row_access import PALACE, PERSON, SWEEP

ROLES = (PALACE, PERSON, SWEEP)
PREFIX = "loci_"

NO_ROLES = (
    "The account in DATABASE_URL cannot make the roles that keep palaces apart ({reason}). Have "
    'the database\'s administrator run the statements in {page}, under "On a server".'
)

# Not in sub-selects, which take longer to plan and hide the value from the planner. If a query
# names the palace, as all queries of recall do, the two values are compared only once. A rule of
# two cases has one, as it would read the setting for every row.
_PALACE = "nullif(current_setting('loci.palace', true), '')::bigint"
_OWNER = "nullif(current_setting('loci.owner', true), '')::bigint"
_SUBJECT = "nullif(current_setting('loci.subject', true), '')"
_SECRET = "nullif(current_setting('loci.secret', true), '')"  # noqa: S105 - a setting's name.

_OF_ONE_PALACE = f"palace_id = {_PALACE}"
# The palaces that the policy of the palace table allows.
_OF_A_PERSON = "EXISTS (SELECT FROM palace_palace p WHERE p.id = palace_id)"
_OF_AN_OWNER = f"owner_id = {_OWNER}"
_OWN_WEBHOOK = "EXISTS (SELECT FROM palace_webhook w WHERE w.id = webhook_id)"

# Rules that do not follow from the table's column.
_SPECIAL: dict[tuple[str, str], str] = {
    ("palace_palace", PALACE): f"id = {_PALACE}",
    ("palace_palace", PERSON): (f"{_OF_AN_OWNER} AND coalesce('=' || subject = {_SUBJECT}, true)"),
    # Test deliveries of a webhook have no palace; no delivery has text of a memory.
    ("palace_webhookdelivery", PALACE): _OWN_WEBHOOK,
    ("palace_webhookdelivery", PERSON): _OWN_WEBHOOK,
    # Read before the owner is known: a caller with the secret sees its row.
    ("settings_app_session", PERSON): f"{_OF_AN_OWNER} OR session_key = {_SECRET}",
    ("settings_app_apikey", PERSON): f"{_OF_AN_OWNER} OR digest = {_SECRET}",
    ("api_authorizationcode", PERSON): f"{_OF_AN_OWNER} OR digest = {_SECRET}",
    ("api_token", PERSON): f"{_OF_AN_OWNER} OR digest = {_SECRET}",
    # Rows without an owner have only figures, no text.
    ("llm_usage", PALACE): f"owner_id = (SELECT {_OWNER}) OR owner_id IS NULL",
    ("llm_usage", PERSON): f"owner_id = (SELECT {_OWNER}) OR owner_id IS NULL",
}


class RowsHidden(Exception):
    """Policies hide rows from the account that must see all of them."""


@dataclass(frozen=True, slots=True)
class Policy:
    table: str
    role: str
    rule: str

    @property
    def digest(self) -> str:
        """Identifies the policy; differs once its rule has changed."""
        return hashlib.sha256(f"{self.role} {self.rule}".encode()).hexdigest()[:16]


def protect(connection: BaseDatabaseWrapper) -> None:
    """Make the missing roles, grants and policies for the tables of the current schema.

    Run as the account that owns the tables.

    Raises:
        ImproperlyConfigured: As `make_roles`.
    """
    with connection.cursor() as cursor:
        make_roles(cursor)
        _grant(cursor)
        made = _made(cursor)
        for table, forced in _tables(cursor).items():
            if not forced:
                name = connection.ops.quote_name(table)
                cursor.execute(f"ALTER TABLE {name} ENABLE ROW LEVEL SECURITY")
                cursor.execute(f"ALTER TABLE {name} FORCE ROW LEVEL SECURITY")
        for policy in _wanted(cursor):
            if made.get((policy.table, policy.role)) != policy.digest:
                _make(cursor, policy)


def unprotect(connection: BaseDatabaseWrapper) -> None:
    """Drop the policies, for a version without any; other databases may use the roles."""
    with connection.cursor() as cursor:
        for table, role in _made(cursor):
            cursor.execute(f'DROP POLICY "{role}" ON "{table}"')
        for table in _tables(cursor):
            cursor.execute(f'ALTER TABLE "{table}" DISABLE ROW LEVEL SECURITY')
            cursor.execute(f'ALTER TABLE "{table}" NO FORCE ROW LEVEL SECURITY')


def make_roles(cursor: CursorWrapper | psycopg.Cursor[Any]) -> None:
    """Create missing roles, and make the session's account a member of each.

    The account must be a superuser or have CREATEROLE, unless nothing is missing.

    Raises:
        ImproperlyConfigured: The account may not create the roles.
    """
    try:
        for role in ROLES:
            _make_role(cursor, role)
    except (ProgrammingError, psycopg.errors.InsufficientPrivilege) as error:
        reason = str(error).splitlines()[0]
        page = settings.DOCS_PAGE.format("configuration")
        raise ImproperlyConfigured(NO_ROLES.format(reason=reason, page=page)) from error


def _make_role(cursor: CursorWrapper | psycopg.Cursor[Any], role: str) -> None:
    cursor.execute("SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = %s)", [role])
    if cursor.fetchone() == (False,):
        # Roles belong to the server: another database may create them at the same time.
        cursor.execute(
            f"DO $$ BEGIN CREATE ROLE {role} NOLOGIN;"
            " EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$"
        )
    # The account that migrates inherits the policies of SWEEP, and so sees all rows.
    needs, inherits = ("SET, USAGE", "TRUE") if role == SWEEP else ("SET", "FALSE")
    for need in needs.split(", "):
        cursor.execute("SELECT pg_has_role(session_user, %s, %s)", [role, need])
        if cursor.fetchone() == (False,):
            cursor.execute(f"GRANT {role} TO SESSION_USER WITH SET TRUE, INHERIT {inherits}")


_UNGRANTED = {
    "SCHEMA": """
        SELECT nspname::text FROM pg_namespace n WHERE nspname = current_schema()
        AND NOT has_schema_privilege(%s, n.oid, 'USAGE')""",
    "TABLE": """
        SELECT relname::text FROM pg_class c WHERE relnamespace = current_schema()::regnamespace
        AND relkind IN ('r', 'p') AND NOT has_table_privilege(%s, c.oid, 'DELETE')""",
    "SEQUENCE": """
        SELECT relname::text FROM pg_class c WHERE relnamespace = current_schema()::regnamespace
        AND CASE relkind WHEN 'S' THEN NOT has_sequence_privilege(%s, c.oid, 'USAGE') END""",
}
_GRANTED = {
    "SCHEMA": "USAGE",
    "TABLE": "SELECT, INSERT, UPDATE, DELETE",
    "SEQUENCE": "USAGE",
}


def _grant(cursor: CursorWrapper) -> None:
    for role in ROLES:
        for kind, ungranted in _UNGRANTED.items():
            cursor.execute(ungranted, [role])
            names = ", ".join(f'"{name}"' for (name,) in cursor.fetchall())
            if names:
                cursor.execute(f"GRANT {_GRANTED[kind]} ON {kind} {names} TO {role}")


def _tables(cursor: CursorWrapper) -> dict[str, bool]:
    """The tables with an owner, and whether their policies are enabled and forced."""
    return {table: forced for table, _, forced in _columns(cursor)}


def _columns(cursor: CursorWrapper) -> list[tuple[str, str, bool]]:
    cursor.execute(
        """
        SELECT c.relname::text, max(a.attname::text),
            bool_and(c.relrowsecurity AND c.relforcerowsecurity)
        FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
        WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p')
            AND a.attname IN ('palace_id', 'owner_id') AND NOT a.attisdropped
        GROUP BY c.oid, c.relname ORDER BY c.relname
        """
    )
    rows: list[tuple[str, str, bool]] = cursor.fetchall()
    return rows


def _wanted(cursor: CursorWrapper) -> Iterator[Policy]:
    for table, column, _ in _columns(cursor):
        usual = {PALACE: _OF_AN_OWNER, PERSON: _OF_AN_OWNER, SWEEP: "true"}
        if column == "palace_id":
            usual |= {PALACE: _OF_ONE_PALACE, PERSON: _OF_A_PERSON}
        for role, rule in usual.items():
            yield Policy(table, role, _SPECIAL.get((table, role), rule))


# A digest of the policy in the database, which shows manual changes.
_STATE = (
    "md5(concat_ws('|', p.polcmd, p.polpermissive, p.polroles::regrole[]::text,"
    " pg_get_expr(p.polqual, p.polrelid), pg_get_expr(p.polwithcheck, p.polrelid)))"
)


def _made(cursor: CursorWrapper) -> dict[tuple[str, str], str]:
    """The digest of each of our policies, by table and role; empty if it was altered.

    A policy has the name of its role.
    """
    cursor.execute(
        f"""
        SELECT c.relname::text, p.polname::text,
            CASE split_part(obj_description(p.oid, 'pg_policy'), ' ', 2) WHEN {_STATE}
            THEN split_part(obj_description(p.oid, 'pg_policy'), ' ', 1) ELSE '' END
        FROM pg_policy p JOIN pg_class c ON c.oid = p.polrelid
        WHERE c.relnamespace = current_schema()::regnamespace AND starts_with(p.polname, %s)
        """,  # noqa: S608 - put together from constants.
        [PREFIX],
    )
    return {(table, role): digest for table, role, digest in cursor.fetchall()}


def _make(cursor: CursorWrapper, policy: Policy) -> None:
    on = f'"{policy.role}" ON "{policy.table}"'
    cursor.execute(f"DROP POLICY IF EXISTS {on}")
    cursor.execute(f"CREATE POLICY {on} TO {policy.role} USING ({policy.rule})")
    cursor.execute(
        f"SELECT {_STATE} FROM pg_policy p WHERE polname = %s AND polrelid = %s::regclass",  # noqa: S608
        [policy.role, f'"{policy.table}"'],
    )
    [state] = cursor.fetchone() or [""]
    cursor.execute(f"COMMENT ON POLICY {on} IS '{policy.digest} {state}'")


# Permissive policies add up: a foreign one may allow more rows.
_FOREIGN = """
    SELECT c.relname::text FROM pg_policy p JOIN pg_class c ON c.oid = p.polrelid
    WHERE c.relnamespace = current_schema()::regnamespace AND c.relname = ANY(%s)
        AND p.polpermissive AND p.polname <> ALL(%s)
"""
# A member of another role has the rights of that role.
_TOO_MIGHTY = """
    SELECT rolname::text FROM pg_roles r WHERE rolname = ANY(%s)
        AND (rolsuper OR rolbypassrls OR rolcanlogin
            OR EXISTS (SELECT FROM pg_auth_members m WHERE m.member = r.oid))
"""


def unprotected(connection: BaseDatabaseWrapper) -> list[str]:
    """The tables whose policies are not exactly ours, and roles that could bypass them."""
    with connection.cursor() as cursor:
        made, tables = _made(cursor), _tables(cursor)
        lacking = {table for table, forced in tables.items() if not forced}
        lacking |= {
            policy.table
            for policy in _wanted(cursor)
            if made.get((policy.table, policy.role)) != policy.digest
        }
        cursor.execute(_FOREIGN, [list(tables), list(ROLES)])
        lacking |= {table for (table,) in cursor.fetchall()}
        cursor.execute(_TOO_MIGHTY, [list(ROLES)])
        return sorted(lacking | {role for (role,) in cursor.fetchall()})


_FILTERED = """
    SELECT bool_or(NOT EXISTS (
        SELECT FROM pg_policy p WHERE p.polrelid = c.oid AND pg_get_expr(p.polqual, c.oid) = 'true'
        AND EXISTS (SELECT FROM unnest(p.polroles) role WHERE pg_has_role(role, 'USAGE'))))
    FROM pg_class c WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')
        AND row_security_active(c.oid)
"""


def is_filtered(connection: psycopg.Connection[Any]) -> bool:
    """Whether policies apply to the session's account, all of which must allow every row.

    Raises:
        RowsHidden: Some policies hide rows.
    """
    [hidden] = connection.execute(_FILTERED).fetchone() or [None]
    if hidden:
        raise RowsHidden
    return hidden is not None
