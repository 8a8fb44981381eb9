"""Models of transformers that read and write text."""
from models.hf import IDS, TEXT, TO_TEXT, cached, hf, many

# encoders
many("""AlbertModel BertForMaskedLM BertForSequenceClassification BertForTokenClassification
    BertForQuestionAnswering BertGenerationEncoder CamembertModel ConvBertModel Data2VecTextModel
    DebertaModel DebertaV2Model DistilBertModel ElectraForPreTraining ErnieModel
    FlaubertModel IBertModel MegatronBertModel MPNetModel
    NystromformerModel RemBertModel RobertaForSequenceClassification RobertaPreLayerNormModel
    RoCBertModel RoFormerModel SqueezeBertModel XLMModel XLMRobertaForTokenClassification XLMRobertaXLModel
    XLNetModel YosoModel""", "encoder", TEXT)
hf("EsmModel", "encoder", TEXT, vocab_size=99, pad_token_id=0)
hf("FNetModel", "encoder", IDS)
hf("CanineModel", "encoder", TEXT, values={"s": [12, 7, 5, 17, 8]}, local_transformer_stride=8)
hf("MobileBertModel", "encoder", TEXT, embedding_size=32, intra_bottleneck_size=32, true_hidden_size=32)
hf("LongformerModel", "encoder", TEXT, attention_window=[4, 4])
hf("BigBirdModel", "encoder", TEXT, attention_type="original_full")
hf("FunnelModel", "encoder", TEXT, block_sizes=[1, 1], num_decoder_layers=1, d_inner=64,
   num_hidden_layers=..., n_head=4, values={"s": [12, 7, 5, 17, 8]})
hf("LukeModel", "encoder", TEXT, entity_vocab_size=20, entity_emb_size=32)
hf("XmodModel", "encoder", TEXT, default_language="en_XX")
hf("ModernBertModel", "encoder", TEXT, global_attn_every_n_layers=2, cls_token_id=1, sep_token_id=2)
hf("EuroBertModel", "encoder", TEXT, "tf5")
hf("NomicBertModel", "encoder", TEXT, "tf5")
hf("DPRQuestionEncoder", "encoder", TEXT)
hf("SplinterModel", "encoder", TEXT)
hf("MraModel", "encoder", TEXT)
hf("PerceiverForMaskedLM", "encoder", ["inputs: i64[b, s] < 99", "attention_mask: i64[b, s]"],
   d_latents=32, d_model=32, num_latents=8, num_self_attends_per_block=2,
   num_self_attention_heads=4, num_cross_attention_heads=4, qk_channels=32, v_channels=32)
hf("LayoutLMModel", "encoder", [TEXT[0], "bbox: i64[b, s, 4] < 900", TEXT[1]])
hf("LiltModel", "encoder", [TEXT[0], "bbox: i64[b, s, 4] < 900", TEXT[1]], hidden_size=48)
hf("BrosModel", "encoder", [TEXT[0], "bbox: f32[b, s, 4]", TEXT[1]], hidden_size=64)
hf("TapasModel", "encoder", TEXT)
hf("CLIPTextModel", "encoder", TEXT)
hf("SiglipTextModel", "encoder", TEXT)
hf("ClapTextModel", "encoder", TEXT)

# decoders
many("""ApertusForCausalLM ArceeForCausalLM BioGptForCausalLM BloomForCausalLM
    CohereForCausalLM Cohere2ForCausalLM
    DiffLlamaForCausalLM Ernie4_5ForCausalLM Exaone4ForCausalLM
    GemmaForCausalLM Gemma2ForCausalLM Gemma3ForCausalLM GlmForCausalLM Glm4ForCausalLM
    GPT2LMHeadModel GPTBigCodeForCausalLM GPTNeoXForCausalLM
    GPTNeoXJapaneseForCausalLM GraniteForCausalLM HeliumForCausalLM
    LlamaForCausalLM MistralForCausalLM ModernBertDecoderForCausalLM
    MptForCausalLM OlmoForCausalLM Olmo2ForCausalLM Olmo3ForCausalLM
    OPTForCausalLM PersimmonForCausalLM PhiForCausalLM Phi3ForCausalLM
    Qwen2ForCausalLM Qwen3ForCausalLM SeedOssForCausalLM SmolLM3ForCausalLM StableLmForCausalLM
    Starcoder2ForCausalLM VaultGemmaForCausalLM XGLMForCausalLM BitNetForCausalLM
    LlamaForTokenClassification""", "decoder", TEXT)
