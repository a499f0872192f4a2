"""Diets, allergies, conditions, medicines, smoking and drinking."""

from __future__ import annotations

import re

from language import english
from language.english.facts.rules import Mode, row, rows_of, table_of
from language.english.facts.vocabulary import DIET

_CONDITIONS = (
    rf"(?:{english.one_of('conditions')}"
    r"|type [12] diabetes|bipolar(?: disorder)?|crohn'?s(?: disease)?|coeliac(?: disease)?"
    r"|celiac(?: disease)?|(?:\w+ )?cancer|a bad (?:left |right |lower )?(?:knees?|back|hips?"
    r"|shoulders?|heart|neck|ankles?|wrists?|elbows?)|an? (?:\w+ )?allergy(?! to\b)"
    r"|chronic (?:pain|fatigue|back pain|migraines?)|sleep apn(?:o)?ea|carpal tunnel(?: syndrome)?"
    r"|[\w'-]+ (?:syndrome|disease|disorder|tremor|intolerance|deficiency)|\w+(?:itis|osis|aemia"
    r"|algia|opathy)|an? (?:\w+ )?(?:hernia|concussion|heart murmur|stoma|meniscus|labrum|septum"
    r"|ligament))"
)
_STATES = (
    r"(?:(?:type [12] )?diabetic|asthmatic|dyslexic|autistic|epileptic|colou?r[- ]?blind|deaf"
    r"|hard of hearing|blind|lactose[- ]intolerant|gluten[- ]intolerant|coeliac|celiac|(?:left"
    r"|right)[- ]handed|ambidextrous|short[- ]?sighted|near[- ]?sighted|far[- ]?sighted"
    r"|hypermobile|neurodivergent|pregnant|paraplegic|bipolar|anaemic|anemic|partially sighted"
    r"|sober)"
)
_UNIT = r"(?:mg|mcg|µg|ug|g|ml|units?|iu)"
MEDICINE = (
    rf"(?P<o>(?:\d[\d.,]* ?{_UNIT} (?:of )?[a-zA-Z][\w-]+|[a-zA-Z][\w-]+ \d[\d.,]* ?{_UNIT}"
    rf"|(?:an? )?(?:\w+ )?(?:inhaler|antidepressants?|beta blockers?|blood thinners?|insulin"
    rf"|statins?|antihistamines?|vitamin \w+|sertraline|ibuprofen|metformin|levothyroxine|ritalin"
    rf"|lithium|supplements?|melatonin|creatine|(?!two|three|the|my)\w+ tablets|magnesium|omega-3"
    rf"|tylenol|paracetamol|aspirin|lisinopril|[a-z]{{3,}}(?:statin|sartan|dipine|prazole|oxetine"
    rf"|afil|cillin|mycin|formin|olol|zepam|thyroxine|gabalin|parin)\b)))"
)

DRUG = re.compile(
    rf"(?i){MEDICINE}|\b(?:tablets?|pills?|drip|steroids?|antibiotics)\b|\d ?{_UNIT}\b"
)
# "Seasonal allergies" does not say to what; nor does "terrible allergies".
_NO_ALLERGEN = (
    r"(?:bad|severe|serious|mild|slight|minor|food|many|some|lots|no|any|several|multiple|various"
    r"|few|more|other|new|old|weird|strange|skin|spring|summer|autumn|winter|year|contact|drug"
    r"|environmental|really|such|two|three|four|five|\w+(?:al|ible|able|ous|ful|ing|ed|ic|ive|ish"
    r"|some|ant|time|hood)|terrible|insane|intense|extreme|acute|rare|common|the|these|those|my"
    r"|his|her|their|our)"
)


