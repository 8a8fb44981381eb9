"""Models of transformers that see: images of a fixed size where positions are learnt, of any where
they are not."""
from models.hf import TEXT, hf, many

FIXED = ["pixel_values: f32[b, 3, 32, 32]"]
FREE = ["pixel_values: f32[b, 3, h, w]"]
BY32 = {"h": [64, 32, 96, 128, 64], "w": [96, 64, 32, 64, 64]}
BY16 = {"h": [64, 32, 48, 80, 64], "w": [48, 64, 32, 64, 96]}
VIT = dict(image_size=32, patch_size=8)

# transformers over patches
many("""ViTForImageClassification DeiTForImageClassification ViTMSNForImageClassification
    IJepaForImageClassification Dinov2ForImageClassification
    Dinov2WithRegistersForImageClassification CLIPVisionModel SiglipVisionModel
    BeitForImageClassification Data2VecVisionForImageClassification
    Aimv2VisionModel MLCDVisionModel""", "vision", FIXED, **VIT)
hf("DINOv3ViTModel", "vision", FREE, values=BY16, **VIT)
hf("ViTMAEModel", "vision", FIXED, mask_ratio=0.0, **VIT)
hf("PixtralVisionModel", "vision", FIXED, **VIT)
hf("VideoMAEModel", "vision", ["pixel_values: f32[b, 4, 3, 32, 32]"], num_frames=4, **VIT)
hf("VivitModel", "vision", ["pixel_values: f32[b, 4, 3, 32, 32]"], image_size=32, num_frames=4,
   tubelet_size=[2, 8, 8])
hf("TimesformerModel", "vision", ["pixel_values: f32[b, 4, 3, 32, 32]"], num_frames=4, **VIT)

# convolutions and pyramids
CONV = dict(values=BY32)
hf("ResNetForImageClassification", "vision", FREE, embedding_size=8, hidden_sizes=[8, 16, 24, 32],
   depths=[1, 1, 1, 1])
hf("RegNetForImageClassification", "vision", FREE, embedding_size=8, hidden_sizes=[8, 16, 24, 32],
   depths=[1, 1, 1, 1], groups_width=8)
hf("BitForImageClassification", "vision", FREE, embedding_size=8, hidden_sizes=[8, 16, 24, 32],
   depths=[1, 1, 1, 1], num_groups=4)
hf("ConvNextForImageClassification", "vision", FREE, "tf4", hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1],
   **CONV)
hf("ConvNextV2ForImageClassification", "vision", FREE, "tf4", hidden_sizes=[8, 16, 24, 32],
   depths=[1, 1, 1, 1], **CONV)
hf("DINOv3ConvNextModel", "vision", FREE, hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1], **CONV)
hf("MobileNetV1ForImageClassification", "vision", FREE, depth_multiplier=0.25, min_depth=8)
hf("MobileNetV2ForImageClassification", "vision", FREE, depth_multiplier=0.25, min_depth=8)
hf("EfficientNetForImageClassification", "vision", FREE, width_coefficient=0.25,
   depth_coefficient=0.25, hidden_dim=320)
hf("TextNetForImageClassification", "vision", FREE, stem_out_channels=8, hidden_sizes=[8, 8, 16, 16, 24],
   **CONV)
hf("HGNetV2ForImageClassification", "vision", FREE, **CONV)
hf("PoolFormerForImageClassification", "vision", FREE, hidden_sizes=[8, 16, 24, 32],
   depths=[1, 1, 1, 1], **CONV)
hf("SegformerForImageClassification", "vision", FREE, hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1],
   num_attention_heads=[1, 2, 2, 4], **CONV)
hf("PvtForImageClassification", "vision", ["pixel_values: f32[b, 3, 64, 64]"], image_size=64,
   hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1], num_attention_heads=[1, 2, 2, 4])
hf("PvtV2ForImageClassification", "vision", FREE, hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1],
   num_attention_heads=[1, 2, 2, 4], **CONV)
hf("SwinForImageClassification", "vision", FREE, image_size=64, embed_dim=8, depths=[1, 2],
   num_heads=[1, 2], window_size=4, **CONV)
hf("Swinv2ForImageClassification", "vision", FREE, image_size=64, embed_dim=8, depths=[1, 2],
   num_heads=[1, 2], window_size=4, **CONV)
hf("DonutSwinModel", "vision", FREE, image_size=64, embed_dim=8, depths=[1, 2],
   num_heads=[1, 2], window_size=4, **CONV)
hf("Swin2SRForImageSuperResolution", "vision", FREE, embed_dim=12, depths=[1, 2], num_heads=[2, 2],
   window_size=4, image_size=32, **CONV)
hf("FocalNetForImageClassification", "vision", FREE, image_size=64, embed_dim=8, depths=[1, 1],
   focal_levels=[2, 2], focal_windows=[3, 3], hidden_sizes=[8, 16], **CONV)
hf("LevitForImageClassification", "vision", ["pixel_values: f32[b, 3, 64, 64]"], image_size=64,
   hidden_sizes=[16, 24, 32], num_attention_heads=[2, 2, 4], depths=[1, 1, 1], key_dim=[8, 8, 8])
hf("MobileViTForImageClassification", "vision", FREE, hidden_sizes=[16, 24, 32],
   neck_hidden_sizes=[8, 8, 8, 16, 16, 24, 32], **CONV)
hf("MobileViTV2ForImageClassification", "vision", FREE, width_multiplier=0.25,
   values={"h": [128, 64, 64, 128, 192], "w": [64, 128, 64, 192, 128]})