many("LlamaForSequenceClassification Qwen2ForSequenceClassification", "decoder", TEXT, pad_token_id=0)
hf("FalconForCausalLM", "decoder", TEXT, head_dim=...)
many("HunYuanDenseV1ForCausalLM MinistralForCausalLM", "decoder", TEXT, head_dim=8)
hf("NemotronForCausalLM", "decoder", TEXT, head_dim=8, num_key_value_heads=2)
hf("OpenAIGPTLMHeadModel", "decoder", TEXT)
hf("CodeGenForCausalLM", "decoder", TEXT, rotary_dim=4)
hf("GPTJForCausalLM", "decoder", TEXT, rotary_dim=4)
hf("CTRLLMHeadModel", "decoder", TEXT, dff=64)
hf("GPTNeoForCausalLM", "decoder", TEXT, attention_types=[[["global", "local"], 1]], window_size=4)
hf("Gemma3nForCausalLM", "decoder", TEXT, num_kv_shared_layers=0, laurel_rank=4,
   hidden_size_per_layer_input=8, layer_types=["sliding_attention", "full_attention"],
   activation_sparsity_pattern=[0.5, 0.0])
hf("MistralForCausalLM", "decoder", TEXT, tag="+window", sliding_window=4)
hf("Phi3ForCausalLM", "decoder", TEXT, tag="+longrope", max_position_embeddings=128,
   original_max_position_embeddings=16, rope_scaling={
       "type": "longrope", "short_factor": [1.0] * 4, "long_factor": [2.0] * 4}, kits="tf4")
