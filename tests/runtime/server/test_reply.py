import json

from octavo_runtime.server.reply import EventEncoder, Head


def test_plain_events_are_what_full_ones_would_be():
    head = Head("cmpl-1", "m", created=5)
    after = b',"logprobs":null,"finish_reason":null,"stop_reason":null}]}\n\n'
    encoder = EventEncoder(head, "text_completion", 3, b',"text":', after)
    for index, text in enumerate(("plain", 'quote " \\ \n\r\u2028', "漢👋\x00")):
        choice = {"index": index, "text": text, "logprobs": None, "finish_reason": None, "stop_reason": None}
        plain, full = encoder.plain(index, text), encoder.full(choice, None)
        assert plain == full
        assert plain.count(b"\n") == 2
        assert json.loads(plain.removeprefix(b"data: "))["choices"] == [choice]
