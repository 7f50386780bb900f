"""An adapter's layers on a CPU, with no copy of what goes through them.

peft multiplies by an adapter in float32 and casts a layer's input and output for it;
on a CPU those passes over memory take longer than the products.  Here the products are made in the
numbers of the model, and the adapter's is added where the layer's own stands; its weights
and their gradients stay in float32.  Source: peft 0.21, ``tuners/lora/layer.py``.
"""

from functools import partial
from typing import Any

from antiphon.train._libraries import library


def add_in_place(model: Any) -> None:
    """Have the layers of an adapter make no copies.

    What computes no gradients stays peft's, and so do layers that do more than add two products:
    an earlier adapter may have dropout, a bias or a norm of its own (DoRA).

    Args:
        model: A model on a CPU with one adapter of peft, whole in this process.
    """
    product = _product()
    kind: Any = library("peft.tuners.lora.layer").Linear
    for layer in model.modules():
        if isinstance(layer, kind) and _adds_two_products(layer):
            layer.forward = partial(_forward, layer, layer.forward, product)


def _adds_two_products(layer: Any) -> bool:
    linear: Any = library("torch.nn").Linear
    name = layer.active_adapters[0]
    drops = getattr(layer.lora_dropout[name], "p", 0.0) > 0
    has_more = drops or name in layer.lora_variant or layer.lora_bias[name]
    return type(layer.get_base_layer()) is linear and not has_more


def _forward(layer: Any, otherwise: Any, product: Any, x: Any) -> Any:
    if not library("torch").is_grad_enabled():
        return otherwise(x)
    base, name = layer.get_base_layer(), layer.active_adapters[0]
    a, b = layer.lora_A[name].weight, layer.lora_B[name].weight
    return product.apply(x, base.weight, base.bias, a, b, layer.scaling[name])


def _product() -> Any:
    """``x W' + bias + scale x A' B'`` with gradients of ``x``, ``A`` and ``B``."""
    torch = library("torch")

    class Product(torch.autograd.Function):
        """One layer's."""

        @staticmethod
        def forward(
            context: Any, x: Any, weight: Any, bias: Any, a: Any, b: Any, scale: float
        ) -> Any:
            rows = x.flatten(0, -2)
            a, b = a.to(x.dtype), (b * scale).to(x.dtype)
            low = rows @ a.t()
            context.save_for_backward(rows, low, weight, a, b)
            context.scale = scale
            made = torch.nn.functional.linear(rows, weight, bias).addmm_(low, b.t())
            return made.view(*x.shape[:-1], -1)

        @staticmethod
        def backward(context: Any, gradient: Any) -> tuple[Any, ...]:
            rows, low, weight, a, b = context.saved_tensors
            above = gradient.flatten(0, -2)
            low_above = above @ b
            of_x = None
            if context.needs_input_grad[0]:
                of_x = (above @ weight).addmm_(low_above, a).view(*gradient.shape[:-1], -1)
            of_a = (low_above.t() @ rows).float()
            of_b = (above.t() @ low).float() * context.scale
            return of_x, None, None, of_a, of_b, None

    return Product
