"""What language models need beside layers: caches of keys and values, rotary embeddings."""

from . import kv_cache, position_embedding