hf("SwiftFormerForImageClassification", "vision", FREE, embed_dims=[8, 16, 24, 32],
   depths=[1, 1, 1, 1], **CONV)
hf("HieraForImageClassification", "vision", ["pixel_values: f32[b, 3, 64, 64]"], image_size=[64, 64],
   embed_dim=8, depths=[1, 1, 1, 1], num_heads=[1, 1, 2, 2])
hf("VitDetModel", "vision", FREE, values=BY16, image_size=32, patch_size=8,
   window_block_indices=[0], window_size=2)

# segmentation and depth
hf("SegformerForSemanticSegmentation", "segmentation", FREE, hidden_sizes=[8, 16, 24, 32],
   depths=[1, 1, 1, 1], num_attention_heads=[1, 2, 2, 4], decoder_hidden_size=16, **CONV)
hf("MobileNetV2ForSemanticSegmentation", "segmentation", FREE, depth_multiplier=0.25, min_depth=8,
   values=BY32)
hf("MobileViTForSemanticSegmentation", "segmentation", FREE, hidden_sizes=[16, 24, 32],
   neck_hidden_sizes=[8, 8, 8, 16, 16, 24, 32], aspp_out_channels=16, **CONV)
hf("BeitForSemanticSegmentation", "segmentation", FIXED, num_hidden_layers=4, out_indices=[0, 1, 2, 3],
   tag="", **VIT)
hf("DPTForDepthEstimation", "segmentation", FIXED, num_hidden_layers=4, backbone_out_indices=[0, 1, 2, 3],
   neck_hidden_sizes=[8, 8, 16, 16], fusion_hidden_size=8, is_hybrid=False, **VIT)
hf("GLPNForDepthEstimation", "segmentation", FREE, hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1],
   num_attention_heads=[1, 2, 2, 4], decoder_hidden_size=16, **CONV)
hf("CLIPSegForImageSegmentation", "segmentation", [TEXT[0], FIXED[0], TEXT[1]], extract_layers=[0, 1],
   reduce_dim=16, vision_config=VIT)
hf("SamVisionModel", "segmentation", FIXED, output_channels=16, window_size=2, global_attn_indexes=[1],
   mlp_dim=64, **VIT)
hf("MaskFormerSwinModel", "segmentation", FREE, image_size=64, embed_dim=8, depths=[1, 2],
   num_heads=[1, 2], window_size=4, **CONV)

# detectors
hf("YolosForObjectDetection", "detector", FIXED, num_detection_tokens=5, image_size=[32, 32], patch_size=8)
RES = dict(use_timm_backbone=False, use_pretrained_backbone=False, backbone=None, num_queries=7)


def resnet():
    from transformers import ResNetConfig
    return ResNetConfig(embedding_size=8, hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1],
                        out_features=["stage4"])


def pyramid():
    from transformers import ResNetConfig
    return ResNetConfig(embedding_size=8, hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1],
                        out_features=["stage2", "stage3", "stage4"])


def rt():
    from transformers import RTDetrResNetConfig
    return RTDetrResNetConfig(embedding_size=8, hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1],
                              layer_type="basic", out_features=["stage2", "stage3", "stage4"])


RTDETR = dict(backbone_config=rt, encoder_hidden_dim=32, encoder_in_channels=[16, 24, 32], num_queries=7,
              feat_strides=[8, 16, 32], d_model=32, decoder_in_channels=[32, 32, 32], decoder_layers=2,
              decoder_ffn_dim=64, encoder_ffn_dim=64, num_denoising=0)
hf("DetrForObjectDetection", "detector", FREE, backbone_config=resnet, **CONV, **RES)
hf("ConditionalDetrForObjectDetection", "detector", FREE, backbone_config=resnet, **CONV, **RES)
hf("TableTransformerForObjectDetection", "detector", FREE, backbone_config=resnet, **CONV, **RES)
hf("DabDetrForObjectDetection", "detector", FREE, backbone_config=resnet, **CONV, **RES)
hf("DeformableDetrForObjectDetection", "detector", FREE, backbone_config=pyramid, num_feature_levels=3,
   **CONV, **RES)
hf("RTDetrForObjectDetection", "detector", FREE, **CONV, **RTDETR)
hf("RTDetrV2ForObjectDetection", "detector", FREE, **CONV, **RTDETR)
hf("OwlViTForObjectDetection", "detector", ["input_ids: i64[2 * b, 8] < 99", FIXED[0],
                                           "attention_mask: i64[2 * b, 8]"], vision_config=VIT)

# image and text
PAIR = [TEXT[0], FIXED[0], TEXT[1]]
many("CLIPModel AltCLIPModel ChineseCLIPModel", "image and text", PAIR, vision_config=VIT)
hf("SiglipModel", "image and text", PAIR, vision_config=VIT)
hf("BlipForImageTextRetrieval", "image and text", PAIR, vision_config=VIT)
hf("ViltModel", "image and text", PAIR, **VIT)
hf("VisualBertModel", "image and text", TEXT + ["visual_embeds: f32[b, t, 16]"], visual_embedding_dim=16)
hf("LxmertModel", "image and text", [TEXT[0], "visual_feats: f32[b, t, 16]", "visual_pos: f32[b, t, 4]",
                                     TEXT[1]], visual_feat_dim=16, l_layers=1, r_layers=1, x_layers=1)
hf("GitModel", "image and text", PAIR, vision_config=VIT)
hf("Blip2VisionModel", "image and text", FIXED, **VIT)
hf("GroupViTModel", "image and text", PAIR, vision_config=dict(depths=[1, 1, 1], num_group_tokens=[4, 2, 0],
   num_output_groups=[4, 2, 0], **VIT))
