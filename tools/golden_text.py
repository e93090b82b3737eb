"""Write tests/golden/text_split.json: what the server's splitter makes of these texts, and where ouzel deliberately differs.

Run with the Python of a venv that has vllm-omni 0.30.0, from the repository root:  PYTHONPATH=src python tools/golden_text.py
Only the splitter's file is loaded, not the server.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import sys
from pathlib import Path

from ouzel.text import split

SPLITTER = "vllm_omni/entrypoints/openai/speech_text_splitter.py"
OUT = Path(__file__).parent.parent / "tests" / "golden" / "text_split.json"

SAME = """
Hello there. How are you?
Hello!!! What?! Yes.
Pi is 3.14 and e is 2.718. Next.
Dr. Sharma arrived at 9:30 a.m., then left. Ok.
Prof. Smith vs. Mr. Jones. End.
It was 5 p.m. He left.
Use e.g. apples. Or i.e. pears.
The U.S. is big. The U.S. Army too.
J. R. R. Tolkien wrote it. Yes.
Plan A. Then B.
St. John St. is here. Ok.
I like it etc. and more.
No. 5 is alive. Yes.
v1.0.0 is out. Get it.
$3.5 for small. $4.5 for large.
98.6°F is normal. 22,1 °C bei 45 % ist es nicht.
See https://a.example/c.d?x=1,2. Then go.
Mail me@x.example. Thanks.
Hello.World. Foo
1,000 apples, 2 pears; 3,5 figs.
At 9:30, go. Not at 10:15.
He said "Hi." Then he left.
He said "Hi"! Then "no".
(Really.) Yes.
“Quoted.” Next.
Wait... What? Yes.
Wait… What? Yes.
你好。今天天气很好！是吗？
他说，“你好。”然后走了。
「はい。」と言った。いいえ。
你好，世界；再见。
版本3.5发布了。
नमस्ते। कैसे हो। ठीक॥
كيف حالك؟ بخير، شكرا؛ نعم۔
Yes。No。Both!
It was the best of times, it was the worst of times, it was the age of wisdom.
Hello.\\nSecond line.\\nThird.
Tab.\\tNext.\\r\\nLast.
No end in sight
"""

DIFFERENT = {
    "First line\nSecond line": "a line break is a boundary",
    "Wait... what? Yes.": "an ellipsis before a small letter goes on",
    "Wait… what? Yes.": "an ellipsis before a small letter goes on",
    '"Really?" she asked. Yes.': "a quotation before a small letter goes on",
    "« Oui. » dit-il. Non.": "a French closing quote stays although a space comes before it",
    "No. I said no.": "No. is an abbreviation only before a digit",
    "Apples, pears, etc. The end.": "etc. ends a sentence before a capital letter",
    "Jan. 5 is a Monday.": "months and weekdays before a digit",
    "Ph.D. holders agree.": "more abbreviations",
    "Das war z.B. am 3. Oktober 1990. Ja.": "German ordinals",
    "3. Third item. 4. Fourth item.": "a list number stays with its item",
    "Well . . . yes. No.": "spaced dots are an ellipsis",
    "一、二：三。": "、 and ： are clause marks",
    "Note: this is it.": "a colon is a clause mark",
    "1，000元，9：30走。": "fullwidth marks inside numbers",
    "...": "a segment has something to speak",
    "Yes. — No. ?": "a segment has something to speak",
}


def main() -> None:
    """Ask both splitters, check the two tables above, write the file."""
    path = next(p for root in sys.path if (p := Path(root) / SPLITTER).is_file())
    spec = importlib.util.spec_from_file_location("server_splitter", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    def server(text: str, granularity: str) -> list[str]:
        splitter = module.SpeechTextSplitter(granularity)
        return splitter.feed(text) + splitter.flush()

    same, different = [], []
    for line in SAME.strip().splitlines():
        text = line.replace("\\n", "\n").replace("\\r", "\r").replace("\\t", "\t")
        row = {"text": text} | {g: server(text, g) for g in ("sentence", "clause")}
        for granularity in ("sentence", "clause"):
            if split(text, granularity) != row[granularity]:
                sys.exit(f"differs ({granularity}): {text!r}\n  server {row[granularity]}\n  ouzel  {split(text, granularity)}")
        same.append(row)
    for text, reason in DIFFERENT.items():
        granularity = "clause" if split(text, "sentence") == server(text, "sentence") else "sentence"
        ours, theirs = split(text, granularity), server(text, granularity)
        if ours == theirs:
            sys.exit(f"no difference: {text!r}")
        different.append({"text": text, "reason": reason, "granularity": granularity, "server": theirs, "ouzel": ours})
    result = {"source": f"vllm-omni {importlib.metadata.version('vllm-omni')}", "same": same, "different": different}
    OUT.write_text(json.dumps(result, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    print(f"{OUT.name}: {len(same)} same, {len(different)} different")


if __name__ == "__main__":
    main()
