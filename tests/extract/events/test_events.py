"""Events in odd surroundings; what is usual is in the events gate."""

import itertools

from evals.folders import by_key, linked
from kb.extract.events.extractor import EventsExtractor


def knowledge(files: dict[str, str]):
    return by_key(linked({path: text.encode() for path, text in files.items()}, [EventsExtractor()]))


def test_a_socket_that_sends_and_connects_is_no_signal():
    text = "import socket\ndef f():\n    s = socket.socket()\n    s.connect(('h', 1))\n    s.send(b'x')\n"
    assert knowledge({"net.py": text}) == {}


def test_a_dict_is_no_cache():
    assert knowledge({"d.py": "d = {}\ndef f():\n    d.get('a')\n    return {}.get('b')\n"}) == {}


def test_a_task_decorator_of_something_else_is_no_task():
    assert knowledge({"t.py": "from invoke import task\n@task\ndef build(c):\n    pass\n"}) == {}


def test_a_signal_that_is_re_exported_is_one_signal():
    files = {
        "p/__init__.py": "from p.signals import done as finished\n",
        "p/signals.py": "from django.dispatch import Signal\ndone = Signal()\n",
        "q.py": "from p.signals import done\ndef f():\n    done.send(sender=None)\n",
    }
    found = knowledge(files)
    assert list(found) == ["event:signal:p.signals.done"]
    assert set(found["event:signal:p.signals.done"].places) == {
        ("declaration", "p/signals.py", 2, 2),
        ("emitter", "q.py", 3, 3),
    }


def test_a_validator_of_a_field_that_is_not_there_says_so():
    text = (
        "from pydantic import BaseModel, field_validator\nclass A(BaseModel):\n    x: int\n"
        "    @field_validator('y')\n    def check(cls, v):\n        return v\n"
    )
    body = knowledge({"a.py": text})["event:validator:a.A.check"].draft.body
    assert body["not_found"] == [{"field": "y"}]


def test_attrs_validators_stand_on_their_attribute():
    text = (
        "import attr\n@attr.s\nclass A:\n    size = attr.ib()\n"
        "    @size.validator\n    def check(self, attribute, value):\n        pass\n"
    )
    entry = knowledge({"a.py": text})["event:validator:a.A.check"]
    assert entry.places == (("handler", "a.py", 5, 6), ("field", "a.py", 4, 4))


def test_flask_hooks_go_by_moment_and_function():
    text = (
        "from flask import Flask\napp = Flask(__name__)\n@app.before_request\ndef load():\n    pass\n"
        "def close(error):\n    pass\napp.teardown_appcontext(close)\n"
    )
    found = knowledge({"app.py": text})
    assert sorted(found) == [
        "event:hook:flask:before_request:app.load",
        "event:hook:flask:teardown_appcontext:app.close",
    ]
    assert ("handler", "app.py", 6, 6) in found["event:hook:flask:teardown_appcontext:app.close"].places


def test_a_key_kept_in_a_variable_that_has_two_values_is_made_at_run_time():
    text = (
        "from django.core.cache import cache\ndef f(a):\n    key = 'one'\n    if a:\n        key = 'two'\n"
        "    return cache.get(key)\n"
    )
    assert list(knowledge({"c.py": text})) == ["event:dynamic:c"]


def test_a_send_of_what_a_variable_keeps_is_not_lost():
    text = (
        "from celery import Celery, Task\napp = Celery()\nclass Big(Task):\n    pass\n"
        "big = app.tasks.register(Big())\ndef f():\n    big.delay()\n"
    )
    entry = knowledge({"t.py": text})["event:task:t.big"]
    assert entry.draft.body["declared"] == "by what a variable is bound to"
    assert entry.places == (("emitter", "t.py", 7, 7),)


def test_a_signal_that_a_celery_application_has_is_a_signal():
    text = "from celery import Celery\napp = Celery()\n@app.on_after_configure.connect\ndef plan(sender):\n    pass\n"
    entry = knowledge({"t.py": text})["event:signal:celery.Celery().on_after_configure"]
    assert entry.draft.body["handlers"] == [{"function": "t.plan", "via": "connect"}]


def test_a_progress_bar_has_no_background_tasks():
    text = "from rich.progress import Progress\nProgress().add_task('Counting', total=3)\n"
    assert knowledge({"p.py": text}) == {}


def test_a_mapping_of_settings_that_is_called_redis_is_no_cache():
    text = "REDIS = {'a': 1}\nTASKS_REDIS = REDIS['tasks']\nTASKS_REDIS.get('HOST')\nREDIS['b'].get('PORT')\n"
    assert knowledge({"s.py": text}) == {}