hf("LlamaForCausalLM", "decoder", TEXT, tag="+yarn", kits="tf4", rope_scaling={
    "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32})
hf("LlamaForCausalLM", "decoder", TEXT, tag="+eager", attn_implementation="eager")
hf("LlamaForCausalLM", "decoder", IDS, tag="+nomask")
many("NanoChatForCausalLM Jais2ForCausalLM Ministral3ForCausalLM CwmForCausalLM",
     "decoder", TEXT, "tf5")

for name in """LlamaForCausalLM MistralForCausalLM Qwen2ForCausalLM Qwen3ForCausalLM GemmaForCausalLM
        Gemma2ForCausalLM Olmo2ForCausalLM GraniteForCausalLM SmolLM3ForCausalLM StableLmForCausalLM
        CohereForCausalLM Starcoder2ForCausalLM GlmForCausalLM
        PhiForCausalLM""".split():
    cached(name)
for name in """GPT2LMHeadModel GPTNeoXForCausalLM OPTForCausalLM
        BioGptForCausalLM""".split():
    cached(name, heads=4)
cached("Phi3ForCausalLM")
cached("MixtralForCausalLM")

# mixtures of experts
many("""MixtralForCausalLM Qwen2MoeForCausalLM Qwen3MoeForCausalLM OlmoeForCausalLM
    GraniteMoeForCausalLM GraniteMoeSharedForCausalLM PhimoeForCausalLM JetMoeForCausalLM
    GptOssForCausalLM Ernie4_5_MoeForCausalLM FlexOlmoForCausalLM
    MiniMaxForCausalLM Glm4MoeForCausalLM""", "mixture of experts", TEXT)
hf("HunYuanMoEV1ForCausalLM", "mixture of experts", TEXT, head_dim=8)
hf("DeepseekV2ForCausalLM", "mixture of experts", TEXT, num_key_value_heads=4, first_k_dense_replace=1,
   n_group=1, topk_group=1, n_shared_experts=1, num_experts_per_tok=2)
hf("DeepseekV3ForCausalLM", "mixture of experts", TEXT, num_key_value_heads=4, first_k_dense_replace=1,
   n_group=2, topk_group=1, n_shared_experts=1, head_dim=4)
hf("Dots1ForCausalLM", "mixture of experts", TEXT, first_k_dense_replace=1, n_group=1, topk_group=1,
   n_shared_experts=1, n_routed_experts=4, num_experts_per_tok=2)
hf("SwitchTransformersForConditionalGeneration", "mixture of experts", TO_TEXT,
   num_sparse_encoder_layers=1, num_sparse_decoder_layers=1)
hf("NllbMoeForConditionalGeneration", "mixture of experts", TO_TEXT,
   encoder_sparse_step=2, decoder_sparse_step=2)
hf("DbrxForCausalLM", "mixture of experts", TEXT, "tf4")
hf("Lfm2MoeForCausalLM", "mixture of experts", TEXT, "tf5", layer_types=["conv", "full_attention"])
many("MiniMaxM2ForCausalLM AfmoeForCausalLM", "mixture of experts", TEXT, "tf5")

# state space, recurrent, hybrids
hf("MambaForCausalLM", "state space", IDS, time_step_rank=4)
hf("FalconMambaForCausalLM", "state space", IDS, time_step_rank=4)
hf("Mamba2ForCausalLM", "state space", IDS, num_heads=8, head_dim=8, n_groups=2, chunk_size=8)
hf("RwkvForCausalLM", "state space", IDS, attention_hidden_size=32)
hf("xLSTMForCausalLM", "state space", IDS, "tf5", num_blocks=2, chunk_size=16, v_head_dim=...)
hf("RecurrentGemmaForCausalLM", "state space", TEXT, lru_width=32, attention_window_size=16)
hf("JambaForCausalLM", "state space", TEXT, mamba_dt_rank=4, attn_layer_period=2,
   attn_layer_offset=1, expert_layer_period=2, expert_layer_offset=1, use_mamba_kernels=False)
hf("BambaForCausalLM", "state space", TEXT, attn_layer_indices=[1], mamba_n_heads=8, mamba_d_head=8,
   mamba_chunk_size=8)
hf("ZambaForCausalLM", "state space", TEXT, use_mamba_kernels=False, mamba_dt_rank=4,
   num_hidden_layers=6, attn_layer_period=3, attn_layer_offset=2, attention_hidden_size=64,
   attention_head_dim=16)
hf("Lfm2ForCausalLM", "state space", TEXT, layer_types=["conv", "full_attention"])
hf("Qwen3NextForCausalLM", "state space", TEXT, layer_types=["linear_attention", "full_attention"],
   linear_num_key_heads=2, linear_num_value_heads=4, linear_key_head_dim=8, linear_value_head_dim=8)
hf("GraniteMoeHybridForCausalLM", "state space", TEXT, layer_types=["mamba", "attention"],
   mamba_n_heads=8, mamba_d_head=8, mamba_chunk_size=8)
hf("FalconH1ForCausalLM", "state space", TEXT, mamba_d_ssm=64, mamba_n_heads=8, mamba_d_head=8,
   mamba_chunk_size=8)

# encoder and decoder
many("""BartForConditionalGeneration BlenderbotForConditionalGeneration
    BlenderbotSmallForConditionalGeneration M2M100ForConditionalGeneration MarianMTModel
    MBartForConditionalGeneration MvpForConditionalGeneration PegasusForConditionalGeneration
    PLBartForConditionalGeneration T5ForConditionalGeneration MT5ForConditionalGeneration
    UMT5ForConditionalGeneration""", "encoder-decoder", TO_TEXT)
hf("T5EncoderModel", "encoder", TEXT)
hf("PegasusXForConditionalGeneration", "encoder-decoder", TO_TEXT, num_global_tokens=4, block_size=8)
hf("LEDForConditionalGeneration", "encoder-decoder", TO_TEXT, attention_window=[4, 4],
   max_encoder_position_embeddings=128, max_decoder_position_embeddings=128)
hf("LongT5ForConditionalGeneration", "encoder-decoder", TO_TEXT, local_radius=4)
hf("BigBirdPegasusForConditionalGeneration", "encoder-decoder", TO_TEXT,
   attention_type="original_full")
hf("ProphetNetForConditionalGeneration", "encoder-decoder", TO_TEXT, num_hidden_layers=...)
hf("FSMTForConditionalGeneration", "encoder-decoder", TO_TEXT, src_vocab_size=99, tgt_vocab_size=99,
   langs=["en", "de"])
hf("T5GemmaForConditionalGeneration", "encoder-decoder", TO_TEXT, "tf5")
hf("NllbMoeForConditionalGeneration", "encoder-decoder", TO_TEXT, tag="+dense",
   encoder_sparse_step=0, decoder_sparse_step=0)
