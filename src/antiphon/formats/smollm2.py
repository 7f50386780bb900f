"""SmolLM2: ChatML turns, calls as one JSON array between <tool_call> and </tool_call>.

    <|im_start|>assistant
    <tool_call>[
    {"name": "get_weather", "arguments": {"city": "Lima"}}
    ]</tool_call><|im_end|>

Two ways to list the tools: as the family publishes it (JSON in a long instruction, `compact` off), and
as one signature a line under a short instruction (`compact` on), which is what the embedded model
`local` is trained on: a fifth of the tokens.  Calls and results are the same in both.

Differs from upstream: several calls are joined by ",\\n" (the published Ollama template writes no
separator, so its own array is not JSON), and text before a call is kept.
Source: Ollama library ``smollm2:1.7b-instruct`` template, layer dfebd0343bdd (tools, calls and results).
"""
