from __future__ import annotations

import psycopg
import pytest

from kb.errors import DatabaseError
from kb.store.database import Database, ReaderPool


def test_a_session_has_the_role_it_was_asked_for_and_no_more(database: Database) -> None:
    for open_session, role in ((database.writer, "kb_writer"), (database.reader, "kb_reader")):
        with open_session() as connection:
            row = connection.execute(
                "SELECT current_user::text, rolsuper, rolcreatedb, rolcreaterole,"
                " (SELECT count(*) FROM pg_class WHERE relowner = r.oid)"
                " FROM pg_roles r WHERE rolname = current_user"
            ).fetchone()
        assert row == (role, False, False, False, 0)