def test_a_decorator_around_two_frameworks_is_of_the_one_that_is_written_first():
    text = (
        "import celery\nimport dramatiq\nimport huey\nimport rq\n"
        "def own_task(f):\n    {0}.{1}(f)\n    {2}.{3}(f)\n    {4}.{5}(f)\n    return f\n"
        "@own_task\ndef send():\n    pass\n"
    )
    verbs = {"celery": "task", "dramatiq": "actor", "huey": "task", "rq": "job"}
    said = {
        order: [
            entry.draft.body["framework"]
            for entry in knowledge(
                {"a.py": text.format(*(part for name in order for part in (name, verbs[name])))}
            ).values()
        ]
        for order in itertools.permutations(verbs, 3)
    }
    assert said == {order: [order[0]] for order in said}


def test_a_signal_that_a_loop_goes_through_is_connected():
    text = (
        "from django.db.models.signals import post_save, pre_delete\nfrom django.dispatch import Signal\n"
        "paid = Signal()\nALL = [paid, post_save]\ndef note(**given): ...\n"
        "for signal in (post_save, pre_delete):\n    signal.connect(note)\n"
        "def tell():\n    for one in ALL:\n        one.send(None)\n"
        "for link in links():\n    link.connect(note)\n"
    )
    found = knowledge({"m.py": text})
    assert {
        key: sorted(set(entry.draft.body) & {"handlers", "emitters"}) for key, entry in found.items()
    } == {
        "event:signal:m.paid": ["emitters"],
        "event:signal:django.db.models.signals.post_save": ["emitters", "handlers"],
        "event:signal:django.db.models.signals.pre_delete": ["handlers"],
    }


def test_every_key_of_a_call_and_of_a_pipeline_under_any_name_is_read():
    text = (
        "import redis\nclient = redis.Redis()\ndef f(i, keys):\n    client.set(f'user:{i}', 1)\n"
        "    client.delete('a', f'user:{i}')\n    client.unlink(*keys)\n"
        "    with client.pipeline() as p:\n        p.incr('count')\n"
        "    q = client.pipeline(transaction=False)\n    q.delete('count')\n"
    )
    found = knowledge({"m.py": text})
    body = found["cache:key:user:*"].draft.body
    assert [entry["via"] for entry in body["deletes"]] == ["delete"]
    assert "invalidation" not in body
    assert set(found["cache:key:count"].draft.body) >= {"writes", "deletes"}
    assert found["event:dynamic:m"].draft.body["cache"] == 1


def test_a_celery_task_with_a_name_of_its_own_is_not_found_by_that_of_its_function():
    files = {
        "jobs.py": (
            "from celery import shared_task\n@shared_task(name='mail.send')\ndef send(): ...\n"
            "@shared_task\ndef plain(): ...\n"
        ),
        "beat.py": (
            "beat_schedule = {'a': {'task': 'jobs.send'}, 'b': {'task': 'jobs.plain'}, 'c': {'task': 'mail.send'}}\n"
        ),
    }
    found = knowledge(files)
    assert {key: len(entry.draft.body["emitters"]) for key, entry in found.items()} == {
        "event:task:jobs.send": 1,
        "event:task:jobs.plain": 1,
        "event:task:undeclared:jobs.send": 1,
    }
    assert found["event:task:undeclared:jobs.send"].draft.body["declared"] == "under another name: mail.send"


def test_a_function_whose_results_a_call_keeps_is_a_cache_of_what_the_result_is_given_to():
    files = {
        "m.py": (
            "import functools\nfrom functools import cache, cached_property, lru_cache\nimport other\nSIZE = 3\n"
            "def f(x): ...\nmemo = lru_cache(f)\nsized = functools.lru_cache(maxsize=8)(f)\n"
            "f = cache(f)\nshort = cache(lambda x: x)\nfar = lru_cache(other.fn)\ndecorator = lru_cache(SIZE)\n"
            "class C:\n    prop = cached_property(f)\n    def __init__(self):\n"
            "        self.get = lru_cache(8)(self._get)\n    def _get(self): ...\n"
            "def wrap(fn):\n    return cache(fn), cache(lambda: fn)\n"
        ),
        "n.py": "from m import memo\ndef reset():\n    memo.cache_clear()\n",
        "own.py": "def cache(x): ...\ny = cache(reset)\n",
    }
    found = knowledge(files)
    assert {key: (entry.draft.body["of"], entry.draft.confidence) for key, entry in found.items()} == {
        "cache:functools:m.memo": ("m.f", 100),
        "cache:functools:m.sized": ("m.f", 100),
        "cache:functools:m.f": ("m.f", 100),
        "cache:functools:m.short": ("lambda x: x", 80),
        "cache:functools:m.far": ("other.fn", 80),
        "cache:functools:m.C.prop": ("m.f", 100),
        "cache:functools:m.C.get": ("m.C._get", 100),
        "cache:functools:m.wrap.<locals>.fn": ("fn", 80),
        "cache:functools:m.wrap.<locals>.<expression>": ("lambda: fn", 80),
    }
    assert found["cache:functools:m.memo"].places == (
        ("handler", "m.py", 5, 5),
        ("declaration", "m.py", 6, 6),
        ("delete", "n.py", 3, 3),
    )
    assert found["cache:functools:m.sized"].draft.body["maxsize"] == "8"


