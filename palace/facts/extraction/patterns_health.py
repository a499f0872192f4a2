"""Diets, allergies, conditions, medicines, smoking and drinking."""

from __future__ import annotations

from palace.facts.extraction.roles import DIET
from palace.facts.extraction.rules import Mode, Rule, Table, rule, table_of

_CONDITIONS = (
    r"(?:asthma|diabetes|type [12] diabetes|epilepsy|migraines?|adhd|add|autism"
    r"|dyslexia|dyscalculia|tinnitus|arthritis|rheumatism|anxiety|depression"
    r"|bipolar(?: disorder)?|ptsd|ocd|insomnia|hypertension|high blood pressure"
    r"|low blood pressure|eczema|psoriasis|ibs|crohn'?s(?: disease)?|colitis"
    r"|coeliac(?: disease)?|celiac(?: disease)?|hay ?fever|scoliosis|endometriosis|pcos"
    r"|anaemia|anemia|hypothyroidism|fibromyalgia|lupus|ms"
    r"|multiple sclerosis|parkinson'?s|dementia|alzheimer'?s|cancer|gout|glaucoma"
    r"|vertigo|a bad (?:knee|back|hip|shoulder|heart)|a heart condition"
    r"|a pacemaker|a hearing aid|an? (?:\w+ )?allergy|chronic (?:pain|fatigue|back pain"
    r"|migraines?)|sleep apn(?:o)?ea|reflux|gastritis|long covid"
    r"|osteoporosis|sciatica|a slipped disc|carpal tunnel(?: syndrome)?|cystic fibrosis"
    r"|acne|narcolepsy|raynaud'?s|aphantasia)"
)
_STATES = (
    r"(?:diabetic|asthmatic|dyslexic|autistic|epileptic|colou?r[- ]?blind|deaf"
    r"|hard of hearing|blind|lactose[- ]intolerant|gluten[- ]intolerant"
    r"|coeliac|celiac|left[- ]handed|short[- ]?sighted|near[- ]?sighted|far[- ]?sighted"
    r"|hypermobile|neurodivergent|pregnant|paraplegic|bipolar|anaemic|anemic"
    r"|partially sighted|sober)"
)
_UNIT = r"(?:mg|mcg|µg|ug|g|ml|units?|iu)"
_MEDICINE = (
    rf"(?P<o>(?:\d[\d.,]* ?{_UNIT} (?:of )?[a-zA-Z][\w-]+|[a-zA-Z][\w-]+ \d[\d.,]* ?{_UNIT}"
    rf"|(?:an? )?(?:\w+ )?(?:inhaler|antidepressants?|beta blockers?|blood thinners?"
    rf"|insulin|statins?|antihistamines?|vitamin \w+|sertraline|ibuprofen|metformin"
    rf"|levothyroxine|ritalin|lithium|supplements?|melatonin|creatine|iron tablets"
    rf"|magnesium|omega-3)))"
)


