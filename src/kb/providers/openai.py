"""`openai`: any endpoint that speaks OpenAI's embeddings API (OpenAI, Ollama, vLLM, llama.cpp...)."""

from __future__ import annotations

import json
import random
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from http.client import HTTPException
from typing import Any, NamedTuple

import numpy as np

from kb.errors import UsageError
from kb.providers.api import EndpointError, Vectors, unit
from kb.providers.prefixes import prefixes_for

DEFAULT_URL = "https://api.openai.com/v1"
_DEFAULT_MODEL = "text-embedding-3-small"
_LONGEST_WAIT = 60.0
_CHARACTERS_PER_REQUEST = 400_000
"""About 100,000 tokens; servers refuse requests of 300,000."""
_CHARACTERS_PER_TEXT = 24_000
"""About 8,000 tokens of prose, 6,000 of code: what one text may have at most."""
_AGAIN = frozenset({408, 409, 425, 429, 500, 502, 503, 504})


class _Patience(NamedTuple):
    """How long an answer is waited for."""

    attempts: int
    timeout: float
    """Seconds of one attempt."""
    kept: str = ""
    """What is said of the work before."""


_DOCUMENTS = _Patience(6, 120, " What was embedded is kept: run it again")
_QUESTION = _Patience(2, 5)
"""Somebody waits for the answer to a question."""


_GIVEN_UP_SECONDS = 30.0
"""For so long nobody waits for an endpoint that a question was not answered by."""


class UnansweredError(EndpointError):
    """The endpoint did not answer at all."""


