"""Make tests/golden/qwen2_bpe: what transformers' Qwen2 tokenizer does to some 60 awkward texts, with the real merges.

    PYTHON_WITH_TRANSFORMERS tools/golden_tokenizer.py qwen.tiktoken OUT

`qwen.tiktoken` is in the PyPI packages dashscope and qwen-agent (Apache-2.0). Only the part of the vocabulary that these
texts can touch is written: every token that occurs, as bytes, inside one of their words. No other merge can apply.
"""

from __future__ import annotations

import base64
import itertools
import json
import sys
import tempfile
from pathlib import Path

CONTROL = {"<|endoftext|>": 151643, "<|im_start|>": 151644, "<|im_end|>": 151645, "<think>": 151667, "<tts_pad>": 151671}
TEXTS = [
    "assistant\n",
    "user\n",
    "assistant\n\n\nblank lines before the text",
    "Hello world, this is a parity test.",
    "It's 3.14, isn't it? I'VE said so; they'll agree, we'd think.",
    "helloWorld camelCase HTTPServer iPhone15 XMLHttpRequest",
    "Dr. Smith paid $1,234.56 on 2024-02-29 at 9:30 a.m.",
    "tabs\tand  double  spaces   and trailing  ",
    "  leading spaces",
    "line one\nline two\r\nline three\n\n\nline six",
    "\n\n  a paragraph after blank lines",
    "你好，世界！今天的天气怎么样？",
    "我叫通义千问，是阿里云的开源大模型。",
    "繁體中文與簡體中文混合 2025年3月14日",
    "こんにちは、世界。カタカナとひらがな、漢字。",
    "ﾊﾝｶｸ カナ と ｆｕｌｌ ｗｉｄｔｈ",
    "안녕하세요, 세계! 오늘은 날씨가 좋네요.",
    "Привет, мир! Ёлка и ещё что-то.",
    "Γειά σου Κόσμε",
    "مرحبا بالعالم، كيف الحال؟",
    "שלום עולם",
    "नमस्ते दुनिया, क्या हाल है?",
    "สวัสดีชาวโลก",
    "Xin chào thế giới",
    "Grüße aus Österreich, Straße, Fußgängerübergänge!",
    "Où est le café naïve, garçon ? L'été, c'est déjà fini…",
    "¿Dónde está el baño? ¡Allí!",
    "Olá, São Paulo não é a capital.",
    "cafe\u0301 nai\u0308ve a\u030a decomposed",
    "😀 👍🏽 👨‍👩‍👧‍👦 🇩🇪 emoji ☺️ zero\u200bwidth\u200djoiner",
    "math: ∑ x² ≤ ∞, ½ + ¼ = ¾, √2 ≈ 1.41421356",
    "ⅣⅤⅥ ①②③ ٣٤٥ １２３",
    "12345678901234567890",
    "v1.0.0-rc2+build.5",
    "https://example.com/path/to?x=1&y=2#frag",
    "name@example.org, @handle #hashtag",
    "a/b/c\n/d and/or\n/etc",
    "quotes “double” ‘single’ «guillemets» „low“",
    "dashes - – — … ‥ ⋯",
    "code: def f(x): return x**2 != x //= 3",
    '{"json": [1, 2.5, null], "k": "v"}',
    "MiXeD cAsE wOrDs ALLCAPS lower",
    "O'Neill's rock'n'roll 'tis 'S",
    "don’t won’t curly apostrophes",
    "a" * 70,
    "ha" * 30 + "!!!???...",
    "The quick brown fox jumps over the lazy dog.",
    "Pi is 3.14 and e is 2.718; 98.6°F; 22,1 °C bei 45 %.",
    "newline at end\n",
    "\r\n\r\n",
    "   ",
    ".",
    "嗯？",
    "Mm... О, это интересно! IT менеджер…",
    "nul\x00and\x07bell\x1besc",
    "\ufeffbyte order mark",
    "rtl \u202eoverride\u202c end",
    "supplementary 𝒜𝓑 𠮷野家 𓀀",
    "<b>bold</b> &amp; [link](x) *star* _under_",
    "control <|im_end|> look-alike",
    "<|im_start|>user\nsay<|im_end|>",
    "<|endoftext|><think>hm</think><tts_pad>",
    "<|im_end|",
]


