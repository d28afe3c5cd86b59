"""Which frameworks are read. A new one is one module and one line here."""

from __future__ import annotations

from kb.extract.contracts.django import Django
from kb.extract.contracts.drf import RestFramework
from kb.extract.contracts.fastapi import FastAPI
from kb.extract.contracts.flask import Flask
from kb.extract.contracts.framework import Framework
from kb.extract.contracts.starlette import Starlette

FRAMEWORKS: tuple[Framework, ...] = (FastAPI(), Starlette(), Flask(), Django(), RestFramework())