class OpenAIProvider:
    """Asks an endpoint; retries what may pass, with growing pauses, and never prints the key."""

    batch_size = 256

    def __init__(
        self, url: str, model: str, key: str | None, *, pause: Callable[[float], None] = time.sleep
    ) -> None:
        if not url.startswith(("http://", "https://")):
            raise UsageError(
                f"{url} is no URL of an embeddings endpoint", hint="it has the form https://host/v1"
            )
        self._endpoint = url.rstrip("/") + "/embeddings"
        self._model = model
        self._key = key
        self._pause = pause
        self._prefixes = prefixes_for(model)
        self._dimensions: int | None = None
        self._given_up: tuple[float, UnansweredError] | None = None
        """Until when no question is asked, and why."""
        self.model_id = f"openai:{model}"

    @property
    def dimensions(self) -> int:
        """Length of the vectors; asks the endpoint where nothing was embedded yet."""
        if self._dimensions is None:
            self._ask("dimensions")
        assert self._dimensions is not None
        return self._dimensions

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors of the texts; see `EmbeddingProvider`.

        Raises:
            EndpointError: after the last attempt, or at once where trying again would not help.
        """
        cut = [(self._prefixes.document + text)[:_CHARACTERS_PER_TEXT] for text in texts]
        if not cut:
            return np.zeros((0, self.dimensions), dtype=np.float32)
        places = list(_requests(cut, self.batch_size))
        answers = [self._request([cut[at] for at in some], _DOCUMENTS) for some in places]
        vectors = np.zeros((len(cut), answers[0].shape[1]), dtype=np.float32)
        for some, answer in zip(places, answers, strict=True):
            vectors[some] = answer
        return unit(vectors)

    def embed_query(self, text: str) -> Vectors:
        """The question with the model's prefix; an endpoint that does not answer soon is given up for a while.

        Raises:
            EndpointError: it did not answer, now or a moment ago, or refused.
        """
        vector: Vectors = unit(self._ask((self._prefixes.query + text)[:_CHARACTERS_PER_TEXT]))[0]
        return vector

    def _ask(self, text: str) -> Vectors:
        if self._given_up is not None and time.monotonic() < self._given_up[0]:
            said = self._given_up[1]
            raise UnansweredError(f"{said.message} (a moment ago)", hint=said.hint)
        try:
            return self._request([text], _QUESTION)
        except UnansweredError as error:
            self._given_up = (time.monotonic() + _GIVEN_UP_SECONDS, error)
            raise

    def _request(self, texts: list[str], patience: _Patience) -> Vectors:
        body = json.dumps({"model": self._model, "input": texts, "encoding_format": "float"}).encode()
        vectors = self._vectors(self._post(body, patience), len(texts))
        self._given_up = None
        if self._dimensions is None:
            self._dimensions = vectors.shape[1]
        if vectors.shape[1] != self._dimensions:
            raise EndpointError(
                f"{self._endpoint} answered with {vectors.shape[1]} dimensions, and {self._dimensions} before",
                hint="another model answers under this name now",
            )
        return vectors

    def _post(self, body: bytes, patience: _Patience) -> Any:
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        request = urllib.request.Request(self._endpoint, body, headers, method="POST")  # noqa: S310 - http(s) only, checked above
        for attempt in range(patience.attempts):
            wait = 0.0
            try:
                with urllib.request.urlopen(request, timeout=patience.timeout) as answer:  # noqa: S310
                    return json.load(answer)
            except urllib.error.HTTPError as error:
                with error:
                    if error.code not in _AGAIN:
                        raise self._refused(error) from None
                    problem, wait = f"HTTP {error.code}", _retry_after(error)
            except (OSError, HTTPException, ValueError) as error:
                # URLError is an OSError; ValueError is an answer that is no JSON.
                problem = str(getattr(error, "reason", error)) or type(error).__name__
            if attempt + 1 < patience.attempts:
                # The jitter keeps several processes from coming back together.
                growing = 0.5 * 2**attempt * (1 + random.random() / 4)  # noqa: S311
                self._pause(min(max(wait, growing), _LONGEST_WAIT))
        raise UnansweredError(
            f"{self._endpoint} did not answer after {patience.attempts} attempts: {problem}",
            hint=f"is the server running, and KB_EMBED_URL right?{patience.kept}",
        )

    def _refused(self, error: urllib.error.HTTPError) -> EndpointError:
        detail = error.read(500).decode("utf-8", "replace")
        if self._key:
            detail = detail.replace(self._key, "***")
        hint = None
        if error.code in (401, 403):
            hint = "set the key in the environment: KB_EMBED_API_KEY"
        elif error.code == 404:
            hint = f"does {self._endpoint} serve the model {self._model}?"
        return EndpointError(
            f"{self._endpoint} refused: HTTP {error.code} {' '.join(detail.split())}", hint=hint
        )

    def _vectors(self, answer: Any, expected: int) -> Vectors:
        try:
            rows = {int(row["index"]): row["embedding"] for row in answer["data"]}
            with np.errstate(over="ignore"):  # becomes infinite, and is refused below
                vectors = np.array([rows[at] for at in sorted(rows)], dtype=np.float32)
        except (KeyError, TypeError, ValueError):
            raise EndpointError(f"{self._endpoint} answered with something that is no embeddings") from None
        if vectors.ndim != 2 or len(vectors) != expected:
            raise EndpointError(f"{self._endpoint} answered with {len(vectors)} vectors for {expected} texts")
        if sorted(rows) != list(range(expected)):
            raise EndpointError(f"{self._endpoint} answered with vectors that are not numbered by the texts")
        if not np.isfinite(vectors).all():
            raise EndpointError(f"{self._endpoint} answered with a vector that is not finite")
        return vectors


def _requests(texts: Sequence[str], most: int) -> Iterator[list[int]]:
    """Places of the texts that go into one request each; texts without content are not sent."""
    places: list[int] = []
    characters = 0
    for at, text in enumerate(texts):
        if not text.strip():
            continue
        if places and (len(places) == most or characters + len(text) > _CHARACTERS_PER_REQUEST):
            yield places
            places, characters = [], 0
        places.append(at)
        characters += len(text)
    if places:
        yield places


def _retry_after(error: urllib.error.HTTPError) -> float:
    try:
        return float(error.headers.get("Retry-After", "0"))
    except ValueError:
        return 0.0


def open_openai(model: str | None, url: str | None, key: str | None) -> OpenAIProvider:
    """The provider for an endpoint; OpenAI's own where none is named.

    Raises:
        UsageError: OpenAI's own endpoint without a key.
    """
    if url is None and not key:
        raise UsageError(
            "the provider openai needs a key for api.openai.com",
            hint="set KB_EMBED_API_KEY, or KB_EMBED_URL to a local server (Ollama: http://localhost:11434/v1)",
        )
    return OpenAIProvider(url or DEFAULT_URL, model or _DEFAULT_MODEL, key)
