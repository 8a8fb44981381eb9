"""Models of transformers for sound and for series of numbers."""
from models.hf import hf, many

WAVE = ["input_values: f32[b, n]"]
CONV = dict(conv_dim=[8, 8, 8], conv_kernel=[10, 3, 3], conv_stride=[5, 2, 2], num_feat_extract_layers=3,
            num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=2)
many("""Wav2Vec2ForCTC Wav2Vec2ForSequenceClassification HubertForCTC WavLMForCTC UniSpeechForCTC
    UniSpeechSatForCTC Data2VecAudioForCTC SEWForCTC""", "audio", WAVE, **CONV)
hf("SEWDForCTC", "audio", WAVE, **CONV)
hf("ASTForAudioClassification", "audio", ["input_values: f32[b, 64, 16]"], num_mel_bins=16, max_length=64,
   patch_size=8, frequency_stride=8, time_stride=8)
hf("Wav2Vec2BertModel", "audio", ["input_features: f32[b, f, 16]", "attention_mask: i64[b, f]"],
   feature_projection_input_dim=16)
hf("WhisperForConditionalGeneration", "audio", ["input_features: f32[b, 16, 60]",
                                               "decoder_input_ids: i64[b, t] < 99"],
   num_mel_bins=16, max_source_positions=30)
hf("WhisperModel", "audio", ["input_features: f32[b, 16, 60]", "decoder_input_ids: i64[b, t] < 99"],
   num_mel_bins=16, max_source_positions=30)
hf("Speech2TextForConditionalGeneration", "audio", ["input_features: f32[b, f, 16]",
                                                   "attention_mask: i64[b, f]",
                                                   "decoder_input_ids: i64[b, t] < 99"],
   input_feat_per_channel=16, conv_channels=32)
hf("MoonshineForConditionalGeneration", "audio", WAVE + ["decoder_input_ids: i64[b, t] < 99"],
   encoder_num_hidden_layers=2, decoder_num_hidden_layers=2, encoder_num_attention_heads=4,
   num_key_value_heads=4, decoder_num_attention_heads=4, encoder_num_key_value_heads=4, decoder_num_key_value_heads=4)
hf("EncodecModel", "audio", ["input_values: f32[b, 1, n]"], num_filters=4, hidden_size=16,
   codebook_size=16, upsampling_ratios=[4, 2])
hf("DacModel", "audio", ["input_values: f32[b, 1, n]"], encoder_hidden_size=8, downsampling_ratios=[2, 4],
   decoder_hidden_size=16, n_codebooks=2, codebook_size=16, codebook_dim=4, upsampling_ratios=[4, 2])
hf("VitsModel", "audio", ["input_ids: i64[b, s] < 30"], use_stochastic_duration_prediction=False,
   noise_scale=0.0, noise_scale_duration=0.0)
hf("SpeechT5HifiGan", "audio", ["spectrogram: f32[b, f, 16]"], model_in_dim=16,
   upsample_initial_channel=16, upsample_rates=[2, 2], upsample_kernel_sizes=[4, 4])
hf("ClapAudioModel", "audio", ["input_features: f32[b, 1, 64, 32]"], num_mel_bins=32, spec_size=64,
   depths=[1, 1], num_attention_heads=[1, 2], patch_embeds_hidden_size=8, window_size=4, hidden_size=16,
   num_hidden_layers=2, enable_fusion=False)
hf("ParakeetEncoder", "audio", ["input_features: f32[b, f, 16]", "attention_mask: i64[b, f]"],
   num_mel_bins=16, subsampling_conv_channels=8)
hf("UnivNetModel", "audio", ["input_features: f32[b, f, 16]", "noise_sequence: f32[b, f, 8]"],
   model_in_channels=8, model_hidden_channels=8, num_mel_bins=16, resblock_kernel_sizes=[3, 3],
   resblock_stride_sizes=[2, 2], resblock_dilation_sizes=[[1, 3], [1, 3]], kernel_predictor_hidden_channels=8)
hf("Pop2PianoForConditionalGeneration", "audio", ["input_features: f32[b, f, 32]",
                                                 "decoder_input_ids: i64[b, t] < 99"])

# series
hf("PatchTSTForPrediction", "time series", ["past_values: f32[b, 32, 3]"], num_input_channels=3,
   context_length=32, patch_length=8, patch_stride=8, prediction_length=5)
hf("PatchTSMixerForPrediction", "time series", ["past_values: f32[b, 32, 3]"], num_input_channels=3,
   context_length=32, patch_length=8, patch_stride=8, prediction_length=5)
hf("DecisionTransformerModel", "time series", [
    "states: f32[b, s, 17]", "actions: f32[b, s, 4]", "rewards: f32[b, s, 1]",
    "returns_to_go: f32[b, s, 1]", "timesteps: i64[b, s] < 50", "attention_mask: i64[b, s]"])
