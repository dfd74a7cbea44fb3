"""Parameters as bytes, under relay's names."""

from tvm.runtime.params import load_param_dict, save_param_dict

__all__ = ["load_param_dict", "save_param_dict"]