def test_views_of_django_that_a_call_or_a_method_decorator_caches_are_cached():
    files = {
        "v.py": (
            "from django.utils.decorators import method_decorator\n"
            "from django.views.decorators.cache import cache_page, never_cache\ndef page(request): ...\n"
            "@method_decorator(cache_page(60), name='dispatch')\nclass V: ...\n"
            "class W:\n    @method_decorator([never_cache, cache_page(5)])\n    def get(self, request): ...\n"
            "@method_decorator(never_cache, name='dispatch')\nclass X: ...\n"
        ),
        "urls.py": (
            "from django.urls import path\nfrom django.views.decorators.cache import cache_page\nimport v\n"
            "urlpatterns = [path('', cache_page(30)(v.page))]\n"
        ),
    }
    found = knowledge(files)
    assert {key: entry.draft.body["arguments"] for key, entry in found.items()} == {
        "cache:django-view:v.V": ["60"],
        "cache:django-view:v.W.get": ["5"],
        "cache:django-view:v.page": ["30"],
    }
    assert found["cache:django-view:v.page"].places == (
        ("handler", "v.py", 3, 3),
        ("declaration", "urls.py", 4, 4),
    )


def test_a_class_that_is_registered_is_a_task_under_its_own_name_and_what_keeps_it_sends_it():
    files = {
        "proj/__init__.py": "",
        "proj/app.py": "from celery import Celery\napp = Celery('proj')\n",
        "proj/base.py": "from celery import Task\nclass Base(Task):\n    abstract = True\n",
        "proj/tasks.py": (
            "from celery import Task\nfrom proj.app import app\nfrom proj.base import Base\nPRE = 'x'\n"
            "class Mail(Base):\n    name = 'mail.send'\n    def run(self): ...\n"
            "class Plain(Task):\n    def run(self): ...\nclass Untold(Task):\n    name = PRE + '.untold'\n"
            "class Never(Task):\n    name = 'never'\n"
            "mail = app.register_task(Mail())\napp.register_task(Plain)\nuntold = Untold()\n"
            "app.register_task(untold)\ndef register(task):\n    app.register_task(task)\n"
        ),
        "proj/send.py": (
            "from proj.app import app\nfrom proj.tasks import mail, untold\nmail.delay(1)\nuntold.apply_async()\n"
            "app.send_task('mail.send')\napp.send_task('proj.tasks.Plain')\napp.send_task('never')\n"
        ),
        "own.py": "class R:\n    def register_task(self, t): ...\nclass T: ...\nr = R()\nr.register_task(T())\n",
    }
    found = knowledge(files)
    assert {key: (entry.draft.confidence, entry.places) for key, entry in found.items()} == {
        "event:task:proj.tasks.Mail": (
            100,
            (
                ("declaration", "proj/tasks.py", 5, 5),
                ("registration", "proj/tasks.py", 14, 14),
                ("emitter", "proj/send.py", 3, 3),
                ("emitter", "proj/send.py", 5, 5),
            ),
        ),
        "event:task:proj.tasks.Plain": (
            100,
            (
                ("declaration", "proj/tasks.py", 8, 8),
                ("registration", "proj/tasks.py", 15, 15),
                ("emitter", "proj/send.py", 6, 6),
            ),
        ),
        "event:task:proj.tasks.Untold": (
            60,
            (
                ("declaration", "proj/tasks.py", 10, 10),
                ("registration", "proj/tasks.py", 17, 17),
                ("emitter", "proj/send.py", 4, 4),
            ),
        ),
        "event:dynamic:proj.tasks": (60, (("emitter", "proj/tasks.py", 19, 19),)),
        "event:task:never": (80, (("emitter", "proj/send.py", 7, 7),)),
    }
    assert found["event:task:proj.tasks.Mail"].draft.body["name"] == "mail.send"
    assert found["event:task:proj.tasks.Untold"].draft.body["name"] == 'PRE + ".untold"'


def test_names_and_words_of_a_framework_stand_in_bodies_without_quotes():
    text = (
        "from celery import shared_task\nfrom pydantic import BaseModel, field_validator\n"
        "from django.views.decorators.cache import cache_page\nX = 'x'\n"
        "@shared_task(name='mail.send', queue='fast', rate_limit=X)\ndef send(): ...\n"
        "@cache_page(60, key_prefix='page')\ndef page(request): ...\n"
        "class A(BaseModel):\n    x: int\n    @field_validator('x', mode='before')\n    def check(cls, v): ...\n"
    )
    found = knowledge({"m.py": text})
    task = found["event:task:m.send"].draft.body
    assert (task["name"], task["queue"], task["rate_limit"]) == ("mail.send", "fast", "X")
    assert found["cache:django-view:m.page"].draft.body["key_prefix"] == "page"
    assert found["event:validator:m.A.check"].draft.body["mode"] == "before"
