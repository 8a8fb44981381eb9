"""Models of other packages: timm, torchvision, diffusers, vit-pytorch, x-transformers, PyTorch Geometric,
segmentation-models-pytorch, deepctr-torch."""
from entry import add

BY32 = {"h": [64, 32, 96, 128, 64], "w": [96, 64, 32, 64, 64]}
BY16 = {"h": [64, 32, 48, 80, 64], "w": [48, 64, 32, 64, 96]}
BY8 = {"h": [32, 16, 40, 24, 64], "w": [24, 16, 32, 56, 16]}
LARGE = {"h": [96, 83, 128, 101, 97], "w": [128, 97, 96, 83, 103]}
FREE = "x: f32[b, 3, h, w]"


def timm(name, size=None, family="vision", values=None, tag="", **more):
    """size: of an image where it is fixed."""
    def make():
        import timm
        if size:
            more["img_size"] = size
        return timm.create_model(name, num_classes=7, **more)
    inputs = ["x: f32[b, 3, %d, %d]" % (size, size)] if size else [FREE]
    add("timm." + name + tag, family, "more", make, inputs, values or BY32, repr((size, sorted(more.items()))))


def plain(name, inputs, family="vision", values=None, **more):
    """Of a fixed image without an argument that says so."""
    def make():
        import timm
        return timm.create_model(name, num_classes=7, **more)
    add("timm." + name, family, "more", make, inputs, values, repr(sorted(more.items())))


# timm: convolutions, of any image
for name in """resnet10t resnet18 resnext26ts seresnext26ts gcresnext26ts efficientnet_lite0
        mobilenetv2_035 mobilenetv3_small_050 mobilenetv4_conv_small_035 mixnet_s hardcorenas_a fbnetc_100
        tinynet_e lcnet_035 mnasnet_small spnasnet_100 regnetx_002 regnety_002 densenet121 convnext_atto
        convnextv2_atto dla46_c dpn48b ese_vovnet19b_slim_dw ghostnet_050 hrnet_w18_small res2net50_14w_8s
        rexnet_100 repvgg_a0 selecsls42 skresnet18 xception41 vgg11 tf_efficientnet_b0 tf_mobilenetv3_small_minimal_100
        edgenext_xx_small poolformer_s12 metaformer mobileone_s0 fastvit_t8 repghostnet_050 inception_v3
        inception_resnet_v2 nasnetalarge nf_resnet26 hgnetv2_b0 starnet_s1 rdnet_tiny cs3darknet_s
        cspresnet50 darknet17 inception_next_atto nextvit_small pvt_v2_b0 caformer_s18
        resnetv2_50 vovnet39a mambaout_femto efficientvit_b0 repvit_m0_9 convmixer_768_32
        shvit_s1 swiftformer_xs tiny_vit_5m_224 focalnet_tiny_srf davit_tiny""".split():
    if name in ("metaformer", "nasnetalarge", "convmixer_768_32", "tiny_vit_5m_224"):
        continue
    timm(name, values={"h": [96, 128, 96, 160, 128], "w": [128, 96, 160, 96, 96]}
         if name in ("inception_v3", "inception_resnet_v2") else None)
for name in ("resnet18", "mobilenetv3_small_050", "efficientnet_lite0"):
    timm(name, values=LARGE, tag="+odd")

# timm: of one image size
SMALL = dict(embed_dim=32, depth=2, num_heads=4, patch_size=8)
for name in """vit_tiny_patch16_224 deit_tiny_patch16_224 eva02_tiny_patch14_224 cait_xxs24_224 xcit_nano_12_p16_224
        beit_base_patch16_224 vit_tiny_r_s16_p8_224 vit_relpos_small_patch16_224 samvit_base_patch16_224
        deit3_small_patch16_224""".split():
    if name == "vit_tiny_r_s16_p8_224":
        continue
    timm(name, 32, **SMALL)
