"""Which distribution provides an import name, and the other way round, where the two names differ.

A static table of well-known differences: nothing is installed, imported or asked of an index. A name
that is not in the table is taken for its own distribution, which is right for most of them; callers
that find such a guess undeclared should say that it is one (`is_known`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_SEPARATORS = re.compile(r"[-_.]+")

# Import name (possibly dotted, for namespace packages) and the distributions that provide it.
_PROVIDERS: dict[str, tuple[str, ...]] = {
    "Crypto": ("pycryptodome", "pycrypto"),
    "Cryptodome": ("pycryptodomex",),
    "IPython": ("ipython",),
    "MySQLdb": ("mysqlclient",),
    "OpenSSL": ("pyopenssl",),
    "PIL": ("pillow", "pillow-simd"),
    "PyQt5": ("pyqt5",),
    "PyQt6": ("pyqt6",),
    "Xlib": ("python-xlib",),
    "_pytest": ("pytest",),
    "absl": ("absl-py",),
    "allauth": ("django-allauth",),
    "apiclient": ("google-api-python-client",),
    "argon2": ("argon2-cffi",),
    "attr": ("attrs",),
    "azure.identity": ("azure-identity",),
    "azure.storage.blob": ("azure-storage-blob",),
    "babel": ("babel",),
    "bs4": ("beautifulsoup4",),
    "bson": ("pymongo", "bson"),
    "celery": ("celery",),
    "channels_redis": ("channels-redis",),
    "compressor": ("django-compressor",),
    "corsheaders": ("django-cors-headers",),
    "crispy_forms": ("django-crispy-forms",),
    "cv2": ("opencv-python", "opencv-python-headless", "opencv-contrib-python"),
    "dash_bootstrap_components": ("dash-bootstrap-components",),
    "dateutil": ("python-dateutil",),
    "debug_toolbar": ("django-debug-toolbar",),
    "decouple": ("python-decouple",),
    "discord": ("discord-py", "py-cord"),
    "django_celery_beat": ("django-celery-beat",),
    "django_extensions": ("django-extensions",),
    "django_filters": ("django-filter",),
    "django_htmx": ("django-htmx",),
    "django_prometheus": ("django-prometheus",),
    "django_redis": ("django-redis",),
    "django_rq": ("django-rq",),
    "django_tables2": ("django-tables2",),
    "dns": ("dnspython",),
    "docx": ("python-docx",),
    "dotenv": ("python-dotenv",),
    "drf_spectacular": ("drf-spectacular",),
    "drf_yasg": ("drf-yasg",),
    "elasticsearch_dsl": ("elasticsearch-dsl",),
    "email_validator": ("email-validator",),
    "engineio": ("python-engineio",),
    "environ": ("django-environ",),
    "faiss": ("faiss-cpu", "faiss-gpu"),
    "fitz": ("pymupdf",),
    "flask_admin": ("flask-admin",),
    "flask_babel": ("flask-babel",),
    "flask_caching": ("flask-caching",),
    "flask_cors": ("flask-cors",),
    "flask_jwt_extended": ("flask-jwt-extended",),
    "flask_limiter": ("flask-limiter",),
    "flask_login": ("flask-login",),
    "flask_mail": ("flask-mail",),
    "flask_migrate": ("flask-migrate",),
    "flask_restful": ("flask-restful",),
    "flask_restx": ("flask-restx",),
    "flask_session": ("flask-session",),
    "flask_socketio": ("flask-socketio",),
    "flask_sqlalchemy": ("flask-sqlalchemy",),
    "flask_wtf": ("flask-wtf",),
    "fsspec": ("fsspec",),
    "git": ("gitpython",),
    "github": ("pygithub",),
    "gitlab": ("python-gitlab",),
    "google.api_core": ("google-api-core",),
    "google.auth": ("google-auth",),
    "google.cloud.bigquery": ("google-cloud-bigquery",),
    "google.cloud.firestore": ("google-cloud-firestore",),
    "google.cloud.logging": ("google-cloud-logging",),
    "google.cloud.pubsub_v1": ("google-cloud-pubsub",),
    "google.cloud.storage": ("google-cloud-storage",),
    "google.oauth2": ("google-auth",),
    "google.protobuf": ("protobuf",),
    "googleapiclient": ("google-api-python-client",),
    "graphene_django": ("graphene-django",),
    "grpc": ("grpcio",),
    "grpc_tools": ("grpcio-tools",),
    "guardian": ("django-guardian",),
    "haystack": ("django-haystack", "haystack-ai"),
    "html2text": ("html2text",),
    "httplib2": ("httplib2",),
    "import_export": ("django-import-export",),
    "jose": ("python-jose",),
    "jwt": ("pyjwt",),
    "kafka": ("kafka-python", "kafka-python-ng"),
    "ldap": ("python-ldap",),
    "ldap3": ("ldap3",),
    "levenshtein": ("levenshtein", "python-levenshtein"),
    "lxml_html_clean": ("lxml-html-clean",),
    "magic": ("python-magic",),
    "markdown": ("markdown",),
    "memcache": ("python-memcached",),
    "model_utils": ("django-model-utils",),
    "mpl_toolkits": ("matplotlib",),
    "mptt": ("django-mptt",),
    "multipart": ("python-multipart",),
    "mysql": ("mysql-connector-python",),
    "nacl": ("pynacl",),
    "oauth2_provider": ("django-oauth-toolkit",),
    "odf": ("odfpy",),
    "opentelemetry": ("opentelemetry-api", "opentelemetry-sdk"),
    "opensearchpy": ("opensearch-py",),
    "parso": ("parso",),
    "past": ("future",),
    "peewee": ("peewee",),
    "phonenumber_field": ("django-phonenumber-field",),
    "pkg_resources": ("setuptools",),
    "polymorphic": ("django-polymorphic",),
    "pptx": ("python-pptx",),
    "psycopg": ("psycopg",),
    "psycopg2": ("psycopg2", "psycopg2-binary"),
    "pwd_context": ("passlib",),
    "pyarrow": ("pyarrow",),
    "pydantic_settings": ("pydantic-settings",),
    "pylibmc": ("pylibmc",),
    "pymysql": ("pymysql",),
    "pythonjsonlogger": ("python-json-logger",),
    "pytest_django": ("pytest-django",),
    "pywintypes": ("pywin32",),
    "ratelimit": ("django-ratelimit", "ratelimit"),
    "rest_framework": ("djangorestframework",),
    "rest_framework_simplejwt": ("djangorestframework-simplejwt",),
    "reversion": ("django-reversion",),
    "ruamel": ("ruamel-yaml",),
    "ruamel.yaml": ("ruamel-yaml",),
    "sass": ("libsass",),
    "sentry_sdk": ("sentry-sdk",),
    "serial": ("pyserial",),
    "simple_history": ("django-simple-history",),
    "skimage": ("scikit-image",),
    "sklearn": ("scikit-learn",),
    "slugify": ("python-slugify",),
    "snappy": ("python-snappy",),
    "social_core": ("social-auth-core",),
    "social_django": ("social-auth-app-django",),
    "socketio": ("python-socketio",),
    "socks": ("pysocks",),
    "speech_recognition": ("speechrecognition",),
    "sqlalchemy_utils": ("sqlalchemy-utils",),
    "sqlite_utils": ("sqlite-utils",),
    "starlette_context": ("starlette-context",),
    "storages": ("django-storages",),
    "strawberry": ("strawberry-graphql",),
    "strawberry_django": ("strawberry-graphql-django",),
    "taggit": ("django-taggit",),
    "telegram": ("python-telegram-bot",),
    "timezone_field": ("django-timezone-field",),
    "tlz": ("toolz",),
    "tree_sitter": ("tree-sitter",),
    "typing_extensions": ("typing-extensions",),
    "umap": ("umap-learn",),
    "usb": ("pyusb",),
    "websocket": ("websocket-client",),
    "whisper": ("openai-whisper",),
    "win32api": ("pywin32",),
    "win32con": ("pywin32",),
    "wx": ("wxpython",),
    "xdist": ("pytest-xdist",),
    "yaml": ("pyyaml",),
    "zmq": ("pyzmq",),
    "zope.interface": ("zope-interface",),
}  # fmt: skip


def normalise(distribution: str) -> str:
    """The PEP 503 form of a distribution's name: lower case, runs of `-_.` as one hyphen."""
    return _SEPARATORS.sub("-", distribution.strip()).lower()


