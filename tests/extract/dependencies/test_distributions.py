"""Import names and distributions, both ways."""

import pytest

from kb.extract.distributions import candidates, import_names, is_known, normalise, provider


def test_names_are_normalised_as_the_index_does():
    assert normalise("Zope.Interface__x") == "zope-interface-x"


@pytest.mark.parametrize(
    ("module", "first"),
    [
        ("yaml", "pyyaml"),
        ("PIL.Image", "pillow"),
        ("google.cloud.storage.blob", "google-cloud-storage"),
        ("requests", "requests"),
        ("flask_login.utils", "flask-login"),
    ],
)
def test_the_likeliest_distribution_comes_first(module, first):
    assert candidates(module)[0] == first


def test_the_declared_distribution_wins_over_the_likeliest():
    assert provider("psycopg2", {"psycopg2-binary", "flask"}) == "psycopg2-binary"
    assert provider("foo", {"django-foo"}) == "django-foo"
    assert provider("foo", {"bar"}) is None


def test_import_names_go_back():
    assert "yaml" in import_names("PyYAML")
    assert import_names("requests") == ("requests",)


def test_a_distribution_is_looked_for_under_the_names_that_its_wheel_has():
    assert import_names("pysaml2")[0] == "saml2"
    assert import_names("asgi-ratelimit")[0] == "ratelimit"
    assert import_names("levenshtein")[0] == "Levenshtein"
    assert not any(is_known(module) for module in ("pysaml2", "asgi_ratelimit", "levenshtein"))


def test_only_the_table_is_certain():
    assert is_known("yaml.nodes")
    assert not is_known("mystery")