timm("vit_tiny_patch16_224", values=BY16, tag="+dynamic", dynamic_img_size=True, **SMALL)
timm("vit_small_patch16_dinov3", values=BY16, dynamic_img_size=True, **SMALL)
timm("naflexvit_base_patch16_gap", 32, embed_dim=32, depth=2, num_heads=4)
timm("mixer_s16_224", 64)
timm("gmlp_ti16_224", 64)
timm("resmlp_12_224", 64)
timm("swin_tiny_patch4_window7_224", 56, embed_dim=12, depths=(1, 2), num_heads=(1, 2))
timm("swinv2_tiny_window8_256", 64, embed_dim=12, depths=(1, 2), num_heads=(1, 2))
timm("swin_s3_tiny_224", 56, embed_dim=12, depths=(1, 2), num_heads=(1, 2), window_size=(7, 7))
timm("pit_ti_224", 64)
timm("twins_pcpvt_small", 64, embed_dims=(8, 16, 40, 64), depths=(1, 1, 1, 1))
timm("coat_tiny", 64)
timm("crossvit_tiny_240", 240)
timm("volo_d1_224", 64)
timm("visformer_tiny", 64)
timm("levit_128s", 64)
timm("maxvit_rmlp_pico_rw_256", 64)
timm("coatnet_nano_rw_224", 64)
timm("mvitv2_tiny", 64)
timm("nest_tiny", 64)
timm("convit_tiny", 32, embed_dim=32, depth=4, num_heads=4, patch_size=8)
timm("tnt_s_legacy_patch16_224", 32, embed_dim=32, inner_dim=8, depth=2, num_heads_inner=2, num_heads_outer=4)
timm("sequencer2d_s", 32, embed_dims=(16, 16, 16, 16))
plain("efficientformer_l1", ["x: f32[b, 3, 224, 224]"])
timm("efficientformerv2_s0", 64)
timm("hiera_tiny_224", 64, embed_dim=16, stages=(1, 1, 1, 1), num_heads=1)
timm("gcvit_xxtiny", 64)
plain("mobilevit_xxs", ["x: f32[b, 3, 64, 64]"])
plain("mobilevitv2_050", ["x: f32[b, 3, 64, 64]"])
plain("bat_resnext26ts", ["x: f32[b, 3, 256, 256]"])
plain("lambda_resnet26t", ["x: f32[b, 3, 256, 256]"])
plain("halonet26t", ["x: f32[b, 3, 256, 256]"])
plain("botnet26t_256", ["x: f32[b, 3, 256, 256]"])


def vision(name, values=BY32, family="vision", **more):
    def make():
        import torchvision
        return torchvision.models.get_model(name, weights=None, **more)
    add("torchvision." + name, family, "more", make, ["x: f32[b, 3, h, w]"], values, repr(sorted(more.items())))


for name in """resnet18 resnet50 vgg11_bn squeezenet1_1 densenet121 mobilenet_v2 mobilenet_v3_small
        mnasnet0_5 shufflenet_v2_x0_5 efficientnet_b0 efficientnet_v2_s regnet_y_400mf
        resnext50_32x4d wide_resnet50_2 convnext_tiny swin_t swin_v2_t""".split():
    vision(name)
vision("alexnet", {"h": [64, 96, 128, 64, 96], "w": [96, 64, 64, 64, 128]})
vision("googlenet", init_weights=False)
for name in ("fcn_resnet50", "deeplabv3_mobilenet_v3_large", "lraspp_mobilenet_v3_large", "deeplabv3_resnet50"):
    vision(name, family="segmentation", weights_backbone=None, num_classes=5)


@lambda make: add("torchvision.vit_b_16", "vision", "more", make, ["x: f32[b, 3, 32, 32]"])
def torchvision_vit():
    from torchvision.models import VisionTransformer
    return VisionTransformer(32, 8, 2, 4, 32, 64, num_classes=7)


@lambda make: add("torchvision.maxvit_t", "vision", "more", make, ["x: f32[b, 3, 64, 64]"])
def torchvision_maxvit():
    from torchvision.models import MaxVit
    return MaxVit((64, 64), 16, 2, [16, 16], [1, 1], 8, 0.0, num_classes=7)


for name in ("r3d_18", "mc3_18", "r2plus1d_18"):
    def make(name=name):
        import torchvision
        return torchvision.models.get_model(name, weights=None, num_classes=7)
    add("torchvision." + name, "vision", "more", make, ["x: f32[b, 3, 16, 64, 64]"], None, name)

UNET = dict(block_out_channels=(16, 32), layers_per_block=1, norm_num_groups=4)


def diffusers(name, inputs, values=None, family="diffusion", tag="", **config):
    def make():
        import diffusers
        return getattr(diffusers, name)(**config)
    add("diffusers." + name + tag, family, "more", make, inputs, values or BY8, repr(sorted(config.items())))


STEP = "timestep: i64[b] < 1000"
diffusers("UNet2DModel", ["sample: f32[b, 3, h, w]", STEP], down_block_types=("DownBlock2D", "AttnDownBlock2D"),
          up_block_types=("AttnUpBlock2D", "UpBlock2D"), attention_head_dim=8, **UNET)
diffusers("UNet2DConditionModel", ["sample: f32[b, 4, h, w]", STEP, "encoder_hidden_states: f32[b, s, 16]"],
          down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"), up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
          cross_attention_dim=16, attention_head_dim=2, **UNET)
