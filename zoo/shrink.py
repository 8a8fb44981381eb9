"""Configurations of transformers made tiny: numbers by their names, in nested ones too."""
import copy

SMALL = """
    32  hidden_size d_model n_embd dim embed_dim embedding_size embed_size projection_dim hidden_dim
    32  encoder_hidden_size decoder_hidden_size emb_dim pooler_size word_embed_proj_dim shared_dim
    2   num_hidden_layers num_layers n_layer n_layers encoder_layers decoder_layers
    2   num_decoder_layers num_encoder_layers num_key_value_heads num_kv_heads num_experts_per_tok
    2   num_experts_per_token moe_topk moe_top_k top_k_experts num_selected_experts n_groups
    4   num_attention_heads n_head n_heads encoder_attention_heads decoder_attention_heads num_heads
    4   n_routed_experts num_experts num_local_experts moe_num_experts qk_rope_head_dim
    64  intermediate_size ffn_dim encoder_ffn_dim decoder_ffn_dim d_ff n_inner ffn_hidden_size
    64  shared_intermediate_size shared_expert_intermediate_size encoder_intermediate_size
    64  dim_feedforward
    32  moe_intermediate_size
    8   head_dim d_kv attention_head_size d_head kv_channels qk_nope_head_dim v_head_dim
    16  q_lora_rank kv_lora_rank mamba_d_state state_size
    99  vocab_size decoder_vocab_size text_vocab_size vocab_size_per_layer_input
    128 max_position_embeddings n_positions n_ctx max_target_positions max_source_positions
    128 max_sequence_length
    0   pad_token_id
    1   bos_token_id
    2   eos_token_id decoder_start_token_id
"""
NUMBERS = {name: int(line.split()[0]) for line in SMALL.strip().split("\n")
           for name in line.split()[1:]}


def small(config_class, more=None):
    """A config of the class with small numbers, then those of `more`: a dict is for a nested config
    of that name, a function makes a value, ... leaves what the class has."""
    return config_class(**numbers(config_class(), more or {}))


def numbers(usual, more):
    words = {}
    for name, n in NUMBERS.items():
        now = getattr(usual, name, None)
        if isinstance(now, int) and not isinstance(now, bool) and now > n or \
                name.endswith("token_id") and now is not None:
            words[name] = n
    if getattr(usual, "use_cache", None) is not None:
        words["use_cache"] = False
    given = {k: v() if callable(v) else copy.deepcopy(v) for k, v in more.items()}
    for name in getattr(usual, "sub_configs", {}):
        inner, own = getattr(usual, name, None), given.get(name, {})
        if hasattr(inner, "to_dict") and isinstance(own, dict):
            given[name] = numbers(inner, own)
    words.update(given)
    return {k: v for k, v in words.items() if v is not ...}
