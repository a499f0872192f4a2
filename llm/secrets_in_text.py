"""Find passwords, keys and card numbers in a text, and mask them.

Tokens are found by the detectors of `detect-secrets`, private keys and card numbers here: its own
detector finds only a key's first line. What is found is never stored, logged or counted by itself.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from ipaddress import ip_address
from typing import Any, TypeVar
from urllib.parse import urlsplit

from django.conf import settings

# The letter of the tag.
TAG = "s"
SECRET, CARD = "secret", "card"
MASKS = {SECRET: "[secret removed]", CARD: "[card number removed]"}
_DETECTORS = {
    "aws": "AWSKeyDetector",
    "azure_storage_key": "AzureStorageKeyDetector",
    "basic_auth": "BasicAuthDetector",
    "discord": "DiscordBotTokenDetector",
    "github_token": "GitHubTokenDetector",
    "gitlab_token": "GitLabTokenDetector",
    "jwt": "JwtTokenDetector",
    "mailchimp": "MailchimpDetector",
    "npm": "NpmDetector",
    "openai": "OpenAIDetector",
    "pypi_token": "PypiTokenDetector",
    "sendgrid": "SendGridDetector",
    "slack": "SlackDetector",
    "square_oauth": "SquareOAuthDetector",
    "stripe": "StripeDetector",
    "telegram_token": "TelegramBotTokenDetector",
    "twilio": "TwilioKeyDetector",
}
_GROUPED = {"aws", "basic_auth", "npm"}
# A detector's time may grow with the square of what it reads: it gets pieces. Two neighbours have
# in common more than the longest token.
PIECE_CHARS, OVERLAP_CHARS = 2_000, 600
# What those detectors do not know, by its beginning. `NpmDetector` finds only a line of `.npmrc`.
_BEGINNINGS = (
    r"sk-(?:ant|or|proj|svcacct)-[\w-]{20,}",
    r"sk-(?=[a-zA-Z]{0,40}\d)[a-zA-Z\d]{32,}",
    r"AIza[\w-]{35}",
    r"ya29\.[\w.-]{30,}",
    r"(?:hf|gsk|vercel_blob_rw)_\w{30,}",
    r"(?:xai-|github_pat_)\w{40,}",
    r"(?:npm|r8)_[a-zA-Z\d]{36,}",
    r"xapp-\d-[\w-]{40,}",
    r"shp(?:at|ca|pa|ss)_[a-fA-F\d]{32,}",
    r"dapi[a-f\d]{32,}(?:-\d)?",
    r"do[opr]_v1_[a-f\d]{64}",
    r"dp\.(?:pt|st|ct|sa|scim|audit)\.[\w.-]{40,}",
    r"hv[sbr]\.(?=[a-zA-Z_-]{0,60}\d)[\w-]{24,}",
    r"(?:GOCSPX-|dckr_[po]at_)[\w-]{27,}",
    r"glsa_[a-zA-Z\d]{32}_[a-fA-F\d]{8}",
    r"glc_[a-zA-Z\d+/]{32,}={0,3}",
    r"ATATT3[\w-]{60,}(?:=[a-fA-F\d]{8})?",
    r"(?:pplx-|ntn_|lin_(?:api|oauth)_)[a-zA-Z\d]{40,}",
    r"PMAK-[a-f\d]{24}-[a-f\d]{34}",
    r"NRAK-[A-Z\d]{27,}",
    r"(?:figd_|1//0)[\w-]{40,}",
    r"sbp_[a-f\d]{40,}",
    r"pscale_(?:tkn|oauth|pw)_[\w.-]{32,}",
    r"(?:sntrys|fm2)_[\w+/=]{60,}",
    r"pat[a-zA-Z\d]{14}\.[a-f\d]{64}",
    r"AGE-SECRET-KEY-1[A-Z\d]{50,}",
    r"loci[_-](?:(?:access|refresh|code)-)?[\w-]{43}(?![\w-])",
    r"whsec_[\w+/=]{24,}",
    r"https://(?:canary\.|ptb\.)?discord(?:app)?\.com/api/(?:v\d+/)?webhooks/\d{16,20}/[\w-]{60,}",
)
# Those, and secrets that only their name shows. A letter of another script may stand beside one.
_MORE_TOKENS = (
    re.compile(rf"\b(?:{'|'.join(_BEGINNINGS)})", re.ASCII),
    re.compile(r"\bBearer +(?=\S{0,40}\d)([\w.~+/-]{20,}=*)", re.ASCII | re.IGNORECASE),
    re.compile(
        r"secret_?(?:access_?)?key[\"']{0,2}\s{0,4}[=:]\s{0,4}[\"']{0,2}([\w+/]{40})(?![\w+/=])",
        re.ASCII | re.IGNORECASE,
    ),
    re.compile(r"://:([^\s/@:\"'<>]{3,200})@"),
)
# `KeywordDetector` takes any value for a secret, an empty form's too, and reads lines of code.
_NAME = (
    r"password|passwd|passphrase|pwd|secret(?:[ _-]?key)?|(?:api|auth|access)[ _-]?key"
    r"|(?:private|master)[_-]?key|(?:access|auth|refresh|bot|api|bearer|session)[_-]?token"
)
# Not before a colon. Other tokens are cursors of pages and the like, or have a name in capitals.
_OTHER_NAME = (
    r"(?<![a-z])pass|(?<![a-z_-])token"
    r"|(?-i:(?<=[A-Z\d]_)(?<!PAGE_)(?<!SYNC_)(?<!NEXT_)(?<!CSRF_)TOKEN)"
)
# No path, variable, template or call; within quotation marks it ends with them.
_VALUE = r"(?![/.~$<{%*=])[^\s\"'`<>(){}\[\],;&|]{7,200}[^\s\"'`<>(){}\[\],;&|.:]"
_ASSIGNMENTS = (
    re.compile(
        rf"(?:{_NAME}|{_OTHER_NAME})(?:[\"'\]]{{0,3}}\s{{0,4}}(?:={{1,3}}>?|:=?)\s{{0,4}}"
        rf"([\"'`])\1?(?P<quoted>{_VALUE})\1"
        rf"| ?=(?: (?=\S+[ \t]*$))?(?P<bare>{_VALUE})(?=[\s&;,.\"'`)]|$))",
        re.IGNORECASE | re.MULTILINE,
    ),
    # With a colon it stands alone on its line: in prose a colon says little.
    re.compile(
        rf"^[ \t>*-]{{0,20}}(?:[\w-]{{1,40}}[_ -])?(?:{_NAME}): {{1,40}}(?P<bare>{_VALUE})[ \t]*$",
        re.IGNORECASE | re.MULTILINE,
    ),
    re.compile(
        r"\bAuthorization[\"']{0,2} {0,4}[=:,] {0,4}[\"']{0,2}Basic {1,4}"
        r"(?P<basic>(?=[a-z+/]{0,200}[\d=])[a-z\d+/]{8,300}={0,2})",
        re.ASCII | re.IGNORECASE,
    ),
)
# All of them have one of these; to look for it takes no time.
_IN_NAMES = ("pass", "pwd", "key", "secret", "token", "authorization")
# At how many places it has digits or, besides, a sign: `Uint8Array` is a name. Programs make more.
_LEAST_PLACES = {"basic": 0, "quoted": 1, "bare": 2, "made": 3}
_MADE = re.compile("key|token", re.IGNORECASE)
# A value that names what it stands for, a time, a version.
_STANDS_FOR = re.compile(
    r"example|placeholder|change.?me|encoded|api.?key|\*\*\*|://|\A\d{4}-\d\d-\d\d|\Av?\d+\.\d+\.\d"
    r"|(?<![^\W_])(?:your|xxxx|(?:password|passwd|secret|token)s?(?![^\W_]))"
    r"|\A[a-z_-]*(?:passw|secret|token)[a-z_-]*\d*\Z",
    re.IGNORECASE,
)
# `settings.KEY_2`, `gray-100-v2`.
_NAME_IN_CODE = re.compile(r"(?i:[a-z_]\w*(?:\.[a-z_]\w*)+)|[a-z]+\d*(?:[-_.][a-z]*\d*)+", re.ASCII)
_LETTER, _DIGITS, _SIGN = re.compile(r"[^\W\d_]"), re.compile(r"\d+"), re.compile(r"[!@#$%^*~+=?]")
# Detectors may stop within a token.
_REST_OF_TOKEN = re.compile(r"[\w=+/.-]*")
# Nothing shorter is a token, but what stands in an address.
_LONG_WORD = re.compile(r"[^\s]{20}|://")
_KEY_BEGINS = re.compile(r"-----BEGIN ([A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?)-----")
_MOST_KEY_CHARS = 20_000
# A part of a key, where the text was cut; its first or last line may be left.
_KEY_PART = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?:\s|\\n)*"
    r"(?:[A-Za-z0-9+/=]{16,}(?:\s|\\n)*)*"
    r"|(?:[A-Za-z0-9+/]{60,76}(?:\r?\n|\\n)){2,}[A-Za-z0-9+/=]*"
)
# JSON escapes are replaced by as many other characters, so that offsets stay.
_ESCAPES = re.compile(r"""\\(?:(["'])|[nrt])""")
_FILE = re.compile(r"data:[^\s,]{0,200};base64,\S*\Z")
# Digits, spaces and dashes of all scripts are read as those of ASCII.
_OTHER_DIGIT = re.compile(r"(?![0-9])\d")
_OTHER_SPACE = re.compile("[\xa0\u1680\u2000-\u200a\u202f\u205f\u3000]")
_OTHER_DASH = re.compile("[\u2010-\u2015\u2212\ufe58\ufe63\uff0d]")
# Several characters that stand for one, and characters that nobody sees.
_LONGER = re.compile(r"\\u([\da-fA-F]{4})|&nbsp;|&#160;|[\u200b-\u200f\u2060\ufeff\u00ad]")
_UNSEEN = frozenset("\u200b\u200c\u200d\u200e\u200f\u2060\ufeff\u00ad")
# What may follow a card: its check value or its last month.
_AFTER_CARD = (
    r"(?!\d)(?!\.\d)(?:(?![ -]?\d)"
    r"|(?=[ -](?:\d{3}|(?:0[1-9]|1[0-2])-?\d\d)(?![ -]?\d)|[ -](?:0?[1-9]|1[0-2])/\d\d))"
)
# In groups as on a card, digits may be divided by more than a space or a dash.
_DIVIDER = r"(?: {1,3}| ?[-._/] ?| ?\*\* ?)"
_CARD_NUMBERS = (
    re.compile(r"(?<![\d.])(?<!\d,)(?<!\d[ -])\d(?:[ -]?\d){12,18}(?![ -]?\d)(?![.,]\d)"),
    # In a line of comma-separated values.
    re.compile(r"(?<![\d.])(?<!\d[ -])\d{13,19}(?=,\d)"),
    re.compile(rf"(?<![\d.])(?<!\d,)(?<!\d[ -])\d{{13,16}}{_AFTER_CARD}"),
    re.compile(rf"(?<!\d)(?<!\d\d[ .,_/-])\d{{4}}(?:{_DIVIDER}\d{{4}}){{3}}{_AFTER_CARD}"),
    re.compile(
        rf"(?<!\d)(?<!\d\d[ .,_/-])3\d{{3}}{_DIVIDER}\d{{6}}{_DIVIDER}\d{{4,5}}{_AFTER_CARD}"
    ),
    # Over two lines.
    re.compile(
        r"(?<!\d)(?<!\d[ -])\d{4}(?:[ -]\d{4}){0,2} ?\n ?\d{4}(?:[ -]\d{4}){0,2}(?![ -]?\d)"
    ),
)
_CARD_LENGTHS = range(13, 20)
# More than is looked at behind what is found. With the longest of it, less than two pieces share.
_AFTER_CHARS = 250
_DIGIT, _NO_DIGIT = re.compile("[0-9]"), re.compile("[^0-9]+")
# First digits of the networks that issue cards.
_ISSUERS = re.compile(
    r"4|5[1-5]|2(?:20[0-4]|22[1-9]|2[3-9]|[3-6]|7[01]|720)|3[47]\d{13}$|3(?:0[0-5]|[689]\d)\d{11}$"
    r"|35(?:2[89]|[3-8])|6(?:011|4[4-9]|5|2)|50(?:18|20|38)|5893|6(?:304|759|76[1-3])"
)

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True, order=True)
class Found:
    """A part of a text: `text[start:end]`."""

    start: int
    end: int
    kind: str


def find_secrets(text: str) -> list[Found]:
    """In the order of the text; none overlaps another."""
    plain = _Plain(text)
    found = sorted(
        Found(plain.offset(each.start), plain.offset(each.end), each.kind)
        for each in {
            *_private_keys(plain.text),
            *_tokens(plain.text),
            *_assigned(plain.text),
            *_cards(plain.text),
        }
    )
    kept: list[Found] = []
    for each in found:
        if kept and each.start < kept[-1].end:
            before = kept.pop()
            each = Found(before.start, max(before.end, each.end), before.kind)
        kept.append(each)
    return kept


class _Plain:
    """A text as it is searched, and where its characters stand in the original."""

    def __init__(self, text: str) -> None:
        # Offsets after each part whose length differs: in the plain text, and in the original.
        self._plain, self._original = [0], [0]
        parts, at, length = [], 0, 0
        for match in _LONGER.finditer(text):
            before = text[at : match.start()]
            stands_for = _stands_for(match)
            length += len(before)
            self._note(length, match.start())
            length += len(stands_for)
            at = match.end()
            self._note(length, at)
            parts += [before, stands_for]
        text = "".join([*parts, text[at:]]) if parts else text
        if not text.isascii():
            text = _OTHER_DIGIT.sub(lambda match: str(unicodedata.decimal(match[0])), text)
            text = _OTHER_DASH.sub("-", _OTHER_SPACE.sub(" ", text))
        self.text = _ESCAPES.sub(lambda match: (match[1] or " ") * 2, text)

    def offset(self, at: int) -> int:
        """Where this character of the plain text stands in the original."""
        place = bisect_right(self._plain, at) - 1
        return self._original[place] + at - self._plain[place]

    def _note(self, plain: int, original: int) -> None:
        self._plain.append(plain)
        self._original.append(original)


def _stands_for(match: re.Match[str]) -> str:
    if match[1]:
        character = chr(int(match[1], 16))
        return "" if character in _UNSEEN else character
    return " " if match[0].startswith("&") else ""


def secret_tags(text: str) -> dict[str, list[str]]:
    """For a message's tags: what kinds of secrets it has, and nothing of them."""
    kinds = sorted({found.kind for found in find_secrets(text)})
    return {TAG: kinds} if kinds else {}


def mask(text: str) -> str:
    """The text with a note in place of each secret and card number."""
    parts, at = [], 0
    for found in find_secrets(text):
        parts += [text[at : found.start], MASKS[found.kind]]
        at = found.end
    return _KEY_PART.sub(MASKS[SECRET], "".join([*parts, text[at:]]))


def mask_within(value: Value) -> Value:
    """`mask` for all texts in lists and dicts, except embedded files; dict keys stay."""
    masked: Any = value
    if isinstance(value, str):
        masked = value if _FILE.match(value) else mask(value)
    elif isinstance(value, list):
        masked = [mask_within(each) for each in value]
    elif isinstance(value, dict):
        masked = {name: mask_within(each) for name, each in value.items()}
    return masked  # type: ignore[no-any-return]


def masks_toward(address: str) -> bool:
    """Whether what is sent to this address is masked: the setting is on, and it is elsewhere."""
    return settings.MASK_SECRETS and not _is_here(urlsplit(address).hostname or "")


def _is_here(host: str) -> bool:
    with suppress(ValueError):
        return ip_address(host).is_loopback
    return host == "localhost"


def _private_keys(text: str) -> Iterator[Found]:
    at = 0
    while begun := _KEY_BEGINS.search(text, at):
        at, mark = begun.end(), f"-----END {begun[1]}-----"
        # Only so far, or many beginnings without an end would take long.
        end = text.find(mark, at, at + _MOST_KEY_CHARS + len(mark))
        if end >= 0:
            at = end + len(mark)
            yield Found(begun.start(), at, SECRET)


def _tokens(text: str) -> Iterator[Found]:
    for start in range(0, max(len(text) - OVERLAP_CHARS, 1), PIECE_CHARS - OVERLAP_CHARS):
        piece = text[start : start + PIECE_CHARS]
        if not _LONG_WORD.search(piece):
            continue
        for token in _MORE_TOKENS:
            for match in token.finditer(piece):
                begin, end = match.span(token.groups)
                yield Found(start + begin, start + end, SECRET)
        for begin, end in _by_detectors(piece):
            yield Found(start + begin, start + _end_of(piece, end), SECRET)


def _assigned(text: str) -> Iterator[Found]:
    for start in range(0, max(len(text) - OVERLAP_CHARS, 1), PIECE_CHARS - OVERLAP_CHARS):
        end = start + PIECE_CHARS
        lower = text[start:end].lower()
        if not any(name in lower for name in _IN_NAMES):
            continue
        for assignment in _ASSIGNMENTS:
            # A line does not begin or end where a piece does.
            for match in assignment.finditer(text, start, end):
                how = str(match.lastgroup)
                name = text[match.start() : match.start(how)]
                least = _LEAST_PLACES["made" if _MADE.search(name) else how]
                if not _is_cut(match, end, text) and _is_clearly_secret(match[how], least):
                    yield Found(*match.span(how), SECRET)


def _is_clearly_secret(value: str, least_places: int) -> bool:
    """Not a number, a word, a name in code, or what keeps a secret's place."""
    if _STANDS_FOR.search(value) or _NAME_IN_CODE.fullmatch(value) or not _LETTER.search(value):
        return False
    places = len(_DIGITS.findall(value))
    return places + bool(places and _SIGN.search(value)) >= least_places


def _by_detectors(piece: str) -> Iterator[tuple[int, int]]:
    """Spans that a detector finds, not all occurrences of the same characters."""
    for name, detector in _detectors():
        for rule in detector.denylist:
            for match in rule.finditer(piece):
                if name == "jwt" and not detector.is_formally_valid(match[0]):
                    continue
                # Around these stands what is no secret: a name, an address.
                group = 1 if name in _GROUPED and rule.groups else 0
                yield match.span(group)


def _end_of(piece: str, end: int) -> int:
    rest = _REST_OF_TOKEN.match(piece, end)
    return end + len(rest[0].rstrip(".-")) if rest else end


@cache
def _detectors() -> list[tuple[str, Any]]:
    # It takes a third of a second to import: only when a text might hold a token.
    return [
        (module, getattr(import_module(f"detect_secrets.plugins.{module}"), name)())
        for module, name in _DETECTORS.items()
    ]


def _cards(text: str) -> Iterator[Found]:
    """In pieces: no other thread goes on during a search."""
    for start in range(0, max(len(text) - OVERLAP_CHARS, 1), PIECE_CHARS - OVERLAP_CHARS):
        end = start + PIECE_CHARS
        if len(_DIGIT.findall(text, start, end)) < _CARD_LENGTHS[0]:
            continue
        for numbers in _CARD_NUMBERS:
            for match in numbers.finditer(text, start, end):
                if _is_cut(match, end, text):
                    continue
                digits = _NO_DIGIT.sub("", match[0])
                is_as_long = len(digits) in _CARD_LENGTHS
                if is_as_long and _ISSUERS.match(digits) and _passes_luhn(digits):
                    yield Found(*match.span(), CARD)


def _is_cut(match: re.Match[str], end: int, text: str) -> bool:
    """Whether the piece's end may have cut it off: in the next piece it is whole."""
    return end < len(text) and match.end() > end - _AFTER_CHARS


def _passes_luhn(digits: str) -> bool:
    total = 0
    for place, digit in enumerate(map(int, reversed(digits))):
        doubled = digit * 2 if place % 2 else digit
        total += doubled - 9 if doubled > 9 else doubled
    return total % 10 == 0
