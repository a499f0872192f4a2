"""Data of our own in the official forms."""

from __future__ import annotations

LOCOMO = [
    {
        "sample_id": "talk-1",
        "conversation": {
            "speaker_a": "Nora",
            "speaker_b": "Ivo",
            "session_1_date_time": "1:56 pm on 8 May, 2023",
            "session_1": [
                {"speaker": "Nora", "dia_id": "D1:1", "text": "I adopted a parrot called Quill."},
                {"speaker": "Ivo", "dia_id": "D1:2", "text": "How lovely! Does he talk?"},
            ],
            "session_2_date_time": "9:05 am on 1 June, 2023",
            "session_2": [
                {"speaker": "Ivo", "dia_id": "D2:1", "text": "I sold my motorbike yesterday."},
                {
                    "speaker": "Nora",
                    "dia_id": "D2:2",
                    "text": "Ivo, look at this!",
                    "blip_caption": "a red kite over a field",
                },
            ],
            "session_3_date_time": "9:05 am on 2 June, 2023",
            "session_3": [],
        },
        "qa": [
            {"question": "Who is Quill?", "evidence": ["D1:1"], "category": 4},
            {"question": "What did Ivo sell?", "evidence": ["D2:01; D2:02"], "category": 1},
            {"question": "What flew over the field?", "evidence": ["D2:2"], "category": 3},
            {"question": "Where?", "evidence": ["D9:9"], "category": 2},
            {"question": "Why?", "evidence": [], "category": 5},
        ],
    }
]
LONGMEMEVAL = [
    {
        "question_id": "q1",
        "question_type": "single-session-user",
        "question": "Which instrument am I learning?",
        "question_date": "2023/05/30 (Tue) 23:40",
        "answer": "the cello",
        "haystack_session_ids": ["s1", "s2"],
        "haystack_dates": ["2023/05/20 (Sat) 02:21", "2023/05/21 (Sun) 10:00"],
        "haystack_sessions": [
            [
                {"role": "user", "content": "I started learning the cello.", "has_answer": True},
                {"role": "assistant", "content": "A noble instrument."},
            ],
            [{"role": "user", "content": "My bus was late again."}],
        ],
        "answer_session_ids": ["s1"],
    },
    {"question_id": "q2_abs"},
]
BEAM_CHAT = [
    {
        "batch_number": 1,
        "turns": [
            [
                {
                    "role": "user",
                    "id": 0,
                    "time_anchor": "March-15-2024",
                    "content": "My first sprint ends on March 29. ->-> 1,1",
                },
                {"role": "assistant", "id": 1, "content": "Noted, plan the login first."},
            ]
        ],
    },
    {"batch_number": 2, "turns": [[{"role": "user", "id": 2, "content": "I dislike ORMs."}]]},
]
BEAM_PROBES = {
    "information_extraction": [
        {"question": "When does my first sprint end?", "source_chat_ids": [0]},
        {"question": "Sprints and ORMs?", "source_chat_ids": {"all": [2, [0]]}},
        {"question": "Do I like ORMs?", "source_chat_ids": 2},
    ],
    "abstention": [{"question": "What is my cat called?"}],
}
