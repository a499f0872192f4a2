"""Words of a message that announce a decision, correct an assistant or touch a sensitive matter."""

from __future__ import annotations

import re

_DECISION = re.compile(
    r"\b(?:(?:i|we)(?:'ve| have)? (?:finally |just |both |all )?"
    r"(?:decided|agreed|settled on|opted|chose|picked)"
    r"|(?:i|we)(?:'ll| will|'re going to| am going to|'m going to) (?:go|stick|stay) with"
    r"|(?:i'm|i am|we're|we are) (?:going|sticking|staying) with"
    r"|let's (?:go|stick|stay) with|let's settle on"
    r"|(?:the|our|my|final) (?:final )?decision (?:is|was)|decided:|decision:|it(?:'s| is) decided"
    r"|(?:it was|was|is|been) (?:decided|agreed) (?:that|to|on))\b",
    re.IGNORECASE,
)
_MAY_DECIDE = re.compile(
    r"deci[ds]|agreed|settle|opted|chose|picked|\b(?:go|going|stick|sticking|stay|staying) with",
    re.IGNORECASE,
)
# Just before the cue: it is no decision yet.
_UNDECIDED = re.compile(
    r"\b(?:if|whether|unless|until|before|once|when|should|could|might|would|never|not|wish)\b"
    r"(?:\W+\w+){0,3}\W*$",
    re.IGNORECASE,
)
_CORRECTING = re.compile(
    r"^\W*no\b[,.! ]|\bthat(?:'|’)?s (?:not|wrong|incorrect)|\bnot what i\b|\bi (?:already )?"
    r"(?:said|told you|asked (?:you )?(?:for|to)|meant)\b|\bi(?:'|’)ve (?:already )?told you\b|"
    r"\byou (?:misunderstood|forgot|ignored|got (?:it|that) wrong|keep|didn(?:'|’)?t)\b|"
    r"\b(?:stop|quit) \w+ing\b|\b(?:don(?:'|’)?t|do not|never) (?:do|use|write|add|give|send|"
    r"change|say|call|ask|put|make|tell|remove|delete|include|repeat)\b|\bhow many times\b|"
    r"\b(?:wrong|incorrect|useless) (?:again|answer|file|one|name|date|format)\b|\bstill wrong\b|"
    r"\bonce again\b|\binstead of\b",
    re.IGNORECASE,
)
_SENSITIVE = re.compile(
    r"\b(?:passwords?|passcodes?|passphrases?|passkeys?|credentials?|tokens?|secrets?|api keys?|"
    r"private keys?|ssh|log ?ins?|sign ?ins?|2fa|two.factor|authenti\w+|authori[sz]\w+|"
    r"permissions?|secure\w*|security|insecure|securing|encrypt\w+|decrypt\w+|firewalls?|vpn|certificates?|"
    r"money|banks?|banking|accounts?|cards?|credit|debit|pay|pays|paid|payments?|paypal|invoices?|"
    r"invest\w*|stocks?|shares?|crypto\w*|bitcoin|loans?|mortgages?|tax|taxes|salary|budgets?|"
    r"buy|buys|buying|purchas\w+|order(?:s|ing)? online|subscriptions?|transfers?|wire|iban|"
    r"insurance|refunds?|prices?|spend\w*|financ\w+|social security|pin)\b",
    re.IGNORECASE,
)


def may_decide(text: str) -> bool:
    """Whether a sentence of the text may be a decision; cheaper than `decides` of each."""
    return _MAY_DECIDE.search(text) is not None


def decides(sentence: str) -> bool:
    """Whether a sentence announces a decision."""
    cue = _DECISION.search(sentence)
    return cue is not None and not _UNDECIDED.search(sentence, 0, cue.start())


def corrects_assistant(text: str) -> bool:
    """Whether a message says that the assistant was wrong, or tells it to stop something."""
    return _CORRECTING.search(text) is not None


def is_sensitive(text: str) -> bool:
    """Whether a text is about secrets, security or money."""
    return _SENSITIVE.search(text) is not None