def byte_characters() -> dict[int, str]:
    kept = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [b for b in range(256) if b not in kept]
    return {b: chr(b) for b in kept} | {b: chr(256 + i) for i, b in enumerate(others)}


def parts(token: bytes, ranks: dict[bytes, int]) -> tuple[bytes, bytes]:
    """The last merge of `token`: merge by rank, below the token's own, until two pieces are left."""
    pieces = [token[i : i + 1] for i in range(len(token))]
    while len(pieces) > 2:
        candidates = [(ranks.get(a + b, 1 << 30), i) for i, (a, b) in enumerate(itertools.pairwise(pieces))]
        rank, i = min(candidates)
        if rank >= ranks[token]:
            raise SystemExit(f"no merge makes {token!r}")
        pieces[i : i + 2] = [pieces[i] + pieces[i + 1]]
    return pieces[0], pieces[1]


def write_files(folder: Path, ranks: dict[bytes, int]) -> None:
    names = byte_characters()
    vocab = {"".join(names[b] for b in token): rank for token, rank in sorted(ranks.items(), key=lambda item: item[1])}
    merges = []
    for token in sorted(ranks, key=ranks.__getitem__):
        if len(token) > 1:
            merges.append(" ".join("".join(names[b] for b in part) for part in parts(token, ranks)))
    added = {str(i): {"content": c, "special": c != "<think>"} for c, i in CONTROL.items()}
    (folder / "vocab.json").write_text(json.dumps(vocab, ensure_ascii=False) + "\n", encoding="utf-8")
    (folder / "merges.txt").write_text("#version: 0.2\n" + "\n".join(merges) + "\n", encoding="utf-8")
    settings = {"tokenizer_class": "Qwen2Tokenizer", "added_tokens_decoder": added}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings, indent=1) + "\n", encoding="utf-8")


def main() -> None:
    source, out = Path(sys.argv[1]), Path(sys.argv[2])
    ranks: dict[bytes, int] = {}
    for line in source.read_bytes().splitlines():
        token, rank = line.split()
        ranks[base64.b64decode(token)] = int(rank)

    import transformers

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_files(folder, ranks)
        (folder / "config.json").write_text(json.dumps({"model_type": "qwen3_tts"}), encoding="utf-8")
        loaded = {
            "qwen2": transformers.AutoTokenizer.from_pretrained(name, fix_mistral_regex=False),
            "official": transformers.AutoTokenizer.from_pretrained(name, fix_mistral_regex=True),
        }
    golden = []
    words: set[bytes] = set()
    back = {character: byte for byte, character in byte_characters().items()}
    for text in TEXTS:
        entry: dict[str, object] = {"text": text}
        for split, tokenizer in loaded.items():
            core = tokenizer.backend_tokenizer
            core.encode_special_tokens = False
            entry[split] = core.encode(text, add_special_tokens=False).ids
            plain = core.normalizer.normalize_str(text)
            words |= {bytes(back[c] for c in word) for word, _ in core.pre_tokenizer.pre_tokenize_str(plain)}
        golden.append(entry)
    used = {token: rank for token, rank in ranks.items() if len(token) == 1 or any(token in word for word in words)}
    out.mkdir(parents=True, exist_ok=True)
    write_files(out, used)
    value = {"transformers": transformers.__version__, "texts": golden}
    (out / "golden.json").write_text(json.dumps(value, ensure_ascii=True, indent=None) + "\n", encoding="utf-8")
    print(f"{len(golden)} texts, {len(used)} tokens, transformers {transformers.__version__}")


if __name__ == "__main__":
    main()