diffusers("UNet1DModel", ["sample: f32[b, 14, s]", STEP], {"s": [16, 8, 32, 24, 64]}, in_channels=14, out_channels=14,
          time_embedding_type="positional", block_out_channels=(8, 16), layers_per_block=1, extra_in_channels=0,
          down_block_types=("DownResnetBlock1D", "DownResnetBlock1D"), up_block_types=("UpResnetBlock1D",),
          mid_block_type="MidResTemporalBlock1D", out_block_type="OutConv1DBlock", norm_num_groups=4,
          use_timestep_embedding=True, act_fn="mish", downsample_each_block=False)
diffusers("AutoencoderKL", ["sample: f32[b, 3, h, w]"], down_block_types=("DownEncoderBlock2D",) * 2,
          up_block_types=("UpDecoderBlock2D",) * 2, **UNET)
diffusers("VQModel", ["sample: f32[b, 3, h, w]"], down_block_types=("DownEncoderBlock2D",) * 2,
          up_block_types=("UpDecoderBlock2D",) * 2, num_vq_embeddings=16, **UNET)
diffusers("AutoencoderTiny", ["sample: f32[b, 3, h, w]"], encoder_block_out_channels=(8, 8), num_encoder_blocks=(1, 1),
          decoder_block_out_channels=(8, 8), num_decoder_blocks=(1, 1))
diffusers("DiTTransformer2DModel", ["hidden_states: f32[b, 4, 16, 16]", STEP, "class_labels: i64[b] < 10"],
          num_attention_heads=2, attention_head_dim=8, num_layers=2, sample_size=16, out_channels=4, num_embeds_ada_norm=10)
diffusers("PixArtTransformer2DModel", ["hidden_states: f32[b, 4, 16, 16]", "encoder_hidden_states: f32[b, s, 16]", STEP],
          num_attention_heads=2, attention_head_dim=8, num_layers=2, sample_size=16, cross_attention_dim=16,
          caption_channels=16, out_channels=8, use_additional_conditions=False)
diffusers("SD3Transformer2DModel", ["hidden_states: f32[b, 4, 16, 16]", "encoder_hidden_states: f32[b, s, 16]",
                                    "pooled_projections: f32[b, 24]", STEP], sample_size=16, in_channels=4, num_layers=2,
          attention_head_dim=8, num_attention_heads=2, joint_attention_dim=16, caption_projection_dim=16,
          pooled_projection_dim=24, out_channels=4)
diffusers("ControlNetModel", ["sample: f32[b, 4, h, w]", STEP, "encoder_hidden_states: f32[b, s, 16]",
                              "controlnet_cond: f32[b, 3, 8 * h, 8 * w]"],
          down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"), cross_attention_dim=16, attention_head_dim=2,
          conditioning_embedding_out_channels=(8, 8, 8, 16), **UNET)
diffusers("UVit2DModel", ["input_ids: i64[b, 8, 8] < 30", "encoder_hidden_states: f32[b, s, 16]",
                          "pooled_text_emb: f32[b, 24]", "micro_conds: f32[b, 5]"], hidden_size=16, cond_embed_dim=24,
          micro_cond_encode_dim=8, micro_cond_embed_dim=40, encoder_hidden_size=16, vocab_size=32, codebook_size=30,
          num_hidden_layers=2, num_attention_heads=2, in_channels=16, block_out_channels=16, block_num_heads=2)
diffusers("PriorTransformer", ["hidden_states: f32[b, 16]", STEP, "proj_embedding: f32[b, 16]",
                               "encoder_hidden_states: f32[b, 7, 16]"], num_attention_heads=2, attention_head_dim=8,
          num_layers=2, embedding_dim=16, num_embeddings=7, additional_embeddings=4)


def vit(module, name, inputs, **config):
    def make():
        import importlib
        return getattr(importlib.import_module("vit_pytorch." + module), name)(**config)
    add("vit_pytorch.%s.%s" % (module, name), "vision", "more", make, inputs, BY32, repr(sorted(config.items())))


IMAGE = ["img: f32[b, 3, 32, 32]"]
BASE = dict(num_classes=7, dim=32, depth=2, heads=2, mlp_dim=64)
PATCH = dict(image_size=32, patch_size=8, **BASE)
vit("vit", "ViT", IMAGE, **PATCH)
vit("simple_vit", "SimpleViT", IMAGE, **PATCH)
vit("deepvit", "DeepViT", IMAGE, **PATCH)
vit("cait", "CaiT", IMAGE, image_size=32, patch_size=8, num_classes=7, dim=32, depth=2, cls_depth=1, heads=2, mlp_dim=64)
vit("vit_for_small_dataset", "ViT", IMAGE, **PATCH)
vit("parallel_vit", "ViT", IMAGE, **PATCH)
vit("simple_vit_with_fft", "SimpleViT", ["img: f32[b, 3, 32, 32]"], freq_patch_size=8, **PATCH)
vit("rvt", "RvT", IMAGE, **PATCH)
vit("cct", "CCT", ["x: f32[b, 3, 32, 32]"], img_size=32, embedding_dim=32, num_layers=2, num_heads=2, mlp_ratio=2, num_classes=7)
vit("cvt", "CvT", ["x: f32[b, 3, h, w]"], num_classes=7, s1_emb_dim=8, s2_emb_dim=16, s3_emb_dim=24, s1_heads=1, s2_heads=1,
    s3_heads=2, s3_depth=1)