def _inverse(table: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    names: dict[str, list[str]] = {}
    for module, providers in table.items():
        for provider in providers:
            names.setdefault(provider, []).append(module)
    return {provider: tuple(sorted(modules)) for provider, modules in names.items()}


_PROVIDED = _inverse(_PROVIDERS)


NAMESPACES = frozenset(
    {"google", "azure", "zope", "ruamel", "backports", "jaraco", "sphinxcontrib", "opentelemetry", "airflow"}
)
"""Top-level names that many distributions share: their submodules tell them apart."""


def is_known(module: str) -> bool:
    """Whether the table itself names a distribution for the module or one of its parents."""
    return any(prefix in _PROVIDERS for prefix in _prefixes(module))


def candidates(module: str) -> tuple[str, ...]:
    """Normalised distributions that may provide a (dotted) import name, the likeliest first.

    The longest dotted prefix that the table knows comes first (`google.cloud.storage.Blob` is
    `google-cloud-storage`), then the prefixes' own names (`zope.event` is `zope-event`, then `zope`).
    """
    prefixes = _prefixes(module)
    found: list[str] = []
    for prefix in prefixes:
        found.extend(_PROVIDERS.get(prefix, ()))
    found.extend(normalise(prefix) for prefix in prefixes)
    return tuple(dict.fromkeys(found))


def import_names(distribution: str) -> tuple[str, ...]:
    """Import names (possibly dotted) that a distribution may provide, the table's first."""
    name = normalise(distribution)
    own = name.replace("-", "_")
    names = [*_PROVIDED.get(name, ()), own]
    # `flask-login` is `flask_login`, `zope-event` is `zope.event`, `python-foo` and `django-foo` often `foo`.
    if "-" in name:
        names.append(name.replace("-", "."))
        prefixes = [prefix for prefix in ("python-", "django-", "py") if name.startswith(prefix)]
        names.extend(name.removeprefix(prefix).replace("-", "_") for prefix in prefixes)
    return tuple(dict.fromkeys(names))


def provider(module: str, declared: Iterable[str]) -> str | None:
    """The declared (normalised) distribution that provides the import name, None if none does."""
    known = set(declared)
    for candidate in candidates(module):
        if candidate in known:
            return candidate
    top = module.split(".", 1)[0]
    for name in sorted(known):
        if top in import_names(name):
            return name
    return None


def _prefixes(module: str) -> list[str]:
    parts = module.split(".")
    return [".".join(parts[:length]) for length in range(len(parts), 0, -1)]
