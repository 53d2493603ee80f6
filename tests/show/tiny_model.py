"""Makes a tiny model of random weights: its words mean nothing, but its server's framing, template, errors and limits are
real. `tiny_model.py gguf FILE` writes it for llama.cpp and Ollama, `tiny_model.py hf DIRECTORY` for transformers. The same
numbers each time."""

import json
import pathlib
import sys

CONTEXT = 2048
LAYERS, WIDTH, INNER, HEADS = 2, 64, 128, 4
SEED = 7411
WORDS = """the a of to and in is it on for with as at by from that this one two rain sun wind city river train fare light day
night sea hill bread water green blue small old new says goes comes takes gives""".split()
# Strict, as most templates of small models are.
TEMPLATE = """{%- set turns = messages | selectattr('role', 'in', ['user', 'assistant']) | list -%}
{%- for message in turns -%}
{%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) -%}
{{- raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') -}}
{%- endif -%}
{%- endfor -%}
{%- for message in messages -%}
{{- '<|' + message['role'] + '|>' + (message['content'] or '') + '</s>' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|assistant|>' -}}{%- endif -%}
"""


def gguf_file(path):
    import gguf
    import numpy

    random = numpy.random.default_rng(SEED)
    letters = [chr(number) for number in range(33, 127)]
    pieces = ["▁", *letters, *[f"▁{word}" for word in WORDS]]
    tokens = ["<unk>", "<s>", "</s>", *[f"<0x{number:02X}>" for number in range(256)], *pieces]
    kinds = [gguf.TokenType.UNKNOWN, gguf.TokenType.CONTROL, gguf.TokenType.CONTROL]
    kinds += [gguf.TokenType.BYTE] * 256 + [gguf.TokenType.NORMAL] * len(pieces)

    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("tiny")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_vocab_size(len(tokens))
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    writer.add_tokenizer_model("llama")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0] * 259 + [-float(n) for n in range(len(pieces))])
    writer.add_token_types(kinds)
    writer.add_unk_token_id(0)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_chat_template(TEMPLATE)

    def matrix(name, rows, columns):
        writer.add_tensor(name, random.normal(0, columns**-0.5, (rows, columns)).astype(numpy.float32))

    def ones(name):
        writer.add_tensor(name, numpy.ones(WIDTH, numpy.float32))

    matrix("token_embd.weight", len(tokens), WIDTH)
    output = random.normal(0, 1, (len(tokens), WIDTH)).astype(numpy.float32)
    # It says words, and no bytes that are no text.
    output[:259] = 0
    writer.add_tensor("output.weight", output)
    ones("output_norm.weight")
    for n in range(LAYERS):
        ones(f"blk.{n}.attn_norm.weight")
        ones(f"blk.{n}.ffn_norm.weight")
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            matrix(f"blk.{n}.{name}.weight", WIDTH, WIDTH)
        matrix(f"blk.{n}.ffn_gate.weight", INNER, WIDTH)
        matrix(f"blk.{n}.ffn_up.weight", INNER, WIDTH)
        matrix(f"blk.{n}.ffn_down.weight", WIDTH, INNER)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def hf_directory(path):
    import tokenizers
    import torch
    import transformers

    torch.manual_seed(SEED)
    special = ["<unk>", "<s>", "</s>", "<|system|>", "<|user|>", "<|assistant|>", "<|tool|>"]
    letters = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    vocabulary = {token: n for n, token in enumerate([*special, *sorted(letters), *[f"Ġ{word}" for word in WORDS]])}
    inner = tokenizers.Tokenizer(tokenizers.models.BPE(vocabulary, [], unk_token="<unk>"))
    inner.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = tokenizers.decoders.ByteLevel()
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=inner, unk_token="<unk>", bos_token="<s>", eos_token="</s>", pad_token="</s>",
        additional_special_tokens=special[3:], model_max_length=CONTEXT,
    )
    tokenizer.chat_template = TEMPLATE
    config = transformers.LlamaConfig(
        vocab_size=len(vocabulary), hidden_size=WIDTH, intermediate_size=INNER, num_hidden_layers=LAYERS,
        num_attention_heads=HEADS, num_key_value_heads=HEADS, max_position_embeddings=CONTEXT,
        bos_token_id=1, eos_token_id=2, pad_token_id=2,
    )
    model = transformers.LlamaForCausalLM(config)
    # It says words, and no bytes that are no text.
    with torch.no_grad():
        model.lm_head.weight[: len(special) + len(letters)] = 0
    model.save_pretrained(path)
    tokenizer.save_pretrained(path)


if __name__ == "__main__":
    kind, path = sys.argv[1:]
    pathlib.Path(path).parent.mkdir(parents=True, exist_ok=True)
    {"gguf": gguf_file, "hf": hf_directory}[kind](path)
    print(json.dumps({"made": path}))