def _rows() -> list[tuple[str, Rule]]:
    return [
        (
            "be",
            rule(
                rf"(?:an? )?(?P<o>{DIET})\b(?! (?:recipe|food|restaurant|curious|option))",
                "diet",
                "be {o}",
                confidence=0.85,
                animals=True,
            ),
        ),
        (
            "be",
            rule(
                rf"on (?:an? |the )?(?P<o>{DIET}|(?!(?:an?|strict|new|special|healthy"
                rf"|the)\b)[\w-]+) diet",
                "diet",
                "be on a {o} diet",
            ),
        ),
        ("go turn become", rule(rf"(?:an? )?(?P<o>{DIET})\b", "diet", "be {o}", mode=Mode.BEGAN)),
        (
            "follow keep eat",
            rule(rf"(?:an? |the )?(?P<o>{DIET})(?: diet)?\b", "diet", "{verb} {o}"),
        ),
        (
            "eat",
            rule(
                r"(?P<o>(?:only |any )?(?:meat|fish|pork|beef|dairy|eggs|gluten|sugar"
                r"|seafood|red meat|poultry|chicken|wheat|cheese|mushrooms"
                r"|nuts)(?:,? (?:and|or) \w+)?)(?: again)?\Z",
                "diet",
                "eat {o}",
                aspect="{o}",
                object="{o}",
            ),
        ),
        (
            "start begin",
            rule(
                r"(?:eating|to eat) (?P<o>(?:meat|fish|dairy|eggs|gluten|sugar"
                r"|seafood))(?: again)?",
                "diet",
                "eat {o}",
                mode=Mode.BEGAN,
            ),
        ),
        (
            "stop quit",
            rule(
                r"(?:eating|being) (?:an? )?(?P<o>[\w-]+(?: [\w-]+)?)",
                "diet",
                "eat {o}",
                mode=Mode.ENDED,
            ),
        ),
        (
            "be",
            rule(
                r"(?:\w+ly )?allergic to (?P<o>.+)",
                "allergic_to",
                "be allergic to {o}",
                many=True,
                animals=True,
                confidence=0.9,
            ),
        ),
        (
            "have",
            rule(
                r"(?:an? )(?:\w+ )?(?P<o>[\w-]+) allergy",
                "allergic_to",
                "be allergic to {o}",
                animals=True,
            ),
        ),
        (
            "have",
            rule(
                r"an? (?:\w+ )?(?:allergy|intolerance) to (?P<o>.+)",
                "allergic_to",
                "be allergic to {o}",
                many=True,
                animals=True,
            ),
        ),
        (
            "outgrow",
            rule(
                r"(?:my|his|her|the) (?P<o>[\w-]+) allergy",
                "allergic_to",
                "be allergic to {o}",
                mode=Mode.ENDED,
            ),
        ),
        (
            "have",
            rule(
                rf"(?:(?:severe|mild|chronic|bad|really bad|terrible|slight"
                rf"|some) )?(?P<o>{_CONDITIONS})\b(?! (?:test|attack|medication"
                rf"|research|awareness|about|cause))",
                "has_condition",
                "have {o}",
                animals=True,
                confidence=0.85,
            ),
        ),
        ("suffer", rule(r"from (?P<o>.+)", "has_condition", "suffer from {o}", animals=True)),
        (
            "be get",
            rule(
                r"diagnosed with (?P<o>.+)",
                "has_condition",
                "have {o}",
                mode=Mode.BEGAN,
                animals=True,
                confidence=0.9,
            ),
        ),
        (
            "be",
            rule(
                rf"(?:mildly |slightly |partially |severely |now )?(?P<o>{_STATES})\b",
                "has_condition",
                "be {o}",
                animals=True,
                confidence=0.85,
            ),
        ),
        (
            "have",
            rule(r"(?:a |an )?(?P<o>(?:fear of|phobia of) .+)", "has_condition", "have a {o}"),
        ),
        ("take use be", rule(rf"(?:on )?{_MEDICINE}\b.*", "takes", "take {o}", animals=True)),
        (
            "smoke vape",
            rule(
                r"(?P<o>(?:about |around )?(?:a pack|\w+(?= a day)|\d+ cigarettes"
                r"|cigarettes|weed|cigars|a pipe)?(?: an? day)?)(?=\Z|,)",
                "smokes",
                "{verb} {o}",
                object="smokes",
            ),
        ),
        (
            "be",
            rule(
                r"an? (?P<o>(?:heavy |social |occasional |light |chain[- ]?)?(?:non-?)?smoker)",
                "smokes",
                "be a {o}",
            ),
        ),
        (
            "stop quit",
            rule(
                r"(?:smoking|cigarettes|vaping|nicotine)\b(?P<o>)",
                "smokes",
                "smoke",
                mode=Mode.ENDED,
                object="smokes",
            ),
        ),
        (
            "start",
            rule(
                r"(?:smoking)\b(?P<o>)(?: again)?",
                "smokes",
                "smoke",
                mode=Mode.BEGAN,
                object="smokes",
            ),
        ),
        (
            "drink",
            rule(
                r"(?P<o>(?:any )?alcohol(?: at all)?|)\Z",
                "drinks_alcohol",
                "drink alcohol",
                object="alcohol",
            ),
        ),
        (
            "stop quit",
            rule(
                r"(?:drinking(?: alcohol)?\Z|alcohol)\b(?P<o>)",
                "drinks_alcohol",
                "drink alcohol",
                mode=Mode.ENDED,
                object="alcohol",
            ),
        ),
        (
            "drink",
            rule(
                r"(?P<o>(?:\w+ ){0,3}(?:coffees?|teas?|beers?|wine|milk|oat milk|soda"
                r"|matcha|water|kombucha|juice|espresso))(?P<f> .*)?\Z",
                "does",
                "drink {o}",
                confidence=0.7,
            ),
        ),
        (
            "stop quit",
            rule(
                r"drinking (?P<o>(?:\w+ )?(?:coffee|tea|beer|wine|milk|soda))",
                "does",
                "drink {o}",
                mode=Mode.ENDED,
            ),
        ),
        (
            "break injure fracture sprain",
            rule(
                r"(?P<o>my (?:left |right )?(?:arm|leg|wrist|ankle|foot|toe|finger"
                r"|collarbone|rib|ribs|hip|knee|nose|back|shoulder|elbow|hand))\b",
                "did",
                "{verb} {o}",
                mode=Mode.EVENT,
                type="event",
            ),
        ),
    ]


HEALTH: Table = table_of(_rows())
