"""Django models: fields with their options, foreign keys, many-to-many through, abstract bases, Meta."""

from __future__ import annotations

from kb.extract.entities.records import Field, RelationHint, Shape
from kb.extract.expressions import (
    argument,
    brief,
    dotted,
    is_true,
    keywords,
    last,
    positional,
    render,
    text_of,
)
from kb.extract.reading import ClassSource, Names
from kb.structure.facts import Assignment, Expr

_MODELS = (
    "django.db.models.",
    "django.contrib.gis.db.models.",
    "django.contrib.postgres.fields.",
    "django.contrib.contenttypes.fields.",
)
_TO_ONE = frozenset({"ForeignKey", "OneToOneField", "ParentalKey", "TreeForeignKey", "TreeOneToOneField"})
_TO_MANY = frozenset(
    {
        "ManyToManyField",
        "ParentalManyToManyField",
        "TreeManyToManyField",
        "GenericRelation",
        "TaggableManager",
    }
)
_GENERIC = frozenset({"GenericForeignKey"})
_RELATED = _TO_ONE | _TO_MANY | _GENERIC
_WORDS = [
    "max_length",
    "unique",
    "db_index",
    "choices",
    "validators",
    "max_digits",
    "decimal_places",
    "auto_now",
    "auto_now_add",
    "editable",
    "upload_to",
    "on_delete",
    "limit_choices_to",
    "to_field",
    "unique_for_date",
    "db_column",
    "symmetrical",
    "db_default",
    "base_field",
    "size",
    "blank",
]


