"""Numbers that say what a candidate is like."""

from .feature_extractor import (
    FeatureExtractor,
    PerStoreFeature,
    PyFeatureExtractor,
    RandomFeatureExtractor,
)

create = FeatureExtractor.create