_diet = rows_of("diet", "be {o}")
_allergic_to = rows_of("allergic_to", "be allergic to {o}")
_has_condition = rows_of("has_condition", "have {o}")
_smokes = rows_of("smokes", "{verb} {o}")
_drinks_alcohol = rows_of("drinks_alcohol", "drink alcohol", object="alcohol")
_ROWS = (
    _diet(
        rf"be: (?:an? )?(?P<o>{DIET})s?\b(?! (?:recipe|food|restaurant|curious|option))",
        confidence=0.85,
        animals=True,
    ),
    _diet(rf"be: on (?P<o>{DIET})(?=\Z|,| and\b)", "be on {o}"),
    _diet(
        rf"be: on (?:an? |the )?(?P<o>{DIET}|(?!(?:an?|strict|new|special|healthy"
        rf"|the)\b)[\w-]+) diet",
        "be on a {o} diet",
    ),
    _diet(rf"do: (?P<o>{DIET})(?: diet)?(?=\Z|,| (?:and|at|for|since|so)\b)", "be on {o}"),
    _diet(rf"go turn become: (?:an? )?(?P<o>{DIET})\b", mode=Mode.BEGAN),
    _diet(rf"follow keep eat: (?:an? |the )?(?P<o>{DIET})(?: diet)?\b", "{verb} {o}"),
    _diet(
        r"eat: (?P<o>(?:only |any )?(?:meat|fish|pork|beef|dairy|eggs|gluten|sugar"
        r"|seafood|red meat|poultry|chicken|wheat|cheese|mushrooms"
        r"|nuts)(?:,? (?:and|or) \w+)?)(?: again)?(?=\Z|,| btw\b)",
        "eat {o}",
        aspect="{o}",
        object="{o}",
    ),
    _allergic_to(
        r"be: (?:\w+ly )?allergic to (?!(?:my|the|mondays?|mornings?|work|feedback|people|exercise"
        r"|meetings|stupid\w*|bullshit|drama|change|effort)\b)(?P<o>.+)",
        many=True,
        animals=True,
        confidence=0.9,
    ),
    _allergic_to(r"react: (?:really |very )?badly to (?P<o>.+)", "react badly to {o}"),
    _allergic_to(r"develop: an? (?:\w+ )?allergy to (?P<o>.+)", mode=Mode.BEGAN),
    _allergic_to(
        r"have: (?:an? )(?:\w+ )?(?P<o>(?!severe|bad|mild|serious|slight"
        r"|food)[\w-]+) allergy(?! to\b)",
        animals=True,
    ),
    _allergic_to(
        rf"have: (?P<o>(?!{_NO_ALLERGEN}\b)[a-z]+) allergies(?=\Z|,)",
        animals=True,
    ),
    _allergic_to(
        r"have: (?:an? )?(?:\w+ )?(?:allergy|allergies|intolerance) to (?P<o>.+)",
        many=True,
        animals=True,
    ),
    _has_condition(
        rf"have: (?:(?:severe|mild|chronic|bad|really bad|terrible|slight"
        rf"|some) )?(?P<o>{_CONDITIONS})\b(?! (?:test|attack|medication"
        rf"|research|awareness|about|cause))",
        animals=True,
        confidence=0.85,
    ),
    _has_condition(
        r"get: (?:bad |terrible |awful )?(?P<o>migraines|hay ?fever|cluster headaches|panic attacks"
        r"|cold sores|seizures)(?=\Z|,| (?:a lot|often|and|since|every)\b)",
        "get {o}",
        past=False,
    ),
    _has_condition(r"suffer: from (?P<o>.+)", "suffer from {o}", animals=True),
    _has_condition(
        r"be get: diagnosed with (?P<o>.+)", mode=Mode.BEGAN, animals=True, confidence=0.9
    ),
    _has_condition(
        rf"be: (?:(?:mildly|slightly|partially|severely|now|\d+ (?:weeks"
        rf"|months)) )?(?P<o>{_STATES})\b",
        "be {o}",
        animals=True,
        confidence=0.85,
    ),
    _has_condition(r"have: (?:a |an )?(?P<o>(?:fear of|phobia of) .+)", "have a {o}"),
    _has_condition(
        r"be: (?:\w+ )?(?P<o>(?:scared|afraid|terrified) of (?!this)\w+(?:s|ing))\Z", "be {o}"
    ),
    row(rf"take use be: (?:on )?{MEDICINE}\b.*", "takes", "take {o}", animals=True),
    _smokes(
        r"smoke vape: (?P<o>(?:about |around )?(?:a pack|\w+(?= a day)|\d+ cigarettes|cigarettes"
        r"|weed|cigars|a pipe)?(?: an? day| daily| socially| occasionally| at weekends)?)(?=\Z|,"
        r"|(?:mostly|mainly|usually|only)\b)",
        object="smokes",
    ),
    _smokes(
        r"be: an? (?P<o>(?:heavy |social |occasional |light |chain[- ]?)?(?:non-?)?smoker)",
        "be a {o}",
    ),
    _smokes(
        r"stop quit: (?:smoking|cigarettes|vaping|nicotine)\b(?P<o>)",
        "smoke",
        mode=Mode.ENDED,
        object="smokes",
    ),
    _drinks_alcohol(
        r"have: (?P<o>(?:an? |the (?:odd|occasional) |some )?(?:beers?|wine|glass of \w+|pints?"
        r"|cocktails?|drinks?|alcohol))\b.* again\b.*"
    ),
    _drinks_alcohol(r"drink: (?P<o>(?:any )?alcohol(?: at all)?|)\Z"),
    _drinks_alcohol(r"stop quit: (?:drinking(?: alcohol)?\Z|alcohol)\b(?P<o>)", mode=Mode.ENDED),
    row(
        r"drink: (?P<o>(?:\w+ ){0,3}(?:coffees?|teas?|beers?|wine|milk|oat milk|soda"
        r"|matcha|water|kombucha|juice|espressos?))(?P<f>[ ,].*)?\Z",
        "does",
        "drink {o}",
        confidence=0.7,
    ),
    row(
        r"break injure: (?P<o>my (?:left |right )?(?:arm|leg|wrist|ankle|foot|toe|finger"
        r"|collarbone|rib|ribs|hip|knee|nose|back|shoulder|elbow|hand))\b",
        "did",
        "{verb} {o}",
        mode=Mode.EVENT,
        type="event",
    ),
)

HEALTH = table_of(_ROWS)