class Django:
    """Class attributes that are fields, by what their constructor is."""

    id = "django"
    bases = frozenset(
        [
            "django.db.models.Model",
            "django.db.models.base.Model",
            "django.contrib.gis.db.models.Model",
            "django.contrib.auth.models.AbstractUser",
            "django.contrib.auth.models.AbstractBaseUser",
            "django.contrib.auth.base_user.AbstractBaseUser",
            "django.contrib.auth.models.PermissionsMixin",
            "django.contrib.auth.models.User",
            "django.contrib.auth.models.Group",
            "mptt.models.MPTTModel",
            "polymorphic.models.PolymorphicModel",
            "model_utils.models.TimeStampedModel",
            "model_utils.models.UUIDModel",
            "django_extensions.db.models.TimeStampedModel",
            "treebeard.mp_tree.MP_Node",
            "wagtail.models.Page",
            "wagtail.models.Orderable",
            "wagtail.snippets.models.Snippet",
            "modelcluster.models.ClusterableModel",
            "taggit.models.TagBase",
            "taggit.models.ItemBase",
            "taggit.models.GenericTaggedItemBase",
            "taggit.models.TaggedItemBase",
            "django.contrib.sessions.base_session.AbstractBaseSession",
            "parler.models.TranslatableModel",
        ]
    )
    decorators: frozenset[str] = frozenset()
    constructors: frozenset[str] = frozenset()

    def claims(self, source: ClassSource) -> bool:
        """A field of `django.db.models` makes a mixin, or a model whose base is not known."""
        for entry in source.entries:
            call = entry.value if entry.value is not None and entry.value.kind == "call" else None
            if call is not None and _looks_like_field(call) and source.qualified(call).startswith(_MODELS):
                return True
        return False

    def inherits(self, base: ClassSource) -> bool:
        """Fields of abstract bases, mixins and parents count."""
        return True

    def fields(self, source: ClassSource) -> list[Field]:
        """The class's fields in source order; `name = None` takes an inherited one away."""
        found: dict[str, Field] = {}
        for entry in source.entries:
            value = entry.value
            if value is None or value.kind != "call" or entry.name.startswith("__"):
                continue
            kind = self._kind(source, value)
            if kind:
                found[entry.name] = self._field(entry, value, kind)
        return list(found.values())

    def _kind(self, source: ClassSource, call: Expr) -> str:
        """The field class's name as Django knows it, "" for a call that makes no field."""
        name = last(call.value)
        base = source.named(call.value, source.symbol_path) if call.value else None
        if base is None:
            return ""
        if base.qualified.startswith(_MODELS):
            return name if _looks_like_field(call) else ""
        if base.source is not None:
            return self._internal_kind(base.source, name)
        return name if _looks_like_field(call) and not base.qualified.startswith("django.forms") else ""

    def _internal_kind(self, field_class: ClassSource, name: str) -> str:
        for ancestor in field_class.ancestry():
            known = last(ancestor.qualified)
            if known in _RELATED:
                return known
            if ancestor.qualified.startswith(_MODELS) and known.endswith("Field"):
                return name
            if (
                ancestor.source is None
                and known.endswith("Field")
                and not ancestor.qualified.startswith("django.forms")
            ):
                return name
        return ""

    def _field(self, entry: Assignment, call: Expr, kind: str) -> Field:
        options = keywords(call)
        default = options.get("default")
        nullable = is_true(options.get("null"))
        blank = is_true(options.get("blank"))
        hints = self._relations(call, kind)
        choices = options.get("choices")
        if choices is not None and choices.kind == "name" and choices.value.endswith(".choices"):
            hints += (RelationHint(choices.value.removesuffix(".choices"), "name", "choice", via="choices"),)
        elif choices is not None and choices.kind == "name":
            hints += (RelationHint(choices.value, "name", "choice", via="choices"),)
        automatic = "auto_now" in options or "auto_now_add" in options or "db_default" in options
        to_many = kind in _TO_MANY or kind in _GENERIC
        label = _words(options.get("verbose_name")) or _words(options.get("help_text"))
        first = positional(call)[:1]
        if not label and first and kind not in _RELATED:
            label = _words(first[0])
        return Field(
            entry.name,
            entry.span,
            last(call.value),
            required=not (
                blank or nullable or default is not None or automatic or kind.endswith("AutoField") or to_many
            ),
            nullable=None if to_many else nullable,
            default=None if default is None else brief(default),
            primary_key=is_true(options.get("primary_key")),
            foreign_key=hints[0].target if kind in _TO_ONE and hints else "",
            constraints={
                **{word: brief(options[word]) for word in _WORDS if word in options},
                **(
                    {"on_delete": brief(positional(call)[1])}
                    if kind in _TO_ONE and len(positional(call)) > 1
                    else {}
                ),
            },
            description=label,
            relations=hints,
        )

    def _relations(self, call: Expr, kind: str) -> tuple[RelationHint, ...]:
        if kind in _GENERIC:
            return (RelationHint("any model", "dynamic", "one", via=kind, optional=False),)
        if kind not in _RELATED:
            return ()
        target = argument(call, "to", 0)
        through = argument(call, "through")
        related = (text_of(argument(call, "related_name")) or "").rstrip("+")
        if target is None and kind == "TaggableManager":
            target = through or Expr("str", "taggit.Tag")
        written, by = (brief(target), "dynamic")
        if target is not None and target.kind == "str":
            written, by = target.value, "django"
        elif target is not None and (
            dotted(target).endswith("AUTH_USER_MODEL") or last(dotted(target)) == "get_user_model"
        ):
            written, by = render(target), "user model"
        elif target is not None and target.kind == "name":
            written, by = target.value, "name"
        return (
            RelationHint(
                written,
                by,
                "many" if kind in _TO_MANY else "one",
                related,
                kind,
                (text_of(through) or brief(through)) if through is not None else "",
                optional=False,
            ),
        )

    def shape(self, source: ClassSource) -> Shape:
        """A model, abstract model, proxy or mixin, with its Meta."""
        meta = {name: entry for name, entry in source.nested("Meta").items() if not name.startswith("_")}
        notes: dict[str, object] = {}
        form = "model"
        if "abstract" in meta and is_true(meta["abstract"].value):
            form = "abstract model"
        elif "proxy" in meta and is_true(meta["proxy"].value):
            form = "proxy model"
        elif not any(base.qualified in self.bases for base in source.ancestry()):
            form = "model" if source.bases() else "mixin"
        table = meta["db_table"].value if "db_table" in meta else None
        if table is not None:
            notes["table"] = text_of(table) or brief(table)
        rest = {n: brief(e.value) for n, e in meta.items() if n not in ("abstract", "proxy", "db_table")}
        if rest:
            notes["meta"] = rest
        removed = [e.name for e in source.entries if e.value is not None and render(e.value) == "None"]
        if removed:
            notes["removed"] = removed
        return Shape(self.id, form, tuple(self.fields(source)), notes)

    def functional(self, names: Names, assignment: Assignment) -> Shape | None:
        """Django has no functional form."""
        return None


def _words(expr: Expr | None) -> str:
    """The text of a literal, or of one that is marked for translation (`_("name")`)."""
    if expr is not None and expr.kind == "call" and len(expr.items) == 2:
        expr = expr.items[1]
    return text_of(expr) or ""


def _looks_like_field(call: Expr) -> bool:
    name = last(call.value)
    return name.endswith("Field") or name in _RELATED
