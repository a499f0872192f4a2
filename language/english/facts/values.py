"""Values that a statement may be about: figures with their units, dates, days of the week."""

from __future__ import annotations

NUMBER_WORD = (
    r"(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen"
    r"|fifteen|sixteen|seventeen|eighteen|nineteen"
    r"|(?:twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety)(?:[ -](?:one|two|three|four"
    r"|five|six|seven|eight|nine))?|a hundred)"
)
MONTH = (
    r"(?:January|February|March|April|May|June|July|August|September|October|November|December"
    r"|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)"
)
WEEKDAY = r"\b(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)days?\b"
DAY = (
    rf"(?:\b(?:the )?\d{{1,2}}(?:st|nd|rd|th)?(?: of)? {MONTH}\b(?:,? \d{{4}})?"
    rf"|\b{MONTH} (?:the )?\d{{1,2}}(?:st|nd|rd|th)?\b(?:,? \d{{4}})?"
    r"|\b(?:the )?\d{1,2}(?:st|nd|rd|th)\b)"
)
UNIT = (
    r"(?:mg|mcg|µg|g|kg|kilos?|grams?|lbs?|pounds?|stone|ml|l|litres?|liters?|cups?|units?|iu"
    r"|cm|mm|m|metres?|meters?|km|k|kilomet(?:re|er)s?|miles?|feet|ft|euros?|eur|dollars?|usd"
    r"|quid|pence|francs?|chf|gbp|percent|%|hours?|hrs?|h|minutes?|mins?|days?|weeks?|months?"
    r"|years?(?: old)?|people|°c|degrees|am|pm|o'clock|square met(?:re|er)s|m²|sqm|m2)"
)
_OFTEN = r"(?:(?:once|twice|thrice|\w+ times) (?:a|per|every) (?:day|week|month|year)|daily)"
_NUMERAL = r"[€$£]?(?<![\w.])\d+(?:[.,:']\d+)*(?:k\b)?(?: ?€)?"
FIGURE = rf"(?:{DAY}|\b{_OFTEN}|{_NUMERAL}(?: ?{UNIT}\b)?|\b{NUMBER_WORD}\b(?: {UNIT}\b)?)"