vit("xcit", "XCiT", IMAGE, image_size=32, patch_size=8, num_classes=7, dim=32, depth=2, cls_depth=1, heads=2, mlp_dim=64)


def words(tag, **config):
    def make():
        from x_transformers import Decoder, Encoder, TransformerWrapper
        more = dict(config)
        kind = more.pop("kind", "Decoder")
        layers = {"Decoder": Decoder, "Encoder": Encoder}[kind](dim=32, depth=2, heads=4, attn_dim_head=8, **more)
        return TransformerWrapper(num_tokens=50, max_seq_len=64, attn_layers=layers)
    add("x_transformers" + tag, "decoder" if config.get("kind") != "Encoder" else "encoder", "more", make,
        ["x: i64[b, s] < 50"], None, repr(sorted(config.items())))


words("")
words("+encoder", kind="Encoder")
words("+rotary", rotary_pos_emb=True)
words("+alibi", alibi_pos_bias=True)
words("+t5", rel_pos_bias=True)
words("+swiglu", ff_glu=True, ff_swish=True, use_rmsnorm=True)
words("+multiquery", attn_kv_heads=1)
words("+talking", attn_pre_talking_heads=True, attn_post_talking_heads=True)
words("+xpos", rotary_xpos=True)
words("+sandwich", sandwich_norm=True)
words("+macaron", macaron=True)
words("+qknorm", attn_qk_norm=True)
words("+shift", shift_tokens=1)
words("+postnorm", pre_norm=False)


def graph(name, **more):
    def make():
        from torch_geometric.nn import models
        return getattr(models, name)(8, 16, 2, out_channels=5, **more)
    add("pyg." + name + "".join("+" + k for k in more), "graph", "more", make,
        ["x: f32[v, 8]", "edge_index: i64[2, e]"], None, repr(sorted(more.items())))


for name in ("GCN", "GraphSAGE", "GIN", "GAT", "EdgeCNN"):
    graph(name)
graph("GAT", v2=True)
graph("GCN", jk="cat")
graph("GraphSAGE", jk="max")


def layer(name, arguments, inputs=("x: f32[v, 8]", "edge_index: i64[2, e]"), **more):
    def make():
        import torch_geometric.nn as g
        return getattr(g, name)(*arguments, **more)
    add("pyg." + name, "graph", "more", make, list(inputs), None, repr((arguments, sorted(more.items()))))


layer("TransformerConv", (8, 16), heads=2)
layer("ChebConv", (8, 16, 3))
layer("GatedGraphConv", (16, 2))
layer("SGConv", (8, 16), K=2)
layer("TAGConv", (8, 16))
layer("ARMAConv", (8, 16))
layer("LEConv", (8, 16))
layer("GENConv", (8, 16))
layer("SuperGATConv", (8, 16))
layer("FiLMConv", (8, 16))
layer("GraphConv", (8, 16))
layer("ResGatedGraphConv", (8, 16))


def segment(name, encoder="resnet18", **more):
    def make():
        import segmentation_models_pytorch as smp
        return getattr(smp, name)(encoder, encoder_weights=None, classes=3, **more)
    add("smp." + name, "segmentation", "more", make, ["x: f32[b, 3, h, w]"], BY32, repr((encoder, sorted(more.items()))))


for name in "Unet UnetPlusPlus MAnet Linknet FPN PSPNet DeepLabV3 DeepLabV3Plus UPerNet Segformer".split():
    segment(name)


def recommend(name, family="recommender", linear=True, **more):
    def make():
        import kits
        kits.without_training()
        import deepctr_torch.models as models
        from deepctr_torch.inputs import DenseFeat, SparseFeat
        columns = [SparseFeat("s%d" % k, 20, embedding_dim=8) for k in range(4)]
        columns += [DenseFeat("d%d" % k, 1) for k in range(3)]
        words = dict(dnn_feature_columns=columns, **more)
        if linear:
            words["linear_feature_columns"] = columns
        return getattr(models, name)(**words)
    add("deepctr." + name, family, "more", make, ["X: f32[b, 7]"], None, repr((linear, sorted(more.items()))))


for name in "DeepFM xDeepFM WDL DCN AutoInt FiBiNET NFM AFN ONN DIFM IFM".split():
    recommend(name)
recommend("PNN", linear=False)
